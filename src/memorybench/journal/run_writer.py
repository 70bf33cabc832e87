"""Writes the rows of one run. Secrets are removed from all texts before."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from typing import Any, cast

from memorybench.core.errors import JournalError
from memorybench.core.records import canonical
from memorybench.core.spending import Spending
from memorybench.core.trials import Case, Outcome, Status

from .checksums import CHECKSUMS, crc, insert, update_statements
from .contract import Connection, Journal, Lock
from .rows import HIGHEST_COST, TRIED_AGAIN, Run, RunStatus, Step, storable
from .run_changes import Fault, spec_statements, tag_statement
from .run_reader import INTERRUPTED, OPEN_ATTEMPT, PROCESS_BITS, check_new, costs_of, lost_costs_of, unknown_costs_of
from .writer import Statement, Writer

Redact = Callable[[str], str]

_STEP_COLUMNS = ", ".join(CHECKSUMS["steps"]["crc"][2:])
_SELECT_STEP = f"SELECT {_STEP_COLUMNS}, crc FROM steps WHERE run = ? AND key = ?"  # noqa: S608  ours
_DELETE_OUTCOME = "DELETE FROM outcomes WHERE run = ? AND trial = ?"
_SET_SPENDING = (
    "INSERT INTO spending (run, cost, highest, unknown) VALUES (:run, :cost, :highest, :unknown)"
    " ON CONFLICT (run) DO UPDATE SET cost = :cost, highest = :highest, unknown = :unknown"
)
_ADD_SPENDING = "UPDATE spending SET cost = cost + :cost, highest = greatest(highest, :cost) WHERE run = :run"
_ADD_UNKNOWN = "UPDATE spending SET cost = cost + :cost, unknown = unknown + :unknown WHERE run = :run"
_EPOCH = "extract(epoch FROM clock_timestamp())::float8"
_NEXT_TURN = (
    f"INSERT INTO turns (run, subject, next) VALUES (:run, :subject, {_EPOCH} + :interval) ON CONFLICT (run, subject)"  # noqa: S608
    f" DO UPDATE SET next = greatest(turns.next, {_EPOCH}) + :interval RETURNING next - :interval - {_EPOCH}"
)
_PAUSE = (
    f"INSERT INTO turns (run, subject, next) VALUES (:run, :subject, {_EPOCH} + :seconds) ON CONFLICT (run, subject)"  # noqa: S608
    f" DO UPDATE SET next = greatest(turns.next, {_EPOCH} + :seconds)"
)
_PAUSE_LEFT = f"SELECT next - {_EPOCH} FROM turns WHERE run = ? AND subject = ?"  # noqa: S608
_ROWS_READ_AGAIN = 200
_UNENDED = (None, None, 0, 0, 0, 0, 0, 0.0)
"""The values that the last columns of an attempt have until it ends. Its checksum covers them."""


def _set_status(run: str, status: RunStatus, finished: str | None) -> Statement:
    sql = "UPDATE runs SET status = ?, finished = ?, state_crc = ? WHERE id = ?"
    return sql, (status, finished, crc(run, status, finished), run)


def run_statements(run: Run, redact: Redact = str) -> list[Statement]:
    """Return the statements that insert a run into the table `runs`, without its rows in other tables."""
    spec, fingerprints = (_redact_json(canonical(dict(one)), redact) for one in (run.spec, run.fingerprints))
    columns = (run.id, run.suite, spec, fingerprints, run.program, run.planned, run.created)
    sql = (
        "INSERT INTO runs (id, suite, spec, fingerprints, program, planned, created, crc, status)"
        " VALUES (?,?,?,?,?,?,?,?,'running')"
    )
    return [(sql, (*columns, crc(*columns))), _set_status(run.id, run.status, run.finished)]


def now() -> str:
    """Return the current time in UTC as ISO 8601 text with milliseconds."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_format_second(seconds)}.{milliseconds:03d}+00:00"


@lru_cache(maxsize=1)  # called several times per step; formatting a date is slow
def _format_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class RunWriter:
    """Writes one run. `open_run` and `reopen_run` create it."""

    _writer: Writer
    _reads: Connection

    def __init__(
        self,
        run: Run,
        journal: Journal,
        lock: Lock,
        *,
        redact: Redact,
        fault: Fault,
        reuse: str | None,
    ) -> None:
        self.run = run
        self._lock = lock
        self.is_begun = False
        self.journal = journal
        self._open_attempts: dict[int, tuple[object, ...]] = {}
        """The first columns of each attempt that has not ended, by its id."""
        self._highest_costs: dict[str, float] = {}
        """The maximum costs of calls that this process has recorded as notes, by the kind of the note."""
        self._recorded: set[int] = set()
        """Hashes of the keys of recorded steps."""
        self._recorded_cases: set[int] = set()
        """Hashes of benchmark and id of the cases that this process has recorded."""
        self._redact = redact
        self._fault = fault
        self._reuse = reuse
        self.is_joined = False
        """Whether this process only helps the process that began or resumed the run."""
        # random, so that no commit has to return an id; consecutive, so that rows share pages
        self._process = int.from_bytes(os.urandom(5))
        self._attempts = count(self._process << PROCESS_BITS)
        self.is_shared = journal.can_share
        """Whether other processes may write the run at the same time."""
        self.has_earlier_steps = reuse is not None
        """Whether this run may find steps that an earlier process or the run to reuse has recorded."""
        self.has_shared_steps = False
        """Whether this run may find `shared` steps of any run."""

    def begin(self, tags: Sequence[str] = ()) -> None:
        """Open the journal, which is created if it does not exist, and record the new run with these tags."""
        statements = run_statements(self.run, self._redact)
        self.open()
        try:
            self._writer.write_now([*statements, *self._tag_statements(tags), *self._set_spending()])
        except BaseException:
            self.close()
            self.is_begun = False
            with suppress(JournalError):
                check_new(self.journal.folder, self.run.id)  # another process may have begun a run of this name
            raise
        self._lock.share()

    def add_tags(self, tags: Sequence[str]) -> None:
        self._writer.write_now(self._tag_statements(tags))

    def _tag_statements(self, tags: Sequence[str]) -> list[Statement]:
        return [tag_statement(self.run.id, storable(self._redact(tag))) for tag in tags]

    def open(self) -> None:
        """Open the journal and read which steps of the run are recorded."""
        self._writer = Writer(self.journal, fault=self._fault)
        try:
            self._reads = self.journal.open_beside_writer()
        except BaseException:
            self._writer.close()
            raise
        self.is_begun = True
        self._writer.keep_alive(self._reads)
        self.try_lease(f"process {self._process}")  # it ends with this process: see `end_lost_attempts`
        with self.journal.errors():
            # Most steps that a run asks for are new, and a set knows that without a query. It holds hashes, which take
            # less memory than keys; two keys with the same hash only cost a query.
            keys = self._reads.execute("SELECT key FROM steps WHERE run = ?", (self.run.id,))
            self._recorded = {hash(key) for (key,) in keys}
            (has_shared,) = self._reads.execute("SELECT EXISTS (SELECT 1 FROM steps WHERE shared = 1)").fetchone()
            self._tried_again_up_to = self._newest_read = self._read_tried_again()
        self.has_earlier_steps = self.has_earlier_steps or bool(self._recorded) or self.is_shared
        self.has_shared_steps = bool(has_shared) or self.is_shared

    def result(self, key: str) -> str | None:
        """Return the recorded result of a step as JSON; None if the step is not recorded."""
        if hash(key) not in self._recorded and not self.is_shared:
            return None
        row = self._step_row(self.run.id, key)
        return None if row is None else str(row[3])

    def find_reusable(self, key: str, *, shared: bool) -> Step | None:
        """Return the step with this key that another run recorded; None if there is none.

        With `shared`, that is any run that recorded it as shared; otherwise only the run to reuse.
        """
        source = self._reuse
        if shared:
            row = self._reads.execute("SELECT run FROM steps WHERE shared = 1 AND key = ? LIMIT 1", (key,)).fetchone()
            source = row[0] if row else None
        row = None if source is None else self._step_row(source, key)
        if row is None:
            return None
        name, subject, inputs, result, started, seconds, *_ = row
        return Step(key, name, subject, inputs, result, started, seconds, reused_from=source, shared=shared)

    def _step_row(self, run: str, key: str) -> tuple[Any, ...] | None:
        row = self._reads.execute(_SELECT_STEP, (run, key)).fetchone()
        # earlier versions did not cover `shared`
        if row is not None and row[-1] not in (crc(run, key, *row[:-1]), crc(run, key, *row[:-2])):
            raise JournalError(
                f"{self.journal.name}: step {key} is damaged; restore a copy of the results, or start a new run"
            )
        return cast("tuple[Any, ...] | None", row)

    def try_lease(self, name: str) -> bool:
        """Take the lease `name` of this run, an exclusive lock; return False if another process has it."""
        return self._reads.try_lease(f"{self.run.id}/{name}")

    def end_lease(self, name: str) -> None:
        self._reads.end_lease(f"{self.run.id}/{name}")

    def next_turn(self, subject: str, interval: float) -> float:
        """Reserve the next time at which this process may call a subject; return the seconds until then.

        The calls of all processes together are at least `interval` seconds apart.
        """
        values = {"run": self.run.id, "subject": subject, "interval": interval}
        (seconds,) = self._reads.execute(_NEXT_TURN, values).fetchone()
        return float(seconds)

    def pause(self, subject: str, seconds: float) -> None:
        """Let no process call a subject for this many seconds.

        The clock is the database's, because those of machines may differ.
        """
        self._reads.execute(_PAUSE, {"run": self.run.id, "subject": f"pause of {subject}", "seconds": seconds})

    def pause_left(self, subject: str) -> float:
        """Return the seconds until the pause of a subject ends; 0 or less if there is none."""
        row = self._reads.execute(_PAUSE_LEFT, (self.run.id, f"pause of {subject}")).fetchone()
        return 0.0 if row is None else float(row[0])

    def spending(self) -> tuple[float, float, int]:
        """Return what all processes of the run have spent, including lost calls, in the form of RunReader.costs."""
        sql = "SELECT cost, highest, unknown FROM spending WHERE run = ?"
        cost, highest, unknown = self._reads.execute(sql, (self.run.id,)).fetchone()
        return cost, highest, unknown

    def recount_spending(self) -> tuple[float, tuple[float, int]]:
        """Return the known costs, and what RunReader.unknown_costs returns, without calls that are still in flight.

        This reads all steps. `spending` is faster, but estimates unknown costs by what was known when they were found.
        """
        spent, _, _ = costs_of(self._reads, self.run.id)
        return spent, unknown_costs_of(self._reads, self.run.id, INTERRUPTED)

    def _set_spending(self, cost: float = 0.0, highest: float = 0.0, unknown: int = 0) -> list[Statement]:
        values = {"run": self.run.id, "cost": cost, "highest": highest, "unknown": unknown}
        return [(_SET_SPENDING, values)] if self.is_shared else []

    def _add_spending(self, spent: Spending, name: str, subject: str) -> list[Statement]:
        """Return the statement that adds the cost of recorded work to the total that all processes share.

        Return no statement if the run has only one process, or the work was free. A call of unknown cost counts as the
        most that it can cost.
        """
        if not self.is_shared or not (spent.calls or spent.cost):
            return []
        if spent.cost is not None:
            return [(_ADD_SPENDING, {"run": self.run.id, "cost": spent.cost})]
        highest = self._highest_costs.get(f"{HIGHEST_COST}{name} {subject}")
        cost, unknown = (0.0, spent.calls) if highest is None else (spent.calls * highest, 0)
        return [(_ADD_UNKNOWN, {"run": self.run.id, "cost": cost, "unknown": unknown})]

    def _read_tried_again(self) -> int:
        """Return the row number in the note TRIED_AGAIN; 0 if the run was never resumed."""
        sql = "SELECT coalesce(max(CAST(text AS BIGINT)), 0) FROM notes WHERE run = ? AND kind = ?"
        return int(self._reads.execute(sql, (self.run.id, TRIED_AGAIN)).fetchone()[0])

    def _try_again(self) -> list[Statement]:
        """Return statements that write the note TRIED_AGAIN, so that all trials without a score are performed again."""
        sql = "SELECT coalesce(max(rowid), 0) FROM outcomes WHERE run = ?"
        newest = int(self._reads.execute(sql, (self.run.id,)).fetchone()[0])
        self._tried_again_up_to = self._newest_read = newest
        row = (self.run.id, TRIED_AGAIN, f"{newest}")
        return [("DELETE FROM notes WHERE run = ? AND kind = ?", row[:2]), insert("notes", row)]

    def ended_trials(self) -> set[str]:
        """Return the keys of trials that are scored, or have had any outcome since the run was last resumed."""
        self._tried_again_up_to = self._read_tried_again()
        sql = "SELECT trial FROM outcomes WHERE run = ? AND (status = 'scored' OR rowid > ?)"
        return {trial for (trial,) in self._reads.execute(sql, (self.run.id, self._tried_again_up_to))}

    def outcomes_after(self, row: int) -> list[tuple[int, str, str]]:
        """Return the outcomes that any process has recorded after row number `row`.

        Each is its row number, the key of its trial, and its JSON. Outcomes from before the run was last resumed are
        left out.
        """
        sql = "SELECT rowid, trial, body FROM outcomes WHERE run = ? AND rowid > ? ORDER BY rowid"
        return self._reads.execute(sql, (self.run.id, max(row, self._tried_again_up_to))).fetchall()

    def newly_ended_trials(self) -> set[str]:
        """Return the keys of trials with an outcome since the last call, from any process, and some from before it.

        The last rows of the previous call are read again, because a row with a lower number may be committed later.
        A trial may still be missing, but rarely.
        """
        sql = "SELECT trial, rowid FROM outcomes WHERE run = ? AND rowid > ?"
        after = max(self._tried_again_up_to, self._newest_read - _ROWS_READ_AGAIN)
        rows = self._reads.execute(sql, (self.run.id, after)).fetchall()
        self._newest_read = max((rowid for _, rowid in rows), default=self._newest_read)
        return {trial for trial, _ in rows}

    def has_outcome(self, status: Status) -> bool:
        sql = "SELECT 1 FROM outcomes WHERE run = ? AND status = ? LIMIT 1"
        return self._reads.execute(sql, (self.run.id, status)).fetchone() is not None

    def has_ended(self, trial: str) -> bool:
        sql = "SELECT 1 FROM outcomes WHERE run = ? AND trial = ? AND (status = 'scored' OR rowid > ?)"
        return self._reads.execute(sql, (self.run.id, trial, self._tried_again_up_to)).fetchone() is not None

    async def record_attempt(self, key: str, name: str, subject: str, highest_cost: float | None = None) -> int:
        """Record an attempt, before paid work starts, so that it is known after a crash. Return the id of the attempt.

        `highest_cost` is the maximum cost of the work in US dollars; None if it is unknown.
        """
        attempt = next(self._attempts)
        row = (attempt, self.run.id, key, name, subject, now())
        sql = "INSERT INTO attempts (id, run, key, name, subject, started, crc) VALUES (?,?,?,?,?,?,?)"
        self._open_attempts[attempt] = row
        limit = self._raise_highest_cost(f"{HIGHEST_COST}{name} {subject}", highest_cost)
        await self._writer.write([(sql, (*row, crc(*row, *_UNENDED))), *limit])
        return attempt

    def _raise_highest_cost(self, kind: str, cost: float | None) -> list[Statement]:
        """Return the statement that records a maximum cost as a note of this kind; none if it is not a new maximum."""
        if cost is None or cost <= self._highest_costs.get(kind, -1.0):
            return []
        self._highest_costs[kind] = cost
        row = (self.run.id, kind, f"{cost!r}")
        return [insert("notes", row)]

    def redact_json(self, result: str) -> str:
        return _redact_json(result, self._redact)

    async def record_step(self, step: Step) -> None:
        """Record a step. `step.result` must have been redacted with `redact_json`."""
        spent = step.spent
        columns = (
            self.run.id,
            step.key,
            step.name,
            step.subject,
            self.redact_json(step.inputs),
            step.result,
            step.started,
            step.seconds,
            step.tries,
            step.uncertain,
            spent.calls,
            spent.input_tokens,
            spent.output_tokens,
            spent.cost,
            step.reused_from,
            step.attempt,
            int(step.shared),
        )
        if step.attempt is not None:
            self._open_attempts.pop(step.attempt, None)
        self._recorded.add(hash(step.key))  # before the commit, because a cancelled caller does not return here
        # another process may have performed the same step for another unit of work: the first result counts
        await self._writer.write(
            [insert("steps", columns, keep=self.is_shared), *self._add_spending(spent, step.name, step.subject)]
        )

    async def record_failure(self, attempt: int, error: str, *, tries: int, uncertain: int, spent: Spending) -> None:
        """Record that an attempt failed, and what it cost nevertheless."""
        sql = (
            "UPDATE attempts SET ended = ?, error = ?, tries = ?, uncertain = ?, calls = ?,"
            " input_tokens = ?, output_tokens = ?, cost = ?, crc = ? WHERE id = ?"
        )
        cost = (spent.calls, spent.input_tokens, spent.output_tokens, spent.cost)
        columns = (now(), storable(self._redact(error)), tries, uncertain, *cost)
        begun = self._open_attempts.pop(attempt)
        _, _, _, name, subject, _ = begun
        added = self._add_spending(spent, str(name), str(subject))
        await self._writer.write([(sql, (*columns, crc(*begun, *columns), attempt)), *added])

    async def record_outcome(
        self, outcome: Outcome, ordinal: int, case: Case | Callable[[], Case | None] | None = None
    ) -> None:
        """Record the outcome of a trial, which replaces an earlier one, and its case.

        A case is recorded once per run. If `case` is a function, it is called only if the case is not recorded yet.
        """
        trial = outcome.trial
        columns = (
            self.run.id,
            trial.key,
            ordinal,
            trial.benchmark,
            trial.case_id,
            trial.subject.name,
            outcome.status,
            self.redact_json(outcome.model_dump_json()),
            now(),
        )
        statements: list[Statement] = [(_DELETE_OUTCOME, columns[:2]), insert("outcomes", columns)]
        case_hash = hash((trial.benchmark, trial.case_id))
        if case_hash in self._recorded_cases:
            case = None
        elif callable(case):
            case = case()
        if case is not None:
            self._recorded_cases.add(case_hash)
            row = (self.run.id, trial.benchmark, case.id, self.redact_json(case.model_dump_json()))
            statements.append(insert("cases", row, keep=True))
        await self._writer.write(statements)

    async def note(self, kind: str, text: str) -> None:
        row = (self.run.id, kind, storable(self._redact(text)))
        await self._writer.write([insert("notes", row)])

    def scored(self) -> set[str]:
        """Return the keys of the trials with status `scored`, which need no more work."""
        if not self.is_begun:
            return set()
        rows = self._reads.execute("SELECT trial FROM outcomes WHERE run = ? AND status = 'scored'", (self.run.id,))
        return {trial for (trial,) in rows}

    def _change_spec(self, changes: Mapping[str, Any]) -> list[Statement]:
        """Return the statement that writes new values into the saved spec; none if the spec already has them."""
        if all(self.run.spec.get(name) == value for name, value in changes.items()):
            return []
        spec = _redact_json(canonical({**self.run.spec, **changes}), self._redact)
        return spec_statements(self._reads, self.run.id, spec)

    def resume(self, spec_changes: Mapping[str, Any]) -> None:
        """Record that the run continues, with changes of its spec. Trials without a score are performed again."""
        status = _set_status(self.run.id, "running", None)
        changes = [*self._change_spec(spec_changes), *self._try_again()]
        self._writer.write_now([*self._end_earlier_attempts(), status, *changes])
        self._lock.share()

    def join(self) -> None:
        """Record that this process joins the run.

        Failed trials are not performed again; a complete run stays complete.
        """
        self.is_joined = True
        self._writer.write_now([*self._end_earlier_attempts(), self._set_status("running", None)])
        self._lock.share()

    def _end_earlier_attempts(self) -> list[Statement]:
        """Return statements that mark attempts of earlier processes as interrupted, and add what they may have cost.

        If other processes write the run, do that at once for the attempts of dead processes, and return no statement.
        """
        if not self._lock.is_alone:
            self.end_lost_attempts()
            return []
        attempts = self._end_attempts(OPEN_ATTEMPT)
        cost, highest, _ = costs_of(self._reads, self.run.id)
        reserved, unknown = unknown_costs_of(self._reads, self.run.id, f"({INTERRUPTED} OR {OPEN_ATTEMPT})")
        return [*attempts, *self._set_spending(cost + reserved, highest, unknown)]

    def end_lost_attempts(self) -> None:
        """Mark the attempts of dead processes as interrupted, and add what they may have cost to the total.

        Each process has a lease with its number. If this process can take that lease, the other process is dead. While
        it holds the lease, no third process can count the same attempts.
        """
        sql = f"SELECT DISTINCT id >> {PROCESS_BITS} FROM attempts WHERE {OPEN_ATTEMPT}"  # noqa: S608  ours
        for (process,) in self._reads.execute(sql, {"run": self.run.id}).fetchall():
            if process == self._process or not self.try_lease(f"process {process}"):
                continue
            try:
                condition = f"{OPEN_ATTEMPT} AND id >> {PROCESS_BITS} = :process"
                cost, unknown = lost_costs_of(self._reads, self.run.id, condition, process=process)
                values = {"run": self.run.id, "cost": cost, "unknown": unknown}
                self._writer.write_now([*self._end_attempts(condition, process=process), (_ADD_UNKNOWN, values)])
            finally:
                self.end_lease(f"process {process}")

    def _end_attempts(self, condition: str, **values: object) -> list[Statement]:
        ended = {"ended": now(), "error": "interrupted"}
        return list(update_statements(self._reads, "attempts", condition, {"run": self.run.id, **values}, ended))

    def end(self, status: RunStatus, time: str | None = None) -> None:
        """Record the status of the run and when it ended; `time` is in ISO 8601, None: now.

        If several processes may write the run, "partial" is not recorded, because other processes may continue it.
        """
        if self.is_begun and not (self.is_shared and status == "partial"):
            self._writer.write_now([self._set_status(status, time or now())])

    def _set_status(self, status: RunStatus, finished: str | None) -> Statement:
        """Return the statement that records the status; a process that joined the run leaves a complete run as it is.

        The report of the process that completed the run has the time of its end.
        """
        sql, values = _set_status(self.run.id, status, finished)
        return (f"{sql} AND status <> 'complete'" if self.is_joined else sql), values

    def close(self) -> None:
        if self.is_begun:
            self._reads.close()
            self._writer.close()


def _redact_json(text: str, redact: Redact) -> str:
    """Return a JSON text in which `redact` was applied to all strings and keys.

    Keys that are lower-case identifiers do not change, so that a password like `name` does not break the format.
    """
    if redact(text) == text:
        return text
    return json.dumps(_redact_strings(json.loads(text), redact), ensure_ascii=False)


def _redact_strings(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redact_strings(item, redact) for item in value]
    if isinstance(value, dict):
        return {
            key if key.isidentifier() and key.islower() else redact(key): _redact_strings(item, redact)
            for key, item in value.items()
        }
    return value
