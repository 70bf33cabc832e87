"""Runs being read. Reports, exports and comparisons need nothing else."""

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
from memorybench.core.spending import Spending
from memorybench.core.trials import STATUSES, Outcome, Status

from .database import FILE_NAME, check, open_for_reading, translated
from .rows import Run, crc

OPEN_ATTEMPT = (
    "run = :run AND ended IS NULL"
    " AND id NOT IN (SELECT attempt FROM steps WHERE steps.run = :run AND attempt IS NOT NULL)"
)
"""Paid work of a run that was announced and neither recorded nor given up."""
_RUN = "SELECT id, suite, spec, fingerprints, program, planned, created, crc, status, finished FROM runs"


class Stage(Record):
    """What the steps of one name on one subject took, failed attempts included."""

    name: str
    subject: str
    steps: int
    seconds: tuple[float, ...]
    """One duration a step, sorted; reused steps aside."""
    spent: Spending
    reused: int


class RunReader:
    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path = path
        self._db = db

    @classmethod
    @contextmanager
    def open(cls, folder: Path, *, thorough: bool = True) -> Iterator[RunReader]:
        """`thorough=False` leaves the look at the whole file to whoever is about to write to it."""
        path = folder / FILE_NAME
        if not path.exists():
            raise BadInput(
                str(folder), f"holds no {FILE_NAME}", expected="a results folder", remedy="name one with --results"
            )
        check(path, thorough=thorough)
        db = open_for_reading(path)
        try:
            with translated(path):
                yield cls(path, db)
        finally:
            db.close()

    def runs(self) -> list[Run]:
        """All runs, oldest first."""
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
            raise BadInput(str(self._path), f"no run {run!r}", remedy=f"{hint}`memorybench results` lists them")
        return self._run(row)

    def counts(self, run: str) -> dict[Status, int]:
        found = Counter(row[6] for row in self._outcome_rows(run))
        return {status: found[status] for status in STATUSES}

    def outcomes(self, run: str) -> Iterator[Outcome]:
        """In the order of the plan, whatever the order they were settled in."""
        return (outcome for _, outcome in self.settled(run))

    def settled(self, run: str) -> Iterator[tuple[str, Outcome]]:
        """Outcomes with the time they were settled at."""
        for row in self._outcome_rows(run):
            yield row[8], Outcome.model_validate_json(row[7])

    def _outcome_rows(self, run: str) -> Iterator[tuple[Any, ...]]:
        rows = self._db.execute(
            "SELECT run, trial, ordinal, benchmark, case_id, subject, status, body, finished, crc FROM outcomes"
            " WHERE run = ? ORDER BY ordinal, trial",
            (run,),
        )
        for row in rows:
            self._sound(row, f"outcome {row[1]}")
            yield row

    def case(self, run: str, benchmark: str, case: str) -> Mapping[str, Any] | None:
        row = self._db.execute(
            "SELECT run, benchmark, id, body, crc FROM cases WHERE run = ? AND benchmark = ? AND id = ?",
            (run, benchmark, case),
        ).fetchone()
        if row is None:
            return None
        self._sound(row, f"case {case}")
        found: Mapping[str, Any] = json.loads(row[3])
        return found

    def stages(self, run: str) -> list[Stage]:
        stages: dict[tuple[str, str], Stage] = {}
        rows = self._db.execute(
            "SELECT name, subject, seconds, reused_from IS NOT NULL, calls, input_tokens, output_tokens, cost"
            " FROM steps WHERE run = ? ORDER BY name, subject, seconds",
            (run,),
        )
        times: dict[tuple[str, str], list[float]] = {}
        sums: dict[tuple[str, str], list[Any]] = {}
        for name, subject, seconds, reused, *spent in rows:
            key = (name, subject)
            total = sums.setdefault(key, [0, 0, 0, 0, 0, 0.0])
            total[0] += 1
            total[1] += reused
            _add(total, spent)
            if not reused:
                times.setdefault(key, []).append(seconds)
        wasted = self._db.execute(
            "SELECT name, subject, calls, input_tokens, output_tokens, cost FROM attempts WHERE run = ?", (run,)
        )
        for name, subject, *spent in wasted:
            _add(sums.setdefault((name, subject), [0, 0, 0, 0, 0, 0.0]), spent)
        for (name, subject), (steps, reused, calls, inputs, outputs, cost) in sorted(sums.items()):
            stages[name, subject] = Stage(
                name=name,
                subject=subject,
                steps=steps,
                seconds=tuple(times.get((name, subject), ())),
                spent=Spending(calls=calls, input_tokens=inputs, output_tokens=outputs, cost=cost),
                reused=reused,
            )
        return list(stages.values())

    def step_inputs(self, run: str, name: str) -> str | None:
        """The inputs of some step of that name."""
        row = self._db.execute("SELECT inputs FROM steps WHERE run = ? AND name = ? LIMIT 1", (run, name)).fetchone()
        return None if row is None else str(row[0])

    def step_records(self, run: str, name: str) -> Iterator[tuple[str, str]]:
        """Inputs and result of all steps of that name, as JSON, in the order of their beginning."""
        wanted = "SELECT inputs, result FROM steps WHERE run = ? AND name = ? ORDER BY started, key"
        return ((str(inputs), str(result)) for inputs, result in self._db.execute(wanted, (run, name)))

    def spent(self, run: str) -> Spending:
        return sum((stage.spent for stage in self.stages(run)), Spending())

    def possibly_charged_twice(self, run: str) -> int:
        """Paid calls whose reply we never saw: cut off by a crash, or by a connection that broke."""
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
        *kept, expected, status, finished = row
        self._sound((*kept, expected), f"run {row[0]}")
        names = ("id", "suite", "spec", "fingerprints", "program", "planned", "created")
        values = dict(zip(names, kept, strict=True))
        values["spec"], values["fingerprints"] = json.loads(values["spec"]), json.loads(values["fingerprints"])
        return Run.model_validate({**values, "status": status, "finished": finished})

    def _sound(self, row: tuple[Any, ...], what: str) -> None:
        *columns, expected = row
        if crc(*columns) != expected:
            raise JournalError(f"{self._path}: {what} is damaged; restore a copy of the file")


def _add(total: list[Any], spent: list[Any]) -> None:
    for place, amount in enumerate(spent[:3], 2):
        total[place] += amount
    total[5] = None if total[5] is None or spent[3] is None else total[5] + spent[3]
