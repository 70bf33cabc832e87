"""What a suite is: its commands, and what reports must know about its runs."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from .shards import mark_shards, shard_facts

if TYPE_CHECKING:
    from memorybench.core.measures import Metric
    from memorybench.core.plans import Plan
    from memorybench.core.report_sections import Report, Section
    from memorybench.core.trials import Case, Outcome, Subject
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
    """Return the default results folders in the working directory that exist; the first one if none does."""
    return [folder for folder in (Path(RESULTS), Path(AUDIT_RESULTS)) if folder.is_dir()] or [Path(RESULTS)]


FORMATS = ("json", "markdown")
SCOPE_SUFFIX = "scope_suffix"
"""The key of a saved spec that holds `Opening.scope_suffix`."""
SAVED_BASELINE = "gate"
"""The key of a saved spec that holds the baseline run."""
STARTED_WITH = "started_with"
"""The key of a saved spec that holds the command line and the versions of packages. It is only shown: a resumed run may
have other ones."""
PATHS = ("config_dirs", "data_files", "errata", "dataset", "cases", "probe_file", "folders")
"""Keys of a saved spec that hold paths."""


class RunPlace(Struct, frozen=True):
    """The results folder and the id of a run."""

    results: Path
    run_id: str

    @property
    def folder(self) -> Path:
        return self.results / self.run_id


class Opening(Struct, frozen=True):
    """What a suite needs to open its subjects and make a plan."""

    stack: AsyncExitStack
    """Closes what was opened when the run ends."""
    run_id: str
    stores: Path
    """A folder for the data of subjects. It is removed when the run is complete."""
    scored: frozenset[str]
    """Keys of the trials that an earlier process has scored."""
    scope_suffix: str = ""
    """A random text that makes the scopes of live memories unique. A resumed run keeps it; "" in older runs."""
    check_subject: Callable[[Subject], None] = lambda subject: None
    """Raises RunConflict if the resumed run has trials of a subject with the same name and other settings."""


class Variation(Struct, frozen=True):
    """A suggestion to use the same command again, with some other settings."""

    changes: Mapping[str, Any]
    """The fields of the spec that differ. All others stay as they are."""
    purpose: str
    words: tuple[str, ...] = ()
    """More words for the command line, such as --dry-run."""


class PreparedRun(Struct, frozen=True, kw_only=True):
    """A run whose names are resolved and whose data is read. Nothing is opened or spent yet.

    Nothing is written either, except data that preparing had to fetch; see `discard`.
    """

    spec: Spec
    totals: Mapping[tuple[str, str], int]
    """The number of planned trials, by benchmark and subject."""
    subjects: tuple[str, ...]
    """The subjects that thresholds apply to; baselines are usually left out."""
    fingerprints: Mapping[str, Fingerprint]
    """Fingerprints of everything that must be unchanged when the run is resumed, by name."""
    metrics: tuple[Metric, ...]
    open_plan: Callable[[Opening], Awaitable[Plan]]
    repeats: int = 1
    """The number of planned trials of each case."""
    cases: Mapping[str, frozenset[str] | Mapping[str, Case]] = field(default_factory=dict)
    """By benchmark: its cases by id, or only the ids. Used to find out which cases another run has as well."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Values that are saved with the spec, so that a report does not need the data."""
    models: tuple[ResolvedModel | None, ...] = ()
    """The models whose prices must be known if there is a budget."""
    estimate: Callable[[], Iterable[Estimate]] = tuple
    """Returns an estimate of the calls, tokens and dollars of the run."""
    targets: Mapping[str, float] = field(default_factory=dict)
    """By measure: the threshold that applies unless the user gives another."""
    lower_bounds: Mapping[str, str] = field(default_factory=dict)
    """By measure: the name of the measure with the value that it would have if every undecided case counted against
    it."""
    formats: tuple[str, ...] = FORMATS
    hints: Mapping[str, str] = field(default_factory=dict)
    """Commands to try next. Each value says what the command does."""
    variations: tuple[Variation, ...] = ()
    """What to try next with the same command."""
    blocked: str = ""
    """Why the run must not start; it is then recorded as blocked. Empty if it may start."""
    discard: Callable[[], None] | None = None
    """Removes the files that preparing has fetched; called if the run does not take place."""
    part: ShardPart | None = None
    """The part that a shard performs; None for a whole run. `open_plan` and `fingerprints` describe the whole run, the
    other fields the shard."""

    @property
    def planned(self) -> int:
        return sum(self.totals.values())


class Command(Struct, frozen=True):
    """One command that makes runs: `memorybench eval`, `memorybench extraction run`."""

    name: str
    help: str
    spec: type[Spec]
    prepare_function: str
    """`module:function`, imported when the command runs. It takes a spec, a wiring and a place, and returns a
    PreparedRun."""
    title: str
    output: str = RESULTS
    """The default results folder."""
    marks: Mapping[str, Any] = field(default_factory=dict)
    """Fields that are added to the saved spec of every run. They tell the commands of one suite apart."""
    report_module: str = ""
    """The module that makes the reports of this command; "" for that of the suite."""

    def prepare(self, spec: Spec, wiring: Wiring, place: RunPlace) -> PreparedRun:
        """Return the prepared run. Raise BadInput if it cannot be performed, before anything is spent."""
        module, _, function = self.prepare_function.partition(":")
        prepared: PreparedRun = getattr(import_module(module), function)(spec, wiring, place)
        return prepared


def resume_command(command: Command, results: Path, run_id: str) -> str:
    """Return the command line that continues a run."""
    words = ["memorybench", *command.name.split(), "--resume", run_id, *output_words(command, results)]
    return shlex.join(words)


def output_words(command: Command, results: Path) -> list[str]:
    """Return the flags with which a command writes into a results folder; none if that is its default."""
    from memorybench.journal.places import journal_words

    output = ["--output", str(results)] if results != Path(command.output) else []
    return [*output, *journal_words(results)]


class Suite(Struct, frozen=True):
    """A kind of measurement, with the commands that run it."""

    name: str
    commands: tuple[Command, ...]
    report_module: str
    """A module that is imported when a report is made. It has the functions `metrics(run)`, `facts(runs)` and
    `report(run)`. Optional: `passes(run)`, if a run can fail checks of the suite; `case_sections(trial)`, if
    `memorybench show` must show more than searches, answers and verdicts; the tuple `MAIN_MEASURES`, which names the
    measures that `compare` and `--baseline` test by default (otherwise the first metric); `CASE_NOUN`, what pages call
    one case (otherwise "question"); `RIGHT`, a sentence that says which results pages mark as right; and
    `result_name(trial, name)`, which returns how reports name a result that the journal calls `name`."""
    rescoring_module: str = ""
    """A module with a function `rescorer(run)`, which computes scores again from recorded steps; "" if there is
    none."""
    describe_file: Callable[[Path, Mapping[str, Any]], str | None] = lambda path, first: None
    """Takes a data file and its first row, and returns a line about the file.

    Returns None for a file of another suite.
    """
    write_files: Callable[[RunPlace], None] = lambda place: None
    """Writes other files into the folder of a run after its last trial, from its journal."""

    def metrics(self, run: StoredRun) -> Sequence[Metric]:
        metrics: Sequence[Metric] = self._reporting(run.run).metrics(run)
        return metrics

    def main_measures(self, run: StoredRun) -> tuple[str, ...]:
        """Return the names of the measures that comparisons test by default."""
        known = [metric.name for metric in self.metrics(run)]
        named = getattr(self._reporting(run.run), "MAIN_MEASURES", known[:1])
        return tuple(name for name in named if name in known)

    def facts(self, runs: Sequence[Run]) -> dict[str, str]:
        """Return what the header says about a run, or about shards of one run."""
        facts: dict[str, str] = self._reporting(runs[0]).facts(runs)
        return {**facts, **shard_facts(runs)}

    def report(self, run: StoredRun) -> Report:
        report: Report = self._reporting(run.run).report(run)
        return mark_shards(report, run.runs)

    def passes(self, run: StoredRun) -> bool:
        """Whether a finished run passes the suite's own checks. If not, the exit code is 3."""
        check = getattr(self._reporting(run.run), "passes", None)
        return check is None or bool(check(run))

    def named_as_in_reports(self, outcome: Outcome) -> Outcome:
        """Return an outcome with its expected and actual result renamed as the suite's reports name them."""
        rename = getattr(import_module(self.report_module), "result_name", None)
        if rename is None:
            return outcome
        trial, shown = outcome.trial, outcome.shown
        names = {"expected": rename(trial, shown.expected), "got": rename(trial, shown.got)}
        return outcome.model_copy(update={"shown": shown.model_copy(update=names)})

    def case_sections(self, run: Run, trial: CaseTrial) -> Sequence[Section] | None:
        """Return the suite's own sections for a trial of a run, or None if it is shown with the standard ones.

        The standard sections are searches, answers and verdicts.
        """
        describe = getattr(self._reporting(run), "case_sections", None)
        sections: Sequence[Section] | None = None if describe is None else describe(trial)
        return sections

    def case_noun(self, run: Run) -> str:
        """Return what one case of a run is called, such as `scenario`."""
        return str(getattr(self._reporting(run), "CASE_NOUN", "question"))

    def right_text(self, run: Run) -> str:
        """Return the suite's own sentence about which results of a run are right; "" if it has none."""
        return str(getattr(self._reporting(run), "RIGHT", ""))

    def rescorer(self, run: RecordedRun) -> Rescorer:
        """Return an object that computes the scores of a run again, to check them."""
        from .replayed_steps import Rescorer

        rescorer: Rescorer = import_module(self.rescoring_module).rescorer(run) if self.rescoring_module else Rescorer()
        return rescorer

    def command_of(self, run: Run) -> Command:
        """Return the command that made a saved run, which can also resume it."""
        for command in self.commands:
            if all(run.spec.get(key) == value for key, value in command.marks.items()):
                return command
        return self.commands[0]

    def _reporting(self, run: Run) -> Any:
        return import_module(self.command_of(run).report_module or self.report_module)
