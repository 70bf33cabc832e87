"""Makes one run of the shards that `--shard I/N` has made, which may be in the results folders of several machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.files.names import safe_tag
from memorybench.journal.lock import check_unused
from memorybench.journal.merging import write_merged
from memorybench.journal.places import hide_password, journal_of, results_folder
from memorybench.journal.rows import Run, differences
from memorybench.journal.run_reader import RunReader
from memorybench.journal.sqlite import FILE_NAME
from memorybench.judging.canaries import STEP as CANARY

from .finished import rewrite_reports
from .gate import report_of
from .judge_check import NOTE as JUDGE_NOTE
from .judge_check import STEP as JUDGE_CHECK
from .registry import suite_of
from .run_changes import repair
from .shards import PART, SHARD, parse_shard
from .stored_run import find_folder, new_run_id, open_stored_run, with_current_status
from .suite import PATHS, SAVED_BASELINE, SCOPE_SUFFIX, STARTED_WITH, RunPlace, default_folders, resume_command

if TYPE_CHECKING:
    from .html_report import MakePage
    from .summary import Summary
    from .wiring import Wiring

_THRESHOLDS = ("thresholds", "threshold_on")
_OF_A_START = (SCOPE_SUFFIX, STARTED_WITH, SAVED_BASELINE, *_THRESHOLDS, "concurrency", "budget", "reuse")
"""Keys of a spec that do not affect any figure, so shards may differ in them."""


class _Shard(Struct, frozen=True):
    run_reader: RunReader
    run: Run
    outcomes: int

    @property
    def name(self) -> str:
        return f"{self.run_reader.folder}/{self.run.id}"

    @property
    def number(self) -> str:
        return str(self.run.spec[SHARD])

    @property
    def is_complete(self) -> bool:
        return self.run.status == "complete" and self.outcomes == self.run.planned

    def plain(self) -> dict[str, str | int | None]:
        """Return the shard as the merged run records it. `outcomes` shows whether the shard has grown since."""
        return {
            "run": self.run.id,
            "shard": self.number,
            "created": self.run.created,
            "finished": self.run.finished,
            "outcomes": self.outcomes,
        }


class MergedRun(Struct, frozen=True):
    place: RunPlace
    summary: Summary
    shards: Sequence[Mapping[str, str | None]]
    files: Sequence[Path]
    is_new: bool
    """False if the same shards had already been merged under this name."""
    differing_trials: int
    """The number of trials that have no outcome, because an earlier shard has another result for one of their steps."""
    resume: str
    """The command that performs the trials without outcome."""


def merge(
    names: Sequence[str],
    run_id: str,
    wiring: Wiring,
    results: Path | None,
    *,
    journal: str | None,
    allow_partial: bool,
    tags: Sequence[str],
    make_page: MakePage,
    command_line: Sequence[str] = (),
) -> MergedRun:
    """Merge shards into one run and write its reports. Errors are raised before anything is written.

    A name is a run of the folder `results`, FOLDER/RUN, or a results folder, all of whose shards are merged.
    """
    new_run_id(run_id, "--run-id")
    if not names:
        raise BadInput("DIR", "missing", expected="the folders or runs of the shards")
    wanted = [wiring.redact(safe_tag(tag, "--tag")) for tag in tags]
    with ExitStack() as stack:
        shards = _find_shards(names, results, journal, stack)
        _check_same_run(shards)
        _check_numbers(shards, allow_partial)
        if not allow_partial:
            _check_complete(shards)
        shards.sort(key=lambda shard: parse_shard(shard.number))
        command = suite_of(shards[0].run).command_of(shards[0].run)
        place = RunPlace(results_folder(results or Path(command.output), journal), run_id)
        repair(place.results)
        run = _merged_run(run_id, shards, [wiring.redact(hide_password(word)) for word in command_line])
        is_new = not _is_merged(place, run)
        if is_new:
            check_unused(place.folder)
            tags_of = (shard.run_reader.tags().get(shard.run.id, ()) for shard in shards)
            every_tag = dict.fromkeys([*(tag for found in tags_of for tag in found), *wanted])
            # the merged run gets the judge check of one shard: the first that completed its check
            shards.sort(key=lambda one: one.run_reader.step_inputs(one.run.id, JUDGE_CHECK) is None)
            write_merged(
                place.results,
                run,
                [(one.run_reader, one.run.id) for one in shards],
                list(every_tag),
                wiring.fault(),
                first_steps=(CANARY, JUDGE_CHECK),
                first_notes=(JUDGE_NOTE,),
            )
    files = _write_files(place, make_page)
    with open_stored_run([run_id], [place.results]) as stored:
        summary = stored.summary
        differing = max(0, sum(shard.outcomes for shard in shards) + summary.pending - summary.counts["planned"])
        resume = _resume_command(run, place.results)
        return MergedRun(place, summary, run.spec[STARTED_WITH]["shards"], files, is_new, differing, resume)


def _resume_command(run: Run, folder: Path) -> str:
    return resume_command(suite_of(run).command_of(run), folder, run.id)


def _find_shards(names: Sequence[str], results: Path | None, journal: str | None, stack: ExitStack) -> list[_Shard]:
    readers: dict[str, RunReader] = {}

    def reader_of(folder: Path) -> RunReader:
        name = journal_of(folder).name
        if name not in readers:
            readers[name] = stack.enter_context(RunReader.open(folder))
        return readers[name]

    own = [results_folder(folder, journal) for folder in ([results] if results else default_folders())]
    found = []
    for run_reader, run in (one for name in names for one in _find_runs(name, own, reader_of)):
        current = with_current_status(run, run_reader.folder)
        shard = _Shard(run_reader, current, sum(run_reader.status_counts(run.id).values()))
        if not run.spec.get(SHARD):
            raise BadInput(shard.name, "is not a shard", expected="a run that was made with --shard I/N")
        found.append(shard)
    return found


def _find_runs(
    name: str, folders: Sequence[Path], reader_of: Callable[[Path], RunReader]
) -> list[tuple[RunReader, Run]]:
    """Return all shards of the results folder `name` or, if `name` is not a results folder, the run of that name.

    A run is named by FOLDER/RUN, or by its id in one of `folders`.
    """
    if name and (Path(name) / FILE_NAME).exists():
        run_reader = reader_of(Path(name))
        runs = [run for run in run_reader.runs() if run.spec.get(SHARD)]
        if not runs:
            raise BadInput(name, "has no shards", expected="runs that were made with --shard I/N")
        return [(run_reader, run) for run in runs]
    run_id, places = find_folder(name, folders, thorough=False)
    run_reader = reader_of(places[0])
    return [(run_reader, run_reader.run(run_id))]


def _check_same_run(shards: Sequence[_Shard]) -> None:
    first = shards[0]
    for other in shards[1:]:
        changed = list(_differences(first.run, other.run))
        if changed:
            raise BadInput(
                f"{first.name} and {other.name}",
                f"not shards of one run; they differ in {'; '.join(changed)}",
                remedy="name only the shards of one run, as FOLDER/RUN",
            )


def _differences(first: Run, other: Run) -> Iterator[str]:
    counts = [run.spec[SHARD].partition("/")[2] for run in (first, other)]
    if counts[0] != counts[1]:
        yield f"the number of shards ({first.spec[SHARD]} and {other.spec[SHARD]})"
    for what in ("suite", "program"):
        values = getattr(first, what), getattr(other, what)
        if values[0] != values[1]:
            yield f"{what} ({values[0]} and {values[1]})"
    # paths may differ between machines; fingerprints compare the content of the files
    own = {SHARD, PART, *first.spec[PART]["whole"], *other.spec[PART]["whole"], *_OF_A_START, *PATHS}
    specs = [{key: value for key, value in run.spec.items() if key not in own} for run in (first, other)]
    yield from sorted(key for key in specs[0].keys() | specs[1].keys() if specs[0].get(key) != specs[1].get(key))
    yield from differences(first.fingerprints, other.fingerprints)
    if counts[0] == counts[1] and _in_all(first) != _in_all(other):
        yield "the whole run that they are a part of"


def _in_all(run: Run) -> dict[str, Any]:
    return {key: value for key, value in run.spec[PART].items() if key != "histories"}


def _check_numbers(shards: Sequence[_Shard], allow_partial: bool) -> None:
    found: dict[str, _Shard] = {}
    for shard in shards:
        if shard.number in found:
            raise BadInput(
                f"{found[shard.number].name} and {shard.name}",
                f"both are shard {shard.number}",
                remedy="name each shard once",
            )
        found[shard.number] = shard
    count = parse_shard(shards[0].number)[1]
    missing = [f"{number}/{count}" for number in range(1, count + 1) if f"{number}/{count}" not in found]
    if missing and not allow_partial:
        raise BadInput(
            "DIR",
            f"{_list('shard', missing)} missing",
            expected=f"all {count} shards",
            remedy="name the folders of the missing shards, too, or add --allow-partial to merge the others",
        )


def _list(noun: str, names: Sequence[str]) -> str:
    """Return the names with noun and verb: `shard 2/3 is`, or `shards 2/9, 3/9, 4/9 and 2 more are`."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{noun}{'s' * (len(names) > 1)} {', '.join(names[:3])}{more} {'are' if len(names) > 1 else 'is'}"


def _check_complete(shards: Sequence[_Shard]) -> None:
    for shard in shards:
        if shard.is_complete:
            continue
        run, folder = shard.run, shard.run_reader.folder
        status = f"is {run.status}" if run.status != "complete" else "is damaged"
        remedy = f"finish it: {_resume_command(run, folder)}"
        raise BadInput(
            shard.name,
            f"shard {shard.number} {status}; it has {shard.outcomes} of {run.planned} outcomes",
            expected="a complete shard",
            remedy="restore a copy of its results" if run.status == "complete" else f"{remedy}, or add --allow-partial",
        )


def _merged_run(run_id: str, shards: Sequence[_Shard], command_line: Sequence[str]) -> Run:
    """Return the merged run as if it had not been divided, with the first start and the last end of its shards."""
    first, runs = shards[0].run, [shard.run for shard in shards]
    part = first.spec[PART]
    shared = {key: value for key, value in first.spec.items() if key not in (PART, SAVED_BASELINE, *_THRESHOLDS)}
    thresholds = {key: first.spec[key] for key in _THRESHOLDS if key in first.spec}
    is_same = all(run.spec.get(key) == first.spec.get(key) for run in runs for key in _THRESHOLDS)
    budgets = [run.spec.get("budget") for run in runs]
    is_complete = all(shard.is_complete for shard in shards) and len(shards) == parse_shard(shards[0].number)[1]
    started = {
        "command_line": list(command_line),
        "versions": first.spec.get(STARTED_WITH, {}).get("versions", {}),
        "shards": [shard.plain() for shard in shards],
    }
    return Run(
        id=run_id,
        suite=first.suite,
        spec={
            **shared,
            **part["whole"],
            **(thresholds if is_same else {}),
            SHARD: None,
            "reuse": None,
            "budget": None if None in budgets else sum(budgets),
            STARTED_WITH: started,
        },
        fingerprints=first.fingerprints,
        program=first.program,
        planned=part["planned_in_all"],
        status="complete" if is_complete else "partial",
        created=min(run.created for run in runs),
        finished=max((run.finished for run in runs if run.finished), default=None),
    )


def _is_merged(place: RunPlace, run: Run) -> bool:
    """Return whether these shards were already merged under this name. Merging again is then allowed."""
    if not journal_of(place.results).exists():
        return False
    with RunReader.open(place.results, thorough=False) as run_reader:
        if not run_reader.has(run.id):
            return False
        existing = run_reader.run(run.id).spec.get(STARTED_WITH, {})
    return bool(existing.get("shards") == run.spec[STARTED_WITH]["shards"])


def _write_files(place: RunPlace, make_page: MakePage) -> list[Path]:
    """Write the reports of the merged run and the suite's other files; return the paths of the reports."""
    with open_stored_run([place.run_id], [place.results]) as stored:
        suite_of(stored.run).write_files(place)
        report = report_of(stored)
        return rewrite_reports(stored, report, make_page(stored, report))


def shard_names(shards: Iterable[Mapping[str, str | int | None]]) -> str:
    return ", ".join(f"{shard['shard']} ({shard['run']})" for shard in shards)
