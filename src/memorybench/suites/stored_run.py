"""Reads runs from results folders: one run, or several shards of one run as if they were one."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memorybench.core.errors import BadInput
from memorybench.core.measures import Metric
from memorybench.core.trials import Outcome
from memorybench.files.names import safe_run_id
from memorybench.journal.places import journal_of, journal_words
from memorybench.journal.rows import Run, RunStatus, differences
from memorybench.journal.run_reader import RecordedTrial, RunReader
from memorybench.journal.sqlite import FILE_NAME
from memorybench.text.sanitize import preview
from memorybench.text.spelling import suggestion

from .registry import suite_of
from .shards import PART, SHARD
from .suite import SCOPE_SUFFIX, STARTED_WITH
from .summary import Summary, summarise

LATEST = "latest"
"""A name for the newest run."""
_MOST_HELD = 10_000
"""The outcomes of a run with more trials than this are not kept in memory, but read each time."""
_SAMPLE_KEYS = (
    "start",
    "end",
    "questions",
    "sample_seed",
    "chosen",
    "samples",
    "chance",
    "special_measures",
    "measured_on",
)
_SHARD_KEYS = (
    *_SAMPLE_KEYS,
    SHARD,
    PART,
    "selected",
    "probes",
    "origins",
    "titles",
    "first_measures",
    "thresholds",
    "threshold_on",
    "concurrency",
    SCOPE_SUFFIX,
    STARTED_WITH,
)
"""Keys of a spec whose values may differ between shards of one run."""


class StoredRun(Struct, frozen=True, dict=True):
    """A run, or several shards of one run, read from the journal."""

    parts: tuple[tuple[RunReader, Run], ...]
    is_held: bool = False
    """Whether outcomes are kept in memory after they are read."""

    @property
    def run(self) -> Run:
        """The run; if there are several shards, the first of them."""
        return self.parts[0][1]

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for _, run in self.parts)

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.run.spec

    @cached_property
    def metrics(self) -> Sequence[Metric]:
        """The metrics of the run's suite."""
        return suite_of(self.run).metrics(self)

    @cached_property
    def summary(self) -> Summary:
        outcomes = map(self._outcomes_of, range(len(self.parts)))
        return summarise(self.parts, self.metrics, outcomes, suite_of(self.run).main_measures(self))

    @property
    def folder(self) -> Path:
        return self.parts[0][0].folder

    def with_spec(self, changes: Mapping[str, Any]) -> StoredRun:
        """Return a copy of the run whose spec has these changes."""
        parts = ((one, run.model_copy(update={"spec": {**run.spec, **changes}})) for one, run in self.parts)
        return replace(self, parts=tuple(parts))

    def with_summary(self, summary: Summary) -> StoredRun:
        """Return a copy of the run with a summary that was computed earlier."""
        known = replace(self)
        known.__dict__["summary"] = summary  # as `cached_property` stores it
        return known

    def ended(self, status: RunStatus, time: str) -> StoredRun:
        """Return a copy with this status and end time. Reports need it, because the end is recorded after them."""
        parts = ((one, run.model_copy(update={"status": status, "finished": time})) for one, run in self.parts)
        return replace(self, parts=tuple(parts))

    def read_once(self) -> StoredRun:
        """Return a copy that keeps its outcomes in memory after they are read; this run, if it has too many trials."""
        if self.is_held or sum(run.planned for run in self.runs) > _MOST_HELD:
            return self
        held = replace(self, is_held=True)
        return held.with_summary(self.summary) if "summary" in self.__dict__ else held

    @cached_property
    def _held(self) -> list[list[Outcome]]:
        return [list(run_reader.outcomes(run.id)) for run_reader, run in self.parts]

    def _outcomes_of(self, part: int, subjects: Collection[str] | None = None) -> Iterator[Outcome]:
        if self.is_held:
            return (one for one in self._held[part] if subjects is None or one.trial.subject.name in subjects)
        run_reader, run = self.parts[part]
        return (outcome for _, outcome in run_reader.dated_outcomes(run.id, subjects))

    def trials(self) -> Iterator[RecordedTrial]:
        """Yield every outcome with its case and its steps."""
        for run_reader, run in self.parts:
            yield from run_reader.trials(run.id)

    def outcomes(self, subjects: Collection[str] | None = None) -> Iterator[Outcome]:
        """Yield the outcome of every trial of these subjects; None: of all subjects."""
        return chain.from_iterable(self._outcomes_of(part, subjects) for part in range(len(self.parts)))

    def case(self, outcome: Outcome) -> Mapping[str, Any]:
        """Return the case of an outcome as the journal stores it; empty if it is not stored."""
        for run_reader, run in self.parts:
            found = run_reader.case(run.id, outcome.trial.benchmark, outcome.trial.case_id)
            if found:
                return found
        return {}


@contextmanager
def open_stored_run(runs: Sequence[str], folders: Sequence[Path], *, thorough: bool = True) -> Iterator[StoredRun]:
    """Open a saved run by id from these folders, or as FOLDER/RUN. Several runs must be shards of one run.

    They are read as one. `thorough=False` skips the check of the whole results file.
    """
    with ExitStack() as stack:
        names = dict.fromkeys(runs)
        parts = tuple(part for name in names for part in _find_run(name, folders, stack, thorough=thorough))
        _check_shards([run for _, run in parts])
        suite_of(parts[0][1])  # raises for a run without a report
        yield StoredRun(parts)


@contextmanager
def read_run(runs: Sequence[str], folders: Sequence[Path]) -> Iterator[StoredRun]:
    """Open a run as `open_stored_run` does. An error about the structure of the recorded data names the run."""
    from .recorded_form import explain_form

    with open_stored_run(runs, folders) as stored, explain_form(*stored.runs):
        yield stored


def _find_run(name: str, folders: Sequence[Path], stack: ExitStack, *, thorough: bool) -> list[tuple[RunReader, Run]]:
    """Find a run in every folder that has it: shards made on different machines may have the same id."""
    if (own := folder_of(name)) is not None:
        name, folders = Path(name).name, [own]
    if "/" in name:
        raise no_results(name)
    searched = dict.fromkeys(folders)
    readers = {folder: stack.enter_context(RunReader.open(folder, thorough=thorough)) for folder in searched}
    run = resolve_run(name, readers)
    found = [
        (run_reader, with_current_status(run_reader.run(run), folder))
        for folder, run_reader in readers.items()
        if run_reader.has(run)
    ]
    if not found:
        known = [one.id for run_reader in readers.values() for one in run_reader.runs()]
        listing = shlex.join(["memorybench", "runs", *journal_words(folders[0])])
        raise BadInput(
            " and ".join(journal_of(folder).name for folder in readers),
            f"run {preview(run)} not found",
            remedy=suggestion(run, known) or f"`{listing}` lists runs; write FOLDER/RUN for a run in another folder",
        )
    return found


def no_results(name: str) -> BadInput:
    """Return the error for a name FOLDER/RUN whose folder has no results."""
    path = Path(name)
    if path.is_dir():
        return BadInput(
            name,
            f"the folder of a run does not contain its results, and {path.parent} has no {FILE_NAME}",
            expected="FOLDER/RUN of a results folder",
            remedy=f"copy the whole results folder, with {FILE_NAME} and {path.name}, and name the copy",
        )
    return BadInput(
        name, f"{path.parent} has no {FILE_NAME}", expected=f"RUN, or FOLDER/RUN of a folder with {FILE_NAME}"
    )


def folder_of(name: str) -> Path | None:
    """Return the results folder of FOLDER/RUN; None if the name has no folder, or the folder no results."""
    path = Path(name)
    return path.parent if path.name != name and (path.parent / FILE_NAME).exists() else None


def find_folder(name: str, folders: Sequence[Path], *, thorough: bool = True) -> tuple[str, list[Path]]:
    """Return the id of the run with that name, which may be `latest`, and the folders that have it."""
    with ExitStack() as stack:
        parts = _find_run(name, folders, stack, thorough=thorough)
        return parts[0][1].id, [run_reader.folder for run_reader, _ in parts]


def new_run_id(text: str, where: str) -> str:
    """Return the id for a new run. Raise BadInput if it is not valid, or reserved."""
    if text == LATEST:
        raise BadInput(where, f'"{LATEST}" is reserved for the newest run', remedy="choose another name")
    if text.lower().startswith(FILE_NAME):  # its folder would be in the place of the results file, or of its log
        raise BadInput(where, f'"{text}" is reserved for the results file', remedy="choose another name")
    return safe_run_id(text, where)


def resolve_run(name: str, readers: Mapping[Path, RunReader]) -> str:
    """Return the run id for a name. `latest` is the newest run that is not a calibration, unless a run has that id."""
    safe_run_id(name, "run")
    if name != LATEST or any(run_reader.has(name) for run_reader in readers.values()):
        return name
    runs = [run for run_reader in readers.values() for run in run_reader.runs() if run.suite != "calibration"]
    if not runs:
        raise BadInput(LATEST, f"no runs in {', '.join(map(str, readers))}", remedy="name a folder with --results")
    return max(runs, key=lambda run: (run.created, run.id)).id


def with_current_status(run: Run, folder: Path) -> Run:
    """Return the run; its status is `partial` if it is recorded as running but no process holds its lock."""
    if run.status == "running" and not journal_of(folder).is_locked(run.id):
        return run.model_copy(update={"status": "partial"})
    return run


def _check_shards(runs: Sequence[Run]) -> None:
    first, *others = runs
    for other in others:
        keys = sorted((first.spec.keys() | other.spec.keys()) - set(_SHARD_KEYS))
        changed = [key for key in keys if first.spec.get(key) != other.spec.get(key)]
        changed += differences(first.fingerprints, other.fingerprints)
        if changed:
            raise BadInput(
                f"{first.id} and {other.id}",
                f"not parts of one run; they differ in {'; '.join(changed)}",
                remedy=f"compare them: memorybench compare {first.id} {other.id}",
            )
    if first.spec.get(SHARD):
        _check_numbers(runs)
        return
    spans = sorted(((run.spec.get("start") or 1, run.spec.get("end") or float("inf")), run.id) for run in runs)
    for (earlier, name), (later, other_name) in pairwise(spans):
        if later[0] <= earlier[1]:
            raise BadInput(
                f"{name} and {other_name}",
                "both runs contain the same questions",
                expected="ranges of --start and --end that do not overlap",
            )


def _check_numbers(runs: Sequence[Run]) -> None:
    """Raise BadInput unless the runs are different shards of the same division, such as 1/3 and 2/3."""
    found: dict[str, str] = {}
    for run in runs:
        shard = run.spec.get(SHARD) or ""
        if shard in found:
            raise BadInput(f"{found[shard]} and {run.id}", f"both are shard {shard}", remedy="name each shard once")
        if shard.partition("/")[2] != runs[0].spec[SHARD].partition("/")[2]:
            raise BadInput(
                run.id,
                f"is {f'shard {shard}' if shard else 'not a shard'}, but {runs[0].id} is shard {runs[0].spec[SHARD]}",
                expected="shards of one run",
            )
        found[shard] = run.id
