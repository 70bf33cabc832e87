"""Writes a run as JUnit XML, which CI servers show: one testsuite per benchmark and subject, one testcase per trial."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from memorybench.core.trials import Outcome
from memorybench.journal.run_reader import RecordedTrial
from memorybench.text.sanitize import sanitize

from .failures import failure_case, failure_text, has_verdict, is_failed_operation
from .registry import named_as_in_reports
from .report_parts import is_failure, is_undecided
from .thresholds import Check

_RESULTS = {"scored": "failure", "unscored": "error", "failed": "error", "skipped": "skipped", "blocked": "skipped"}
"""By status of a trial: the XML element that its testcase gets if the trial is a failure."""
_UNDECIDED = "nothing says whether the result is right: no judged answer, and no gold evidence or no known sources"
_UNDECIDED_FACTS = "it is undecided whether the written facts are right; --judge-model lets a judge decide"
"""Why the testcase of a trial that is neither right nor wrong is skipped: `_UNDECIDED_FACTS` for an extraction,
`_UNDECIDED` for other trials."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(run_id: str, trials: Iterable[RecordedTrial], checks: Sequence[Check] = ()) -> str:
    """Return a run as JUnit XML. Each of its `checks`, thresholds and baseline, is a testcase.

    Trials of baselines such as `none` are left out: they are not under test.
    """
    root = ElementTree.Element("testsuites", name=_text(f"memorybench {run_id}"))
    suites: dict[tuple[str, str], ElementTree.Element] = {}
    for trial in trials:
        if trial.outcome.trial.subject.role == "baseline":
            continue
        key = trial.outcome.trial.benchmark, trial.outcome.trial.subject.name
        if key not in suites:
            suites[key] = ElementTree.SubElement(root, "testsuite", name=_text(" × ".join(key)))
        _add_trial(suites[key], trial)
    if checks:
        suite = ElementTree.SubElement(root, "testsuite", name="checks")
        for check in checks:
            case = _add_case(suite, check.where, check.name, 0.0)
            if check.missed:
                ElementTree.SubElement(case, "failure", message=_text(check.text), type="check")
    for suite in (*root, root):
        for name, found in (
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            suite.set(name, str(len(suite.findall(f".//{found}"))))
        suite.set("time", f"{sum(float(case.get('time', 0)) for case in suite.iter('testcase')):.3f}")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_trial(suite: ElementTree.Element, recorded: RecordedTrial) -> None:
    outcome = recorded.outcome
    trial = outcome.trial
    details = ", ".join(part for part in (trial.variant, trial.repeat_name) if part)
    name = f"{trial.case_id} ({details})" if details else trial.case_id
    case = _add_case(
        suite, f"{trial.benchmark}.{trial.subject.name}", name, sum(step.seconds or 0.0 for step in recorded.own_steps)
    )
    if is_failure(outcome):
        result = ElementTree.SubElement(case, _RESULTS[outcome.status], message=_message(outcome))
        if outcome.status != "scored":
            result.set("type", _text(outcome.failure.kind) if outcome.failure else outcome.status)
        result.text = _text("\n".join(f"{name}: {text}" for name, text in failure_case(outcome, recorded.case).fields))
    elif is_undecided(outcome):
        message = _UNDECIDED_FACTS if trial.suite == "extraction" else _UNDECIDED
        ElementTree.SubElement(case, "skipped", message=message)


def _add_case(suite: ElementTree.Element, group: str, name: str, seconds: float) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=_text(group), name=_text(name), time=f"{seconds:.3f}")


def _message(outcome: Outcome) -> str:
    shown = named_as_in_reports(outcome).shown
    if shown.got and has_verdict(outcome) and not is_failed_operation(outcome):
        return _text(f"expected {shown.expected!r}, got {shown.got!r}")
    return _text(failure_text(outcome))


def _text(text: str) -> str:
    """Remove control characters, and replace other characters that XML does not allow with U+FFFD."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", sanitize(text))
