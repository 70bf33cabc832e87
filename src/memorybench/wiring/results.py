"""From runs in results folders to summaries, reports and exit codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.core.trials import Outcome
from memorybench.datasets.metric_names import ALIASES
from memorybench.files.names import safe_run_id
from memorybench.journal.lock import is_held
from memorybench.journal.rows import Run, differences
from memorybench.journal.run_reader import RunReader
from memorybench.reporting.documents import as_json
from memorybench.reporting.summary import Result, Summary, summarise
from memorybench.text.spelling import suggestion

from .suites import Suite, suite_of

_SHARD_KEYS = ("start", "end", "questions", "concurrency")
REPORTS = {"json": "report.json", "markdown": "report.md"}


@dataclass(frozen=True, slots=True)
class Found:
    """Runs on their shelves: one, or the shards of one."""

    parts: tuple[tuple[RunReader, Run], ...]

    @property
    def suite(self) -> Suite:
        return suite_of(self.parts[0][1])

    def summary(self) -> Summary:
        return summarise(self.parts, self.suite.metrics(self.parts[0][1]))

    def facts(self) -> dict[str, str]:
        """What a header says."""
        return self.suite.facts(*(run for _, run in self.parts))

    def document(self, summary: Summary) -> dict[str, Any]:
        """What --json prints and report.json holds."""
        return self.suite.document(self, summary)

    def settled(self) -> Iterator[tuple[str, str, Outcome]]:
        """Run, time and outcome of every trial."""
        for run_reader, run in self.parts:
            for at, outcome in run_reader.settled(run.id):
                yield run.id, at, outcome


@contextmanager
def find(runs: Sequence[str], folders: Sequence[Path]) -> Iterator[Found]:
    """Opens runs by id, looking in each folder; several are taken for shards of one spec."""
    with _shelves(folders) as shelves:
        parts = tuple(part for run in dict.fromkeys(runs) for part in _parts(run, shelves))
        _check_shards([run for _, run in parts])
        suite_of(parts[0][1])  # raises where its runs have no report
        yield Found(parts)


@contextmanager
def comparable(
    subjects: Sequence[str], benchmark: str | None, runs: Sequence[str], folders: Sequence[Path]
) -> Iterator[tuple[Mapping[str, Found], str]]:
    """The run of each subject: the latest of those named, else of all that are complete, on the same data."""
    with _shelves(folders) as shelves:
        if runs:
            parts = [part for run in dict.fromkeys(runs) for part in _parts(run, shelves)]
        else:
            everything = [(run_reader, run) for run_reader in shelves.values() for run in run_reader.runs()]
            parts = [(run_reader, run) for run_reader, run in everything if run.status == "complete"]
        parts = sorted((part for part in parts if part[1].suite == "bench"), key=lambda part: part[1].created)
        chosen = benchmark or _only_benchmark([run for _, run in parts], subjects)
        latest: dict[str, tuple[RunReader, Run]] = {}
        parts = [part for part in parts if chosen in part[1].spec["questions"]]
        together = [part for part in parts if set(subjects) <= set(part[1].spec["providers"])]
        for run_reader, run in together[-1:] or parts:  # side by side in one run, where there is one
            latest |= {subject: (run_reader, run) for subject in subjects if subject in run.spec["providers"]}
        missing = [subject for subject in subjects if subject not in latest]
        if missing:
            raise BadInput(
                "--compare",
                f'no complete run has "{missing[0]}" on {chosen}',
                remedy=f"memorybench eval --benchmarks {chosen} --providers {missing[0]}",
            )
        _check_same_data([run for _, run in latest.values()], chosen)
        yield {subject: Found((latest[subject],)) for subject in subjects}, chosen


@contextmanager
def _shelves(folders: Sequence[Path]) -> Iterator[Mapping[Path, RunReader]]:
    with ExitStack() as stack:
        yield {folder: stack.enter_context(RunReader.open(folder)) for folder in dict.fromkeys(folders)}


def measure_named(name: str, results: Sequence[Result]) -> str:
    """A measure that these results have, by any of its names."""
    known = sorted({measure.name for result in results for measure in result.measures if measure.n})
    found = ALIASES.get(name, name)
    if found not in known:
        raise BadInput("--measure", f'nothing measures "{name}" here', remedy=suggestion(name, known))
    return found


@dataclass(frozen=True, slots=True)
class Listed:
    run: Run
    counts: Mapping[str, int]


def overview(folders: Sequence[Path]) -> list[Listed]:
    """All runs of these folders, oldest first."""
    listed = []
    for folder in folders:
        with RunReader.open(folder) as run_reader:
            runs = [_as_it_stands(run, folder) for run in run_reader.runs()]
            listed += [Listed(run, dict(run_reader.counts(run.id).items())) for run in runs]
    return sorted(listed, key=lambda row: row.run.created)


def write_reports(found: Found, folder: Path, formats: Iterable[str] = REPORTS) -> Summary:
    """The reports of a run, made from the journal alone."""
    summary = found.summary()
    texts = {
        "json": lambda: as_json(found.document(summary)),
        "markdown": lambda: found.suite.markdown(found, summary, found.facts()),
    }
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in formats:
        draft = folder / f".{REPORTS[name]}"
        draft.write_text(texts[name](), encoding="utf-8")
        draft.replace(folder / REPORTS[name])
    return summary


def _parts(run: str, shelves: Mapping[Path, RunReader]) -> list[tuple[RunReader, Run]]:
    """The run in every folder that has it: two machines may have called their shards the same."""
    safe_run_id(run, "run")
    found = [
        (run_reader, _as_it_stands(run_reader.run(run), folder))
        for folder, run_reader in shelves.items()
        if run_reader.has(run)
    ]
    if not found:
        list(shelves.values())[-1].run(run)  # raises, naming the nearest
    return found


def _as_it_stands(run: Run, folder: Path) -> Run:
    """A run that nobody is writing any more is not running, whatever its last word was."""
    if run.status == "running" and not is_held(folder / run.id):
        return run.model_copy(update={"status": "partial"})
    return run


def _only_benchmark(runs: Sequence[Run], subjects: Sequence[str]) -> str:
    known: set[str] = {
        name for run in runs if set(subjects) & set(run.spec["providers"]) for name in run.spec["questions"]
    }
    if len(known) == 1:
        return known.pop()
    remedy = f"one of {', '.join(sorted(known))}" if known else "there is no complete run of these"
    raise BadInput("--benchmark", "on which benchmark shall they be compared?", expected=remedy)


def _check_same_data(runs: Sequence[Run], benchmark: str) -> None:
    """Answers to other questions, by another model or prompt, say nothing about the memories."""
    first, *others = runs
    for other in others:
        changed = [
            line
            for line in differences(first.fingerprints, other.fingerprints)
            if not line.startswith("provider ") and (not line.startswith("benchmark ") or benchmark in line.split())
        ]
        if changed:
            raise BadInput(
                f"{first.id} and {other.id}",
                f"can not be compared: {'; '.join(changed)}",
                remedy="run both providers in one `memorybench eval`",
            )


def _check_shards(runs: Sequence[Run]) -> None:
    first, *others = runs
    for other in others:
        changed = [
            key for key in sorted(first.spec.keys() | other.spec.keys()) if _differs(key, first.spec, other.spec)
        ]
        changed += differences(first.fingerprints, other.fingerprints)
        if changed:
            raise BadInput(
                f"{first.id} and {other.id}",
                f"are not shards of one spec: {'; '.join(changed)}",
                remedy="compare them with --compare instead",
            )
    spans = sorted((_span(run), run.id) for run in runs)
    for (earlier, name), (later, other_name) in pairwise(spans):
        if later[0] <= earlier[1]:
            raise BadInput(
                f"{name} and {other_name}", "have questions in common", expected="shards by --start and --end"
            )


def _differs(key: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    return key not in _SHARD_KEYS and first.get(key) != second.get(key)


def _span(run: Run) -> tuple[int, float]:
    return run.spec.get("start") or 1, run.spec.get("end") or float("inf")
