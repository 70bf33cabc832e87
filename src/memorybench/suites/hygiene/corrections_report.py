"""The report of `hygiene corrections`: what search, list and answer return, by the order of the statements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from memorybench.core import report_sections
from memorybench.core.measures import Metric
from memorybench.core.records import Record
from memorybench.core.report_sections import Notes, Report, Section, State, Table, Text, text_column
from memorybench.core.trials import Outcome
from memorybench.journal.rows import Run
from memorybench.suites import report_parts as sections
from memorybench.suites.case_view import CaseTrial
from memorybench.suites.stored_run import StoredRun

from .corrections import COLUMNS, CURRENT, Cell, Topic, answered
from .corrections_plan import CELLS, MEANINGS, PLAY, measures

CASE_NOUN = "case"
RIGHT = "Right: the store was asked. The report says whether it returned the current statement."
MAIN_MEASURES = tuple(MEANINGS)
NOT_ASKED, NOT_SUPPORTED = "not asked", "not supported"
_WORDS = (
    ("old, new", "the old and the new statement; `new before old` is their order in a search"),
    ("told", "every statement is stored as a fact of its own, also the retraction"),
    ("operations", "the store's update replaces the old statement; a retraction deletes the new one"),
    ("✓, ✗", "the current statement is returned first; columns without a right answer have no mark"),
    (NOT_ASKED, "no model was named with --model"),
)


class PlayedCell(Record):
    """One cell of the matrix with its column, way and topic."""

    column: str
    way: str
    topic: Topic
    cell: Cell
    answer: str | None = None
    """The model's answer; None: no model was asked."""

    @property
    def search(self) -> str:
        return self.cell.search.order if self.cell.search else NOT_SUPPORTED

    @property
    def list(self) -> str:
        return self.cell.list.presence if self.cell.list else NOT_SUPPORTED

    @property
    def answered(self) -> str:
        return NOT_ASKED if self.answer is None else answered(self.answer, self.topic)


def metrics(run: StoredRun) -> tuple[Metric, ...]:
    return measures(has_model=bool(run.run.spec.get("model")))


def facts(runs: Sequence[Run]) -> dict[str, str]:
    run, spec = runs[0], runs[0].spec
    return {
        "Run ID": run.id,
        "Store": spec["store"],
        "Model": spec.get("model") or "none: no answers",
        "Curation": "before looking" if spec.get("curate") else "none",
        "Seed": f"{spec['seed']}",
        "Started": sections.started(run.created),
    }


def report(run: StoredRun) -> Report:
    summary, cells = run.summary, load_cells(run)
    results = [result for result in summary.results if not result.group]
    problems = tuple(
        f"{outcome.trial.case_id}, {outcome.trial.variant}: {outcome.status}: {outcome.failure.message}"
        for outcome in run.outcomes()
        if outcome.failure is not None
    )
    return Report(
        title=f"Correction matrix: {run.spec['store']}",
        warnings=sections.warnings(summary),
        sections=(
            _matrix(cells),
            Notes(_WORDS, title="Words"),
            *([Notes(problems, title="Cells without a result")] if problems else []),
            sections.measure_table("Measures", results, MEANINGS, level=2),
            _statement_table(cells),
            sections.provenance(facts(run.runs)),
            *sections.step_tables(summary),
            Notes((sections.accounting(summary),)),
        ),
        document={**sections.document(summary), "corrections": [_document(cell) for cell in cells]},
    )


def passes(run: StoredRun) -> bool:
    """Return True: the matrix only describes the store. Use --threshold current_first=1 to require a result."""
    return True


def case_sections(trial: CaseTrial) -> list[Section]:
    """Return the report sections of one cell: the statements, and what the store returned."""
    found: list[Section] = [Text("Column", trial.outcome.shown.asked)]
    for step in trial.named(PLAY):
        topic, cell = Topic.model_validate(step.inputs["topic"]), Cell.model_validate(step.result)
        played = PlayedCell(column=step.inputs["column"], way=step.inputs["way"], topic=topic, cell=cell)
        found += [
            trial.text("Statements", f"old: {topic.old}\nnew: {topic.new}\ntold by: {played.way}"),
            trial.text("Search results", "\n".join(cell.texts) or "none"),
            Text("Result", f"search: {played.search}\nlist: {played.list}"),
        ]
    found += [trial.text("Answer", step.result["text"]) for step in trial.named("answer")]
    return found


def load_cells(run: StoredRun) -> list[PlayedCell]:
    """Return the recorded cells in the order of the matrix."""
    answers = {_place(outcome): outcome.shown.got for outcome in run.outcomes() if outcome.status == "scored"}
    cells: dict[tuple[str, ...], PlayedCell] = {}
    for reader, part in run.parts:
        for inputs, result in reader.step_records(part.id, PLAY):
            given = json.loads(inputs)
            topic = Topic.model_validate(given["topic"])
            place = (given["column"], given["way"], topic.name)
            cells[place] = PlayedCell(
                column=given["column"],
                way=given["way"],
                topic=topic,
                cell=Cell.model_validate_json(result),
                answer=answers.get(place) if run.spec.get("model") else None,
            )
    return [cells[place] for place in CELLS if place in cells]


def _place(outcome: Outcome) -> tuple[str, ...]:
    labels = outcome.trial.labels
    return labels["column"], labels["way"], labels["topic"]


def _matrix(cells: Iterable[PlayedCell]) -> Table:
    """Return a table with one row per order of statements and way of sending them. It counts the results of topics."""
    groups: dict[tuple[str, str], list[PlayedCell]] = {}
    for cell in cells:
        groups.setdefault((cell.column, cell.way), []).append(cell)
    rows: list[report_sections.Row] = []
    for (column, way), own in groups.items():
        current = CURRENT.get(column)
        searches, lists, answers = (
            _states((getattr(cell, name) for cell in own), current) for name in ("search", "list", "answered")
        )
        rows.append((COLUMNS[column], way, searches, lists, answers))
    columns = (
        text_column("statements", wrap=True),
        text_column("by"),
        text_column("search", wrap=True),
        text_column("list", wrap=True),
        text_column("answer", wrap=True),
    )
    return Table("Matrix", columns, tuple(rows))


def _states(names: Iterable[str], current: str | None) -> tuple[State, ...]:
    """Return how often each result occurred. A result is good if the current statement is first or alone in it."""
    return tuple(State(name, _is_good(name, current), n) for name, n in Counter(names).items())


def _is_good(name: str, current: str | None) -> bool | None:
    if current is None or name in (NOT_ASKED, NOT_SUPPORTED):
        return None
    return name == f"only {current}" or name.startswith(f"{current} before")


def _statement_table(cells: Iterable[PlayedCell]) -> Table:
    topics = {cell.topic.name: cell.topic for cell in cells}
    rows = tuple((name, topic.old, topic.new, topic.question) for name, topic in topics.items())
    headings = ("topic", "old statement", "new statement", "question")
    return Table("Statements", tuple(text_column(heading, wrap=True) for heading in headings), rows, detail=True)


def _document(played: PlayedCell) -> dict[str, Any]:
    found = {"search": played.cell.search, "list": played.cell.list}
    return {
        "column": played.column,
        "way": played.way,
        "topic": played.topic.name,
        "search": played.search,
        "list": played.list,
        "answer": played.answered,
        "answer_text": played.answer,
        "ranks": found["search"].plain() if found["search"] else None,
        "entries": found["list"].plain() if found["list"] else None,
    }
