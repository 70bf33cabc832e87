"""Checks the judge of a run with canaries, and corrects the scores of a run for the judge's errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from memorybench.core.measures import Measure
from memorybench.core.records import Record, digest
from memorybench.core.report_sections import Column, Notes, Table, text_column
from memorybench.judging.canaries import CanaryReport, check_judge
from memorybench.metrics.agreement import (
    Confusion,
    correct_for_judge,
    effective_n,
    falls_short,
    is_informative,
    sensitivity,
    specificity,
)
from memorybench.metrics.intervals import SHARE, Interval, interval, standard_error
from memorybench.metrics.rates import mean_row
from memorybench.reporting import formatting

from .answering import BY_CODE

if TYPE_CHECKING:
    from memorybench.core.measures import Metric
    from memorybench.core.plans import Steps
    from memorybench.core.report_sections import Section
    from memorybench.judging.canaries import Canary
    from memorybench.judging.judge import Judge

    from .stored_run import StoredRun

STEP = "judge check"
NOTE = "judge"
"""The kind of the note with the result of the judge check."""
LEAST_RATE = 0.9
"""A judge fails if its sensitivity or its specificity on canaries is significantly below this rate."""
ENOUGH = 24
"""The report says that there are few canaries if fewer than this were asked. Each judge prompt has this many."""
_SHARE_OF_CALLS = 10
_CAUTION = "Canaries are not the questions of this run: the correction assumes that the judge errs as often on both."


def canary_limit(asked: int | Literal["off"] | None, judge_calls: int) -> int:
    """Return how many canaries to ask: the number after `--canaries`, or 0 for `off`.

    If `asked` is None, it is a tenth of the run's judge calls.
    """
    if asked is None:
        return judge_calls // _SHARE_OF_CALLS
    return 0 if asked == "off" else asked


async def record_judge_check(
    steps: Steps, judge: Judge, canaries: Sequence[Canary], limit: int, judged: str = ""
) -> None:
    """Ask the judge the first `limit` canaries and record the result. If `limit` is 0, note that none was asked.

    `judged` is what the judge decides, such as `searches`; the note names it if a run has several checks.
    """
    subject = judge.model.subject
    if not limit:
        await steps.note(NOTE, unchecked_note(subject.name, judged))
        return
    inputs = {"judge": subject, "prompts": prompts_digest(canaries), "limit": limit}
    check = partial(check_judge, steps, judge, canaries[:limit])
    # the canaries are steps of their own: inside a step, they would wait for its slot
    found = None if steps.is_recorded(STEP, inputs) else await check()

    async def get_report() -> CanaryReport:
        return found or await check()

    report = await steps.once(STEP, inputs, get_report, CanaryReport)
    await steps.note(NOTE, check_note(report, judged))


def unchecked_note(judge: str, judged: str = "") -> str:
    return f"judge {_judge_of(judge, judged)}: not checked; --canaries {ENOUGH} checks it with known answers"


def _judge_of(judge: str, judged: str) -> str:
    return f"{judge} of {judged}" if judged else judge


def check_note(report: CanaryReport, judged: str = "") -> str:
    """Return the result of a check as a sentence. It adds a hint if fewer than ENOUGH canaries were asked."""
    asked = report.sensitivity[1] + report.specificity[1] + report.unreadable
    canaries = "1 canary detects" if asked == 1 else f"{asked} canaries detect"
    few = f"; {canaries} only a bad judge, --canaries {ENOUGH} asks more" if asked < ENOUGH else ""
    return report.model_copy(update={"judge": _judge_of(report.judge, judged)}).sentence() + few


def prompts_digest(canaries: Sequence[Canary]) -> str:
    """Return a digest of the prompts of these canaries."""
    return digest([repr(prompt) for prompt in dict.fromkeys(one.prompt for one in canaries)])


class Rate(Record):
    agreed: int
    n: int
    low: float | None
    high: float | None


class Corrected(Record):
    """A measure, corrected for the errors of the judge."""

    benchmark: str
    subject: str
    measure: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    judged: float
    """The share of the answers that the judge decided, from 0 to 1; code decided the others."""
    undecided: bool
    """True if the canaries do not show that the judge is better than guessing. The measure is then not corrected."""


class JudgeCheck(Record):
    judge: str
    canaries: int
    sensitivity: Rate
    specificity: Rate
    unreadable: int
    least_rate: float
    failed: tuple[str, ...]
    """`sensitivity`, `specificity` or both: those significantly below `least_rate`. Empty if the judge passed."""
    corrected: tuple[Corrected, ...]

    def sentence(self) -> str:
        rates = {"sensitivity": self.sensitivity, "specificity": self.specificity}
        least = f"significantly below {formatting.share(self.least_rate)}"
        parts = [f"{name} {rates[name].agreed} of {rates[name].n} canaries, {least}" for name in self.failed]
        return (
            f"WARNING: judge {self.judge} failed its check: {'; '.join(parts)}. Do not rely on its verdicts; choose"
            " another judge, or measure this one with answers that you labelled, as docs/judging.md shows."
        )


def judge_checks(run: StoredRun, measures: Mapping[str, bool]) -> tuple[JudgeCheck, ...]:
    """Return the judge checks recorded in a run: none, one, or one per shard or kind of operation.

    `measures` are the measures to correct. A value is True if the measure counts wrong answers instead of right ones.
    """
    if not run.spec.get("judge"):
        return ()
    reports = {
        result: CanaryReport.model_validate_json(result)
        for run_reader, part in run.parts
        for _, result in run_reader.step_records(part.id, STEP)
    }
    return tuple(_judge_check(run, report, measures) for report in reports.values())


def _judge_check(run: StoredRun, report: CanaryReport, measures: Mapping[str, bool]) -> JudgeCheck:
    (hits, rights), (passes, wrongs) = report.sensitivity, report.specificity
    confusion = Confusion(both_yes=hits, person_yes=rights - hits, both_no=passes, judge_yes=wrongs - passes)
    rates = {"sensitivity": (hits, rights), "specificity": (passes, wrongs)}
    return JudgeCheck(
        judge=report.judge,
        canaries=rights + wrongs + report.unreadable,
        sensitivity=_rate(hits, rights, sensitivity(confusion)),
        specificity=_rate(passes, wrongs, specificity(confusion)),
        unreadable=report.unreadable,
        least_rate=LEAST_RATE,
        failed=tuple(name for name, (agreed, n) in rates.items() if falls_short(agreed, n, LEAST_RATE)),
        corrected=tuple(_corrected(run, confusion, measures)),
    )


def _rate(agreed: int, n: int, estimate: Interval) -> Rate:
    return Rate(agreed=agreed, n=n, low=estimate.low, high=estimate.high)


def _corrected(run: StoredRun, confusion: Confusion, measures: Mapping[str, bool]) -> Iterator[Corrected]:
    metrics: list[Metric] = [metric for metric in run.metrics if metric.name in measures]
    rows: dict[tuple[str, str, str], list[tuple[float, ...]]] = {}
    clusters: dict[tuple[str, str, str], list[str]] = {}
    for (benchmark, subject, *_), same in groupby(run.outcomes(), key=lambda outcome: outcome.trial.item):
        repeats = tuple(same)
        for metric in metrics:
            own = []
            for outcome in repeats:
                row = metric.read(outcome)
                by_code = outcome.score(BY_CODE) or 0.0
                own += [] if row is None else [(row[0], row[0] * by_code, 1 - by_code)]
            mean = mean_row(own)
            if mean is not None:
                key = (benchmark, subject, metric.name)
                rows.setdefault(key, []).append(mean)
                clusters.setdefault(key, []).append(repeats[0].trial.cluster)
    for key, values in rows.items():
        used = confusion.complement() if measures[key[2]] else confusion
        estimate, judged = correct_scores(values, clusters[key], used)
        benchmark, subject, name = key
        yield Corrected(
            benchmark=benchmark,
            subject=subject,
            measure=name,
            **estimate._asdict(),
            n=len(values),
            judged=judged,
            undecided=estimate.value is None,
        )


def correct_scores(
    rows: Sequence[Sequence[float]], clusters: Sequence[str], confusion: Confusion
) -> tuple[Interval, float]:
    """Return the mean score, corrected for the judge's errors, and the share that the judge decided.

    Each row has a score, the part of it that code decided, and the share that the judge decided. The sampling error is
    that of the clustered interval, by its effective number of items.
    """
    scores, by_code, judged = ([row[place] for row in rows] for place in range(3))
    share = sum(judged) / len(rows)
    raw = interval(scores, clusters, bounds=SHARE)
    if raw.value is None or not is_informative(confusion):
        return Interval(None), share
    n = effective_n(raw)
    if n is not None and share < 1:
        # the correction stretches the scores that the judge decided, and only these
        power = (sensitivity(confusion).value or 0) + (specificity(confusion).value or 0) - 1
        stretched = [code + (score - code) / power for score, code in zip(scores, by_code, strict=True)]
        errors = [standard_error(values, clusters) for values in (scores, stretched)]
        n *= (errors[0] / (power * errors[1])) ** 2 if errors[0] and errors[1] else 1.0
    right_by_code = sum(by_code) / len(rows)
    corrected = correct_for_judge(raw.value, n, confusion, judged=share, right_by_code=right_by_code)
    return (corrected if n is not None else Interval(corrected.value)), share


def check_warnings(checks: Sequence[JudgeCheck]) -> list[Section]:
    """Return the first section of a report, which names the judges that failed their check; [] if none failed."""
    failed = tuple(check.sentence() for check in checks if check.failed)
    return [Notes(failed, warning=True)] if failed else []


def correction_tables(run: StoredRun, checks: Sequence[JudgeCheck]) -> list[Section]:
    """Return a table of the measures as judged and as corrected, for the judges that failed their check."""
    rows = []
    for check in checks:
        for one in check.corrected if check.failed else ():
            result = next(r for r in run.summary.overall(one.benchmark) if r.subject == one.subject)
            raw = result.measure(one.measure)
            shown = Measure(
                name=one.measure,
                value=one.value,
                low=one.low,
                high=one.high,
                n=one.n,
                planned=raw.planned if raw else 0,
            )
            rows.append((one.benchmark, one.subject, one.measure, raw, "undecided" if one.undecided else shown))
    if not rows:
        return []
    columns = (
        text_column("benchmark", priority=3),
        text_column("subject", priority=2),
        text_column("measure"),
        Column("as judged [95%]", "interval", priority=1),
        Column("corrected [95%]", "interval"),
    )
    undecided = "Undecided: the canaries do not show that the judge tells right answers from wrong ones."
    notes = (_CAUTION, *([undecided] if any(row[-1] == "undecided" for row in rows) else []))
    return [Table("Corrected for the errors of the judge", columns, tuple(rows), level=3), Notes(notes)]


def check_document(checks: Sequence[JudgeCheck]) -> dict[str, Any]:
    """Return the part of report.json about the judge checks; empty if the judge was not checked."""
    return {"judge_checks": [check.model_dump(mode="json") for check in checks]} if checks else {}
