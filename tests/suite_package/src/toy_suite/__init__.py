"""A suite that asks a counter for numbers, and scores whether they are even."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.records import Record
from memorybench.core.report_sections import Report
from memorybench.core.trials import Score, Subject, Trial
from memorybench.journal.rows import Fingerprint, Run
from memorybench.metrics.rates import Rate
from memorybench.suites import report_parts as sections
from memorybench.suites.spec import Spec, flag
from memorybench.suites.stored_run import StoredRun
from memorybench.suites.suite import Command, Opening, PreparedRun, RunPlace, Suite
from memorybench.suites.wiring import Wiring

COUNTER = Subject(role="counter", name="counter")
METRICS = (Rate("even", "even"),)


class ToySpec(Spec):
    size: int = flag(4, help="Set the number of cases.", metavar="N", ge=1)
    names: tuple[str, ...] = flag((), help="Name the cases.", metavar="NAME")


class Answer(Record):
    number: int


def prepare(spec: ToySpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    async def open_plan(opening: Opening) -> Plan:
        return Plan(jobs=_jobs(spec.size), size=spec.size)

    return PreparedRun(
        spec=spec,
        totals={("numbers", COUNTER.name): spec.size},
        subjects=(COUNTER.name,),
        fingerprints={"counter": Fingerprint.of("1.0")},
        metrics=METRICS,
        open_plan=open_plan,
    )


def _jobs(size: int) -> Iterator[Job]:
    for n in range(size):
        trial = Trial(suite="toy", benchmark="numbers", case_id=str(n), subject=COUNTER)
        yield Job(trial=trial, perform=partial(_perform, n), ordinal=n)


async def _perform(n: int, steps: Steps) -> Performed:
    async def ask() -> Answer:
        return Answer(number=n)

    answer = await steps.once("count", {"n": n}, ask, Answer, on=COUNTER)
    return Performed(scores=(Score(name="even", value=float(answer.number % 2 == 0)),))


def metrics(run: StoredRun) -> Sequence[Rate]:
    return METRICS


def facts(runs: Sequence[Run]) -> dict[str, str]:
    return {"Run ID": runs[0].id, "Cases": str(runs[0].spec["size"])}


def report(run: StoredRun) -> Report:
    table = sections.measure_table("Numbers", run.summary.results, {"even": "numbers that are even"})
    return Report(title="Toy", sections=(table,), document=sections.document(run.summary))


SUITE = Suite(
    name="toy",
    commands=(Command("toy", "count even numbers", ToySpec, "toy_suite:prepare", "TOY SUITE"),),
    report_module="toy_suite",
)
