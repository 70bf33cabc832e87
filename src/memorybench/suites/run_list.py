"""Lists runs, each with its headline: the main measure of its best subject."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.core.measures import Measure
from memorybench.core.trials import STATUSES
from memorybench.files.reading import read_inside
from memorybench.journal.rows import Run
from memorybench.journal.run_reader import RunReader
from memorybench.reporting.formatting import value
from memorybench.reporting.report_files import FORMATS

from .comparison import HEADLINES
from .registry import suite
from .report_parts import document
from .run_costs import RunCosts
from .shards import shard_label
from .stored_run import find_folder, open_stored_run, with_current_status


class Headline(Struct, frozen=True):
    benchmark: str
    subject: str
    measure: Measure

    @property
    def text(self) -> str:
        return f"{self.subject} {self.measure.name} {value(self.measure)}"

    def plain(self) -> dict[str, Any]:
        measure = self.measure.model_dump(include={"value", "low", "high", "n", "planned"})
        return {"benchmark": self.benchmark, "subject": self.subject, "measure": self.measure.name, **measure}


class ListedRun(Struct, frozen=True, dict=True):
    run: Run
    folder: Path
    """The results folder that contains the run."""
    counts: Mapping[str, int]
    tags: tuple[str, ...]

    @cached_property
    def costs(self) -> RunCosts:
        if self._report:
            return _costs(self._report)
        with RunReader.open(self.folder, thorough=False) as run_reader:
            return RunCosts.of(run_reader, self.run)

    @property
    def headline_text(self) -> str:
        """The headlines on one line; for a shard, with its number."""
        text = "; ".join(headline.text for headline in self.headlines)
        label = shard_label([self.run])
        return f"{text} ({label})" if text and label else text

    @cached_property
    def headlines(self) -> list[Headline]:
        """The best subject of each benchmark. Baselines are left out, unless the run has nothing else."""
        return _headlines(self._report)

    @property
    def measures(self) -> dict[tuple[str, str], tuple[Measure, ...]]:
        """The measures over all questions of a benchmark, by benchmark and subject."""
        return _measures(self._report)

    @property
    def failed_judges(self) -> tuple[str, ...]:
        """The judges that failed their check."""
        return _failed_judges(self._report)

    @cached_property
    def saved_report(self) -> Mapping[str, Any]:
        """The JSON report that the run wrote; empty if there is none, or if the run has changed since."""
        try:
            report: dict[str, Any] = json.loads(read_inside(self.folder, f"{self.run.id}/{FORMATS['json'][0]}"))
            written = report["run_id"], report["status"], report["circumstances"]["finished"]
            numbers = [report["counts"][status] for status in STATUSES]
            is_current = written == (self.run.id, "complete", self.run.finished)
            if is_current and all(isinstance(n, int | float) for n in numbers):
                for read in (_costs, _headlines, _measures, _failed_judges):
                    read(report)  # anybody may have edited the file
                return report
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            pass
        return {}

    @cached_property
    def _report(self) -> Mapping[str, Any]:
        """The JSON report: the saved one, or else made again, which takes longer. Empty if the run has no report."""
        if suite(self.run.suite) is None:
            return {}
        if self.saved_report or not any(self.counts.values()):
            return self.saved_report
        with open_stored_run([self.run.id], [self.folder]) as stored:
            return document(stored.summary)


def _costs(report: Mapping[str, Any]) -> RunCosts:
    named = {**report, **report["circumstances"]}  # earlier reports lack some names
    return RunCosts(**{name: named[name] for name in RunCosts.model_fields if name in named})


def _headlines(report: Mapping[str, Any]) -> list[Headline]:
    if not report:
        return []
    baselines = {row["baseline"] for row in report.get("differences_from_baseline", ())}
    results = [row for row in report["results"] if not row["group"] and row["subject"] not in baselines]
    benchmarks = dict.fromkeys(row["benchmark"] for row in results)
    best = (_best([row for row in results if row["benchmark"] == benchmark]) for benchmark in benchmarks)
    return [headline for headline in best if headline is not None]


def _measures(report: Mapping[str, Any]) -> dict[tuple[str, str], tuple[Measure, ...]]:
    return {
        (row["benchmark"], row["subject"]): tuple(Measure(**{"unit": "", **one}) for one in row["measures"])
        for row in report.get("results", ())
        if not row["group"]
    }


def _failed_judges(report: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(one["judge"]) for one in report.get("judge_checks", ()) if one["failed"])


def _best(results: Sequence[Mapping[str, Any]]) -> Headline | None:
    """Return the subject with the best value of the first headline measure; without one, of the first measure.

    A measure that is a range for one of the subjects is left out, because these subjects have no best one.
    """
    ranges = {
        one["name"] for row in results for one in row["measures"] if one["value"] is None and one.get("low") is not None
    }
    measured = [
        (row, Measure(**{"unit": "", **measure}))
        for row in results
        for measure in row["measures"]
        if measure["value"] is not None and measure["name"] not in ranges and not measure.get("unit")
    ]
    names = [measure.name for _, measure in measured]
    main = next((name for name in (*HEADLINES, *names) if name in names), None)
    candidates = [(row, measure) for row, measure in measured if measure.name == main]
    if not candidates:
        return None
    row, measure = max(candidates, key=lambda one: (one[1].value or 0.0) * (1 if one[1].higher_is_better else -1))
    return Headline(row["benchmark"], row["subject"], measure)


def list_runs(
    folders: Iterable[Path],
    *,
    tags: Sequence[str] = (),
    suites: Sequence[str] = (),
    statuses: Sequence[str] = (),
) -> list[ListedRun]:
    """Return the runs of these folders, newest first.

    If `tags` is not empty, a run must have one of these tags; likewise `suites` and `statuses`.
    """
    rows = []
    for folder in dict.fromkeys(folders):
        with RunReader.open(folder) as run_reader:
            tags_of = run_reader.tags()
            for stored in run_reader.runs():
                run, own_tags = with_current_status(stored, folder), tags_of.get(stored.id, ())
                chosen = (not suites or run.suite in suites) and (not statuses or run.status in statuses)
                if chosen and (not tags or set(tags) & set(own_tags)):
                    counts = {str(status): n for status, n in run_reader.counts(run.id).items()}
                    rows.append(ListedRun(run, folder, counts, own_tags))
    return sorted(rows, key=lambda row: (row.run.created, row.run.id), reverse=True)


def find_run(name: str, folders: Sequence[Path]) -> ListedRun:
    """Return the run with the id `name`; `latest` is the newest run. Raise BadInput if several folders have the run."""
    run_id, folder = locate_run(name, folders)
    return next(row for row in list_runs([folder]) if row.run.id == run_id)


def locate_run(name: str, folders: Sequence[Path], *, thorough: bool = True) -> tuple[str, Path]:
    """Return the id and the results folder of a run. `thorough=False` skips the check of the whole results file."""
    run_id, found = find_folder(name, folders, thorough=thorough)
    if len(found) > 1:
        raise BadInput(
            name,
            f"several folders have a run of this name: {' and '.join(map(str, found))}",
            remedy="name one folder with --results",
        )
    return run_id, found[0]
