"""The results folders that the viewer shows: runs, reports and questions. Nothing is written."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock
from urllib.parse import quote, urlencode

from jinja2 import TemplateError
from msgspec import Struct
from msgspec.structs import replace

from memorybench.charts import is_installed
from memorybench.charts.page import TITLES, page_specs
from memorybench.charts.parts import Spec
from memorybench.charts.rendering import DRAWING_ERRORS, empty, render_in_child
from memorybench.charts.run_charts import failure_chart
from memorybench.core.conversation import Haystack
from memorybench.core.errors import BadInput, MemorybenchError
from memorybench.core.measures import Measure
from memorybench.core.report_sections import Provenance, Report
from memorybench.core.trials import STATUSES
from memorybench.files.names import safe_run_id
from memorybench.journal.places import journal_of
from memorybench.journal.rows import Run
from memorybench.journal.run_reader import RunReader
from memorybench.reporting.formatting import total_cost
from memorybench.reporting.progress import Snapshot, read_progress
from memorybench.suites.gate import report_of
from memorybench.suites.recorded_form import explain_form, form_error
from memorybench.suites.registry import suite_of
from memorybench.suites.run_comparison import RunComparison, compare_sides
from memorybench.suites.run_list import Headline, ListedRun
from memorybench.suites.saved_report import load_report
from memorybench.suites.sides import ComparedRun, Side
from memorybench.suites.stored_run import StoredRun, with_current_status
from memorybench.suites.summary import subjects_of

from .conversations import open_conversations
from .index import QuestionIndex
from .jobs import Jobs

MOST_COMPARED = 30_000
"""The most trials that one page compares."""
_MOST_COMPUTED = 2_000
"""If a run without a saved report has more trials, the list of runs does not compute its headline."""
_MOST_REPORTED = 10_000
"""If a run without a saved report has more trials, its page does not compute the report."""


class NotFound(Exception):
    """The requested page does not exist."""


class RunRow(Struct, frozen=True):
    """A run as the list of runs shows it."""

    place: int
    run: Run
    tags: tuple[str, ...]
    counts: Mapping[str, int]
    headlines: tuple[Headline, ...]
    measures: Mapping[tuple[str, str], tuple[Measure, ...]]
    """The measures over all questions, by benchmark and subject."""
    cost: str
    benchmarks: Sequence[str]
    subjects: Sequence[str]
    progress: Snapshot | None = None
    failed_judges: tuple[str, ...] = ()
    problem: str = ""
    """Why the run has no figures; "" if it has."""
    name: str = ""
    """The id of the run; FOLDER/RUN if another folder has a run with the same id."""

    @property
    def url(self) -> str:
        return run_url(self.place, self.run.id)

    @property
    def done(self) -> int:
        return sum(self.counts.values())


class Folder(Struct, frozen=True):
    """A results folder with its runs.

    `problem` says why the folder or one of its runs cannot be read; "" if all can.
    """

    place: int
    path: Path
    rows: tuple[RunRow, ...] = ()
    problem: str = ""


class Results:
    def __init__(self, folders: Sequence[Path], jobs: Jobs | None = None) -> None:
        self.folders = tuple(dict.fromkeys(folder.absolute() for folder in folders))
        self.index = QuestionIndex()
        self.jobs = jobs or Jobs()
        self._rows: dict[tuple[str, ...], RunRow] = {}
        self._lock = Lock()

    def close(self) -> None:
        self.jobs.close()
        self.index.close()

    def list_runs(self) -> list[Folder]:
        """Return all results folders, each with its runs, newest first."""
        listed = [self._list_folder(place, path) for place, path in enumerate(self.folders)]
        ids = Counter(row.run.id for folder in listed for row in folder.rows)
        return [
            replace(
                folder,
                rows=tuple(replace(row, name=self._name(row.place, row.run.id, ids)) for row in folder.rows),
            )
            for folder in listed
        ]

    def _name(self, place: int, run_id: str, ids: Mapping[str, int]) -> str:
        return os.path.join(os.path.relpath(self.folders[place]), run_id) if ids[run_id] > 1 else run_id

    def _list_folder(self, place: int, path: Path) -> Folder:
        try:
            with RunReader.open(path, thorough=False) as reader:
                tags, rows, problems = reader.tags(), [], []
                for run_id in reversed(reader.run_ids()):
                    try:
                        run = with_current_status(reader.run(run_id), path)
                        rows.append(self._row(place, reader, run, tags.get(run_id, ())))
                    except MemorybenchError as error:  # one damaged run must not hide the others
                        problems.append(str(error))
                    except Exception as error:  # its spec may hold anything
                        problems.append(f"run {run_id} cannot be read ({type(error).__name__})")
        except MemorybenchError as error:
            return Folder(place, path, problem=str(error))
        return Folder(place, path, tuple(rows), "; ".join(problems))

    def _row(self, place: int, reader: RunReader, run: Run, tags: tuple[str, ...]) -> RunRow:
        """Return a run with the figures of its report. The row of a finished run is cached."""
        key = (str(place), run.id, run.created, run.status, run.finished or "")
        with self._lock:
            known = self._rows.get(key) if run.finished else None
        if known is not None:
            return replace(known, tags=tags)
        progress = read_progress(reader.folder / run.id) if run.status == "running" else None
        listed = ListedRun(run, reader.folder, {}, tags)
        saved = listed.saved_report.get("counts") if run.status == "complete" else None
        reported = progress.counts if progress else saved
        counts = {str(status): reported[status] for status in STATUSES} if reported else reader.status_counts(run.id)
        benchmarks = tuple(map(str, run.spec.get("benchmarks") or run.spec.get("questions") or ()))
        row = RunRow(place, run, tags, counts, (), {}, "–", benchmarks, tuple(map(str, subjects_of(run))), progress)
        if saved or sum(counts.values()) <= _MOST_COMPUTED:
            row = _with_report(row, listed if saved else replace(listed, counts=counts))
        elif progress is not None:
            row = replace(row, cost=total_cost(progress.cost, progress.calls_of_unknown_cost))
        with self._lock:
            self._rows[key] = row
        return row

    @contextmanager
    def open(self, place: int, run_id: str) -> Iterator[StoredRun]:
        """Open a run of the results folder with index `place`. Errors about malformed recorded data name the run."""
        with self._open(place, run_id) as stored, explain_page(stored.run):
            yield stored

    @contextmanager
    def _open(self, place: int, run_id: str) -> Iterator[StoredRun]:
        if not 0 <= place < len(self.folders):
            raise NotFound(f"there is no results folder {place}")
        try:
            safe_run_id(run_id, "run")
        except BadInput:
            raise NotFound("invalid run id") from None
        folder = self.folders[place]
        with RunReader.open(folder, thorough=False) as reader:
            if not reader.has(run_id):
                raise NotFound(f"run {run_id} not found in {folder}")
            run = with_current_status(reader.run(run_id), folder)
            yield StoredRun(((reader, run),))

    def report(self, place: int, stored: StoredRun) -> Report:
        """Return the report of a run, as `memorybench results` shows it.

        The report is computed in a background thread. Raise Pending if it is not ready yet.
        """
        state, run_id = self._state(place, stored), stored.run.id
        self.jobs.start(("questions", *state), lambda: self._index(place, run_id))  # the page needs both
        return self.jobs.get(("report", *state), lambda: self._make_report(place, run_id))[0]

    def _make_report(self, place: int, run_id: str) -> tuple[Report, Mapping[str, Spec]]:
        """Return the report and the specs of its charts, except the chart of failures, which the page makes itself."""
        with self.open(place, run_id) as stored:
            ((reader, run),) = stored.parts
            if (saved := load_report(stored)) is not None:
                stored, report = saved
            elif len(reader.outcome_rows(run.id, 0)) > _MOST_REPORTED:
                return _short_report(run), {}
            else:
                report = report_of(stored)
            specs = page_specs(stored, report, leave_out=("failures",)) if is_installed() else {}
            return dataclasses.replace(
                report, document={}
            ), specs  # the document may be large, and pages do not need it

    def charts(
        self, place: int, stored: StoredRun, failures: Mapping[tuple[str, str], int], seconds: float = 0.0
    ) -> tuple[list[tuple[str, str]] | None, bool]:
        """Return (title, SVG) of each chart of a run, and whether drawing ended within `seconds`.

        If it did not, each SVG is an empty placeholder of about the same size. If drawing failed, the list is None.
        """
        state, run_id = self._state(place, stored), stored.run.id
        specs = dict(self.jobs.get(("report", *state), lambda: self._make_report(place, run_id))[1])
        if is_installed() and (chart := failure_chart(failures)) is not None:
            specs["failures"] = chart
        titled = {title: specs[name] for name, title in TITLES.items() if name in specs}
        drawing = self.jobs.start(("charts", json.dumps(titled)), lambda: render_in_child(titled) if titled else [])
        wait([drawing], seconds)
        if drawing.done():
            try:
                return drawing.result(), True
            except DRAWING_ERRORS:
                return None, True
        return [(title, empty(spec)) for title, spec in titled.items()], False

    def draw(self, spec: Spec, title: str) -> str | None:
        """Return a chart as SVG, cached; None if drawing failed."""
        try:
            return self.jobs.get(("charts", json.dumps(spec), title), lambda: render_in_child({title: spec}))[0][1]
        except DRAWING_ERRORS:
            return None

    def comparison(self, place: int, stored: StoredRun) -> RunComparison | None:
        """Compare the providers of a run. None if only one provider has trials, or if the run has too many trials.

        `place` is the index of the results folder. Raise Pending if the comparison is not ready yet.
        """
        if stored.run.planned > MOST_COMPARED:
            return None
        key = ("compare", *self._state(place, stored))
        return self.jobs.get(key, lambda: self._compare(((place, stored.run.id, None),)))

    def compare(self, sides: Sequence[tuple[int, str, str | None]]) -> RunComparison:
        """Compare runs or subjects of runs.

        A side is (index of the folder, run id, subject); subject None: all subjects.
        """
        states, trials = [], 0
        for place, run_id, subject in sides:
            with self.open(place, run_id) as stored:
                states.append(self._state(place, stored))
                trials += stored.run.planned // (max(len(subjects_of(stored.run)), 1) if subject else 1)
        if trials > MOST_COMPARED:
            raise BadInput(
                "side",
                f"the sides have {trials:,} trials, which are too many for a page",
                expected=f"at most {MOST_COMPARED:,}",
                remedy="choose two providers, or use `memorybench compare`",
            )
        found = self.jobs.get(("compare", tuple(sides), *states), lambda: self._compare(sides))
        if found is None:
            raise BadInput(
                "side",
                "only one side has finished trials",
                expected="two runs or providers, or a run with several providers",
            )
        return found

    def _compare(self, sides: Sequence[tuple[int, str, str | None]]) -> RunComparison | None:
        with ExitStack() as stack:
            opened: dict[tuple[int, str], ComparedRun] = {}
            for place, run_id, _ in sides:
                if (place, run_id) in opened:
                    continue
                stored = stack.enter_context(self._open(place, run_id))
                subjects = {subject for *own, subject in sides if own == [place, run_id]}
                named = frozenset(subject for subject in subjects if subject is not None)
                with explain_form(stored.run):  # for each run, so that the error names the run with the malformed data
                    measures = suite_of(stored.run).main_measures(stored)
                    whole = None if None in subjects else named
                    one = ComparedRun(stored, stored.folder, subjects=whole, measures=measures)
                    one.cases  # noqa: B018  reads them
                opened[place, run_id] = one
            ids = Counter(run_id for _, run_id in opened)
            names = {(place, run_id): self._name(place, run_id, ids) for place, run_id in opened}
            stack.enter_context(explain_form(*(one.stored.run for one in opened.values())))
            chosen = [
                Side(f"{name}:{subject}" if subject else name, opened[place, run_id], subject)
                for place, run_id, subject in sides
                for name in (names[place, run_id],)
            ]
            if len(chosen) == 1:
                chosen = [replace(chosen[0], text=name, subject=name) for name in chosen[0].subjects]
            return compare_sides(chosen) if len(chosen) > 1 else None

    def conversation(self, place: int, run: Run, benchmark: str, id: str) -> Haystack:
        """Return a conversation of a run. Raise BadInput if its data is missing or has changed since the run."""
        key = ("data", str(place), run.id, run.created, benchmark)
        return self.jobs.get(key, lambda: open_conversations(run, benchmark, self.folders[place]))(id)

    def questions(self, place: int, stored: StoredRun) -> int:
        """Update the index of questions; return the run's number in the index."""
        key = ("questions", *self._state(place, stored))
        return self.jobs.get(key, lambda: self._index(place, stored.run.id))

    def _index(self, place: int, run_id: str) -> int:
        with self.open(place, run_id) as stored:
            ((reader, run),) = stored.parts
            return self.index.update(reader, run)

    def subjects(self, number: int, run: Run) -> dict[str, str]:
        """Return the role of each subject, in the order of the spec, baselines last."""
        roles = self.index.subjects(number)
        names = [*(name for name in subjects_of(run) if name in roles), *roles]
        return {name: roles[name] for name in sorted(dict.fromkeys(names), key=lambda name: roles[name] == "baseline")}

    def _state(self, place: int, stored: StoredRun) -> tuple[str, ...]:
        """Return a cache key that changes when the results of a run change."""
        ((reader, run),) = stored.parts
        newest = "" if run.status == "complete" else str(reader.newest_row(run.id))
        return str(place), run.id, run.created, run.status, run.finished or "", newest


@contextmanager
def explain_page(run: Run, part: str = "") -> Iterator[None]:
    """Explain errors about malformed recorded data as `explain_form` does, and also the errors of templates."""
    try:
        with explain_form(run, part=part):
            yield
    except TemplateError as error:
        raise form_error(error, run, part=part) from error


def _with_report(row: RunRow, listed: ListedRun) -> RunRow:
    try:
        return replace(
            row,
            headlines=tuple(listed.headlines) if row.run.status == "complete" else (),
            measures=listed.measures,
            cost=listed.costs.cell(),
            failed_judges=listed.failed_judges,
        )
    except Exception:  # one run that cannot be read must not hide the others
        return replace(row, problem="its figures cannot be read; `memorybench validate` checks the results")


def _short_report(run: Run) -> Report:
    """Return a short report for a large run without a saved report, because computing one would take minutes."""
    command = suite_of(run).command_of(run).name
    advice = f"This large run has no figures yet; `memorybench results {run.id}` computes those of the trials so far."
    if run.status == "complete":
        advice = f"The report of this large run is missing: `memorybench report {run.id}` makes it."
    facts = Provenance(suite_of(run).facts([run]))
    return Report(f"memorybench {command}: {run.id}", (facts,), warnings=(advice,))


def is_running(stored: StoredRun) -> bool:
    return stored.run.status == "running" and journal_of(stored.folder).is_locked(stored.run.id)


def run_url(place: int, run_id: str, page: str = "", **parameters: str | int | None) -> str:
    """Return the address of a page about a run."""
    return with_query(f"/run/{place}/{quote(run_id, safe='')}{f'/{page}' if page else ''}", **parameters)


def with_query(path: str, **parameters: str | int | None) -> str:
    given = [(name, value) for name, value in parameters.items() if value not in (None, "")]
    return f"{path}?{urlencode(given, errors='replace')}" if given else path
