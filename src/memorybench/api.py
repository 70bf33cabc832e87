"""Evaluations from Python: the same runs, the same journal, the same figures as on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from memorybench.core.errors import BadInput
from memorybench.core.measures import Measure
from memorybench.core.trials import Outcome
from memorybench.reporting.export import rows
from memorybench.suites.extraction.evaluator import MemoryExtractionEvaluator
from memorybench.suites.summary import Summary
from memorybench.wiring.audit import AuditSpec, audit_again, prepare_audit
from memorybench.wiring.bench import DEFAULT_ARMS, DEFAULT_BENCHMARKS, BenchSpec, prepare
from memorybench.wiring.evaluation import prepare_again
from memorybench.wiring.online import open_evaluator
from memorybench.wiring.running import SpecT, new_run_id, run_prepared
from memorybench.wiring.suites import find

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run in a results folder. Everything is read from the journal when it is asked for."""

    run_id: str
    folder: Path

    @property
    def summary(self) -> Summary:
        with find([self.run_id], [self.folder]) as stored:
            return stored.summary

    def outcomes(self) -> Iterator[Outcome]:
        """One for each question and arm, in the order of the benchmark."""
        with find([self.run_id], [self.folder]) as found:
            yield from (outcome for _, _, outcome in found.settled())

    def measure(self, subject: str, name: str, benchmark: str | None = None) -> Measure:
        """A figure with its interval, n and planned: `result.measure("bm25", "recall@5")`."""
        results = [result for result in self.summary.results if result.subject == subject and not result.group]
        for result in results:
            found = result.measure(name)
            if found is not None and benchmark in (None, result.benchmark):
                return found
        raise BadInput(self.run_id, f"has no {name} of {subject}")

    def to_pandas(self) -> pandas.DataFrame:
        """One row per question and provider, with one column per score. Needs pandas."""
        try:
            import pandas
        except ImportError as error:
            raise BadInput("to_pandas", "pandas is not installed", remedy="pip install pandas") from error
        with find([self.run_id], [self.folder]) as found:
            return pandas.DataFrame(
                _flat(row) for run, at, outcome in found.settled() for row in rows(run, [(at, outcome)])
            )


def evaluate(
    benchmarks: Sequence[str] = DEFAULT_BENCHMARKS,
    providers: Sequence[str] = DEFAULT_ARMS,
    *,
    output: str | Path = "results",
    run_id: str | None = None,
    resume: str | None = None,
    concurrency: int | None = None,
    budget: float | None = None,
    **choices: Any,
) -> RunResult:
    """Puts providers to benchmarks and returns the finished run; `resume` goes on with one.

    `choices` are the further fields of a spec: limit, start, end, question_types, seed, answering_model, …
    """
    folder = Path(output)
    if resume is not None:
        prepared, chosen = prepare_again(resume, folder), resume
    else:
        told = {"benchmarks": tuple(benchmarks), "providers": tuple(providers), **choices}
        spec = _checked(BenchSpec, "evaluate", told)
        prepared, chosen = prepare(spec, Path()), run_id or new_run_id()
    run_prepared(prepared, folder, chosen, resuming=resume is not None, concurrency=concurrency, budget=budget)
    return RunResult(chosen, folder)


def audit(
    dataset: str | Path,
    *,
    output: str | Path = "audit-results",
    run_id: str | None = None,
    resume: str | None = None,
    concurrency: int | None = None,
    budget: float | None = None,
    **choices: Any,
) -> RunResult:
    """Asks a model, or memories, what was said in the conversations of a dataset, and returns the finished run.

    `choices` are the further fields of a spec: model, judge_model, providers, kinds, policy, limit, …
    """
    folder = Path(output)
    if resume is not None:
        prepared, chosen = audit_again(resume, folder), resume
    else:
        spec = _checked(AuditSpec, "audit", {"dataset": str(dataset), **choices})
        prepared, chosen = prepare_audit(spec, Path()), run_id or new_run_id()
    run_prepared(prepared, folder, chosen, resuming=resume is not None, concurrency=concurrency, budget=budget)
    return RunResult(chosen, folder)


def extraction_evaluator(judge_model: str, paths: Mapping[str, str] | None = None) -> MemoryExtractionEvaluator:
    """For LangSmith's own `evaluate(…, evaluators=[extraction_evaluator("gpt-4o")])`: precision, recall and F1 of what
    a run wrote down. `paths`, by role (conversation, existing, output), tell where a run keeps them."""
    return open_evaluator(judge_model, paths or {})


def load_run(run_id: str, results: str | Path = "results") -> RunResult:
    """A run that was made before, by this program or on another machine."""
    folder = Path(results)
    with find([run_id], [folder]):
        return RunResult(run_id, folder)


def _checked(kind: type[SpecT], where: str, told: Mapping[str, Any]) -> SpecT:
    try:
        return kind.model_validate(told)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(where, f"{first['loc'][0]}: {first['msg']}") from error


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    metadata = dict(row.pop("metadata"))
    return {**row, **metadata.pop("scores"), **metadata}
