"""Performs a prepared run of any suite from its first row to its reports: for the command line and for Python alike."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from memorybench.core.errors import BadInput, JournalError
from memorybench.core.records import Record
from memorybench.core.report import Report
from memorybench.engine.budget import Budget
from memorybench.engine.run import Ending, Watch
from memorybench.files.names import safe_run_id
from memorybench.journal.rows import Fingerprint, Run
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import RunWriter, open_run, reopen_run
from memorybench.reporting.report_files import FORMATS, write_reports
from memorybench.suites.summary import Summary

from .environment import fault, redactor
from .suites import find, report_of, suite_of

T = TypeVar("T")
CONCURRENCY = 10
SpecT = TypeVar("SpecT", bound=Record)
Trials = Mapping[tuple[str, str], int]
"""How many, by benchmark and subject."""
Watching = Callable[[Trials, Trials], AbstractContextManager[Watch]]
"""From all trials and those already scored to a watch over the others."""


class Runnable(Protocol):
    """A run that may begin: every name is resolved, every refusal was said, nothing is opened."""

    @property
    def fingerprints(self) -> Mapping[str, Fingerprint]: ...

    @property
    def reuse(self) -> str | None:
        """The run whose steps are taken over."""
        ...

    def row(self, run_id: str) -> Run: ...

    def totals(self) -> Trials: ...

    async def perform(
        self, run_writer: RunWriter, output: Path, *, concurrency: int, budget: Budget, watch: Watch | None
    ) -> Ending: ...


@dataclass(frozen=True, slots=True)
class Finished:
    ending: Ending
    summary: Summary
    report: Report


def _nobody(totals: Trials, done: Trials) -> AbstractContextManager[Watch]:
    return nullcontext(lambda outcome: None)


def new_run_id() -> str:
    return f"run_{secrets.token_hex(3)}"


def saved_run(run_id: str, output: Path, suite: str) -> Run:
    """A run to go on with: of that suite, and with something left to do."""
    safe_run_id(run_id, "--resume")
    with RunReader.open(output) as run_reader:
        saved = run_reader.run(run_id)
        if saved.status == "complete" and run_reader.counts(run_id)["scored"] == saved.planned:
            raise BadInput("--resume", f"run {run_id} is finished", remedy=f"memorybench results {run_id} shows it")
    if saved.suite != suite:
        raise BadInput(
            "--resume", f"run {run_id} is of the suite {saved.suite}", remedy=f"go on with it by `{_command(saved)}`"
        )
    return saved


def saved_spec(kind: type[SpecT], saved: Run, **changed: object) -> SpecT:
    """The spec of a run; the journal keeps more beside it."""
    known = kind.model_fields.keys()
    return kind.model_validate({**{name: saved.spec[name] for name in saved.spec if name in known}, **changed})


def _command(run: Run) -> str:
    try:
        return suite_of(run).command
    except BadInput:
        return "memorybench judge calibrate"


def run_prepared(
    prepared: Runnable,
    output: Path,
    run_id: str,
    *,
    resuming: bool = False,
    concurrency: int | None = None,
    budget: float | None = None,
    formats: Iterable[str] = FORMATS,
    announce: Callable[[Mapping[str, str]], None] = lambda facts: None,
    watching: Watching = _nobody,
) -> Finished:
    """`announce` gets what a header says. `concurrency`: by default CONCURRENCY, or as many calls at once as a resumed
    run was begun with."""
    safe_run_id(run_id, "run id")
    if budget is not None and not budget >= 0:
        raise BadInput("budget", f"{budget} is no amount of dollars", expected="0 or more")
    redact = redactor().clean
    done, spent = _so_far(output, run_id) if resuming else (Counter(), 0.0)
    if resuming:
        opened = reopen_run(output, run_id, fingerprints=prepared.fingerprints, redact=redact, fault=fault())
    else:
        row = prepared.row(run_id)
        row = row.model_copy(update={"spec": {**row.spec, "concurrency": concurrency or CONCURRENCY}})
        opened = open_run(output, row, redact=redact, fault=fault(), reuse=prepared.reuse)
    with opened as run_writer:
        at_once = concurrency or run_writer.run.spec.get("concurrency", CONCURRENCY)
        with suppress(OSError):  # a reader that went away must not stop the run
            announce(suite_of(run_writer.run).facts([run_writer.run]))
        with watching(prepared.totals(), done) as watch:
            try:
                ending = blocking(
                    prepared.perform(run_writer, output, concurrency=at_once, budget=Budget(budget, spent), watch=watch)
                )
            except BaseException:
                with suppress(JournalError):
                    run_writer.end("partial")
                raise
        run_writer.end(ending.status)
    with find([run_id], [output]) as stored:
        report = report_of(stored)
        write_reports(report, output / run_id, formats)
        return Finished(ending, stored.summary, report)


def _so_far(output: Path, run_id: str) -> tuple[Counter[tuple[str, str]], float | None]:
    """Scored trials by benchmark and subject, and the dollars spent."""
    with RunReader.open(output, thorough=False) as run_reader:
        scored = (outcome.trial for outcome in run_reader.outcomes(run_id) if outcome.status == "scored")
        return Counter((trial.benchmark, trial.subject.name) for trial in scored), run_reader.spent(run_id).cost


def blocking(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine; in a thread of its own where a loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
