"""Performs a prepared bench run from its first row to its reports: for the command line and for Python alike."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from memorybench.documents.names import safe_run_id
from memorybench.engine.budget import Budget
from memorybench.engine.run import Ending, Watch
from memorybench.journal.book import open_run, reopen_run
from memorybench.journal.rows import Run
from memorybench.journal.shelf import Shelf
from memorybench.reporting.summary import Summary
from memorybench.vocabulary.errors import BadInput, JournalError

from .bench import BenchSpec, Prepared, prepare, run_bench
from .environment import fault, redactor
from .models import Chosen
from .recorded import Recorded
from .results import facts_of, find, write_reports

T = TypeVar("T")
Trials = Mapping[tuple[str, str], int]
"""How many, by benchmark and subject."""
Watching = Callable[[Trials, Trials], AbstractContextManager[Watch]]
"""From all trials and those already scored to a watch over the others."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    ending: Ending
    summary: Summary


def _nobody(totals: Trials, done: Trials) -> AbstractContextManager[Watch]:
    return nullcontext(lambda outcome: None)


def new_run_id() -> str:
    return f"run_{secrets.token_hex(3)}"


def prepare_again(run_id: str, output: Path) -> tuple[Prepared, Recorded | None]:
    """What a run was started with, provided that there is something left to do."""
    safe_run_id(run_id, "--resume")
    with Shelf.open(output) as shelf:
        saved = shelf.run(run_id)
        if saved.status == "complete" and shelf.counts(run_id)["scored"] == saved.planned:
            raise BadInput("--resume", f"run {run_id} is finished", remedy=f"memorybench results {run_id} shows it")
    if saved.suite != "bench":
        raise BadInput(
            "--resume", f"run {run_id} is of the suite {saved.suite}", expected="a run of `memorybench eval`"
        )
    spec = _saved_spec(saved)
    if spec.answers_of is None:
        return prepare(spec, Path()), None
    return _scoring(spec, spec.answers_of, output)


def _saved_spec(saved: Run, **changed: object) -> BenchSpec:
    known = BenchSpec.model_fields.keys()
    return BenchSpec.model_validate({**{name: saved.spec[name] for name in saved.spec if name in known}, **changed})


def _scoring(spec: BenchSpec, answers_of: str, output: Path) -> tuple[Prepared, Recorded]:
    with Shelf.open(output, thorough=False) as shelf:
        recorded = Recorded.of(shelf, answers_of)
    return prepare(spec, Path(), reader=Chosen(recorded.reader.name, None)), recorded


def prepare_scoring(run_id: str, output: Path, judge_model: str, judge_prompt: str | None) -> tuple[Prepared, Recorded]:
    """A new run over the recorded answers of an old one, with another judge."""
    safe_run_id(run_id, "run")
    with Shelf.open(output) as shelf:
        saved = shelf.run(run_id)
    changed = {"judge_model": judge_model, "judge_prompt": judge_prompt, "reuse": run_id, "answers_of": run_id}
    return _scoring(_saved_spec(saved, **changed), run_id, output)


def evaluate_prepared(
    prepared: Prepared,
    output: Path,
    run_id: str,
    *,
    recorded: Recorded | None = None,
    resuming: bool = False,
    concurrency: int = 10,
    budget: float | None = None,
    announce: Callable[[Run], None] = lambda run: None,
    watching: Watching = _nobody,
) -> Evaluated:
    safe_run_id(run_id, "run id")
    if budget is not None and not budget >= 0:
        raise BadInput("budget", f"{budget} is no amount of dollars", expected="0 or more")
    redact = redactor().clean
    done, spent = _so_far(output, run_id) if resuming else (Counter(), 0.0)
    if resuming:
        opened = reopen_run(output, run_id, fingerprints=prepared.fingerprints, redact=redact, fault=fault())
    else:
        opened = open_run(output, prepared.row(run_id), redact=redact, fault=fault(), reuse=prepared.spec.reuse)
    totals = {
        (bench.dataset.name, arm.name): len(bench.questions) for bench in prepared.benches for arm in prepared.arms
    }
    with opened as book:
        with suppress(OSError):  # a reader that went away must not stop the run
            announce(book.run)
        with watching(totals, done) as watch:
            work = run_bench(
                prepared,
                book,
                output,
                recorded=recorded,
                concurrency=concurrency,
                budget=Budget(budget, spent),
                watch=watch,
            )
            try:
                ending = blocking(work)
            except BaseException:
                with suppress(JournalError):
                    book.end("partial")
                raise
        book.end(ending.status)
    with find([run_id], [output]) as found:
        summary = write_reports(found, output / run_id, facts_of(found.parts[0][1]))
    return Evaluated(ending, summary)


def _so_far(output: Path, run_id: str) -> tuple[Counter[tuple[str, str]], float | None]:
    """Scored trials by benchmark and subject, and the dollars spent."""
    with Shelf.open(output, thorough=False) as shelf:
        scored = (outcome.trial for outcome in shelf.outcomes(run_id) if outcome.status == "scored")
        return Counter((trial.benchmark, trial.subject.name) for trial in scored), shelf.spent(run_id).cost


def blocking(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine; in a thread of its own where a loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
