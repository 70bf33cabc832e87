"""Checks a run that is to be started or resumed, before anything is spent or written."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from memorybench.core.errors import BadInput
from memorybench.files.names import safe_run_id, safe_tag
from memorybench.journal.lock import check_unused
from memorybench.journal.places import journal_of, results_folder
from memorybench.journal.rows import Run, differences
from memorybench.journal.run_reader import RunReader, check_new

from .estimates import check_prices, without_recorded
from .registry import suite_of
from .run_changes import repair
from .spec import changed_flag, check_not_empty, check_otel, check_ray, make_spec, saved_programs, saved_spec
from .stored_run import new_run_id
from .suite import SAVED_BASELINE, RunPlace
from .thresholds import check_thresholds, parse_thresholds, saved_thresholds, thresholds_to_save

if TYPE_CHECKING:
    from .estimates import Estimate
    from .gate import Baseline
    from .spec import RunOptions
    from .suite import Command, PreparedRun, Suite
    from .thresholds import Held, Threshold
    from .wiring import Wiring


class Start(Struct, frozen=True):
    """A run that was checked and can be started or resumed."""

    suite: Suite
    command: Command
    prepared: PreparedRun
    place: RunPlace
    options: RunOptions
    wiring: Wiring
    budget: float | None = None
    """The most dollars that all processes of the run may spend together; None: no limit."""
    thresholds: Sequence[Threshold] = ()
    baseline: Baseline | None = None
    threshold_on: Held = "value"
    saved_thresholds: Mapping[str, Any] = field(default_factory=dict)
    """The given thresholds as fields of the saved spec."""
    otel: str | None = None
    """The URL that spans are sent to; None if none are sent."""

    @property
    def resuming(self) -> bool:
        return self.options.resume is not None


def start_run(
    suite: Suite,
    command: Command,
    given: Mapping[str, Any],
    options: RunOptions,
    wiring: Wiring,
    thresholds: Sequence[str] = (),
    threshold_on: Held = "value",
) -> Start:
    """Prepare a new run from the given fields of its spec, or the run that `options.resume` names.

    Raise BadInput if the run cannot be performed, before anything is spent or written.
    """
    limits = parse_thresholds(thresholds)
    check_not_empty(command.spec, given)
    check_tags(options)
    check_ray(options)
    otel = check_otel(options)
    repair(results_of(command, options))
    _check_ci_files(options)
    if options.resume is None:
        run_id = f"run_{secrets.token_hex(3)}" if options.run_id is None else new_run_id(options.run_id, "--run-id")
        spec, budget, gate = make_spec(command.spec, given), None, None
    else:
        saved = saved_run(suite, command, given, options)
        run_id, spec, budget = saved.id, saved_spec(command.spec, saved.spec, given), saved.spec.get("budget")
        gate = saved.spec.get(SAVED_BASELINE)
        if not limits:
            limits, threshold_on = saved_thresholds(saved.spec)
    to_save = thresholds_to_save(limits, threshold_on)
    if options.budget is not None:
        budget = None if options.budget == "none" else options.budget
    for folder in spec.config_dirs:
        if not Path(folder).is_dir():
            started = "work in the folder in which the run was started, because its paths are relative to that"
            remedy = "check the path" if options.resume is None else started
            raise BadInput("--config-dir", f"{folder}: folder not found", remedy=remedy)
    place = RunPlace(results_of(command, options), run_id)
    if options.resume is None:
        check_new(place.results, run_id, spec.reuse)
        check_unused(place.folder)
    baseline = find_baseline(options, gate, place)
    wiring = wiring.configured(spec.config_dirs, spec.consent)
    if options.resume is not None:
        wiring.require_code(f"run {run_id} in {place.results}", saved_programs(spec, given))
    prepared = command.prepare(spec, wiring, place)
    try:
        limits = check_thresholds(
            limits,
            prepared.subjects,
            prepared.metrics,
            prepared.targets,
            prepared.lower_bounds,
            are_saved=not thresholds,
        )
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


def find_baseline(options: RunOptions, saved: Mapping[str, Any] | None, place: RunPlace) -> Baseline | None:
    if not (saved or options.baseline or options.max_drop):
        return None
    from . import gate

    return gate.find_baseline(options, saved, place.results, place.run_id)


def check_tags(options: RunOptions) -> None:
    for tag in options.tags:
        safe_tag(tag, "--tag")


def _check_ci_files(options: RunOptions) -> None:
    for flag, path in (("--junit", options.junit), ("--step-summary", options.step_summary)):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise BadInput(
                flag,
                f"cannot write {path}",
                expected="a file in an existing folder",
                remedy="name a file, not a folder" if path.is_dir() else f"create {path.parent} first",
            )
        if path is not None and not os.access(path if path.exists() else path.parent, os.W_OK):
            raise BadInput(flag, f"cannot write {path}", remedy="name a file in a folder that you may change")


def results_of(command: Command, options: RunOptions) -> Path:
    return results_folder(options.output or Path(command.output), options.journal)


def saved_run(suite: Suite, command: Command, given: Mapping[str, Any], options: RunOptions) -> Run:
    """Return the saved run that `options.resume` names.

    Raise BadInput if it is not found, if another command made it, or if a given flag must not be given with --resume.
    """
    run_id, results = safe_run_id(options.resume or "", "--resume"), results_of(command, options)
    changed = changed_flag(command.spec, given) or ("--run-id" if options.run_id else None)
    if changed:
        raise BadInput(
            "--resume",
            f"{changed} cannot be given with --resume: the run has its own value",
            remedy=f"leave out {changed}, or start a new run with --reuse {run_id}, which reuses unchanged steps",
        )
    journal = journal_of(results)
    if not journal.exists():
        raise BadInput(
            "--resume",
            f"run {run_id} not found; {journal.name} does not exist",
            remedy="name the run's results folder with --output, or start the run again if nothing was recorded",
        )
    with RunReader.open(results) as run_reader:
        if not run_reader.has(run_id) and (results / run_id).is_dir():
            raise BadInput(
                "--resume",
                f"run {run_id} was stopped before anything was recorded",
                remedy=f"start it again: the same command with --run-id {run_id} instead of --resume",
            )
        saved = run_reader.run(run_id, "--resume")
    right = "judge calibrate" if saved.suite == "calibration" else suite_of(saved).command_of(saved).name
    if saved.suite != suite.name or right != command.name:
        raise BadInput(
            "--resume",
            f"run {run_id} is a run of `memorybench {right}`",
            remedy=f"use `memorybench {right} --resume {run_id}`",
        )
    return saved


_OF_ANSWERS = ("answer prompts of ", "answering model ", "provider ")
"""Beginnings of the names of fingerprints that concern only searches and answers."""


def estimates(start: Start) -> list[Estimate]:
    """Return an estimate of the remaining calls and costs, without steps recorded by the resumed or reused run."""
    prepared, place = start.prepared, start.place
    rows = list(prepared.estimate())
    source = place.run_id if start.resuming else prepared.spec.reuse
    if source is None:
        return rows
    scored: Counter[tuple[str, str]] = Counter()
    searched: dict[tuple[str, str], set[tuple[str, ...]]] = {}  # the repeats of a question share a search
    with RunReader.open(place.results, thorough=False) as run_reader:
        changes = [] if start.resuming else differences(run_reader.run(source).fingerprints, prepared.fingerprints)
        if getattr(prepared.spec, "answers_of", None) is not None:  # the recorded answers are judged, whatever changed
            changes = [change for change in changes if not change.startswith(_OF_ANSWERS)]
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
