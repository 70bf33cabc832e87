"""Starts, resumes and performs the runs of every suite, for the command line and for Python alike."""

from __future__ import annotations

import asyncio
import platform
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybench import __version__
from memorybench.core.errors import BadInput, JournalError
from memorybench.core.timing import TIMING
from memorybench.engine.budget import Budget
from memorybench.engine.run import Ending, perform
from memorybench.files.names import safe_run_id, safe_tag
from memorybench.files.writing import replacing
from memorybench.journal.places import hide_password, journal_of, results_folder
from memorybench.journal.rows import Run, differences
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import check_new, now, reopen_run
from memorybench.journal.run_writer import open_run as begin_run
from memorybench.reporting.markdown import to_markdown
from memorybench.reporting.progress import RunProgress, published
from memorybench.reporting.report_files import FORMATS, append_summary, write_reports

from .blocking import blocking
from .estimates import check_prices, dearest_call, without_recorded
from .html_report import page_without_charts, start_without_charts
from .registry import open_run, suite_of
from .run_changes import repair
from .saved_report import save_report
from .shards import PART, plan_of_shard
from .spec import changed_flag, check_not_empty, check_otel, check_ray, make_spec, saved_programs, saved_spec
from .stored_run import LATEST
from .suite import SAVED_BASELINE, SCOPE_SUFFIX, STARTED_WITH, Opening, RunPlace
from .thresholds import (
    add_checks,
    check_thresholds,
    parse_thresholds,
    saved_thresholds,
    threshold_checks,
    thresholds_to_save,
)

if TYPE_CHECKING:
    from memorybench.core.plans import Watch
    from memorybench.core.report_sections import Report
    from memorybench.engine.observing import Observer
    from memorybench.engine.stopping import Stop
    from memorybench.journal.run_writer import RunWriter
    from memorybench.telemetry.spans import RunSpans

    from .estimates import Estimate
    from .gate import Baseline, Gate
    from .html_report import MakePage, StartPage
    from .spec import RunOptions
    from .stored_run import StoredRun
    from .suite import Command, PreparedRun, Suite
    from .summary import Summary
    from .thresholds import Check, Held, Threshold
    from .wiring import Wiring


CONCURRENCY = 10
STORES = "stores"
Show = Callable[[RunProgress], AbstractContextManager[None]]
"""Shows the progress of a run while its context is open."""
PerformElsewhere = Callable[["RunWriter", Budget, RunProgress], Awaitable[Ending]]
"""Has other processes perform a run, and returns when they have ended it."""


def installed_versions() -> dict[str, str]:
    """The versions of Python, the operating system, and the packages that memorybench depends on."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for requirement in _headers("memorybench", "Requires-Dist"):
        if re.search(r"""extra == ["'](dev|docs)""", requirement):
            continue
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        try:
            found[name] = next(_headers(name, "Version"))
        except (metadata.PackageNotFoundError, StopIteration):
            continue  # of an extra that is not installed
    return found


def _headers(package: str, name: str) -> Iterator[str]:
    """Yield the values of a header of a package's metadata. `metadata.version` also parses the package's README."""
    installed = metadata.distribution(package)
    text = installed.read_text("METADATA") or installed.read_text("PKG-INFO") or ""
    return (match[1].strip() for match in re.finditer(rf"^{name}:(.*)$", text.partition("\n\n")[0], re.MULTILINE))


def show_nothing(progress: RunProgress) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Start:
    """A run that may begin, or go on."""

    suite: Suite
    command: Command
    prepared: PreparedRun
    place: RunPlace
    options: RunOptions
    wiring: Wiring
    budget: float | None = None
    """Dollars that all processes of the run may spend together."""
    thresholds: Sequence[Threshold] = ()
    baseline: Baseline | None = None
    threshold_on: Held = "value"
    saved_thresholds: Mapping[str, Any] = field(default_factory=dict)
    """The given thresholds as the spec of the run keeps them."""
    otel: str | None = None
    """The address that spans are sent to."""

    @property
    def resuming(self) -> bool:
        return self.options.resume is not None


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that has ended, with its report."""

    place: RunPlace
    ending: Ending
    summary: Summary
    report: Report
    passed: bool
    """Whether the suite's own checks passed."""
    checks: Sequence[Check]
    """The thresholds, and the comparison with the baseline."""
    blocked: str = ""
    """Why nothing was allowed to start."""


def start(
    suite: Suite,
    command: Command,
    given: Mapping[str, Any],
    options: RunOptions,
    wiring: Wiring,
    thresholds: Sequence[str] = (),
    threshold_on: Held = "value",
) -> Start:
    """Prepares a new run from the given fields of its spec, or the run that `options.resume` names.

    Raises before anything is spent or written.
    """
    limits = parse_thresholds(thresholds)
    check_not_empty(command.spec, given)
    _check_tags(options)
    check_ray(options)
    otel = check_otel(options)
    repair(_results(command, options))
    _check_ci_files(options)
    if options.resume is None:
        run_id = _new_run_id(options)
        spec, budget, gate = make_spec(command.spec, given), None, None
    else:
        saved = _saved_run(suite, command, given, options)
        run_id, spec, budget = saved.id, saved_spec(command.spec, saved.spec, given), saved.spec.get("budget")
        gate = saved.spec.get(SAVED_BASELINE)
        if not limits:
            limits, threshold_on = saved_thresholds(saved.spec)
    to_save = thresholds_to_save(limits, threshold_on)
    if options.budget is not None:
        budget = None if options.budget == "none" else options.budget
    for folder in spec.config_dirs:
        if not Path(folder).is_dir():
            raise BadInput("--config-dir", f"{folder}: folder not found", remedy="check the path")
    place = RunPlace(_results(command, options), run_id)
    if options.resume is None:
        check_new(place.results, run_id, spec.reuse)
    baseline = _find_baseline(options, gate, place)
    wiring = wiring.configured(spec.config_dirs, spec.consent)
    if options.resume is not None:
        wiring.require_code(f"run {run_id} in {place.results}", saved_programs(spec, given))
    prepared = command.prepare(spec, wiring, place)
    try:
        limits = check_thresholds(limits, prepared.subjects, prepared.metrics, prepared.targets, prepared.lower_bounds)
        check_prices(prepared.models, budget)
        if baseline is not None:
            from .gate import check_baseline

            check_baseline(baseline, prepared, suite, place.results, options.baseline)
    except BaseException:
        if prepared.discard is not None and options.resume is None:
            prepared.discard()
        raise
    return Start(
        suite, command, prepared, place, options, wiring, budget, limits, baseline, threshold_on, to_save, otel
    )


def _find_baseline(options: RunOptions, saved: Mapping[str, Any] | None, place: RunPlace) -> Baseline | None:
    if not (saved or options.baseline or options.max_drop):
        return None
    from .gate import find_baseline

    return find_baseline(options, saved, place.results, place.run_id)


def _check_gate(stored: StoredRun) -> Gate | None:
    """Compare a run with its baseline run, if it has one."""
    if stored.spec.get(SAVED_BASELINE) is None:
        return None
    from .gate import check_gate

    return check_gate(stored)


def _new_run_id(options: RunOptions) -> str:
    if options.run_id is None:
        return f"run_{secrets.token_hex(3)}"
    if options.run_id == LATEST:
        raise BadInput("--run-id", f'"{LATEST}" means the newest run', remedy="choose another name")
    return safe_run_id(options.run_id, "--run-id")


def _check_tags(options: RunOptions) -> None:
    for tag in options.tags:
        safe_tag(tag, "--tag")


def _check_ci_files(options: RunOptions) -> None:
    for flag, path in (("--junit", options.junit), ("--step-summary", options.step_summary)):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise BadInput(flag, f"{path}: not a file in an existing folder", remedy=f"create {path.parent} first")


def _results(command: Command, options: RunOptions) -> Path:
    return results_folder(options.output or Path(command.output), options.journal)


def _saved_run(suite: Suite, command: Command, given: Mapping[str, Any], options: RunOptions) -> Run:
    """The saved run of this command that `options.resume` names."""
    run_id, results = safe_run_id(options.resume or "", "--resume"), _results(command, options)
    changed = changed_flag(command.spec, given) or ("--run-id" if options.run_id else None)
    if changed:
        raise BadInput(
            "--resume",
            f"{changed} cannot change a run that was started",
            remedy="start a new run; --reuse RUN reuses its unchanged steps",
        )
    journal = journal_of(results)
    if not journal.exists():
        raise BadInput(
            "--resume",
            f"run {run_id} not found; {journal.name} does not exist",
            remedy="name the folder of its results with --output; if the run was stopped at its start, start it again",
        )
    with RunReader.open(results) as run_reader:
        if not run_reader.has(run_id) and (results / run_id).is_dir():
            raise BadInput(
                "--resume",
                f"run {run_id} was stopped before anything was recorded",
                remedy=f"start it again: the same command with --run-id {run_id} instead of --resume",
            )
        saved = run_reader.run(run_id)
    right = "judge calibrate" if saved.suite == "calibration" else suite_of(saved).command_of(saved).name
    if saved.suite != suite.name or right != command.name:
        remedy = f"use `memorybench {right} --resume {run_id}`"
        raise BadInput("--resume", f"run {run_id} is a run of `memorybench {right}`", remedy=remedy)
    return saved


def find_finished(
    suite: Suite,
    command: Command,
    given: Mapping[str, Any],
    options: RunOptions,
    thresholds: Sequence[str] = (),
    redact: Callable[[str], str] = str,
    threshold_on: Held = "value",
    make_page: MakePage = page_without_charts,
) -> FinishedRun | None:
    """Return the run that `options.resume` names, or None if it is not named or has trials that are not scored.

    Reads the journal only. Reports that are missing are written again, and tags are added.
    """
    if options.resume is None:
        return None
    _check_tags(options)
    limits = parse_thresholds(thresholds)
    saved = _saved_run(suite, command, given, options)
    place = RunPlace(_results(command, options), saved.id)
    with open_run([place.run_id], [place.results]) as stored:
        counts = stored.parts[0][0].counts(place.run_id)
        if stored.run.status != "complete" or counts["scored"] < stored.run.planned:
            return None
        subjects = {one.trial.subject.name: one.trial.subject.role for one in stored.outcomes()}
        held = tuple(name for name, role in subjects.items() if role != "baseline")
        spec = stored.spec
        if not limits:
            limits, threshold_on = saved_thresholds(spec)
        checked = check_thresholds(
            limits, held, suite.metrics(stored), spec.get("targets", {}), spec.get("lower_bounds", {})
        )
        baseline = _find_baseline(options, spec.get(SAVED_BASELINE), place)
        stored = stored.with_spec({SAVED_BASELINE: baseline and baseline.plain()})
        gate = _check_gate(stored)
        checks = threshold_checks(stored.summary, checked, threshold_on, held)
        report = add_checks(suite.report(stored), checks, gate)
        if options.tags:
            from .run_changes import change_tags
            from .run_list import find_run

            change_tags(find_run(place.run_id, [place.results]), options.tags, redact)
        if not any((place.folder / file).exists() for file, _ in FORMATS.values()):
            rewrite_reports(report, place, html=make_page(stored, report))
        ending = Ending("complete", False, 0)
        checks += gate.checks if gate else ()
        return FinishedRun(place, ending, stored.summary, report, suite.passes(stored), checks)


def rewrite_reports(
    report: Report, place: RunPlace, formats: Iterable[str] = FORMATS, html: str | None = None
) -> list[Path]:
    """Write the reports of a run into its folder, unless a process is writing the run."""
    lock = journal_of(place.results).lock(place.run_id)
    try:
        return write_reports(report, place.folder, formats, html)
    finally:
        lock.release()


def estimates(start: Start) -> list[Estimate]:
    """What is left to do: without the steps that the resumed run, or the run to reuse, has recorded."""
    prepared, place = start.prepared, start.place
    rows = list(prepared.estimate())
    source = place.run_id if start.resuming else prepared.spec.reuse
    if source is None:
        return rows
    scored: Counter[tuple[str, str]] = Counter()
    searched: dict[tuple[str, str], set[tuple[str, ...]]] = {}  # the repeats of a question share a search
    with RunReader.open(place.results, thorough=False) as run_reader:
        changes = [] if start.resuming else differences(run_reader.run(source).fingerprints, prepared.fingerprints)
        for outcome in run_reader.outcomes(source):
            trial = outcome.trial
            cases = prepared.cases.get(trial.benchmark)
            is_planned = trial.repeat <= prepared.repeats and (cases is None or trial.case_id in cases)
            if outcome.status == "scored" and is_planned:
                scored[trial.benchmark, trial.subject.name] += 1
                searched.setdefault((trial.benchmark, trial.subject.name), set()).add(trial.item)
        canaries = sum(stage.steps for stage in run_reader.stages(source) if stage.name == "canary")
    left = []
    for row in rows:
        key = (row.benchmark, row.subject)
        planned, done = prepared.totals.get(key, 0), scored[key]
        if row.stage in ("add", "search"):
            planned, done = planned // prepared.repeats, len(searched.get(key, ()))
        left.append(without_recorded(row, planned, done, changes, canaries=canaries))
    return left


def run(
    start: Start,
    *,
    announce: Callable[[Mapping[str, str]], None] = lambda facts: None,
    show: Show = show_nothing,
    stopping: Stop | None = None,
    elsewhere: PerformElsewhere | None = None,
    is_joining: bool = False,
    start_page: StartPage = start_without_charts,
) -> FinishedRun:
    """Performs a run to its reports. `announce` gets the facts of the header, `show` the progress.

    Setting `stopping` has the effect of Ctrl-C. With `elsewhere`, this process only begins and ends the run. A worker
    `is_joining` the run that `options.resume` names: see `reopen_run`.
    """
    prepared, place, wiring = start.prepared, start.place, start.wiring
    done: Counter[tuple[str, str]] = Counter()
    budget = Budget(start.budget)
    if start.resuming:
        with RunReader.open(place.results, thorough=False) as run_reader:
            for outcome in run_reader.outcomes(place.run_id):
                done[outcome.trial.benchmark, outcome.trial.subject.name] += outcome.status == "scored"
            budget = Budget(start.budget, *run_reader.costs(place.run_id))
            budget.add_lost_calls(*run_reader.costs_of_lost_calls(place.run_id))
        opened = reopen_run(
            place.results,
            place.run_id,
            fingerprints=prepared.fingerprints,
            spec_changes={"budget": start.budget, **start.saved_thresholds, **_saved_baseline(start)},
            redact=wiring.redact,
            fault=wiring.fault(),
            is_joining=is_joining,
        )
    else:
        opened = begin_run(
            place.results,
            _row(start),
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
                ending = blocking(_perform(start, run_writer, budget, progress, stopping, elsewhere, observer))
                if observer is not None:
                    observer.end(ending.status)
            return _finish(start, run_writer, ending, start_page)
        except BaseException:
            with suppress(JournalError):
                run_writer.end("partial")
            raise


def _observing(start: Start, run_writer: RunWriter) -> AbstractContextManager[RunSpans | None]:
    """Send spans while the context is open, if the user asks for them."""
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
    """Write the reports, then record how the run ended: a run that was killed in between is resumed to its reports."""
    prepared, place, time = start.prepared, start.place, now()
    has_page = len(prepared.formats) == len(FORMATS)
    with (
        start_page(run_writer.run) if has_page else nullcontext() as make_page,
        open_run([place.run_id], [place.results]) as stored,
    ):
        stored = stored.ended(ending.status, time)
        gate = _check_gate(stored)
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


def _row(start: Start) -> Run:
    prepared = start.prepared
    return Run(
        id=start.place.run_id,
        suite=start.suite.name,
        spec={
            "benchmarks": list(dict.fromkeys(benchmark for benchmark, _ in prepared.totals)),
            "subjects": list(dict.fromkeys(subject for _, subject in prepared.totals)),
            "questions": _questions(prepared.totals, prepared.repeats),
            **prepared.spec.model_dump(mode="json"),
            **start.command.marks,
            **prepared.details,
            **_saved_part(prepared),
            **({"targets": prepared.targets, "lower_bounds": prepared.lower_bounds} if prepared.targets else {}),
            "concurrency": start.options.concurrency or CONCURRENCY,
            SCOPE_SUFFIX: secrets.token_hex(4),
            "budget": start.budget,
            **start.saved_thresholds,
            **_saved_baseline(start),
            "timing": TIMING,
            STARTED_WITH: {
                "command_line": [hide_password(word) for word in start.options.command_line],
                "versions": installed_versions(),
            },
        },
        fingerprints=prepared.fingerprints,
        program=f"memorybench {__version__}",
        planned=prepared.planned,
    )


def _questions(totals: Mapping[tuple[str, str], int], repeats: int) -> dict[str, int]:
    return {benchmark: n // repeats for (benchmark, _), n in totals.items()}


def _saved_part(prepared: PreparedRun) -> dict[str, Any]:
    """What a shard is a part of, as its spec keeps it for reports and for `merge`."""
    part = prepared.part
    if part is None:
        return {}
    whole = {"questions": _questions(part.totals, prepared.repeats), **part.details}
    return {
        PART: {
            "histories": len(part.units),
            "histories_in_all": part.units_in_all,
            "planned_in_all": sum(part.totals.values()),
            "whole": whole,
        }
    }


def _saved_baseline(start: Start) -> dict[str, Any]:
    """The baseline as the spec of the run keeps it; nothing where there was and is none."""
    if start.baseline is None and start.options.baseline is None:
        return {}
    return {SAVED_BASELINE: start.baseline.plain() if start.baseline else None}


async def _perform(
    start: Start,
    run_writer: RunWriter,
    budget: Budget,
    progress: RunProgress,
    stopping: Stop | None,
    elsewhere: PerformElsewhere | None,
    observer: Observer | None = None,
) -> Ending:
    """Opens what was prepared and performs it."""
    prepared, place = start.prepared, start.place
    stores = (place.folder / STORES).absolute()  # programs that providers start have folders of their own
    try:
        ending = await _open_and_perform(
            start,
            run_writer,
            stores,
            budget,
            progress,
            stopping,
            observer,
            here=elsewhere is None or bool(prepared.blocked),
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
    await asyncio.to_thread(start.suite.write_files, place)
    return ending


async def _open_and_perform(
    start: Start,
    run_writer: RunWriter,
    stores: Path,
    budget: Budget,
    watch: Watch,
    stopping: Stop | None,
    observer: Observer | None,
    *,
    here: bool,
) -> Ending | None:
    """Open all subjects, record the run and, if it is performed `here`, perform it.

    The run is recorded after everything is open: a run that is refused leaves nothing behind.
    """
    concurrency = start.options.concurrency or run_writer.run.spec.get("concurrency", CONCURRENCY)
    scored, suffix = frozenset(run_writer.scored()), run_writer.run.spec.get(SCOPE_SUFFIX, "")
    async with AsyncExitStack() as stack:
        plan = await start.prepared.open_plan(Opening(stack, start.place.run_id, stores, scored, suffix))
        if start.prepared.part is not None:
            plan = plan_of_shard(plan, start.prepared.part.units, start.prepared.planned)
        if not run_writer.is_begun:
            run_writer.begin(start.options.tags)
        elif start.options.tags:
            run_writer.add_tags(start.options.tags)
        if not here:
            return None
        return await perform(
            plan,
            run_writer,
            concurrency=concurrency,
            budget=budget,
            watch=watch,
            stopping=stopping,
            observer=observer,
        )


def write_ci_files(finished: FinishedRun, options: RunOptions, redact: Callable[[str], str]) -> None:
    """Write the files that `--junit` and `--step-summary` name."""
    if options.junit is not None:
        from .junit import to_junit

        with open_run([finished.place.run_id], [finished.place.results]) as stored:
            text = redact(to_junit(finished.place.run_id, stored.trials(), finished.checks))
        with replacing(options.junit) as file:
            file.write(text)
    if options.step_summary is not None:
        lines = [f"{'❌' if check.missed else '✅'} {check.text}" for check in finished.checks]
        markdown = to_markdown(finished.report, lines)
        append_summary(options.step_summary, markdown, redact)


def exit_code(finished: FinishedRun, tell: Callable[[str], None]) -> int:
    """0 complete, 1 incomplete, 2 not allowed to start, 3 missed a threshold, check or baseline, 130 interrupted."""
    if finished.ending.interrupted:
        return 130
    if finished.blocked:
        return 2
    if finished.ending.paused:
        return 1
    for check in finished.checks:
        tell(check.text)
    if any(check.missed for check in finished.checks):
        return 3
    counts = finished.summary.counts
    if counts["failed"] or counts["unscored"] or finished.summary.status != "complete":
        return 1
    return 0 if finished.passed else 3
