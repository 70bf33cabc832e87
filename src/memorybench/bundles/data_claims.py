"""Checks the fingerprints of a run, and its cases against the data that is available."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from memorybench.core.errors import MemorybenchError
from memorybench.core.records import canonical
from memorybench.journal.rows import Fingerprint
from memorybench.secrets.redaction import REDACTED
from memorybench.suites.recorded_form import ERRORS
from memorybench.suites.replayed_steps import CannotRescore, RecordedRun, Rescorer

from .bundled_run import BundledRun
from .claims import Claim, bundle_text, claim, claims, name_list

CONFIG_OF = "config of "
"""Prefix of the name of a benchmark config's fingerprint; the name of the benchmark follows."""


def data_claims(bundle: BundledRun, recorded: RecordedRun, rescorer: Rescorer) -> Iterator[Claim]:
    """Check fingerprints and configs, and that the cases are those that the settings select from the data."""
    yield from _fingerprint_claims(bundle)
    yield from _config_claims(bundle)
    yield from _case_claims(bundle, recorded, rescorer)
    yield from _selection_claims(bundle, recorded, rescorer)
    yield from _setting_claims(bundle, recorded, rescorer)


def _fingerprint_claims(bundle: BundledRun) -> Iterator[Claim]:
    wrong, proved, declared, redacted = [], [], [], []
    for name, mark in bundle.run.fingerprints.items():
        if mark.text is None:
            declared.append(bundle_text(name))
        elif Fingerprint.of(mark.text).digest == mark.digest:
            proved.append(bundle_text(name))
        elif REDACTED in mark.text:
            redacted.append(bundle_text(name))
        else:
            wrong.append(bundle_text(name))
    text = "the digests of recorded texts are right; that the run used these models and providers is declared"
    yield from claims("fingerprints", "proved", text, n=len(proved))
    yield from claims("fingerprints", "declared", "only the digest is in the bundle", declared)
    yield from claims("fingerprints", "unchecked", "a secret was removed from the text", redacted)
    yield from claims("fingerprints", "contradicted", "the recorded digest is not that of the recorded text", wrong)


def _config_claims(bundle: BundledRun) -> Iterator[Claim]:
    """Compare the recorded config of each benchmark, which scores depend on, with its config on this machine."""
    proved, others = 0, []
    for title, mark in bundle.run.fingerprints.items():
        if not title.startswith(CONFIG_OF):
            continue
        name = title.removeprefix(CONFIG_OF)
        known = bundle.known_config(name)
        if known is not None and Fingerprint.of(known).digest == mark.digest:
            proved += 1
        else:
            others.append(bundle_text(name))
    yield from claims(
        "configs",
        "proved",
        "the configs by which answers were scored are those of the benchmarks on this machine",
        n=proved,
    )
    text = (
        "the rules and prompts by which answers were scored: on this machine, the benchmark has another config or none"
    )
    yield from claims("configs", "declared", text, others, names=others)


def _case_claims(bundle: BundledRun, recorded: RecordedRun, rescorer: Rescorer) -> Iterator[Claim]:
    """Check that the available data has the recorded fingerprint, and that each case is one of its questions."""
    wrong, declared, changed = [], [], []
    for benchmark in dict.fromkeys(benchmark for benchmark, _ in bundle.cases):
        given = bundle.datasets.get(benchmark)
        is_marked = bundle.data_mark(benchmark) is not None
        if given is not None and is_marked and not bundle.has_fingerprint(benchmark, given):
            wrong.append(bundle_text(benchmark))
            continue
        others = _changed_cases(recorded.data.get(benchmark), rescorer)
        if others:
            changed += [f"{bundle_text(benchmark)}: {bundle_text(one)}" for one in others]
        # conversations from the bundle itself do not prove that they are those of the named data
        if others is None or given is None:
            declared.append(bundle_text(benchmark))
            continue
        count = sum(own == benchmark for own, _ in bundle.cases) - len(others)
        text = "questions and gold answers are those of the data on this machine, which has the recorded fingerprint"
        yield claim("cases", "proved", text, n=count)
    text = "that these are the questions, gold answers or scenarios of the named data, which is not available here"
    yield from claims("cases", "declared", text, declared)
    yield from claims(
        "cases",
        "contradicted",
        "recorded questions or gold answers differ from those of the data on this machine",
        changed,
    )
    yield from claims(
        "cases", "contradicted", "the data on this machine has another fingerprint than the run recorded", wrong
    )


def _changed_cases(dataset: object, rescorer: Rescorer) -> Sequence[str] | None:
    """Return the ids of recorded cases that differ from the data; None if they cannot be compared with it."""
    try:
        return None if dataset is None else rescorer.changed_cases(dataset)
    except CannotRescore:
        return None


def _selection_claims(bundle: BundledRun, recorded: RecordedRun, rescorer: Rescorer) -> Iterator[Claim]:
    """Check that the settings select exactly the cases of the run from the data, if the run is complete."""
    wrong, proved, declared = [], 0, []
    own: dict[str, set[str]] = defaultdict(set)
    for row in bundle.outcomes:
        own[row.body.trial.benchmark].add(row.body.trial.case_id)
    for benchmark in {**own, **recorded.data}:
        selected = _selected_cases(recorded.data.get(benchmark), rescorer) if bundle.is_whole else None
        if selected is not None and selected == own[benchmark]:
            proved += len(selected)
        elif selected is not None and recorded.is_of_this_version:
            missing, added = len(selected - own[benchmark]), len(own[benchmark] - selected)
            text = f"{missing} of the selected cases are not in the run, and {added} of its cases are not selected"
            wrong.append(f"{bundle_text(benchmark)}: {text}")
        else:
            declared.append(bundle_text(benchmark))
    text = "the settings select exactly these questions or probes from the data"
    yield from claims("selection", "proved", text, n=proved)
    text = "that the settings select exactly these questions, probes or scenarios"
    yield from claims("selection", "declared", text, declared)
    yield from claims("selection", "contradicted", "the settings select other cases from the data", wrong)


def _selected_cases(dataset: object, rescorer: Rescorer) -> set[str] | None:
    try:
        selected = None if dataset is None else rescorer.selected_cases(dataset)
    except (MemorybenchError, *ERRORS):
        return None
    return None if selected is None else set(selected)


def _setting_claims(bundle: BundledRun, recorded: RecordedRun, rescorer: Rescorer) -> Iterator[Claim]:
    """Check the recorded settings that can be derived from the cases, because the report depends on them."""
    has_cases = all((row.body.trial.benchmark, row.body.trial.case_id) in bundle.cases for row in bundle.outcomes)
    if not bundle.is_whole or not has_cases or not recorded.is_of_this_version:
        return  # cases of failed trials may be missing, and another version may derive other values
    try:
        derived = rescorer.derived_settings()
    except CannotRescore:
        return
    if derived is None:
        return
    wrong = [name for name, value in derived.items() if _unordered(bundle.run.spec.get(name)) != _unordered(value)]
    if wrong:
        yield claim("settings", "contradicted", "recorded settings differ from those computed from the cases", wrong)
    else:
        text = f"the same if computed from the cases: {name_list(derived)}"
        yield claim("settings", "proved", text, n=len(derived))


def _unordered(value: Any) -> str:
    """Return a value as text; lists with the same items in another order give the same text."""
    if isinstance(value, dict):
        return canonical({key: _unordered(own) for key, own in value.items()})
    return canonical(sorted(map(canonical, value)) if isinstance(value, list) else value)
