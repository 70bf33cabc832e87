"""The regression gate: compares a run with a baseline run (`--baseline`) and fails if the run is worse."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memorybench.core.errors import BadInput
from memorybench.core.measures import exceeds
from memorybench.core.records import Record
from memorybench.core.report_sections import DECIMALS, Notes
from memorybench.journal.places import DatabaseFolder, journal_of
from memorybench.journal.run_reader import RunReader
from memorybench.metrics.names import ALIASES
from memorybench.reporting.formatting import beside, exact

from .comparison import format_p
from .registry import suite_of, verb_of
from .run_comparison import RunComparison, chosen_metrics, compare_sides, is_same_data, pair_subjects
from .shards import shard_label
from .sides import HISTORY, ComparedRun, Side, are_costs, content_of, open_sides
from .stored_run import LATEST
from .suite import SAVED_BASELINE, default_folders
from .thresholds import Check, add_checks, check_thresholds, saved_thresholds, threshold_checks

if TYPE_CHECKING:
    from memorybench.core.report_sections import Report

    from .comparison import Pair
    from .spec import RunOptions
    from .stored_run import StoredRun
    from .suite import PreparedRun, Suite
    from .thresholds import Held, Threshold

_NONE = "none"
_ANY = ""


class Baseline(Record):
    """The baseline run that a run is compared with. It is saved with the run."""

    run: str
    subject: str | None = None
    folder: str = ""
    """The results folder of the baseline run, relative to that of the run; absolute in older runs; empty if it is the
    same."""
    max_drop: Mapping[str, float] = {}
    """By measure: the gate fails if the measure drops by more than this, even if the drop is not significant. The key
    "" applies to every main measure. In percentage points, or in the unit of the measure."""

    def locate(self, results: Path) -> tuple[str, list[Path]]:
        """Return the name of the baseline run for `open_sides`, and the folders to search for it."""
        name = f"{self.run}:{self.subject}" if self.subject else self.run
        if isinstance(results, DatabaseFolder) and not self.folder:
            return name, [results]
        folder = os.path.relpath((results / self.folder).resolve()) if self.folder else results
        return f"{folder}/{name}", []


class Gate(Record):
    """The result of comparing a run with its baseline."""

    baseline: str
    checks: tuple[Check, ...]
    """One check for each compared measure; a single missed check if the runs cannot be compared."""
    comparison: RunComparison | None = None
    """The comparison of the run (first) with the baseline (second); None if they cannot be compared."""

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> list[str]:
        return [check.text for check in self.checks if check.missed]

    def document(self) -> dict[str, Any]:
        comparison = self.comparison.document() if self.comparison else None
        return {
            "baseline": self.baseline,
            "passed": self.passed,
            "failures": self.failures,
            "comparison": comparison,
        }

    def add_to(self, report: Report) -> Report:
        sections = self.comparison.sections(types=False) if self.comparison else []
        warnings = self.comparison.warnings if self.comparison else ()
        name = self.comparison.sides[1].run if self.comparison else self.baseline
        notes = Notes(tuple(check.text for check in self.checks), title=f"Baseline run {name}", detail=True)
        return dataclasses.replace(
            report,
            sections=(*report.sections, notes, *sections),
            warnings=(*report.warnings, *warnings),
            document={**report.document, "baseline": self.document()},
        )


def find_baseline(options: RunOptions, saved: Mapping[str, Any] | None, results: Path, run_id: str) -> Baseline | None:
    """Return the baseline run that `--baseline` names; without that flag, the one saved with a resumed run.

    `--baseline none` removes the saved one. `--max-drop` replaces its limits.
    """
    found = Baseline.model_validate(saved) if saved else None
    if options.baseline == _NONE:
        found = None
    elif options.baseline is not None:
        found = _locate(options.baseline, results)
    if options.max_drop:
        if found is None:
            raise BadInput("--max-drop", "there is no baseline run to compare with", remedy="add --baseline RUN")
        found = found.model_copy(update={"max_drop": _parse_drops(options.max_drop)})
    if found is not None and found.run == run_id and not found.folder:
        raise BadInput("--baseline", f"run {run_id} cannot be its own baseline", expected="an earlier run")
    return found


def _locate(text: str, results: Path) -> Baseline:
    wanted = [results] if text.partition(":")[0] == LATEST else [results, *default_folders()]
    folders = [folder for folder in dict.fromkeys(wanted) if journal_of(folder).exists()]
    try:
        with open_sides([_tagged_run(text, folders) or text], folders, runs_only=True) as (side,):
            folder = os.path.relpath(side.compared.folder.resolve(), results.resolve())
            return Baseline(run=side.run.id, subject=side.subject, folder="" if folder == "." else folder)
    except BadInput as error:
        raise BadInput(
            "--baseline",
            f"{error.where}: {error.problem}",
            expected=error.expected and f"{error.expected}, or a tag of one run",
            remedy=error.remedy,
        ) from error


def _tagged_run(text: str, folders: Sequence[Path]) -> str | None:
    """Return RUN or RUN:SUBJECT for TAG or TAG:SUBJECT; None if a run has the name TAG, or no run has this tag.

    Raise BadInput if several runs have the tag.
    """
    head, colon, subject = text.partition(":")
    found: list[str] = []
    for folder in folders:
        with RunReader.open(folder, thorough=False) as run_reader:
            if run_reader.has(head):
                return None
            found += [run for run, tags in run_reader.tags().items() if head in tags]
    if len(found) > 1:
        raise BadInput(head, f"{len(found)} runs have this tag: {', '.join(found)}", remedy="name one of these runs")
    return f"{found[0]}{colon}{subject}" if found else None


def _parse_drops(texts: Sequence[str]) -> dict[str, float]:
    drops = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            drops[name.strip() or _ANY] = drop = float(number)
        except ValueError:
            drop = -1
        if not (isfinite(drop) and drop >= 0):
            raise BadInput(
                "--max-drop",
                f"invalid value {text!r}",
                expected="POINTS or MEASURE=POINTS, such as 2 or recall@5=2, with a number of 0 or more",
            )
    return drops


def check_baseline(
    baseline: Baseline, prepared: PreparedRun, suite: Suite, results: Path, given: str | None = None
) -> None:
    """Raise BadInput if the run cannot be compared with its baseline. Called before anything is spent.

    `given` is what the user wrote after `--baseline`; the remedy repeats it.
    """
    chosen_metrics([name for name in baseline.max_drop if name], prepared.metrics, (), "--max-drop")
    name, folders = baseline.locate(results)
    with open_sides([name], folders, runs_only=True) as (side,):
        if side.run.suite != suite.name:
            expected, found = verb_of(suite.name), verb_of(side.run.suite)
            raise BadInput("--baseline", f"{side.run.id} is a run of {found}", expected=f"a run of {expected}")
        subjects = prepared.subjects or tuple(dict.fromkeys(name for _, name in prepared.totals))
        pairs = pair_subjects(subjects, side.subjects, "--baseline")
        for ours, theirs in pairs:
            if side.subject is None and ours != theirs and side.compared.roles[theirs] in ("provider", "baseline"):
                name = shlex.quote(f"{given or baseline.run}:{theirs}")
                raise BadInput(
                    "--baseline",
                    f"run {side.run.id} has {theirs}, but not {ours}",
                    remedy=f"to compare {ours} with {theirs}, add --baseline {name}",
                )
            asked = [name for name, subject in prepared.totals if subject == ours]
            shared = [name for name in asked if (name, theirs) in side.compared.cases]
            for name in shared:
                known = {case.case_id for case in side.compared.cases[name, theirs].values()}
                if name in prepared.cases and not _has_common_case(prepared, side, name, known):
                    raise BadInput(
                        "--baseline",
                        f"run {side.run.id} has none of the questions of {name} that this run asks",
                        remedy="select the same questions (--limit, --sample-seed, --question-id)",
                    )
            if not shared:
                raise BadInput(
                    "--baseline",
                    f"run {side.run.id} has no results of {theirs} on the benchmarks of this run",
                    remedy="name a run on the same benchmarks",
                )


def _has_common_case(prepared: PreparedRun, side: Side, benchmark: str, known: set[str]) -> bool:
    """Whether the baseline run has one of the planned cases: the same id and, if the data differs, the same content."""
    cases = prepared.cases[benchmark]
    if is_same_data(prepared.fingerprints, side.run.fingerprints, benchmark):
        return bool(known & cases.keys() if isinstance(cases, Mapping) else known & cases)
    for id, case in cases.items() if isinstance(cases, Mapping) else ():
        stored = side.compared.content.get((benchmark, id), {})
        own = content_of(case.model_dump(mode="json"))
        if id in known and HISTORY in stored and all(stored.get(name, value) == value for name, value in own.items()):
            return True
    return False


def check_gate(stored: StoredRun) -> Gate | None:
    """Compare a run with the baseline run named in its spec. Return None if it names none.

    If the two cannot be compared, the result has a missed check.
    """
    saved = stored.spec.get(SAVED_BASELINE)
    if saved is None:
        return None
    baseline, folder = Baseline.model_validate(saved), stored.folder
    main = suite_of(stored.run).main_measures(stored)
    limited = chosen_metrics([name for name in baseline.max_drop if name], stored.metrics, (), "--max-drop")
    measures = tuple(dict.fromkeys((*main, *(metric.name for metric in limited))))
    try:
        costs = are_costs(measures)
        name, folders = baseline.locate(folder)
        with open_sides([name], folders, runs_only=True, costs=costs) as (side,):
            own = Side(stored.run.id, ComparedRun(stored, folder, costs))
            named = replace(side, text=f"{side.run.id}:{side.subject}" if side.subject else side.run.id)
            comparison = compare_sides([own, named], measures=measures)
    except BadInput as error:
        without_path = BadInput(baseline.run, error.problem, expected=error.expected, remedy=error.remedy)
        text = f"baseline missed: {without_path}"
        return Gate(
            baseline=baseline.run, checks=(Check(where=stored.run.id, name="baseline", text=text, missed=True),)
        )
    renamed = {ALIASES[name]: drop for name, drop in baseline.max_drop.items() if ALIASES.get(name) in measures}
    gate = check_comparison(comparison, baseline.run, {**baseline.max_drop, **renamed})
    label = shard_label(stored.runs)
    if not label:
        return gate
    checks = [one.model_copy(update={"text": one.text.replace(": ", f": {label}: ", 1)}) for one in gate.checks]
    return gate.model_copy(update={"checks": tuple(checks)})


def run_checks(
    stored: StoredRun, given: Sequence[Threshold] = (), on: Held = "value"
) -> tuple[list[Check], Gate | None]:
    """Check a run again: its thresholds, and the comparison with its baseline if it has one.

    `given` and `on` replace the thresholds that the run was started with, and what they are compared with.
    """
    suite, spec = suite_of(stored.run), stored.spec
    checks: list[Check] = []
    limits, on = (given, on) if given else saved_thresholds(spec)
    if limits or spec.get("targets"):
        roles = {one.trial.subject.name: one.trial.subject.role for one in stored.outcomes()}
        held = [name for name, role in roles.items() if role != "baseline"]
        wanted = limits if held or given else ()
        targets, lower_bounds = spec.get("targets", {}), spec.get("lower_bounds", {})
        metrics = suite.metrics(stored)
        limits = check_thresholds(wanted, held, metrics, targets, lower_bounds, are_saved=not given)
        checks = threshold_checks(stored.summary, limits, on, held)
    return checks, check_gate(stored)


def report_of(stored: StoredRun) -> Report:
    """Return the report of a run, with its thresholds and the comparison with its baseline if it has them."""
    return add_checks(suite_of(stored.run).report(stored), *run_checks(stored))


def check_comparison(comparison: RunComparison, baseline: str, max_drop: Mapping[str, float]) -> Gate:
    """Check each measure of a comparison with the run `baseline`, and return the results.

    A measure misses its check if it is significantly worse than in the baseline run, if it is worse by more than its
    `max_drop`, or if only the baseline run has a value. Significant: the two-sided p-value, adjusted by Holm's method
    for all measures, subjects and benchmarks, is below 0.05. So the gate fails by chance for about 2.5 % of the runs
    that are as good as their baseline.
    """
    return Gate(
        baseline=baseline,
        checks=tuple(_check(pair, max_drop) for pair in comparison.comparisons),
        comparison=comparison,
    )


def _check(pair: Pair, max_drop: Mapping[str, float]) -> Check:
    where = f"{pair.benchmark} × {pair.first}"
    failure = _failure(pair, max_drop)
    verdict = "missed" if failure else "met"
    if pair.loss is None:
        verdict, difference = verdict if failure else "not compared", "has no value in both runs"
    elif pair.amount(abs(pair.loss)) == pair.amount(0):
        difference = "shows no difference from the baseline run"
    elif pair.loss < 0:
        difference = f"{pair.amount(-pair.loss)} better than the baseline run"
    elif pair.comparison.p is None:
        difference = f"{pair.amount(pair.loss)} worse than the baseline run; not tested"
    else:
        difference = f"not significantly worse than the baseline run ({pair.amount(pair.loss)})"
    text = f"baseline {verdict}: {where}: {pair.measure} {failure or difference}"
    return Check(
        where=where,
        name=f"baseline {pair.measure}",
        text=text,
        missed=failure is not None,
        value=pair.first_value,
        limit=pair.second_value,
    )


def _failure(pair: Pair, max_drop: Mapping[str, float]) -> str | None:
    result = pair.comparison
    if result.difference is None or pair.loss is None:
        is_lost = pair.first_value is None and (pair.second_value is not None or (pair.only_second and not result.n))
        return "has a value in the baseline run, and none in this run" if is_lost else None
    drop = max_drop.get(pair.measure, max_drop.get(_ANY) if not pair.unit else None)
    worse = f"is worse by {pair.amount(pair.loss)}"
    loss, unit = (pair.loss, pair.unit) if pair.unit else (100 * pair.loss, "points")
    if drop is not None and exceeds(loss, drop):
        return f"is worse by {beside(drop, loss, DECIMALS.get(pair.unit, 1))} {unit}, more than {exact(drop)}"
    if result.significant and pair.loss > 0 and result.adjusted_p is not None:
        return f"{worse}, p {format_p(result.adjusted_p)}{pair.correction}"
    return None
