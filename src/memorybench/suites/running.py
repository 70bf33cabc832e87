"""Performs the runs of every suite, for the command line and for Python alike."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager, nullcontext, suppress
from functools import cache, partial
from typing import TYPE_CHECKING

from memorybench.core.errors import JournalError, RunConflict
from memorybench.engine.budget import Budget
from memorybench.engine.following import following
from memorybench.engine.run import Ending, perform
from memorybench.engine.stopping import Stop
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import now
from memorybench.reporting.progress import RunProgress, published
from memorybench.reporting.report_files import FORMATS, write_reports
from memorybench.secrets.redaction import redact_strings

from .blocking import blocking
from .estimates import dearest_call
from .finished import FinishedRun, gate_of
from .html_report import start_without_charts
from .run_row import CONCURRENCY, new_row, saved_baseline
from .saved_report import save_report
from .shards import plan_of_shard
from .stored_run import open_stored_run
from .suite import SCOPE_SUFFIX, Opening
from .thresholds import add_checks, threshold_checks

if TYPE_CHECKING:
    from memorybench.core.plans import Watch
    from memorybench.core.trials import Subject
    from memorybench.engine.observing import Observer
    from memorybench.journal.run_writer import RunWriter
    from memorybench.telemetry.spans import RunSpans

    from .html_report import StartPage
    from .starting import Start


STORES = "stores"
Show = Callable[[RunProgress], AbstractContextManager[None]]
"""A function that returns a context manager, which shows the progress of a run while it is open."""
PerformElsewhere = Callable[["RunWriter", Budget, RunProgress], Awaitable[Ending]]
"""A function that lets other processes perform a run, and returns how it ended."""


def show_nothing(progress: RunProgress) -> AbstractContextManager[None]:
    return nullcontext()


def run(
    start: Start,
    *,
    announce: Callable[[Mapping[str, str]], None] = lambda facts: None,
    show: Show = show_nothing,
    stopping: Stop | None = None,
    elsewhere: PerformElsewhere | None = None,
    start_page: StartPage = start_without_charts,
) -> FinishedRun:
    """Perform a run and write its reports. `announce` gets the facts for the header, `show` the progress.

    Setting `stopping` has the effect of Ctrl-C. `elsewhere` lets other processes perform the trials; this process then
    only begins and ends the run.
    """
    with _performed(start, announce, show, stopping or Stop(), elsewhere) as (run_writer, ending):
        return _finish(start, run_writer, ending, start_page)


def join(start: Start, *, show: Show, stopping: Stop) -> Ending:
    """Perform trials of the run that `start.options.resume` names, which another process began: see `reopen_run`.

    No reports are written: the process that began the run writes them.
    """
    with _performed(start, lambda facts: None, show, stopping, is_joining=True) as (run_writer, ending):
        run_writer.end(ending.status)
        return ending


@contextmanager
def _performed(
    start: Start,
    announce: Callable[[Mapping[str, str]], None],
    show: Show,
    stopping: Stop,
    elsewhere: PerformElsewhere | None = None,
    *,
    is_joining: bool = False,
) -> Iterator[tuple[RunWriter, Ending]]:
    """Perform a run. The run is locked while the context is open; the code in it records the end of the run."""
    prepared, place, wiring = start.prepared, start.place, start.wiring
    done: Counter[tuple[str, str]] = Counter()
    recorded: dict[str, Subject] = {}
    budget = Budget(start.budget)
    if start.resuming:
        with RunReader.open(place.results, thorough=False) as run_reader:
            for outcome in run_reader.outcomes(place.run_id):
                recorded[outcome.trial.subject.name] = outcome.trial.subject
                done[outcome.trial.benchmark, outcome.trial.subject.name] += outcome.status == "scored"
            budget.add_recorded(run_reader, place.run_id)
        opened = reopen_run(
            place.results,
            place.run_id,
            fingerprints=prepared.fingerprints,
            spec_changes={"budget": start.budget, **start.saved_thresholds, **saved_baseline(start)},
            redact=wiring.redact,
            fault=wiring.fault(),
            is_joining=is_joining,
        )
    else:
        opened = open_run(
            place.results,
            new_row(start),
            redact=wiring.redact,
            fault=wiring.fault(),
            reuse=prepared.spec.reuse,
            begin=False,
        )
    budget.estimate = cache(lambda: dearest_call(prepared.estimate()))
    with opened as run_writer:
        with suppress(OSError):  # a closed terminal must not stop the run
            announce(start.suite.facts([run_writer.run]))
        try:
            progress = RunProgress(prepared.totals, done, budget, wiring.redact)
            with published(progress, place.folder), show(progress), _observing(start, run_writer) as observer:
                is_finished = done.total() >= prepared.planned
                check_subject = partial(_check_subject, start, {} if is_finished else recorded)
                ending = blocking(
                    _perform(start, run_writer, budget, progress, stopping, elsewhere, observer, check_subject),
                    stopping,
                )
                if observer is not None:
                    observer.end(ending.status)
            yield run_writer, ending
        except BaseException:
            with suppress(JournalError):
                run_writer.end("partial")
            raise


def _observing(start: Start, run_writer: RunWriter) -> AbstractContextManager[RunSpans | None]:
    """Send OpenTelemetry spans while the context is open, if the user asks for them."""
    if start.otel is None:
        return nullcontext()
    from memorybench.telemetry.sending import sending_spans

    return sending_spans(
        start.otel,
        run_writer.run,
        start.wiring.redact,
        with_content=start.options.otel_content,
        is_resumed=start.resuming,
    )


def _finish(start: Start, run_writer: RunWriter, ending: Ending, start_page: StartPage) -> FinishedRun:
    """Write the reports, then record the end of the run, so that a killed run still gets its reports when resumed."""
    prepared, place, time = start.prepared, start.place, now()
    if not prepared.blocked:
        start.suite.write_files(place)
    has_page = len(prepared.formats) == len(FORMATS)
    with (
        start_page(run_writer.run) if has_page else nullcontext() as make_page,
        # it was checked when it was opened for writing
        open_stored_run([place.run_id], [place.results], thorough=False) as stored,
    ):
        stored = stored.ended(ending.status, time).read_once()
        gate = gate_of(stored)
        checks = threshold_checks(stored.summary, start.thresholds, start.threshold_on, prepared.subjects)
        report = add_checks(start.suite.report(stored), checks, gate)
        html = make_page(stored, report) if make_page is not None else None
        write_reports(report, place.folder, prepared.formats, html)
        save_report(stored, report)
        finished = FinishedRun(
            place,
            ending,
            stored.summary,
            report,
            start.suite.passes(stored),
            [*checks, *(gate.checks if gate else ())],
            prepared.blocked,
        )
    run_writer.end(ending.status, time)
    return finished


def _check_subject(start: Start, recorded: Mapping[str, Subject], subject: Subject) -> None:
    """Raise RunConflict if the run has trials of a subject with this name and other settings; `recorded` is by name.

    They would stay in the run, beside the same trials with the settings of today, such as a new default.
    """
    before = recorded.get(subject.name)
    today = redact_strings(subject.plain()["settings"], start.wiring.redact)
    if before is not None and before.settings != today:
        run_id, old = start.place.run_id, before.settings
        changed = [name for name in sorted(old.keys() | today.keys()) if old.get(name) != today.get(name)]
        raise RunConflict(
            f"run {run_id} cannot be resumed: the settings of {subject.name} changed: {', '.join(changed)};"
            f" undo the change, or start a new run with --reuse {run_id}, which reuses unchanged steps"
        )


async def _perform(
    start: Start,
    run_writer: RunWriter,
    budget: Budget,
    progress: RunProgress,
    stopping: Stop,
    elsewhere: PerformElsewhere | None,
    observer: Observer | None,
    check_subject: Callable[[Subject], None],
) -> Ending:
    """Open all subjects, record the run, and perform its trials here or elsewhere; return how the run ended.

    The run is recorded after everything is open, so that a run that is refused leaves nothing behind.
    """
    prepared, place, spec = start.prepared, start.place, run_writer.run.spec
    stores = (place.folder / STORES).absolute()  # programs that providers start have other working folders
    scored, ending = frozenset(run_writer.scored()), None
    try:
        async with AsyncExitStack() as stack:
            opening = Opening(stack, place.run_id, stores, scored, spec.get(SCOPE_SUFFIX, ""), check_subject)
            plan = await prepared.open_plan(opening)
            if prepared.part is not None:
                plan = plan_of_shard(plan, prepared.part.units, prepared.planned)
            if not run_writer.is_begun:
                run_writer.begin(start.options.tags)
            elif start.options.tags:
                run_writer.add_tags(start.options.tags)
            if elsewhere is None or prepared.blocked:
                watch: Watch = progress
                if run_writer.is_shared and not run_writer.is_joined:  # a worker shows its own progress
                    watch = await stack.enter_async_context(following(run_writer, budget, progress))
                ending = await perform(
                    plan,
                    run_writer,
                    concurrency=start.options.concurrency or spec.get("concurrency", CONCURRENCY),
                    budget=budget,
                    watch=watch,
                    stopping=stopping,
                    observer=observer,
                )
    finally:
        if not run_writer.is_begun:  # a subject could not be opened
            await asyncio.to_thread(shutil.rmtree, stores, ignore_errors=True)
    if prepared.blocked:
        return Ending("blocked", False, prepared.planned)
    if ending is None:
        assert elsewhere is not None
        ending = await elsewhere(run_writer, budget, progress)
    if ending.status == "complete":
        await asyncio.to_thread(shutil.rmtree, stores, ignore_errors=True)
    return ending
