"""Checks a bundle: each part that can be computed from other parts is computed again and compared.

No service is called and nothing is downloaded. What no computation can show, such as that a model really gave a
recorded reply, is listed as declared. The modules `*_claims.py` make the checks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.core.questions import Dataset
from memorybench.datasets.audit import AuditDataset
from memorybench.suites.recorded_form import ERRORS
from memorybench.suites.registry import suite_of
from memorybench.suites.replayed_steps import Rescorer
from memorybench.text.sanitize import printable

from .archive import REPORT, Archive, open_archive
from .bundled_run import BundledRun
from .claims import Claim, Verification, bundle_text, claim
from .contents import KeptRows
from .data_claims import data_claims
from .judge_claims import judge_claims
from .report_claims import report_claims
from .rows import RunRow
from .score_claims import score_claims
from .signing import PublicKey, signature_claims
from .trial_claims import input_claims, trial_claims

_SETTINGS = "that the run had this name, settings, command line, versions, models, providers and notes"
_SIGNED = ("name", "value", "low", "high", "n")


def verify_bundle(
    path: Path,
    datasets: Mapping[str, Dataset | AuditDataset] | None = None,
    keys: Sequence[PublicKey] = (),
    known_config: Callable[[str], str | None] = lambda _: None,
) -> Verification:
    """Check a bundle and return the claims with their results.

    `datasets` is the available data by benchmark; `keys` are the public keys that the user trusts; `known_config`
    returns the text of a benchmark's config on this machine, to compare with the one in the bundle.
    """
    with open_archive(path) as archive:
        rows = KeptRows.in_archive(archive)
        changed = archive.changed_files()
        if changed:
            text = "files are not those of the manifest; nothing else was checked"
            claims = [claim("digests", "contradicted", text, changed)]
            return _verification(archive, None, claims)
        claims = [claim("digests", "proved", "each file has the digest of the manifest, and the root covers all", n=10)]
        run = rows.run()
        bundle = BundledRun(archive, rows, run, datasets or {}, known_config)
        try:
            claims += _claims(bundle)
        except (*ERRORS, RuntimeError) as error:
            raise BadInput(str(path), f"does not have the format of a bundle ({bundle_text(str(error))})") from error
        claims += signature_claims(archive.signature, archive.manifest, run, _report(archive), keys)
        return _verification(archive, run, claims, bundle.same_inputs)


def _claims(bundle: BundledRun) -> Iterator[Claim]:
    repeated = list(bundle.read())
    if repeated:
        yield claim("rows", "contradicted", "rows occur twice", repeated)
    else:
        n = len(bundle.cases) + len(bundle.steps) + len(bundle.outcomes)
        yield claim("rows", "proved", "every row has the form of its table, and occurs once", n=n)
    yield from input_claims(bundle)
    recorded = bundle.recorded()
    rescorer = suite_of(recorded.run).rescorer(recorded)
    yield from trial_claims(bundle, rescorer)
    rescorer = Rescorer() if bundle.is_public else rescorer
    yield from data_claims(bundle, recorded, rescorer)
    yield from judge_claims(bundle, recorded, rescorer)
    yield from score_claims(bundle, recorded, rescorer)
    yield from report_claims(bundle)
    yield from _declared_claims(bundle)


def _declared_claims(bundle: BundledRun) -> Iterator[Claim]:
    yield claim(
        "replies",
        "declared",
        "results of steps: that providers, stores, agents, extractors and models really gave them",
        n=len(bundle.steps),
    )
    text = "when run, trials and calls took place, durations, tokens, costs, tries, and attempts of calls"
    yield claim("times and costs", "declared", text)
    yield claim("settings", "declared", _SETTINGS)
    yield claim("other runs", "declared", "that no other runs were made and left out")


def _report(archive: Archive) -> Mapping[str, Any]:
    """Return the report of the bundle, or {"results": []} if it is malformed, which report_claims.py reports."""
    try:
        report = json.loads(archive.text(REPORT))
        for result in report["results"]:
            for measure in result["measures"]:
                _ = result["benchmark"], result["subject"], result["group"], *(measure[key] for key in _SIGNED)
    except (ValueError, TypeError, LookupError, RecursionError):
        return {"results": []}
    found: Mapping[str, Any] = report
    return found


def _verification(
    archive: Archive, run: RunRow | None, claims: Sequence[Claim], same_inputs: Iterable[str] = ()
) -> Verification:
    return Verification(
        file=printable(str(archive.path)),
        run_id=run.id if run else "",
        suite=printable(run.suite) if run else "",
        root=archive.manifest.root,
        public=archive.manifest.public,
        claims=tuple(claims),
        same_inputs=frozenset(same_inputs),
    )
