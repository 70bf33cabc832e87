"""A judge against people: every labelled response is judged once, as a run in the journal, and the two are compared."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from memorybench import __version__
from memorybench.core.errors import BadInput
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.questions import Question
from memorybench.core.records import Record, canonical, digest
from memorybench.core.trials import STATUSES, Exhibit, Score, Trial
from memorybench.engine.run import perform
from memorybench.files.loading import load
from memorybench.files.validation import validated
from memorybench.journal.rows import Fingerprint, Run
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import RunWriter, open_run, reopen_run
from memorybench.judging.judge import Judge
from memorybench.judging.prompts import ABSTENTION, JudgePrompts
from memorybench.judging.verdicts import VERDICTS
from memorybench.metrics.agreement import Confusion
from memorybench.text.sanitize import preview

from .environment import fault, redactor
from .models import Chosen, open_chosen

SUITE = "calibration"


class Labelled(Record):
    """A row of a labels file. `verdict`, where it is given, is what a judge said already."""

    question: str
    answer: str | int | float = ""
    response: str
    label: str | bool
    question_type: str = ""
    verdict: str | bool | None = None
    id: str | int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Labels:
    name: str
    rows: tuple[Labelled, ...]
    said: tuple[bool, ...]
    """What people said of each response."""
    verdicts: tuple[bool | None, ...]
    """What a judge said already; None: it is to be asked."""
    unlabelled: int = 0
    """Rows that nobody has labelled yet: they are left out."""

    @property
    def complete(self) -> bool:
        return None not in self.verdicts


@dataclass(frozen=True, slots=True)
class Calibration:
    judge: str
    confusion: Confusion
    counts: Mapping[str, int]
    run_id: str | None = None
    """None: nobody was asked."""
    status: str = "complete"


def read_labels(path: Path) -> Labels:
    """JSONL, CSV or JSON; every row is checked before any is used."""
    document = load(path)
    if not isinstance(document.value, list) or not document.value:
        raise BadInput(document.where(), "holds no labelled responses", expected="one a line")
    rows, said, verdicts = [], [], []
    ids: set[str] = set()
    unlabelled = 0
    for place in range(len(document.value)):
        part = document.at(place)
        row = validated(part, Labelled)
        if row.label == "":
            unlabelled += 1
            continue
        if row.id is not None and str(row.id) in ids:
            raise BadInput(part.where("id"), f"{preview(row.id)} stands here twice", remedy="make ids unique")
        ids.add(str(row.id))
        rows.append(row)
        said.append(_decided(row.label, part.where("label")))
        verdicts.append(None if row.verdict in (None, "") else _decided(row.verdict, part.where("verdict")))
    if not rows:
        raise BadInput(document.where(), "no row is labelled yet", remedy='fill in "label": yes or no')
    if None in verdicts and any(verdict is not None for verdict in verdicts):
        missing = document.at(verdicts.index(None)).where()
        raise BadInput(missing, "has no verdict, others have", remedy="give every row its verdict, or none")
    return Labels(path.name, tuple(rows), tuple(said), tuple(verdicts), unlabelled)


def compared(labels: Labels) -> Calibration:
    """From the verdicts that stand in the file."""
    pairs = [(said, verdict) for said, verdict in zip(labels.said, labels.verdicts, strict=True) if verdict is not None]
    counts: dict[str, int] = {**dict.fromkeys(STATUSES, 0), "scored": len(pairs)}
    return Calibration("verdicts in the file", Confusion.of(pairs), counts)


def calibrate(
    labels: Labels, chosen: Chosen, prompts: JudgePrompts, output: Path, *, concurrency: int = 10
) -> Calibration:
    """Asks the judge. The run's id follows from labels, judge and prompts: asked for again, it is gone on with."""
    marks = {
        "labels": Fingerprint.of(canonical([labels.rows, labels.said])),
        "judge": Fingerprint.of(f"{chosen.name} at temperature {chosen.temperature}"),
        "judge prompts": Fingerprint.of(repr(prompts.used(_questions(labels)))),
    }
    run = Run(
        id=f"{SUITE}_{digest(marks)[:8]}",
        suite=SUITE,
        spec={"benchmarks": [labels.name], "providers": [chosen.name]},
        fingerprints=marks,
        program=f"memorybench {__version__}",
        planned=len(labels.rows),
    )
    redact = redactor().clean
    if _begun(output, run.id):
        opened = reopen_run(output, run.id, fingerprints=marks, redact=redact, fault=fault())
    else:
        opened = open_run(output, run, redact=redact, fault=fault())
    with opened as run_writer:
        status = asyncio.run(_judge_all(labels, chosen, prompts, run_writer, concurrency))
    with RunReader.open(output) as run_reader:
        outcomes = [outcome for outcome in run_reader.outcomes(run.id) if outcome.status == "scored"]
        pairs = [(outcome.score("label") == 1, outcome.score("verdict") == 1) for outcome in outcomes]
        return Calibration(chosen.name, Confusion.of(pairs), dict(run_reader.counts(run.id).items()), run.id, status)


async def _judge_all(
    labels: Labels, chosen: Chosen, prompts: JudgePrompts, run_writer: RunWriter, concurrency: int
) -> str:
    async with AsyncExitStack() as stack:
        judge = Judge(await open_chosen(stack, chosen), prompts)
        plan = Plan(jobs=_jobs(labels, judge), size=len(labels.rows))
        ending = await perform(plan, run_writer, concurrency=concurrency)
    run_writer.end(ending.status)
    return "interrupted" if ending.interrupted else ending.status


def _jobs(labels: Labels, judge: Judge) -> Iterator[Job]:
    for place, (question, row, said) in enumerate(zip(_questions(labels), labels.rows, labels.said, strict=True)):
        trial = Trial(
            suite=SUITE,
            benchmark=labels.name,
            case_id=question.id,
            subject=judge.model.subject,
            labels=question.labels,
        )
        work = partial(_compare, judge, question, row.response, said)
        yield Job(trial=trial, perform=work, ordinal=place, case=question, spends=True)


async def _compare(judge: Judge, question: Question, response: str, said: bool, steps: Steps) -> Performed:
    verdict = await judge.verdict(steps, question, response)
    scores = (Score(name="label", value=said), Score(name="verdict", value=verdict.correct, reason=verdict.reason))
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


def _begun(output: Path, run_id: str) -> bool:
    if not (output / "results.db").exists():
        return False
    with RunReader.open(output) as run_reader:
        return run_reader.has(run_id)


def _decided(value: str | bool | None, where: str) -> bool:
    decided = VERDICTS.get(value.strip().lower()) if isinstance(value, str) else value
    if decided is None:
        raise BadInput(where, f"is {preview(value)}", expected="yes, no, true or false")
    return decided
