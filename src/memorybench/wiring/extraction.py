"""From an extraction spec to a run: cases, an extractor, and a judge for what code can not decide."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from memorybench import __version__
from memorybench.catalog.catalog import Catalog
from memorybench.catalog.files import DATA
from memorybench.core.errors import BadInput
from memorybench.core.records import Record, canonical
from memorybench.core.trials import Subject
from memorybench.engine.budget import Budget
from memorybench.engine.run import Ending, Watch, perform
from memorybench.journal.rows import Fingerprint, Run
from memorybench.journal.run_writer import RunWriter
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.suites.extraction.cases import ExtractionCase, load_cases
from memorybench.suites.extraction.measures import selected
from memorybench.suites.extraction.plan import ExtractionPlan, trial_of

from .bench import STORES
from .environment import environment
from .extractors import ChosenExtractor, choose_extractor
from .models import JUDGE_VARIABLE, NO_MODEL, Chosen, model_named, open_chosen
from .running import saved_run, saved_spec

SUITE = "extraction"
BUNDLED_CASES = DATA / "memory_test_cases.json"


class ExtractionSpec(Record):
    """All that an offline run depends on. Saved with the run: `--resume` needs nothing else."""

    cases: str | None = None
    """None: our own."""
    extractor: str | None = None
    extractor_command: str | None = None
    extractor_model: str | None = None
    judge_model: str | None = None
    scenarios: tuple[str, ...] = ()
    limit: int | None = Field(default=None, ge=1)
    config_dirs: tuple[str, ...] = ()
    allow_code: bool = False
    reuse: str | None = None


@dataclass(frozen=True, slots=True)
class PreparedExtraction:
    """Everything is resolved, nothing is opened."""

    spec: ExtractionSpec
    name: str
    """Of the case set."""
    cases: tuple[ExtractionCase, ...]
    extractor: ChosenExtractor
    judge: Chosen | None
    fingerprints: Mapping[str, Fingerprint]

    @property
    def reuse(self) -> str | None:
        return self.spec.reuse

    @property
    def models(self) -> tuple[Chosen | None, ...]:
        return self.extractor.model, self.judge

    @property
    def planned(self) -> int:
        return len(self.cases)

    def totals(self) -> dict[tuple[str, str], int]:
        return {(self.name, self.extractor.name): len(self.cases)}

    def row(self, run_id: str) -> Run:
        anybody = Subject(role="", name="")
        return Run(
            id=run_id,
            suite=SUITE,
            spec={
                **self.spec.model_dump(mode="json"),
                "mode": "offline",
                "benchmarks": [self.name],
                "subjects": [self.extractor.name],
                "questions": {self.name: len(self.cases)},
                "selected": selected(trial_of(case, self.name, anybody) for case in self.cases),
                "reader": self.extractor.model.name if self.extractor.model else None,
                "judge": self.judge.name if self.judge else None,
            },
            fingerprints=self.fingerprints,
            program=f"memorybench {__version__}",
            planned=self.planned,
        )

    async def perform(
        self, run_writer: RunWriter, output: Path, *, concurrency: int, budget: Budget, watch: Watch | None
    ) -> Ending:
        stores = (output / run_writer.run.id / STORES).absolute()
        async with AsyncExitStack() as stack:
            extractor = await self.extractor.open(stack, stores, run_writer.run.id)
            judge = await open_chosen(stack, self.judge) if self.judge else None
            plan = ExtractionPlan(
                self.name,
                self.cases,
                extractor,
                spends=self.extractor.spends,
                judge=EntailmentJudge(Judge(judge)) if judge else None,
            )
            ending = await perform(plan.plan(), run_writer, concurrency=concurrency, budget=budget, watch=watch)
        if ending.status == "complete":
            await asyncio.to_thread(shutil.rmtree, stores, ignore_errors=True)
        return ending


def prepare_extraction(spec: ExtractionSpec, folder: Path) -> PreparedExtraction:
    path = BUNDLED_CASES if spec.cases is None else Path(spec.cases)
    cases = load_cases(path)
    if spec.scenarios:
        known = sorted({case.labels.get("scenario", "") for case in cases} - {""})
        unknown = [name for name in spec.scenarios if name not in known]
        if unknown:
            raise BadInput("--scenario", f'no case is of the scenario "{unknown[0]}"', expected=", ".join(known))
        cases = tuple(case for case in cases if case.labels.get("scenario") in spec.scenarios)
    cases = cases[: spec.limit]
    catalog = Catalog(folder, [Path(place) for place in spec.config_dirs])
    extractor = choose_extractor(
        catalog, spec.extractor, spec.extractor_command, spec.extractor_model, allow_code=spec.allow_code
    )
    judge_name = spec.judge_model or environment().get(JUDGE_VARIABLE)
    judge = model_named(judge_name) if judge_name and judge_name != NO_MODEL else None
    marks = {
        f"cases {path.name}": Fingerprint.of(canonical([case.plain() for case in cases])),
        "extractor": Fingerprint.of(extractor.described()),
    }
    if judge is not None:
        marks["judge model"] = Fingerprint.of(judge.described())
    return PreparedExtraction(spec, path.stem, cases, extractor, judge, marks)


def extraction_again(run_id: str, output: Path) -> PreparedExtraction:
    saved = saved_run(run_id, output, SUITE)
    if saved.spec.get("mode") != "offline":
        raise BadInput("--resume", f"run {run_id} is online", remedy="memorybench extraction online --resume RUN")
    return prepare_extraction(saved_spec(ExtractionSpec, saved), Path())
