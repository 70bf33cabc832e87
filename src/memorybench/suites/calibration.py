"""Compares a judge with human labels. Each labelled response is judged once, as a run in the journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from memorybench.core.contracts import Model
from memorybench.core.errors import BadInput
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.questions import Question
from memorybench.core.records import Record, canonical
from memorybench.core.trials import STATUSES, Exhibit, Score, Trial
from memorybench.files.loading import load
from memorybench.files.validation import validated
from memorybench.journal.rows import Fingerprint
from memorybench.journal.run_reader import RunReader
from memorybench.judging.judge import Judge
from memorybench.judging.prompts import ABSTENTION, JudgePrompts
from memorybench.judging.verdicts import VERDICTS
from memorybench.metrics.agreement import Confusion
from memorybench.text.sanitize import preview

from .model_runs import model_run, perform_with_model
from .run_costs import RunCosts
from .wiring import ResolvedModel, Wiring

SUITE = "calibration"


class Labelled(Record):
    """A row of a labels file: a question, a response and its human label, "" if it has none yet.

    `verdict` is the verdict of a judge on the response; None or "" if the file has none.
    """

    question: str
    answer: str | int | float = ""
    response: str
    label: str | bool
    question_type: str = ""
    verdict: str | bool | None = None
    id: str | int | None = None
    note: str = ""


class Labels(Struct, frozen=True):
    name: str
    rows: tuple[Labelled, ...]
    labels: tuple[bool, ...]
    """The human label of each response."""
    verdicts: tuple[bool | None, ...]
    """The judge's verdict on each response, as the file has it. Either every row has one, or all are None."""
    unlabelled: int = 0
    """The number of rows without a label. They are not in `rows`."""

    @property
    def complete(self) -> bool:
        return None not in self.verdicts


class Calibration(Struct, frozen=True):
    judge: str
    confusion: Confusion
    planned: int
    """The number of labelled responses."""
    counts: Mapping[str, int]
    """The number of labelled responses by status; those that the judge was not asked about are not counted."""
    run_id: str | None = None
    """The run in which the judge was asked; None if the verdicts came from the labels file."""
    status: str = "complete"
    costs: RunCosts | None = None
    """The costs of the judge's calls; None if the verdicts came from the labels file."""
    problem: str = ""
    """Why the judge was not asked about every response, such as a server that cannot be reached."""


def read_labels(path: Path) -> Labels:
    """Read a labels file: JSONL, CSV or JSON. Raise BadInput if any row is invalid."""
    document = load(path)
    if not isinstance(document.value, list) or not document.value:
        raise BadInput(document.where(), "the file contains no labelled responses", expected="one response per line")
    rows, human, verdicts = [], [], []
    ids: set[str] = set()
    unlabelled = 0
    for place in range(len(document.value)):
        part = document.at(place)
        row = validated(part, Labelled, spell=str)
        if row.label == "":
            unlabelled += 1
            continue
        if row.id is not None and str(row.id) in ids:
            raise BadInput(part.where("id"), f"duplicate id {preview(row.id)}", remedy="make ids unique")
        ids.add(str(row.id))
        rows.append(row)
        human.append(_parse_verdict(row.label, part.where("label")))
        verdicts.append(None if row.verdict in (None, "") else _parse_verdict(row.verdict, part.where("verdict")))
    if not rows:
        raise BadInput(document.where(), "no row has a label", remedy='write yes or no into "label" of each row')
    if None in verdicts and any(verdict is not None for verdict in verdicts):
        missing = document.at(verdicts.index(None)).where()
        raise BadInput(
            missing, "this row has no verdict, but other rows have one", remedy="add a verdict to every row, or to none"
        )
    return Labels(path.name, tuple(rows), tuple(human), tuple(verdicts), unlabelled)


def compare_verdicts(labels: Labels) -> Calibration:
    """Compare the human labels with the verdicts in the same file, without asking a judge."""
    both = zip(labels.labels, labels.verdicts, strict=True)
    pairs = [(label, verdict) for label, verdict in both if verdict is not None]
    counts: dict[str, int] = {**dict.fromkeys(STATUSES, 0), "scored": len(pairs)}
    return Calibration("verdicts in the file", Confusion.of(pairs), len(pairs), counts)


def calibrate(
    labels: Labels, model: ResolvedModel, prompts: JudgePrompts, output: Path, wiring: Wiring, concurrency: int = 10
) -> Calibration:
    """Ask the judge about each labelled response, and compare its verdicts with the labels.

    The run id is derived from labels, judge and prompts, so a second call with the same ones resumes the same run.
    """
    marks = {
        "labels": Fingerprint.of(canonical([labels.rows, labels.labels])),
        "judge": Fingerprint.of(f"{model.name} at temperature 0.0"),
        "judge prompts": Fingerprint.of(repr(prompts.used(_questions(labels)))),
    }
    run = model_run(SUITE, SUITE, labels.name, model, marks, len(labels.rows))

    def plan(opened: Model) -> Plan:
        return Plan(jobs=_jobs(labels, Judge(opened, prompts)), size=len(labels.rows))

    ending = perform_with_model(plan, run, model, output, wiring, concurrency=concurrency)
    status = "interrupted" if ending.interrupted else ending.status
    with RunReader.open(output) as run_reader:
        outcomes = [outcome for outcome in run_reader.outcomes(run.id) if outcome.status == "scored"]
        pairs = [(outcome.score("label") == 1, outcome.score("verdict") == 1) for outcome in outcomes]
        costs = RunCosts.of(run_reader, run_reader.run(run.id))
        counts: dict[str, int] = dict(run_reader.counts(run.id).items())
        planned, found = len(labels.rows), Confusion.of(pairs)
        return Calibration(model.name, found, planned, counts, run.id, status, costs, ending.paused)


def _jobs(labels: Labels, judge: Judge) -> Iterator[Job]:
    for place, (question, row, label) in enumerate(zip(_questions(labels), labels.rows, labels.labels, strict=True)):
        trial = Trial(
            suite=SUITE,
            benchmark=labels.name,
            case_id=question.id,
            subject=judge.model.subject,
            labels=question.labels,
        )
        work = partial(_compare, judge, question, row.response, label)
        yield Job(trial=trial, perform=work, ordinal=place, case=question, spends=True)


async def _compare(judge: Judge, question: Question, response: str, label: bool, steps: Steps) -> Performed:
    verdict = await judge.verdict(steps, question, response)
    scores = (Score(name="label", value=label), Score(name="verdict", value=verdict.correct, reason=verdict.reason))
    shown = Exhibit(asked=question.question, expected=" | ".join(question.answers), got=response, reason=verdict.reason)
    return Performed(scores=scores, shown=shown)


def _questions(labels: Labels) -> Sequence[Question]:
    return [
        Question(
            id=str(place if row.id is None else row.id),
            haystack="",
            question=row.question,
            answers=(str(row.answer),) if row.answer != "" else (),
            labels={"question_type": row.question_type} if row.question_type else {},
            abstain=row.question_type == ABSTENTION,
        )
        for place, row in enumerate(labels.rows, 1)
    ]


def _parse_verdict(value: str | bool | None, where: str) -> bool:
    decided = VERDICTS.get(value.strip().lower()) if isinstance(value, str) else value
    if decided is None:
        raise BadInput(where, f"invalid verdict {preview(value)}", expected="yes, no, true or false")
    return decided
