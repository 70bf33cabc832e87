"""Checks the report and the descriptions of a bundle, by making them again from its rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from memorybench.core.errors import MemorybenchError
from memorybench.suites.recorded_form import ERRORS
from memorybench.suites.registry import suite_of
from memorybench.suites.stored_run import read_run

from .archive import CONTENT, CROISSANT, EVERY_EVAL_EVER, REPORT, RO_CRATE, RUN
from .bundled_run import BundledRun
from .claims import Claim, bundle_text, claim
from .contents import opened_run, pretty, report_document, without_paths
from .documents import croissant
from .making import derived_texts
from .score_claims import TOLERANCE, impossible_scores

_MOST_PLACES = 20
_DERIVED = (REPORT, RO_CRATE, EVERY_EVAL_EVER, CROISSANT)


def report_claims(bundle: BundledRun) -> Iterator[Claim]:
    """Check that the report and the descriptions can be made again from the rows with the same result."""
    if without_paths(bundle.run.spec) != dict(bundle.run.spec):
        yield claim("report", "contradicted", "the settings have paths, which memorybench leaves out of bundles", [RUN])
        return
    try:
        with opened_run(bundle.rows) as (run_id, results):
            document = report_document(run_id, results)
            with read_run([f"{results}/{run_id}"], [results]) as stored:
                metrics = suite_of(stored.run).metrics(stored)
                impossible = list(impossible_scores((row.body for row in bundle.outcomes), metrics))
    except (*ERRORS, RuntimeError, MemorybenchError) as error:
        yield claim("report", "contradicted", f"no report can be made from the rows: {bundle_text(str(error))}")
        return
    yield from impossible
    entries = {name: bundle.archive.manifest.files[name] for name in CONTENT if name not in _DERIVED}
    try:
        texts = derived_texts(bundle.run, document, entries)
    except ERRORS as error:
        yield claim("report", "contradicted", f"no report can be made from the rows: {bundle_text(str(error))}")
        return
    own = {name: bundle.archive.text(name) for name in _DERIVED}
    if places := _differences(texts[REPORT], own[REPORT]):
        yield claim("report", "contradicted", "the recorded report differs from the one computed from the rows", places)
    else:
        text = "every measure, interval, comparison and sum of costs follows from the scores and rows"
        yield claim("report", "proved", text)
    # the last digits of a report may differ between machines, so Croissant must have the digest of the bundle's report
    texts[CROISSANT] = pretty(croissant(bundle.run, {**entries, REPORT: bundle.archive.manifest.files[REPORT]}))
    wrong = [name for name in _DERIVED[1:] if _differences(texts[name], own[name])]
    if wrong:
        yield claim(
            "descriptions", "contradicted", "recorded descriptions differ from those computed from the rows", wrong
        )
    else:
        yield claim("descriptions", "proved", "RO-Crate, Croissant and Every Eval Ever follow from the rows", n=3)


def _differences(first: str, second: str) -> list[str]:
    """Return the paths, such as `results[0].n`, at which two JSON texts differ by more than the rounding of numbers."""
    try:
        return list(islice(_different(json.loads(first), json.loads(second), ""), _MOST_PLACES))
    except (ValueError, RecursionError):
        return ["it is not JSON"]


def _different(first: Any, second: Any, place: str) -> Iterator[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            if key in first and key in second:
                yield from _different(first[key], second[key], f"{place}.{key}" if place else key)
            else:
                yield bundle_text(f"{place}.{key}")
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _different(one, other, f"{place}[{number}]")
    elif type(first) is not type(second) or (first != second and not _is_rounded(first, second)):
        yield bundle_text(place) or "its text"


def _is_rounded(first: Any, second: Any) -> bool:
    return isinstance(first, float) and abs(first - second) <= TOLERANCE * max(abs(first), abs(second))
