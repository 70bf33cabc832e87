"""A temporary database of the questions of runs, with which pages filter, search and count them.

The results file has no index for this, and the viewer never writes to it. Outcomes are read once; while a run is in
progress, only new outcomes are read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock, RLock
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memorybench.journal.rows import Run
from memorybench.journal.run_reader import RunReader
from memorybench.suites.failures import JUDGED, TYPE_LABELS
from memorybench.suites.report_parts import NO_VERDICTS, VERDICTS

PAGE = 50
LONGEST_TEXT = 1000
_TABLES = """
CREATE TABLE runs (id INTEGER PRIMARY KEY, folder TEXT, name TEXT, created TEXT, last INTEGER, state TEXT,
    UNIQUE (folder, name));
CREATE TABLE questions (id INTEGER PRIMARY KEY, run INTEGER, benchmark TEXT, case_id TEXT, place INTEGER, type TEXT,
    cluster TEXT, asked TEXT, expected TEXT, UNIQUE (run, benchmark, case_id));
CREATE INDEX places ON questions (run, place);
CREATE TABLE trials (question INTEGER, subject TEXT, variant TEXT, repeat INTEGER, run INTEGER, trial TEXT, role TEXT,
    mark TEXT, reason TEXT, got TEXT, PRIMARY KEY (question, subject, variant, repeat)) WITHOUT ROWID;
CREATE INDEX subjects ON trials (run, subject, reason);
"""
_CHUNK = 2000
_DECIDING = (*VERDICTS, "miss_stale", "miss_invented", "miss_not_used", "miss_not_retrieved")
"""The scores that determine the mark and the failure reason of a trial."""
UNEXPLAINED = "wrong, reason unknown"
"""The name of the filter for trials whose reason is `wrong`, that is, wrong with no known cause."""
_PHASES = ("well_behaved", "violation")
_PASSED = ("right", "undecided", "skipped")
_ROWS = "results.outcomes WHERE +run = :run AND rowid BETWEEN :first AND :last"


def _text(path: str) -> str:
    return f"substr(coalesce(json_extract(body, '$.{path}'), ''), 1, {LONGEST_TEXT})"


def _score(name: str) -> str:
    return f"""json_extract(scores, '$."{name}"')"""


_ADD_QUESTIONS = f"""
INSERT INTO questions SELECT NULL, :number, benchmark, case_id, ordinal,
    coalesce({", ".join(f"json_extract(body, '$.trial.labels.{name}')" for name in TYPE_LABELS)}, ''),
    coalesce(json_extract(body, '$.trial.cluster'), ''), {_text("shown.asked")}, {_text("shown.expected")}
FROM results.outcomes AS outcome WHERE rowid IN (
    SELECT row FROM (SELECT rowid AS row, min(ordinal) FROM {_ROWS} GROUP BY benchmark, case_id))
    AND NOT EXISTS (SELECT 1 FROM questions AS known WHERE known.run = :number
        AND known.benchmark = outcome.benchmark AND known.case_id = outcome.case_id AND place <= ordinal)
ON CONFLICT (run, benchmark, case_id) DO UPDATE SET place = excluded.place
"""  # noqa: S608  ours
_ADD_TRIALS = f"""
WITH scored AS MATERIALIZED (
    SELECT trial, benchmark, case_id, subject, status, body,
        coalesce(json_extract(body, '$.trial.variant'), '') AS variant,
        coalesce(json_extract(body, '$.trial.repeat'), 1) AS repeat,
        coalesce(json_extract(body, '$.trial.subject.role'), '') AS role, {_text("shown.got")} AS got,
        (SELECT json_group_object(atom, json_extract(body, path || '.value')) FROM json_tree(body, '$.scores')
            WHERE key = 'name' AND atom IN {_DECIDING}) AS scores
    FROM {_ROWS}),
explained AS (
    SELECT *, CASE WHEN status != 'scored' THEN status
        WHEN coalesce({", ".join(map(_score, VERDICTS))}) IS NOT 0 AND {_score("succeeded")} IS NOT 0 THEN ''
        WHEN {_score("miss_stale")} = 1 THEN 'stale'
        WHEN {_score("miss_invented")} = 1 AND {_score("miss_not_retrieved")} IS NOT 1 THEN 'invented'
        WHEN {_score("miss_not_used")} = 1 THEN 'not-used'
        WHEN coalesce({", ".join(map(_score, JUDGED))}) IS NULL OR {_score("miss_not_retrieved")} = 1
            THEN 'not-retrieved'
        ELSE 'wrong' END AS reason
    FROM scored)
INSERT OR REPLACE INTO trials
SELECT id, subject, variant, repeat, :number, trial, role,
    CASE WHEN status != 'scored' THEN status WHEN reason != '' THEN 'wrong'
        WHEN scores = '{{}}' AND (json_extract(body, '$.trial.suite') = 'extraction'
            OR NOT EXISTS (SELECT 1 FROM json_tree(body, '$.scores')
                WHERE key = 'name' AND atom NOT IN {tuple(NO_VERDICTS)})) THEN 'undecided'
        ELSE 'right' END,
    reason, got
FROM explained JOIN questions USING (benchmark, case_id) WHERE questions.run = :number
"""  # noqa: S608  ours
"""SQL that adds trials with their marks and reasons, which are the values that `outcome_mark` and `failure_reason`
return."""


class Filter(Struct, frozen=True):
    """Conditions on the questions that a page lists; an empty field is no condition."""

    benchmark: str = ""
    provider: str = ""
    outcome: str = ""
    """right, wrong, undecided, UNEXPLAINED, a status or a failure reason.

    A trial of `provider` must have it; a trial of any provider if `provider` is empty.
    """
    type: str = ""
    cluster: str = ""
    text: str = ""
    right: str = ""
    """A provider that answered the question right."""
    wrong: str = ""
    """A provider that answered the question wrong. If `right` is set, too, both must be true in the same repeat."""

    def parameters(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.__struct_fields__ if getattr(self, name)}


class Mark(Struct, frozen=True):
    """The result of one trial."""

    subject: str
    variant: str
    repeat: int
    mark: str
    reason: str
    trial: str

    @property
    def variant_order(self) -> tuple[int, str, int]:
        """Sort key: the phases of a scenario come first, then its mutants by name."""
        return _PHASES.index(self.variant) if self.variant in _PHASES else len(_PHASES), self.variant, self.repeat


class Question(Struct, frozen=True):
    id: int
    benchmark: str
    case_id: str
    place: int
    type: str
    cluster: str
    asked: str
    expected: str
    marks: tuple[Mark, ...] = ()
    """The results of the question's trials, failures first, because a list shows only a few."""


class QuestionIndex:
    def __init__(self) -> None:
        # an empty name is a temporary file that SQLite removes
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None, uri=True)
        self._db.text_factory = lambda text: text.decode("utf-8", "replace")
        self._db.create_function("casefold", 1, str.casefold, deterministic=True)
        self._db.executescript(_TABLES)
        self._lock = RLock()
        self._updating = Lock()
        """A lock that is held while a results file is attached to the database."""
        self._choices: dict[tuple[Any, ...], list[Any]] = {}
        """The cached results of `_choice`, by its arguments. Cleared when outcomes are added."""

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def update(self, reader: RunReader, run: Run) -> int:
        """Read the outcomes of a run that are not in the index yet; return the run's number in the index."""
        folder, state = str(reader.folder.resolve()), f"{run.status} {run.finished}"
        number, last, known_state = self._entry(folder, run)
        if known_state == state and run.status == "complete":
            return number
        if known_state != state:
            last = 0  # of several processes that write a run, one may commit a row with a lower number later
        rows = reader.outcome_rows(run.id, last)
        with self._updating, reader.errors():
            with self._lock:
                reader.attach_outcomes(self._db, "results", run.id, last)
            try:
                for start in range(0, len(rows), _CHUNK):  # other pages get their turn in between
                    chunk = rows[start : start + _CHUNK]
                    self._add(number, run.id, chunk[0], chunk[-1])
            finally:
                with self._lock:
                    self._db.execute("DETACH results")
        with self._lock:
            newest = rows[-1] if rows else last
            self._db.execute("UPDATE runs SET last = ?, state = ? WHERE id = ?", (newest, state, number))
        return number

    def _entry(self, folder: str, run: Run) -> tuple[int, int, str]:
        with self._lock:
            found = self._db.execute(
                "SELECT id, last, state, created FROM runs WHERE folder = ? AND name = ?", (folder, run.id)
            ).fetchone()
            if found and found[3] == run.created:
                return found[0], found[1], found[2]
            if found:  # the run was deleted, and another one has its name
                self._db.execute("DELETE FROM trials WHERE run = ?", (found[0],))
                self._db.execute("DELETE FROM questions WHERE run = ?", (found[0],))
                self._db.execute("DELETE FROM runs WHERE id = ?", (found[0],))
            values = (folder, run.id, run.created)
            number = self._db.execute("INSERT INTO runs VALUES (NULL, ?, ?, ?, 0, '')", values).lastrowid
            assert number is not None
            return number, 0, ""

    def _add(self, number: int, run_id: str, first: int, last: int) -> None:
        """Add the outcomes in rows `first` to `last` of the results file, in SQL only, which is fast."""
        values = {"number": number, "run": run_id, "first": first, "last": last}
        with self._lock, self._transaction():
            self._db.execute(_ADD_QUESTIONS, values)
            self._db.execute(_ADD_TRIALS, values)
            self._choices.clear()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def subjects(self, run: int) -> dict[str, str]:
        """Return the role of each subject, such as `provider` or `baseline`."""
        return dict(self._choice(run, "SELECT subject, min(role) FROM trials WHERE run = ? GROUP BY subject"))

    def values(self, run: int, column: str) -> list[str]:
        """Return the distinct values of the column `type`, `benchmark` or `cluster`, in the order of the questions."""
        assert column in ("type", "benchmark", "cluster")
        query = f"SELECT {column} FROM questions WHERE run = ? GROUP BY {column} ORDER BY min(place)"  # noqa: S608
        return [value for (value,) in self._choice(run, query) if value]

    def reasons(self, run: int, *, of_questions: bool = False) -> dict[tuple[str, str], int]:
        """Return the number of trials with a failure reason, such as `wrong` or `skipped`, by provider and reason.

        With `of_questions`, count the questions that have such a trial.
        """
        counted = "DISTINCT question" if of_questions else "*"
        query = f"SELECT subject, reason, count({counted}) FROM trials WHERE run = ? AND reason != '' GROUP BY 1, 2"  # noqa: S608
        return {(subject, reason): n for subject, reason, n in self._choice(run, query)}

    def _choice(self, *values: Any) -> list[Any]:
        """Return the rows of a query, cached.

        `values` are the run, the query, and the values of its further parameters.
        """
        run, query, *others = values
        with self._lock:
            if values not in self._choices:
                self._choices[values] = self._rows(query, (run, *others))
            return self._choices[values]

    def agreement(self, run: int, first: str, second: str) -> dict[str, int]:
        """Return how many questions both, only the first, only the second, or neither of two providers got right.

        A question whose repeats differ counts in several of these. Trials without a verdict do not count.
        """
        query = (
            "SELECT a.mark = 'right', b.mark = 'right', count(DISTINCT a.question) FROM trials a JOIN trials b"
            " ON b.question = a.question AND b.variant = a.variant AND b.repeat = a.repeat"
            " WHERE a.run = ? AND a.subject = ? AND b.subject = ? AND a.mark IN ('right', 'wrong')"
            " AND b.mark IN ('right', 'wrong') GROUP BY 1, 2"
        )
        rows = self._choice(run, query, first, second)
        names = {(1, 1): "both", (1, 0): "first", (0, 1): "second", (0, 0): "neither"}
        return dict.fromkeys(names.values(), 0) | {names[one, other]: n for one, other, n in rows}

    def count(self, run: int, filter: Filter) -> int:
        condition, values = _condition(run, filter)
        return int(self._rows(f"SELECT count(*) FROM questions WHERE {condition}", values)[0][0])  # noqa: S608

    def page(self, run: int, filter: Filter, offset: int, limit: int = PAGE) -> list[Question]:
        condition, values = _condition(run, filter)
        return self._questions(f"{condition} ORDER BY place, id LIMIT ? OFFSET ?", (*values, limit, offset))

    def question(self, run: int, benchmark: str, case_id: str) -> Question | None:
        found = self._questions("run = ? AND benchmark = ? AND case_id = ?", (run, benchmark, case_id))
        return found[0] if found else None

    def neighbours(self, run: int, filter: Filter, question: Question) -> tuple[Question | None, Question | None]:
        """Return the previous and the next question that the filter selects; None if there is none."""
        condition, values = _condition(run, filter)
        here = (question.place, question.id)
        before = self._questions(
            f"{condition} AND (place, id) < (?, ?) ORDER BY place DESC, id DESC LIMIT 1", (*values, *here)
        )
        after = self._questions(f"{condition} AND (place, id) > (?, ?) ORDER BY place, id LIMIT 1", (*values, *here))
        return (before[0] if before else None), (after[0] if after else None)

    def _questions(self, condition: str, values: Sequence[Any]) -> list[Question]:
        columns = "id, benchmark, case_id, place, type, cluster, asked, expected"
        rows = self._rows(f"SELECT {columns} FROM questions WHERE {condition}", values)  # noqa: S608  ours
        questions = [Question(*row) for row in rows]
        marks: dict[int, list[Mark]] = {}
        for question, *mark in self._rows(
            "SELECT question, subject, variant, repeat, mark, reason, trial FROM trials"
            " WHERE question IN (SELECT value FROM json_each(?))",
            (json.dumps([question.id for question in questions]),),
        ):
            marks.setdefault(question, []).append(Mark(*mark))
        for own in marks.values():
            own.sort(key=lambda one: (one.mark in _PASSED, *one.variant_order))
        return [replace(question, marks=tuple(marks.get(question.id, ()))) for question in questions]

    def _rows(self, query: str, values: Sequence[Any]) -> list[Any]:
        with self._lock:
            return self._db.execute(query, values).fetchall()


def _condition(run: int, filter: Filter) -> tuple[str, list[Any]]:
    parts: list[str] = ["run = ?"]
    values: list[Any] = [run]
    exact: Mapping[str, str] = {"benchmark": filter.benchmark, "type": filter.type, "cluster": filter.cluster}
    for column, value in exact.items():
        if value:
            parts.append(f"{column} = ?")
            values.append(value)
    own = "EXISTS (SELECT 1 FROM trials WHERE question = questions.id"
    for subject, outcome in (
        (filter.provider, filter.outcome),
        (filter.right, "right" if filter.right else ""),
        (filter.wrong, "wrong" if filter.wrong else ""),
    ):
        if subject or outcome:
            of_subject = " AND subject = ?" * bool(subject)
            of_outcome = " AND reason = ?" if outcome == UNEXPLAINED else " AND ? IN (mark, reason)" * bool(outcome)
            parts.append(f"{own}{of_subject}{of_outcome})")
            values += [value for value in (subject, "wrong" if outcome == UNEXPLAINED else outcome) if value]
    if filter.right and filter.wrong:
        parts.append(
            "EXISTS (SELECT 1 FROM trials a JOIN trials b USING (question, variant, repeat)"
            " WHERE question = questions.id AND a.subject = ? AND a.mark = 'right'"
            " AND b.subject = ? AND b.mark = 'wrong')"
        )
        values += [filter.right, filter.wrong]
    if filter.text:
        pattern = "%" + filter.text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%"
        match = "{} LIKE ? ESCAPE '\\'"
        if not filter.text.isascii():  # LIKE ignores the case of ASCII letters only, but is faster
            pattern, match = filter.text.casefold(), "instr(casefold({}), ?)"
        asked, expected, case_id, got = map(match.format, ("asked", "expected", "case_id", "got"))
        parts.append(f"({asked} OR {expected} OR {case_id} OR {own} AND {got}))")
        values += [pattern] * 4
    return " AND ".join(parts), values
