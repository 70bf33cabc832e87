"""One run: its verdict, report sections, disagreements, failures and provenance; while it runs, its progress."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product

from starlette.requests import Request
from starlette.responses import Response

from memorybench.core.errors import BadInput
from memorybench.core.report_sections import Case, Provenance, Report, Row, Table
from memorybench.reporting.progress import read_progress
from memorybench.suites.failures import FAILURE_REASONS, right_text
from memorybench.suites.html_report import provenance_notes, verdict_of
from memorybench.suites.registry import suite_of
from memorybench.suites.report_questions import failure_table
from memorybench.suites.suite import resume_command
from memorybench.view.conversations import SUITES
from memorybench.view.index import UNEXPLAINED, Filter, QuestionIndex
from memorybench.view.results import is_running, run_url

from . import render, results_of

_LATER = ("Time and cost", "How the probes were made")
"""Titles of sections that are shown below the questions."""
_CASE_COLUMNS = ("scenario", "question id")
_MOST_PAIRS = 15
_SECONDS = 5.0
"""Seconds that a request for the charts waits until they are drawn."""


def page(request: Request) -> Response:
    place, run_id = request.path_params["place"], request.path_params["run"]
    results = results_of(request)
    with results.open(place, run_id) as stored:
        report = results.report(place, stored)
        number = results.questions(place, stored)
        roles = results.subjects(number, stored.run)
        try:
            comparison = results.comparison(place, stored)
        except BadInput:  # nothing was measured yet, or the providers share no question
            comparison = None
        baselines = [name for name, role in roles.items() if role == "baseline"]
        memories = [name for name in roles if name not in baselines]
        is_complete = stored.run.status == "complete"
        heading, verdict = verdict_of(report, comparison, memories, baselines, is_complete=is_complete)
        reasons = results.index.reasons(number)
        sections = [one for one in report.sections if not isinstance(one, Provenance)]
        split = next((n for n, one in enumerate(sections) if one.title in _LATER), len(sections))
        links = Links(place, run_id, results.index, number, roles, report)
        charts, is_drawn = results.charts(place, stored, _own_failures(reasons, roles))
        return render(
            request,
            "run.html",
            here="runs",
            place=place,
            run=stored.run,
            heading=heading,
            verdict=verdict,
            report=report,
            sections=sections[:split],
            later_sections=sections[split:],
            facts=next((one.facts for one in report.sections if isinstance(one, Provenance)), {}),
            disagreements=_disagreements(results.index, number, roles),
            failures=failure_table(results.index.reasons(number, of_questions=True), list(roles)),
            skipped=sum(count for (_, reason), count in reasons.items() if reason == "skipped"),
            skipped_questions=results.index.count(number, Filter(outcome="skipped")),
            charts=charts,
            is_drawn=is_drawn,
            reasons=FAILURE_REASONS,
            right=right_text(stored.run),
            noun=suite_of(stored.run).case_noun(stored.run),
            links=links,
            has_histories=stored.run.suite in SUITES,
            provenance=provenance_notes(stored),
            is_running=is_running(stored),
            snapshot=read_progress(stored.folder / run_id),
            resume=resume_command(suite_of(stored.run).command_of(stored.run), stored.folder, run_id),
        )


def charts(request: Request) -> Response:
    """Return the part of the page with the charts, which the browser loads after the page."""
    place, run_id = request.path_params["place"], request.path_params["run"]
    results = results_of(request)
    with results.open(place, run_id) as stored:
        results.report(place, stored)
        number = results.questions(place, stored)
        failures = _own_failures(results.index.reasons(number), results.subjects(number, stored.run))
        drawn, is_drawn = results.charts(place, stored, failures, _SECONDS)
        return render(request, "charts.html", place=place, run=stored.run, charts=drawn, is_drawn=is_drawn)


def _own_failures(reasons: Mapping[tuple[str, str], int], roles: Mapping[str, str]) -> dict[tuple[str, str], int]:
    return {key: count for key, count in reasons.items() if roles.get(key[0]) != "baseline"}


def progress(request: Request) -> Response:
    """Return the part of the page with the progress, which the browser reloads while the run is in progress."""
    place, run_id = request.path_params["place"], request.path_params["run"]
    with results_of(request).open(place, run_id) as stored:
        response = render(
            request,
            "progress.html",
            place=place,
            run=stored.run,
            is_running=is_running(stored),
            was_running=True,
            snapshot=read_progress(stored.folder / run_id),
        )
        if not is_running(stored) and "hx-request" in request.headers:
            response.headers["HX-Refresh"] = "true"  # other parts of the page still say that it is running
        return response


class Links:
    """Makes the links from cells of a report to the questions that they count."""

    def __init__(
        self, place: int, run_id: str, index: QuestionIndex, number: int, roles: Mapping[str, str], report: Report
    ) -> None:
        self._place, self._run_id, self._index, self._number, self._roles = place, run_id, index, number, roles
        self._types = set(index.values(number, "type"))
        self._benchmarks = index.values(number, "benchmark")
        self._benchmark_of: dict[int, str] = {}
        """The benchmark of each table, by the `id()` of the table; empty if the run has only one benchmark.

        It is the last title, up to that of the table, that is the name of a benchmark.
        """
        benchmark = ""
        for part in report.sections if len(self._benchmarks) > 1 else ():
            benchmark = part.title if part.title in self._benchmarks else benchmark
            self._benchmark_of[id(part)] = benchmark if isinstance(part, Table) else ""
        self.has_several = sum(role != "baseline" for role in roles.values()) > 1

    def cell(self, table: Table, row: Row, place: int) -> str:
        name, heading = row[0], table.columns[place].heading
        benchmark = self._benchmark_of.get(id(table), "")
        if not isinstance(name, str) or table.columns[0].heading == "measure":
            return ""
        if table.columns[0].heading in _CASE_COLUMNS and place == 0:
            return self.case(name)
        if heading in FAILURE_REASONS and name in self._roles:
            outcome = UNEXPLAINED if heading == "wrong" else heading
            return self.questions(provider=name, outcome=outcome) if row[place] else ""
        if name in self._types and (place == 0 or heading in self._roles):
            return self.questions(benchmark=benchmark, type=name, provider=heading if place else "")
        return self.questions(benchmark=benchmark, provider=name) if place == 0 and name in self._roles else ""

    def is_muted(self, row: Row) -> bool:
        """Return whether a row is about a baseline."""
        return isinstance(row[0], str) and self._roles.get(row[0]) == "baseline"

    def case_section(self, case: Case) -> str:
        return next((url for part in reversed(case.heading) if (url := self.case(part))), "")

    def case(self, case_id: str) -> str:
        for benchmark, name in product(self._benchmarks, (case_id, case_id.split(" ")[0])):  # a variant may follow
            if self._index.question(self._number, benchmark, name) is not None:
                return run_url(self._place, self._run_id, "question", benchmark=benchmark, case=name)
        return ""

    def questions(self, **filter: str) -> str:
        return run_url(self._place, self._run_id, "questions", **filter)


def _disagreements(
    index: QuestionIndex, number: int, roles: Mapping[str, str]
) -> list[tuple[str, str, dict[str, int]]]:
    """Return pairs of providers with the numbers of questions that both, only one or neither got right."""
    names = [name for name, role in roles.items() if role != "baseline"] or list(roles)
    counted = [(a, b, index.agreement(number, a, b)) for a, b in list(combinations(names, 2))[:_MOST_PAIRS]]
    return [(a, b, counts) for a, b, counts in counted if any(counts.values())]
