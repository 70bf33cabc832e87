"""Reads runs. Reports, exports and comparisons need nothing else."""

from __future__ import annotations

import difflib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput, JournalError
from memorybench.core.records import Record
from memorybench.core.spending import NOTHING, Spending
from memorybench.core.trials import STATUSES, Outcome, Status

from .database import FILE_NAME, check, open_for_reading, sqlite_errors
from .rows import Run, crc

OPEN_ATTEMPT = (
    "run = :run AND ended IS NULL"
    " AND id NOT IN (SELECT attempt FROM steps WHERE steps.run = :run AND attempt IS NOT NULL)"
)
"""Paid work of a run that was begun, and neither recorded nor failed."""
_OLD_STEP_NAMES = {"settle": "wait_until_searchable"}
"""Names in files written before 0.2."""
_RUN = "SELECT id, suite, spec, fingerprints, program, planned, created, crc, status, finished FROM runs"


class Stage(Record):
    """Time and cost of all steps of one name on one subject, including failed attempts."""

    name: str
    subject: str
    steps: int
    seconds: tuple[float, ...]
    """One duration per step, sorted; without reused steps."""
    spent: Spending
    reused: int


class RunReader:
    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path = path
        self._db = db

    @classmethod
    @contextmanager
    def open(cls, folder: Path, *, thorough: bool = True) -> Iterator[RunReader]:
        """Open a results folder; `thorough=False` skips the check of the whole file."""
        path = folder / FILE_NAME
        if not path.exists():
            raise BadInput(
                str(folder), f"has no {FILE_NAME}", expected="a results folder", remedy="name one with --results"
            )
        check(path, thorough=thorough)
        db = open_for_reading(path)
        try:
            with sqlite_errors(path):
                yield cls(path, db)
        finally:
            db.close()

    def runs(self) -> list[Run]:
        """Return all runs, oldest first."""
        rows = self._db.execute(f"{_RUN} ORDER BY created, id")
        return [self._run(row) for row in rows]

    def has(self, run: str) -> bool:
        return self._db.execute("SELECT 1 FROM runs WHERE id = ?", (run,)).fetchone() is not None

    def run(self, run: str) -> Run:
        row = self._db.execute(f"{_RUN} WHERE id = ?", (run,)).fetchone()
        if row is None:
            known = [name for (name,) in self._db.execute("SELECT id FROM runs ORDER BY created DESC, id")]
            close = difflib.get_close_matches(run, known, 1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise BadInput(str(self._path), f"run {run!r} not found", remedy=f"{hint}`memorybench results` lists them")
        return self._run(row)

    def counts(self, run: str) -> dict[Status, int]:
        counter = Counter(row[6] for row in self._outcome_rows(run))
        return {status: counter[status] for status in STATUSES}

    def outcomes(self, run: str) -> Iterator[Outcome]:
        """Return outcomes in the order of the plan."""
        return (outcome for _, outcome in self.dated_outcomes(run))

    def dated_outcomes(self, run: str) -> Iterator[tuple[str, Outcome]]:
        """Return outcomes with the time at which each was recorded, in the order of the plan."""
        for row in self._outcome_rows(run):
            yield row[8], Outcome.model_validate_json(row[7])

    def _outcome_rows(self, run: str) -> Iterator[tuple[Any, ...]]:
        rows = self._db.execute(
            "SELECT run, trial, ordinal, benchmark, case_id, subject, status, body, finished, crc FROM outcomes"
            " WHERE run = ? ORDER BY ordinal, trial",
            (run,),
        )
        for row in rows:
            self._check_row(row, f"outcome {row[1]}")
            yield row

    def case(self, run: str, benchmark: str, case: str) -> Mapping[str, Any] | None:
        row = self._db.execute(
            "SELECT run, benchmark, id, body, crc FROM cases WHERE run = ? AND benchmark = ? AND id = ?",
            (run, benchmark, case),
        ).fetchone()
        if row is None:
            return None
        self._check_row(row, f"case {case}")
        body: Mapping[str, Any] = json.loads(row[3])
        return body

    def stages(self, run: str) -> list[Stage]:
        """Return time and cost by step name and subject."""
        seconds: dict[tuple[str, str], list[float]] = {}
        steps: Counter[tuple[str, str]] = Counter()
        reused: Counter[tuple[str, str]] = Counter()
        spent: dict[tuple[str, str], Spending] = {}
        rows = self._db.execute(
            "SELECT name, subject, 1, reused_from IS NOT NULL, seconds, calls, input_tokens, output_tokens, cost"
            " FROM steps WHERE run = :run"
            " UNION ALL SELECT name, subject, 0, 0, NULL, calls, input_tokens, output_tokens, cost"
            " FROM attempts WHERE run = :run",
            {"run": run},
        )
        for name, subject, is_step, is_reused, duration, calls, inputs, outputs, cost in rows:
            key = (_OLD_STEP_NAMES.get(name, name), subject)
            steps[key] += is_step
            reused[key] += is_reused
            if is_step and not is_reused:
                seconds.setdefault(key, []).append(duration)
            if calls or inputs or outputs or cost != 0:
                paid = Spending(calls=calls, input_tokens=inputs, output_tokens=outputs, cost=cost)
                spent[key] = spent.get(key, NOTHING) + paid
        return [
            Stage(
                name=key[0],
                subject=key[1],
                steps=steps[key],
                seconds=tuple(sorted(seconds.get(key, ()))),
                spent=spent.get(key, NOTHING),
                reused=reused[key],
            )
            for key in sorted(steps)
        ]

    def step_inputs(self, run: str, name: str) -> str | None:
        """Return the inputs of one step of that name, as JSON."""
        row = self._db.execute("SELECT inputs FROM steps WHERE run = ? AND name = ? LIMIT 1", (run, name)).fetchone()
        return None if row is None else str(row[0])

    def step_records(self, run: str, name: str) -> Iterator[tuple[str, str]]:
        """Return inputs and result of all steps of that name, as JSON, by start time."""
        sql = "SELECT inputs, result FROM steps WHERE run = ? AND name = ? ORDER BY started, key"
        return ((str(inputs), str(result)) for inputs, result in self._db.execute(sql, (run, name)))

    def spent(self, run: str) -> Spending:
        return sum((stage.spent for stage in self.stages(run)), Spending())

    def possibly_charged_twice(self, run: str) -> int:
        """Count paid calls without a reply: interrupted by a crash or by a lost connection."""
        (interrupted,) = self._db.execute(
            f"SELECT count(*) FROM attempts WHERE run = :run AND (error = 'interrupted' OR ({OPEN_ATTEMPT}))",  # noqa: S608
            {"run": run},
        ).fetchone()
        (uncertain,) = self._db.execute(
            "SELECT (SELECT coalesce(sum(uncertain), 0) FROM steps WHERE run = :run)"
            " + (SELECT coalesce(sum(uncertain), 0) FROM attempts WHERE run = :run)",
            {"run": run},
        ).fetchone()
        return int(interrupted + uncertain)

    def notes(self, run: str) -> list[tuple[str, str]]:
        return self._db.execute(
            "SELECT kind, text FROM notes WHERE run = ? GROUP BY kind, text ORDER BY min(rowid)", (run,)
        ).fetchall()

    def _run(self, row: tuple[Any, ...]) -> Run:
        *columns, expected, status, finished = row
        self._check_row((*columns, expected), f"run {row[0]}")
        names = ("id", "suite", "spec", "fingerprints", "program", "planned", "created")
        values = dict(zip(names, columns, strict=True))
        values["spec"], values["fingerprints"] = json.loads(values["spec"]), json.loads(values["fingerprints"])
        return Run.model_validate({**values, "status": status, "finished": finished})

    def _check_row(self, row: tuple[Any, ...], what: str) -> None:
        *columns, expected = row
        if crc(*columns) != expected:
            raise JournalError(f"{self._path}: {what} is damaged; restore a copy of the file")
