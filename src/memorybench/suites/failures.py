"""The failures of a run: trials without a score, and trials with a wrong result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from memorybench.core.report_sections import Case, Column, Row, Table, text_column
from memorybench.core.trials import STATUSES, Outcome, Trial
from memorybench.files.expressions import canonical_name
from memorybench.journal.rows import Run
from memorybench.text.sanitize import preview
from memorybench.text.spelling import unknown_name

from .registry import named_as_in_reports, suite_of
from .report_parts import gold_lines, gold_turns, is_failure, is_undecided, shorten_line
from .stored_run import StoredRun
from .summary import subjects_of

_CONTEXT_LINES = 3
_LONGEST_LINE = 300
_MOST_GOLD = 4

FAILURE_REASONS = {
    "failed": "the trial ended with an error",
    "unscored": "the answer could not be scored",
    "blocked": "the budget or a missing consent blocked the trial",
    "skipped": "the subject lacks what the trial needs",
    "not-retrieved": "the gold evidence was not among the memories shown; without a verdict: not among the first 5",
    "not-used": "the gold evidence was among the memories shown, and the answer did not use it",
    "stale": "the answer is an outdated value",
    "invented": "the answer is wrong, and not an outdated value",
    "wrong": "the result is wrong; the sources of the memories are unknown, or there are none",
}
"""Why a trial is a failure, in the order in which failures are listed."""
TYPE_LABELS = ("question_type", "probe_type", "category", "scenario", "phase")
"""The labels that may hold the type of a question, the preferred one first."""
JUDGED = ("correct", "rubric_met", "passed", "succeeded")
"""Names of scores. A trial that has one of them was judged: its answer, a phase of a scenario, or whether a
recorded operation succeeded."""
_NOT_FOUND = "the gold evidence is not among the first 5 results (recall@5 is 0)"
"""Explains the reason `not-retrieved` for a trial without a verdict."""
_FAILED_OPERATION = "the search or write failed"
"""Explains the reason `wrong` for a recorded operation that was not judged."""


class Failures(NamedTuple):
    trials: Sequence[Outcome]
    without_wrong: frozenset[str] = frozenset()
    """The names of baselines whose wrong results are left out; their failed and unscored trials are not."""


def failure_reason(outcome: Outcome) -> str | None:
    """Return why a trial is a failure, as a key of FAILURE_REASONS; None if it is not a failure."""
    if outcome.status != "scored":
        return outcome.status
    if not is_failure(outcome):
        return None
    if outcome.score("miss_stale") == 1:
        return "stale"
    if outcome.score("miss_invented") == 1 and outcome.score("miss_not_retrieved") != 1:
        return "invented"
    if outcome.score("miss_not_used") == 1:
        return "not-used"
    return "wrong" if has_verdict(outcome) and outcome.score("miss_not_retrieved") != 1 else "not-retrieved"


def outcome_mark(outcome: Outcome) -> str:
    """Return `right`, `wrong`, `undecided`, or the status of a trial that has no score."""
    if failure_reason(outcome) is not None:
        return "wrong" if outcome.status == "scored" else outcome.status
    return "undecided" if is_undecided(outcome) else "right"


def right_text(run: Run) -> str:
    """Return a sentence that says when a result of a run counts as `right`."""
    if own := suite_of(run).right_text(run):
        return own
    levels = set(run.spec.get("evidence", {}).values())
    found = {
        frozenset({"turn"}): "a gold turn is among the first five memories",
        frozenset({"session"}): "a gold session is among the first five sessions found, with or without the gold turn",
    }.get(frozenset(levels), "gold evidence is among the first five memories")
    return f"Right: judged correct, or every item of the rubric met, or, without a judge, {found}."


def question_type(trial: Trial) -> str:
    return next((trial.labels[name] for name in TYPE_LABELS if name in trial.labels), "")


def failure_text(failure: Outcome) -> str:
    """Return why a trial is a failure, as a sentence: the judge's reason if there is one."""
    if failure.failure is not None:
        return failure.failure.message
    if failure.shown.reason and failure.score("correct") != 1:
        return failure.shown.reason
    if is_failed_operation(failure):
        return _FAILED_OPERATION
    return not_found_text(failure) or FAILURE_REASONS[_reason(failure)].partition(";")[0]


def not_found_text(outcome: Outcome) -> str:
    """Return a sentence saying that the first results lack the gold evidence; "" if the trial has another result."""
    return _NOT_FOUND if failure_reason(outcome) == "not-retrieved" and not has_verdict(outcome) else ""


def is_failed_operation(outcome: Outcome) -> bool:
    """Whether a trial is a recorded search or write that failed and that no judge found wrong."""
    return outcome.score("succeeded") == 0 and outcome.score("correct") != 0


def has_verdict(outcome: Outcome) -> bool:
    """Whether an answer or a phase was judged. If not, the retrieved memories decide whether a trial is right."""
    return any(outcome.score(name) is not None for name in JUDGED)


def find_failures(
    stored: StoredRun, providers: Collection[str] = (), types: Collection[str] = (), reasons: Collection[str] = ()
) -> Failures:
    """Return the trials that have no score or a wrong result, sorted by provider, by reason, and by place in the plan.

    `providers`, `types` and `reasons` select failures; empty: all. Raise BadInput for a name that the run does not
    have. Wrong results of baselines such as `none` are left out, unless `providers` is given or the run has only
    baselines. A type is the value of any label: a question type, a probe type, a phase or a category.
    """
    providers = [canonical_name(name) for name in providers]
    subjects, labels, failures = dict.fromkeys(subjects_of(stored.run)), set(), []
    roles: dict[str, str] = {}
    for outcome in stored.outcomes():
        trial, reason = outcome.trial, failure_reason(outcome)
        subjects.setdefault(trial.subject.name)
        roles[trial.subject.name] = trial.subject.role
        labels |= set(trial.labels.values())
        is_wanted = (not types or set(types) & set(trial.labels.values())) and (not reasons or reason in reasons)
        if reason is not None and is_wanted and (not providers or trial.subject.name in providers):
            failures.append(outcome)
    baselines = frozenset(name for name, role in roles.items() if role == "baseline")
    without_wrong = frozenset[str]() if providers or baselines == roles.keys() else baselines
    failures = [one for one in failures if one.status != "scored" or one.trial.subject.name not in without_wrong]
    _check("--providers", providers, subjects)
    _check("--question-type", types, labels)
    _check("--reason", reasons, FAILURE_REASONS)
    order, ranks = list(subjects), list(FAILURE_REASONS)
    failures.sort(key=lambda one: (order.index(one.trial.subject.name), ranks.index(_reason(one))))
    return Failures(failures, without_wrong)


def _check(flag: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise unknown_name(flag, f"{preview(name)} not found", name, known)


def _reason(failure: Outcome) -> str:
    return failure_reason(failure) or "wrong"


def reason_table(failures: Failures) -> Table:
    """Return a table of the number of failures of each provider, by reason."""
    counts = Counter((failure.trial.subject.name, _reason(failure)) for failure in failures.trials)
    reasons = [reason for reason in FAILURE_REASONS if any(found == reason for _, found in counts)]
    subjects = dict.fromkeys(subject for subject, _ in counts)

    def count(subject: str, reason: str) -> int | None:
        return None if subject in failures.without_wrong and reason not in STATUSES else counts[subject, reason]

    rows: list[Row] = [(subject, *(count(subject, reason) for reason in reasons)) for subject in subjects]
    return Table("FAILURES", (text_column("provider"), *map(Column, reasons)), tuple(rows))


def failure_document(outcome: Outcome, case: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Return a failure as JSON-compatible data: one entry of `results --failures --json`."""
    return {
        **outcome.model_dump(mode="json"),
        "reason": _reason(outcome),
        "gold": gold_turns(case),
        "command": command,
    }


def failure_case(outcome: Outcome, case: Mapping[str, Any] | None = None, command: str = "") -> Case:
    """Return one failure for `results --failures`, with its gold turns and the `command` that shows all of it."""
    trial, shown = outcome.trial, named_as_in_reports(outcome).shown
    reason = _reason(outcome)
    context = [shorten_line(line, _LONGEST_LINE) for line in shown.context.splitlines() if line.strip()]
    fields = (
        ("why", outcome.failure.message if outcome.failure else ""),
        ("question", shown.asked),
        ("expected", shown.expected),
        *(("gold", shorten_line(line, _LONGEST_LINE)) for line in gold_lines(case or {})[:_MOST_GOLD]),
        ("got", shown.got),
        ("context", "\n".join(context[:_CONTEXT_LINES])),
        ("reason", shown.reason if outcome.failure else failure_text(outcome)),
    )
    kind = trial.labels.get("question_type") or trial.labels.get("probe_type") or trial.variant
    return Case(
        (trial.subject.name, trial.case_id, trial.repeat_name, kind, reason),
        tuple((name, text) for name, text in fields if text),
        command,
    )
