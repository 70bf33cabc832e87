"""What a suite is: its commands, and what reports must know about its runs."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .shards import mark_shards, shard_facts

if TYPE_CHECKING:
    from memorybench.core.measures import Metric
    from memorybench.core.plans import Plan
    from memorybench.core.report_sections import Report, Section
    from memorybench.core.trials import Case
    from memorybench.journal.rows import Fingerprint, Run

    from .case_view import CaseTrial
    from .estimates import Estimate
    from .replayed_steps import RecordedRun, Rescorer
    from .shards import ShardPart
    from .spec import Spec
    from .stored_run import StoredRun
    from .wiring import ResolvedModel, Wiring

RESULTS = "results"
AUDIT_RESULTS = "audit-results"


def default_folders() -> list[Path]:
    """Return the folders of the working folder that runs are written to by default, as far as they exist."""
    return [folder for folder in (Path(RESULTS), Path(AUDIT_RESULTS)) if folder.is_dir()] or [Path(RESULTS)]


FORMATS = ("json", "markdown")
SCOPE_SUFFIX = "scope_suffix"
"""The key of a saved spec for `Opening.scope_suffix`."""
SAVED_BASELINE = "gate"
"""The key of a saved spec for the baseline run."""
STARTED_WITH = "started_with"
"""The key of a saved spec for the command line and the versions of packages, which change no result."""


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a run is kept."""

    results: Path
    run_id: str

    @property
    def folder(self) -> Path:
        return self.results / self.run_id


@dataclass(frozen=True, slots=True)
class Opening:
    """What a suite needs to open its subjects and make a plan."""

    stack: AsyncExitStack
    """Closed when the run ends."""
    run_id: str
    stores: Path
    """A folder for data of the subjects. It is removed when the run is complete."""
    scored: frozenset[str]
    """Keys of the trials that an earlier process has scored."""
    scope_suffix: str = ""
    """Random, makes the scopes of live memories unique, and stays the same when a run is resumed; "" in older runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """A run whose names are resolved and whose data is read. Nothing is opened, spent or written yet."""

    spec: Spec
    totals: Mapping[tuple[str, str], int]
    """Planned trials by benchmark and subject."""
    subjects: tuple[str, ...]
    """Subjects that thresholds apply to."""
    fingerprints: Mapping[str, Fingerprint]
    """What must be unchanged when the run is resumed."""
    metrics: tuple[Metric, ...]
    open_plan: Callable[[Opening], Awaitable[Plan]]
    repeats: int = 1
    """Planned trials of each case."""
    cases: Mapping[str, frozenset[str] | Mapping[str, Case]] = field(default_factory=dict)
    """By benchmark: the ids of its cases, where the fingerprints do not name them, or the cases by id."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Saved beside the spec: what a report must know without the data."""
    models: tuple[ResolvedModel | None, ...] = ()
    """Models that a budget must know the price of."""
    estimate: Callable[[], Iterable[Estimate]] = tuple
    """What the run would take."""
    targets: Mapping[str, float] = field(default_factory=dict)
    """Thresholds that apply unless the user gives others."""
    lower_bounds: Mapping[str, str] = field(default_factory=dict)
    """By measure: the measure of how low it could be, were all undecided cases decided against it."""
    formats: tuple[str, ...] = FORMATS
    hints: Mapping[str, str] = field(default_factory=dict)
    """Commands to try next, with what each does."""
    blocked: str = ""
    """Why nothing may be started; the run is recorded as blocked."""
    discard: Callable[[], None] | None = None
    """Removes what preparing has fetched, for a run that does not take place."""
    part: ShardPart | None = None
    """What a shard performs. `open_plan` and `fingerprints` are those of the whole run, other fields of the shard."""

    @property
    def planned(self) -> int:
        return sum(self.totals.values())


@dataclass(frozen=True, slots=True)
class Command:
    """One command that makes runs: `memorybench eval`, `memorybench extraction run`."""

    name: str
    help: str
    spec: type[Spec]
    prepare_function: str
    """`module:function`, loaded when the command runs: from spec, wiring and place to a prepared run."""
    title: str
    output: str = RESULTS
    """The results folder, unless another one is named."""
    marks: Mapping[str, Any] = field(default_factory=dict)
    """Saved with every run, to tell the commands of one suite apart."""

    def prepare(self, spec: Spec, wiring: Wiring, place: RunPlace) -> PreparedRun:
        """Raises before anything is spent."""
        module, _, function = self.prepare_function.partition(":")
        prepared: PreparedRun = getattr(import_module(module), function)(spec, wiring, place)
        return prepared


def resume_command(command: Command, results: Path, run_id: str) -> str:
    """What a user types to continue a run."""
    from memorybench.journal.places import journal_words

    output = ["--output", str(results)] if results != Path(command.output) else []
    return shlex.join(["memorybench", *command.name.split(), "--resume", run_id, *output, *journal_words(results)])


@dataclass(frozen=True, slots=True)
class Suite:
    """A kind of measurement, with the commands that run it."""

    name: str
    commands: tuple[Command, ...]
    report_module: str
    """A module with the functions `metrics(run)`, `facts(runs)`, `report(run)` and, where a run can fail checks of the
    suite, `passes(run)`; where `memorybench show` must show more than searches, answers and verdicts,
    `case_sections(trial)`. Its tuple `MAIN_MEASURES` names the measures that `compare` and `--baseline` test unless the
    user names others; without it, that is the first metric. Its mapping `RESULT_NAMES` has the words that reports use
    for results that the journal names otherwise. Loaded when a report is made."""
    rescoring_module: str = ""
    """A module with the function `rescorer(run)`, which computes scores again from recorded steps; "": none."""
    describe_file: Callable[[Path, Mapping[str, Any]], str | None] = lambda path, first: None
    """From a data file and its first row to a line about it; None: it is not a file of this suite."""
    write_files: Callable[[RunPlace], None] = lambda place: None
    """Writes further files into the folder of a run, after its last trial, from its journal."""

    def metrics(self, run: StoredRun) -> Sequence[Metric]:
        metrics: Sequence[Metric] = self._reporting.metrics(run)
        return metrics

    def main_measures(self, run: StoredRun) -> tuple[str, ...]:
        """Names of the measures that comparisons test."""
        known = [metric.name for metric in self.metrics(run)]
        named = getattr(self._reporting, "MAIN_MEASURES", known[:1])
        return tuple(name for name in named if name in known)

    def facts(self, runs: Sequence[Run]) -> dict[str, str]:
        """What the header says about a run, or about the shards of one."""
        facts: dict[str, str] = self._reporting.facts(runs)
        return {**facts, **shard_facts(runs)}

    def report(self, run: StoredRun) -> Report:
        report: Report = self._reporting.report(run)
        return mark_shards(report, run.runs)

    def passes(self, run: StoredRun) -> bool:
        """Whether a finished run passes the suite's own checks. Exit code 3 where it does not."""
        check = getattr(self._reporting, "passes", None)
        return check is None or bool(check(run))

    def result_name(self, text: str) -> str:
        """Return how reports name a result, or what was expected; the journal may have another word for it."""
        names: Mapping[str, str] = getattr(self._reporting, "RESULT_NAMES", {})
        return names.get(text, text)

    def case_sections(self, trial: CaseTrial) -> Sequence[Section] | None:
        """Return the suite's own sections for a trial, or None if it is shown with the standard ones.

        The standard sections are searches, answers and verdicts.
        """
        describe = getattr(self._reporting, "case_sections", None)
        sections: Sequence[Section] | None = None if describe is None else describe(trial)
        return sections

    def rescorer(self, run: RecordedRun) -> Rescorer | None:
        """Return what computes the scores of a run again, to check them; None if the suite cannot."""
        if not self.rescoring_module:
            return None
        rescorer: Rescorer = import_module(self.rescoring_module).rescorer(run)
        return rescorer

    def command_of(self, run: Run) -> Command:
        """The command that continues a saved run."""
        for command in self.commands:
            if all(run.spec.get(key) == value for key, value in command.marks.items()):
                return command
        return self.commands[0]

    @property
    def _reporting(self) -> Any:
        return import_module(self.report_module)
