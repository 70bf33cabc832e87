"""From runs in results folders to summaries, reports and exit codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memorybench.catalog.catalog import Catalog
from memorybench.documents.names import safe_run_id
from memorybench.journal.rows import Run, differences
from memorybench.journal.shelf import Shelf
from memorybench.reporting.documents import as_json
from memorybench.reporting.markdown import as_markdown
from memorybench.reporting.summary import Summary, summarise
from memorybench.vocabulary.errors import BadInput
from memorybench.vocabulary.measures import Metric
from memorybench.vocabulary.trials import Outcome

from .bench import bench_metrics, plugin_metrics

_SHARD_KEYS = ("start", "end", "questions")


@dataclass(frozen=True, slots=True)
class Found:
    """Runs on their shelves: one, or the shards of one."""

    parts: tuple[tuple[Shelf, Run], ...]
    metrics: tuple[Metric, ...]

    def summary(self) -> Summary:
        return summarise(self.parts, self.metrics)

    def settled(self) -> Iterator[tuple[str, str, Outcome]]:
        """Run, time and outcome of every trial."""
        for shelf, run in self.parts:
            for at, outcome in shelf.settled(run.id):
                yield run.id, at, outcome


@contextmanager
def find(runs: Sequence[str], folders: Sequence[Path]) -> Iterator[Found]:
    """Opens runs by id, looking in each folder; several are taken for shards of one spec."""
    with ExitStack() as stack:
        shelves = [stack.enter_context(Shelf.open(folder)) for folder in folders]
        parts = tuple(_part(run, shelves) for run in dict.fromkeys(runs))
        _check_shards([run for _, run in parts])
        yield Found(parts, metrics_of(parts[0][1]))


@contextmanager
def comparable(
    subjects: Sequence[str], benchmark: str | None, runs: Sequence[str], folders: Sequence[Path]
) -> Iterator[tuple[list[Found], str]]:
    """The runs that hold these subjects: those named, else the latest complete run of each on the same data."""
    with ExitStack() as stack:
        shelves = [stack.enter_context(Shelf.open(folder)) for folder in folders]
        if runs:
            parts = [_part(run, shelves) for run in dict.fromkeys(runs)]
        else:
            parts = [(shelf, run) for shelf in shelves for run in shelf.runs() if run.status == "complete"]
        parts = [part for part in parts if part[1].suite == "bench"]
        chosen = benchmark or _only_benchmark([run for _, run in parts], subjects)
        latest: dict[str, tuple[Shelf, Run]] = {}
        for shelf, run in sorted(parts, key=lambda part: part[1].created):
            if chosen in run.spec["questions"]:
                latest.update(dict.fromkeys(set(subjects) & set(run.spec["providers"]), (shelf, run)))
        missing = [subject for subject in subjects if subject not in latest]
        if missing:
            raise BadInput(
                "--compare",
                f'no complete run has "{missing[0]}" on {chosen}',
                remedy=f"memorybench eval --benchmarks {chosen} --providers {missing[0]}",
            )
        _check_same_data([run for _, run in latest.values()], chosen)
        yield (
            [
                Found(((shelf, run),), metrics_of(run))
                for shelf, run in {run.id: (shelf, run) for shelf, run in latest.values()}.values()
            ],
            chosen,
        )


@dataclass(frozen=True, slots=True)
class Listed:
    run: Run
    counts: Mapping[str, int]


def overview(folders: Sequence[Path]) -> list[Listed]:
    """All runs of these folders, oldest first."""
    listed = []
    for folder in folders:
        with Shelf.open(folder) as shelf:
            listed += [Listed(run, dict(shelf.counts(run.id).items())) for run in shelf.runs()]
    return sorted(listed, key=lambda row: row.run.created)


def metrics_of(run: Run) -> tuple[Metric, ...]:
    return bench_metrics(run.spec, plugin_metrics(Catalog(Path())))


def write_reports(found: Found, folder: Path, facts: Mapping[str, str]) -> Summary:
    """`report.json` and `report.md` of a run, made from the journal alone."""
    summary = found.summary()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, text in (("report.json", as_json(summary)), ("report.md", as_markdown(summary, facts))):
        draft = folder / f".{name}"
        draft.write_text(text, encoding="utf-8")
        draft.replace(folder / name)
    return summary


def facts_of(run: Run) -> dict[str, str]:
    """What a header says about a bench run."""
    spec = run.spec
    methods = ", ".join(dict.fromkeys(spec["methods"].values()))
    judged = f"judged by {spec['judge']}" if spec["judge"] else f"scored by {methods}"
    return {
        "Run ID": run.id,
        "Benchmarks": ", ".join(f"{name} ({n} questions)" for name, n in spec["questions"].items()),
        "Providers": ", ".join(spec["providers"]),
        "Answering model": f"{spec['reader']}, {judged}" if spec["answered"] else "none: retrieval only",
        "Started": run.created.replace("T", " ")[:19] + " UTC",
    }


def _part(run: str, shelves: Sequence[Shelf]) -> tuple[Shelf, Run]:
    safe_run_id(run, "run")
    for shelf in shelves[:-1]:
        if shelf.has(run):
            return shelf, shelf.run(run)
    return shelves[-1], shelves[-1].run(run)  # raises, naming the nearest, where nobody has it


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
        if _span(first) == _span(other):
            raise BadInput(
                f"{first.id} and {other.id}", "cover the same questions", expected="shards by --start, --end"
            )


def _differs(key: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    return key not in _SHARD_KEYS and first.get(key) != second.get(key)


def _span(run: Run) -> tuple[Any, Any]:
    return run.spec.get("start"), run.spec.get("end")
