"""Reads runs from the journal, for reports, exports and comparisons."""

import json
import shlex
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from memorybench.core.errors import BadInput, RunConflict
from memorybench.core.records import Record
from memorybench.core.spending import NOTHING, Spending
from memorybench.core.trials import STATUSES, Outcome, Status
from memorybench.text.sanitize import preview
from memorybench.text.spelling import suggestion

from .checksums import CHECKSUMS, checked_rows
from .contract import Connection, Journal, Row, Values
from .places import journal_of, journal_words
from .rows import HIGHEST_COST, TRIED_AGAIN, Run

OPEN_ATTEMPT = (
    "run = :run AND ended IS NULL"
    " AND id NOT IN (SELECT attempt FROM steps WHERE steps.run = :run AND attempt IS NOT NULL)"
)
"""SQL condition for attempts of a run that have neither succeeded nor failed: they still run, or their process died."""
INTERRUPTED = "run = :run AND error = 'interrupted'"
"""SQL condition for attempts that a later process has marked as interrupted, because their process died."""
FREE_MODELS = ("scripted/", "ollama/", "vllm/", "lmstudio/")
"""Prefixes of the names of models that cost nothing: scripted models and models on local servers."""
PROCESS_BITS = 23
"""The id of an attempt is the random number of its process, shifted left by this number of bits, plus a counter."""
_PAID = "".join(f" AND subject NOT LIKE '{prefix}%'" for prefix in FREE_MODELS)
_OLD_STEP_NAMES = {"settle": "wait_until_searchable"}
"""Names of steps in runs of earlier versions, and the names that replaced them."""
CLEARING = ("clearing", "clear")
"""Names of steps that clear a memory after the last trial that uses it. They belong to that trial by chance only."""


class Stage(Record):
    """The steps with one name and one subject: how many, how long they took, and their cost with failed attempts."""

    name: str
    subject: str
    steps: int
    seconds: tuple[float, ...]
    """The seconds that each step took, sorted, without reused steps and failed attempts."""
    spent: Spending
    reused: int


class RecordedTrial(NamedTuple):
    """An outcome with its case and its steps. `case` is empty if none was recorded."""

    run: str
    finished: str
    outcome: Outcome
    case: Mapping[str, Any]
    steps: tuple["StepRecord", ...]
    """The steps whose results the outcome depends on, without their inputs. Several trials may have the same step."""
    spent: Spending
    """What these steps and their failed attempts spent."""

    @property
    def own_steps(self) -> tuple["StepRecord", ...]:
        """The steps without those that clear the memory."""
        return tuple(step for step in self.steps if step.name not in CLEARING)


class StepRecord(Record):
    """A recorded step, or an attempt to perform one that failed."""

    name: str
    subject: str
    inputs: Any = None
    """The inputs of the step; None for a failed attempt, and in RecordedTrial."""
    result: Any = None
    started: str
    seconds: float
    """How long the call took. For a failed attempt, from its start to its end, with the waits between its tries."""
    tries: int
    spent: Spending
    reused_from: str | None = None
    """The id of the run whose step was reused; None if this run performed the step."""
    error: str = ""
    """Why the attempt failed; "" for a recorded step."""


class RunReader:
    def __init__(self, journal: Journal, connection: Connection) -> None:
        self._journal = journal
        self.connection = connection

    @classmethod
    @contextmanager
    def open(cls, folder: Path, *, thorough: bool = True) -> Iterator["RunReader"]:
        """Open the journal of a results folder for reading. Without `thorough`, skip the check of the whole file."""
        journal = journal_of(folder)
        with journal.errors(), closing(journal.open_for_reading(thorough=thorough)) as connection:
            yield cls(journal, connection)

    def errors(self) -> AbstractContextManager[None]:
        """Return a context manager that replaces exceptions of the database driver by MemorybenchErrors."""
        return self._journal.errors()

    def attach_outcomes(self, db: sqlite3.Connection, schema: str, run: str, first: int) -> None:
        """Attach a database under the name `schema` to the SQLite connection `db`, so that `db` can query outcomes.

        The table `outcomes` of the attached database has the run's rows from row number `first` on, and maybe others.
        `db` must have been opened with `uri=True`.
        """
        self._journal.attach_outcomes(self.connection, db, schema, run, first)

    @property
    def folder(self) -> Path:
        return self._journal.folder

    def runs(self) -> list[Run]:
        """Return all runs, oldest first."""
        return [_run(row) for row in self._rows("runs", "true ORDER BY created, id")]

    def run_ids(self) -> list[str]:
        """Return the ids of all runs, oldest first, including runs whose row is damaged."""
        return [run for (run,) in self.connection.execute("SELECT id FROM runs ORDER BY created, id")]

    def has(self, run: str) -> bool:
        return self.connection.execute("SELECT 1 FROM runs WHERE id = ?", (run,)).fetchone() is not None

    def run(self, run: str, flag: str = "") -> Run:
        """Return a run by id. Raise BadInput if there is none; its message begins with the flag that names the run."""
        row = next(self._few("runs", "id = ?", run), None)
        if row is None:
            known = [name for (name,) in self.connection.execute("SELECT id FROM runs ORDER BY created DESC, id")]
            listing = shlex.join(["memorybench", "runs", *journal_words(self.folder)])
            raise BadInput(
                flag or self._journal.name,
                f"run {preview(run)} not found{f' in {self._journal.name}' if flag else ''}",
                remedy=f"{suggestion(run, known)} `{listing}` lists the runs".lstrip(),
            )
        return _run(row)

    def counts(self, run: str) -> dict[Status, int]:
        counter = Counter(row["status"] for row in self._rows("outcomes", "run = ?", run))
        return {status: counter[status] for status in STATUSES}

    def outcomes(self, run: str) -> Iterator[Outcome]:
        """Yield the outcomes of a run in the order of its plan."""
        return (outcome for _, outcome in self.dated_outcomes(run))

    def failed_outcomes(self, run: str) -> Iterator[Outcome]:
        rows = self._rows("outcomes", "run = ? AND status = 'failed' ORDER BY ordinal, trial", run)
        return (_outcome(row) for row in rows)

    def dated_outcomes(self, run: str, subjects: Collection[str] | None = None) -> Iterator[tuple[str, Outcome]]:
        """Yield each outcome after the time at which it was recorded (ISO 8601), in the order of the plan.

        `subjects` are names: only the outcomes of these subjects are yielded; None: all.
        """
        among = "" if subjects is None else " AND subject IN (SELECT value FROM json_each(?))"
        values = () if subjects is None else (json.dumps(sorted(subjects)),)
        for row in self._rows("outcomes", f"run = ?{among} ORDER BY ordinal, trial", run, *values):
            yield row["finished"], _outcome(row)

    def newest_row(self, run: str) -> int:
        """Return the row number of the run's newest outcome; 0 if it has none."""
        (row,) = self.connection.execute(
            "SELECT coalesce(max(rowid), 0) FROM outcomes WHERE run = ?", (run,)
        ).fetchone()
        return int(row)

    def outcome_rows(self, run: str, first: int) -> list[int]:
        """Return the row numbers of the run's outcomes from `first` on, in the order in which they were recorded."""
        rows = self.connection.execute("SELECT rowid FROM outcomes WHERE run = ? AND rowid >= ?", (run, first))
        return sorted(row for (row,) in rows)

    def outcomes_of(self, run: str, trials: Sequence[str]) -> list[Outcome]:
        """Return the outcomes of the trials with these keys, in the order of the plan.

        Trials without outcome are left out.
        """
        condition = "run = ? AND trial IN (SELECT value FROM json_each(?)) ORDER BY ordinal, trial"
        rows = self._few("outcomes", condition, run, json.dumps(trials))
        return [_outcome(row) for row in rows]

    def status_counts(self, run: str) -> dict[str, int]:
        """Return the number of outcomes with each status. Faster than `counts`, because no checksum is checked."""
        rows = self.connection.execute("SELECT status, count(*) FROM outcomes WHERE run = ? GROUP BY status", (run,))
        return dict.fromkeys(STATUSES, 0) | dict(rows)

    def trials(self, run: str) -> Iterator[RecordedTrial]:
        """Yield outcomes with their cases and steps, in the order of the plan."""
        failed: dict[str, Spending] = {}
        for row in self._rows("attempts", "run = ? AND (calls > 0 OR cost IS NULL OR cost > 0) ORDER BY id", run):
            failed[row["key"]] = failed.get(row["key"], NOTHING) + _spending(row)
        for finished, outcome in self.dated_outcomes(run):
            keys = dict.fromkeys(outcome.steps)
            rows = (row for key in keys for row in self._few("steps", "run = ? AND key = ?", run, key))
            steps = tuple(_recorded_step(row, inputs=None) for row in rows)
            spent = sum((*(step.spent for step in steps), *(failed[key] for key in keys if key in failed)), NOTHING)
            case = self.case(run, outcome.trial.benchmark, outcome.trial.case_id) or {}
            yield RecordedTrial(run, finished, outcome, case, steps, spent)

    def case(self, run: str, benchmark: str, case: str) -> Mapping[str, Any] | None:
        row = next(self._few("cases", "run = ? AND benchmark = ? AND id = ?", run, benchmark, case), None)
        if row is None:
            return None
        body: Mapping[str, Any] = json.loads(row["body"])
        return body

    def case_ids(self, run: str) -> list[tuple[str, str]]:
        """Return the benchmark and the id of each case that has an outcome, in the order of the plan."""
        rows = self.connection.execute(
            "SELECT benchmark, case_id FROM outcomes WHERE run = ? GROUP BY benchmark, case_id ORDER BY min(ordinal)",
            (run,),
        )
        return [(benchmark, case) for benchmark, case in rows]

    def case_outcomes(self, run: str, benchmark: str, case: str) -> list[Outcome]:
        condition = "run = ? AND benchmark = ? AND case_id = ? ORDER BY ordinal, trial"
        return [_outcome(row) for row in self._few("outcomes", condition, run, benchmark, case)]

    def steps_of(self, run: str, outcome: Outcome) -> list[StepRecord]:
        """Return the steps that an outcome depends on, each after its failed attempts."""
        return [record for records in self.steps_by_key(run, outcome.steps).values() for record in records]

    def steps_by_key(self, run: str, keys: Iterable[str]) -> dict[str, list[StepRecord]]:
        """Return, for each key, the failed attempts of the step, followed by the step itself if it is recorded."""
        found: dict[str, list[StepRecord]] = {key: [] for key in keys}
        among, values = "run = ? AND key IN (SELECT value FROM json_each(?))", json.dumps(list(found))
        for row in self._few("attempts", f"{among} AND error IS NOT NULL ORDER BY started, id", run, values):
            elapsed = datetime.fromisoformat(row["ended"]) - datetime.fromisoformat(row["started"])
            seconds = max(0.0, elapsed.total_seconds())  # the clock may have been set back
            found[row["key"]].append(_step_record(row, seconds=seconds, error=row["error"]))
        for row in self._few("steps", among, run, values):
            found[row["key"]].append(_recorded_step(row, inputs=json.loads(row["inputs"])))
        return found

    def cases(self, run: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Yield the benchmark, id and content of each recorded case, sorted by benchmark and id."""
        for row in self._rows("cases", "run = ? ORDER BY benchmark, id", run):
            yield row["benchmark"], row["id"], json.loads(row["body"])

    def stages(self, run: str) -> list[Stage]:
        """Return one Stage per name and subject of the run's steps, sorted by both."""
        seconds: dict[tuple[str, str], list[float]] = {}
        steps: Counter[tuple[str, str]] = Counter()
        reused: Counter[tuple[str, str]] = Counter()
        spent: dict[tuple[str, str], Spending] = {}
        for table, order in (("steps", "key"), ("attempts", "id")):  # sums of costs depend on the order
            for row in self._rows(table, f"run = ? ORDER BY {order}", run):
                key = (_OLD_STEP_NAMES.get(row["name"], row["name"]), row["subject"])
                is_reused = table == "steps" and row["reused_from"] is not None
                steps[key] += table == "steps"
                reused[key] += is_reused
                if table == "steps" and not is_reused:
                    seconds.setdefault(key, []).append(row["seconds"])
                if row["calls"] or row["input_tokens"] or row["output_tokens"] or row["cost"] != 0:
                    spent[key] = spent.get(key, NOTHING) + _spending(row)
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

    def paid_steps(self, run: str, *, leave_out: Collection[str]) -> dict[str, float | None]:
        """Return the cost of each step that is not free, by key, including its failed attempts; None: cost unknown.

        A reused step has the cost that it had in the run that performed it. Steps whose name is in `leave_out` are
        omitted.
        """
        rows = self.connection.execute(
            "SELECT own.key, CASE WHEN source.key IS NULL THEN own.cost ELSE source.cost END AS cost, own.name"
            " FROM steps AS own LEFT JOIN steps AS source ON source.run = own.reused_from AND source.key = own.key"
            " WHERE own.run = :run"
            " UNION ALL SELECT key, cost, name FROM attempts WHERE run = :run",
            {"run": run},
        )
        costs: dict[str, float | None] = {}
        for key, cost, name in rows:
            if cost != 0 and name not in leave_out:
                known = costs.get(key, 0.0)
                costs[key] = None if cost is None or known is None else known + cost
        return costs

    def step_inputs(self, run: str, name: str) -> str | None:
        """Return the inputs of one step with this name (any of them), as JSON; None if there is none."""
        row = next(self._few("steps", "run = ? AND name = ? LIMIT 1", run, name), None)
        return None if row is None else str(row["inputs"])

    def step_records(self, run: str, name: str) -> Iterator[tuple[str, str]]:
        """Yield the inputs and the result of each step with this name, both as JSON, sorted by start time."""
        rows = self._rows("steps", "run = ? AND name = ? ORDER BY started, key", run, name)
        return ((str(row["inputs"]), str(row["result"])) for row in rows)

    def spent(self, run: str) -> Spending:
        return sum((stage.spent for stage in self.stages(run)), Spending())

    def costs(self, run: str) -> tuple[float, float, int]:
        """Return the sum of the run's known costs, the highest cost of a step, and the number of calls of unknown cost.

        Costs are in US dollars and include those of failed attempts.
        """
        return costs_of(self.connection, run)

    def costs_of_lost_calls(self, run: str, *, in_flight: bool = False) -> tuple[float, int]:
        """Return an estimate of what lost calls cost at most, and the number of lost calls that cannot be estimated.

        A lost call is one whose process died. It counts as much as the most expensive call with the same name and
        subject; if none of these has a known cost, as much as its maximum cost. For `in_flight`, see
        `possibly_charged_twice`.
        """
        return lost_costs_of(self.connection, run, INTERRUPTED if in_flight else f"({INTERRUPTED} OR {OPEN_ATTEMPT})")

    def unknown_costs(self, run: str) -> tuple[float, int]:
        """Return what `costs_of_lost_calls` returns, for lost calls and for recorded calls of unknown cost."""
        return unknown_costs_of(self.connection, run, f"({INTERRUPTED} OR {OPEN_ATTEMPT})")

    def possibly_charged_twice(self, run: str, *, in_flight: bool = False) -> int:
        """Return the number of paid calls whose reply was lost, because a process died or a connection was lost.

        Calls of local models are free and do not count. Pass `in_flight=True` if a process is writing the run: then
        calls that have not ended do not count either, because their replies may still arrive.
        """
        open_attempt = "" if in_flight else f" OR ({OPEN_ATTEMPT})"
        (calls,) = self.connection.execute(
            f"SELECT (SELECT count(*) FROM attempts WHERE run = :run{_PAID} AND (error = 'interrupted'{open_attempt}))"  # noqa: S608
            f" + (SELECT coalesce(sum(uncertain), 0) FROM steps WHERE run = :run{_PAID})"
            f" + (SELECT coalesce(sum(uncertain), 0) FROM attempts WHERE run = :run{_PAID})",
            {"run": run},
        ).fetchone()
        return int(calls)

    def notes(self, run: str) -> list[tuple[str, str]]:
        condition = "run = ? AND kind <> ? AND kind NOT LIKE ? ORDER BY rowid"
        rows = self._rows("notes", condition, run, TRIED_AGAIN, f"{HIGHEST_COST}%")
        return list(dict.fromkeys((str(row["kind"]), str(row["text"])) for row in rows))

    def tags(self) -> dict[str, tuple[str, ...]]:
        """Return the tags of each run that has any, sorted, by run id."""
        tags: dict[str, tuple[str, ...]] = {}
        if self.connection.has_table("tags"):
            for row in self._rows("tags", "true ORDER BY run, tag"):
                tags[row["run"]] = (*tags.get(row["run"], ()), str(row["tag"]))
        return tags

    def bundle_rows(self, run: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield (table, row) for the cases, steps, attempts, outcomes and notes of a run, always in the same order.

        Steps have the extra column `reused_cost`. For a reused step it is `(cost,)`, with the cost in the run that
        performed it, which may be unknown (None). It is None for other steps, and if that run was deleted.
        """
        orders = {
            "cases": "benchmark, id",
            "steps": "name, started, key",  # similar texts are adjacent, which compresses well
            "attempts": "started, id",
            "outcomes": "ordinal, trial",
            "notes": "rowid",
        }
        sources = self.connection.execute(
            "SELECT own.key, source.cost FROM steps AS own JOIN steps AS source"
            " ON source.run = own.reused_from AND source.key = own.key"
            " WHERE own.run = ? AND own.reused_from <> own.run",
            (run,),
        )
        costs = {key: (cost,) for key, cost in sources}
        for table, order in orders.items():
            for row in self._rows(table, f"run = ? ORDER BY {order}", run):
                values = {column: row[column] for column in CHECKSUMS[table]["crc"]}
                yield table, {**values, "reused_cost": costs.get(row["key"])} if table == "steps" else values

    def check_run(self, run: str) -> None:
        """Raise JournalError if a row of the run, or a step that another run reused from it, has a wrong checksum."""
        for table in CHECKSUMS:
            if self.connection.has_table(table):
                for _ in self._rows(table, f"{'id' if table == 'runs' else 'run'} = ?", run):
                    pass
        for _ in self._rows("steps", "reused_from = ?", run):
            pass

    def _rows(self, table: str, condition: str, *values: object) -> Iterator[Row]:
        return checked_rows(self._journal.name, self.connection, table, condition, values)

    def _few(self, table: str, condition: str, *values: object) -> Iterator[Row]:
        """Yield the rows that satisfy a condition, all loaded at once. For results with few rows."""
        return checked_rows(self._journal.name, self.connection, table, condition, values, many=False)


def costs_of(connection: Connection, run: str) -> tuple[float, float, int]:
    total, highest, unknown = connection.execute(
        "SELECT coalesce(sum(cost), 0.0), coalesce(max(cost), 0.0),"
        " coalesce(sum(calls) FILTER (WHERE cost IS NULL), 0)"
        " FROM (SELECT calls, cost FROM steps WHERE run = :run"
        " UNION ALL SELECT calls, cost FROM attempts WHERE run = :run) AS spending",
        {"run": run},
    ).fetchone()
    return total, highest, int(unknown)


def lost_costs_of(connection: Connection, run: str, condition: str, **values: object) -> tuple[float, int]:
    """Return what RunReader.costs_of_lost_calls returns, for the attempts that satisfy an SQL condition."""
    lost = f"SELECT name, subject, 1 AS calls FROM attempts WHERE {condition}{_PAID}"  # noqa: S608  ours
    return _estimate_costs(connection, lost, {"run": run, **values})


def unknown_costs_of(connection: Connection, run: str, condition: str) -> tuple[float, int]:
    """Return what RunReader.unknown_costs returns. `condition` selects the attempts that are lost calls."""
    calls = (
        f"SELECT name, subject, 1 AS calls FROM attempts WHERE {condition}{_PAID}"  # noqa: S608  ours
        " UNION ALL SELECT name, subject, calls FROM attempts WHERE run = :run AND cost IS NULL"
        " UNION ALL SELECT name, subject, calls FROM steps WHERE run = :run AND cost IS NULL"
    )
    return _estimate_costs(connection, calls, {"run": run})


def _estimate_costs(connection: Connection, calls: str, values: Values) -> tuple[float, int]:
    """Return what calls have cost at most, and how many cannot be estimated. The query `calls` returns the calls.

    A call counts as much as the most expensive one with the same name and subject whose cost is known; without one, as
    the most that it can cost.
    """
    cost, unknown = connection.execute(
        "SELECT coalesce(sum(calls * cost), 0.0), coalesce(sum(calls) FILTER (WHERE cost IS NULL), 0) FROM"  # noqa: S608
        " (SELECT asked.calls AS calls, coalesce(known.cost, highest.cost) AS cost FROM"
        f" (SELECT name, subject, sum(calls) AS calls FROM ({calls}) AS counted GROUP BY name, subject)"
        " AS asked LEFT JOIN (SELECT name, subject, max(cost) AS cost FROM"
        " (SELECT name, subject, cost FROM steps WHERE run = :run AND attempt IS NOT NULL"
        " UNION ALL SELECT name, subject, cost FROM attempts WHERE run = :run AND calls > 0) AS paid"
        " GROUP BY name, subject) AS known ON known.name = asked.name AND known.subject = asked.subject"
        " LEFT JOIN (SELECT kind, max(CAST(text AS DOUBLE PRECISION)) AS cost FROM notes"
        f" WHERE run = :run AND kind LIKE '{HIGHEST_COST}%' GROUP BY kind) AS highest"
        f" ON highest.kind = '{HIGHEST_COST}' || asked.name || ' ' || asked.subject) AS estimated",
        values,
    ).fetchone()
    return float(cost), int(unknown)


def _spending(row: Row) -> Spending:
    return Spending(**{name: row[name] for name in Spending.model_fields})


def _recorded_step(row: Row, *, inputs: Any) -> StepRecord:
    result = json.loads(row["result"])
    return _step_record(row, seconds=row["seconds"], inputs=inputs, result=result, reused_from=row["reused_from"])


def _step_record(row: Row, **values: Any) -> StepRecord:
    return StepRecord(
        name=_OLD_STEP_NAMES.get(row["name"], row["name"]),
        subject=row["subject"],
        started=row["started"],
        tries=row["tries"],
        spent=_spending(row),
        **values,
    )


def _run(row: Row) -> Run:
    values = {name: row[name] for name in Run.model_fields}
    try:
        return Run.model_validate(
            {**values, "spec": json.loads(row["spec"]), "fingerprints": json.loads(row["fingerprints"])}
        )
    except ValueError as error:  # of JSON or of pydantic
        raise _unreadable(f"run {row['id']}") from error


def _outcome(row: Row) -> Outcome:
    try:
        return Outcome.model_validate_json(row["body"])
    except ValueError as error:
        raise _unreadable(f"run {row['run']}, trial {row['trial']}") from error


def _unreadable(where: str) -> BadInput:
    return BadInput(where, "the recorded data is invalid", remedy="restore a copy of the results")


def check_new(folder: Path, run_id: str, reuse: str | None = None) -> None:
    """Raise RunConflict if a run with this id exists, and BadInput if the run `reuse` does not exist."""
    if journal_of(folder).exists():
        with RunReader.open(folder, thorough=False) as run_reader:
            if run_reader.has(run_id):
                raise RunConflict(
                    f"run {run_id} already exists; continue it with --resume {run_id}, or choose another --run-id"
                )
            if reuse is not None:
                run_reader.run(reuse, "--reuse")  # raises if it does not exist
    elif reuse is not None:
        raise no_journal(folder, reuse, "--reuse")


def no_journal(folder: Path, run: str, flag: str) -> BadInput:
    """Return the error for a run that a flag names, if the results folder has no journal."""
    return BadInput(
        flag,
        f"run {preview(run)} not found; {journal_of(folder).name} does not exist",
        remedy="name the results folder that has it with --output",
    )
