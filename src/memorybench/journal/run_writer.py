"""A run being written: every row of it goes through here, and text is redacted on its way."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any, cast

from memorybench.core.errors import BadInput, JournalError, RunConflict
from memorybench.core.records import canonical
from memorybench.core.spending import Spending
from memorybench.core.trials import Case, Outcome

from .bloom_filter import BloomFilter
from .database import FILE_NAME, check
from .lock import RunLock
from .rows import Fingerprint, Run, RunStatus, Step, crc, differences, storable
from .run_reader import OPEN_ATTEMPT, RunReader
from .writer import Landing, Statement, Writer, connection

Redact = Callable[[str], str]

_STEP = (
    "INSERT INTO steps (run, key, name, subject, inputs, result, started, seconds, tries, uncertain,"
    " calls, input_tokens, output_tokens, cost, reused_from, attempt, crc) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
_STEP_ROW = (
    "SELECT name, subject, inputs, result, started, seconds, tries, uncertain,"
    " calls, input_tokens, output_tokens, cost, reused_from, attempt, crc FROM steps WHERE run = ? AND key = ?"
)
SHARED = ("canary", "entail", "feedback", "stated", "written")
"""Steps that are about a judge, a pair of facts or a trace, and not about a run: what was once asked, or told, is not
asked or told again in this folder."""
_SHARED = f"SELECT run FROM steps WHERE name IN {SHARED} AND key = ? LIMIT 1"  # noqa: S608
_ALL_SHARED = f"SELECT key FROM steps WHERE name IN {SHARED}"  # noqa: S608
_NEWLY_SHARED = f"SELECT key FROM steps NOT INDEXED WHERE rowid > ? AND run <> ? AND name IN {SHARED}"  # noqa: S608
_KNOWN_FOR = 0.1
"""Seconds in which other processes are not asked again for what they share: hardly longer than a call takes."""
_OUTCOME = (
    "INSERT OR REPLACE INTO outcomes (run, trial, ordinal, benchmark, case_id, subject, status, body, finished, crc)"
    " VALUES (?,?,?,?,?,?,?,?,?,?)"
)


def now() -> str:
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}.{milliseconds:03d}+00:00"


@lru_cache(maxsize=1)  # asked for several times a step; to spell a date takes longer than to check a row
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class RunWriter:
    """Writes one run. `open_run` and `reopen_run` make them."""

    def __init__(self, run: Run, writer: Writer, *, redact: Redact, reuse: str | None = None) -> None:
        self.run = run
        self._writer = writer
        self._redact = redact
        self._reuse = reuse
        self._reads = connection(writer.path)
        # made here, so that no commit need hand one back; one after the other, so that they lie on one page
        self._attempts = count(int.from_bytes(os.urandom(5)) << 23)
        self._seen = BloomFilter()
        self._shared = BloomFilter()
        self._shared_until, self._shared_at = self._last_row(), time.monotonic()
        self.has_heritage = reuse is not None
        """Whether there were steps, when it was opened, that this run need not do."""
        for (key,) in self._reads.execute(_ALL_SHARED):
            self._shared.add(key)
            self.has_heritage = True
        for (key,) in self._reads.execute("SELECT key FROM steps WHERE run = ?", (run.id,)):
            self._seen.add(key)
            self.has_heritage = True

    def step(self, key: str) -> str | None:
        """The recorded result of a step, as JSON."""
        if not self._seen.may_hold(key):
            return None
        row = self._row(self.run.id, key)
        return None if row is None else str(row[3])

    def reusable(self, key: str, name: str) -> Step | None:
        """The step as another run recorded it, where this run may take steps over: any run of the folder will do for
        what is shared."""
        source = self._who_shares(key) if name in SHARED else self._reuse
        if source is None:
            return None
        row = self._row(source, key)
        if row is None:
            return None
        _, subject, inputs, result, started, seconds, *_ = row
        return Step(
            key=key,
            name=name,
            subject=subject,
            inputs=inputs,
            result=result,
            started=started,
            seconds=seconds,
            reused_from=source,
        )

    def _who_shares(self, key: str) -> str | None:
        """Another run that has such a step. Other processes may have added theirs since we looked."""
        if time.monotonic() > self._shared_at + _KNOWN_FOR:
            since, self._shared_until, self._shared_at = self._shared_until, self._last_row(), time.monotonic()
            for (new,) in self._reads.execute(_NEWLY_SHARED, (since, self.run.id)):
                self._shared.add(new)
        if not self._shared.may_hold(key):
            return None
        found = self._reads.execute(_SHARED, (key,)).fetchone()
        return found[0] if found else None

    def _last_row(self) -> int:
        last: int | None = self._reads.execute("SELECT max(rowid) FROM steps").fetchone()[0]
        return last or 0

    def _row(self, run: str, key: str) -> tuple[Any, ...] | None:
        row = self._reads.execute(_STEP_ROW, (run, key)).fetchone()
        if row is not None and crc(run, key, *row[:-1]) != row[-1]:
            raise JournalError(f"step {key} is damaged in the results file; restore a copy of it, or start a new run")
        return cast("tuple[Any, ...] | None", row)

    async def record_attempt(self, key: str, name: str, subject: str) -> int:
        """Leaves a row that paid work is about to start: should we die, resume can say so."""
        attempt = next(self._attempts)
        await self._writer.write(
            [
                (
                    "INSERT INTO attempts (id, run, key, name, subject, started) VALUES (?,?,?,?,?,?)",
                    (attempt, self.run.id, key, name, subject, now()),
                )
            ]
        )
        return attempt

    def redacted(self, result: str) -> str:
        """A step's JSON without secrets: its texts are cleaned, its keys are ours and stay."""
        if self._redact(result) == result:
            return result
        return json.dumps(_cleaned(json.loads(result), self._redact), ensure_ascii=False)

    async def record(self, step: Step, written: Callable[[], None] | None = None) -> None:
        """`step.result` as `redacted` gave it. `written` is called as soon as the row outlives this process."""
        spent = step.spent
        columns = (
            self.run.id,
            step.key,
            step.name,
            step.subject,
            self._redact(step.inputs),
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
        )
        await self._writer.write([(_STEP, (*columns, crc(*columns)))], partial(self._kept, step.key, written))

    def _kept(self, key: str, written: Callable[[], None] | None) -> None:
        self._seen.add(key)
        if written is not None:
            written()

    async def record_failure(
        self,
        attempt: int,
        error: str,
        *,
        tries: int,
        uncertain: int,
        spent: Spending,
        written: Callable[[], None] | None = None,
    ) -> None:
        """Paid work came to nothing: what it cost is kept all the same."""
        await self._writer.write(
            [
                (
                    "UPDATE attempts SET ended = ?, error = ?, tries = ?, uncertain = ?, calls = ?,"
                    " input_tokens = ?, output_tokens = ?, cost = ? WHERE id = ?",
                    (
                        now(),
                        storable(self._redact(error)),
                        tries,
                        uncertain,
                        spent.calls,
                        spent.input_tokens,
                        spent.output_tokens,
                        spent.cost,
                        attempt,
                    ),
                )
            ],
            written,
        )

    def record_outcome(self, outcome: Outcome, ordinal: int, case: Case | None) -> Landing:
        body = self._redact(outcome.model_dump_json())
        trial = outcome.trial
        columns = (
            self.run.id,
            trial.key,
            ordinal,
            trial.benchmark,
            trial.case_id,
            trial.subject.name,
            outcome.status,
            body,
            now(),
        )
        statements: list[Statement] = [(_OUTCOME, (*columns, crc(*columns)))]
        if case is not None:
            kept = (self.run.id, trial.benchmark, case.id, self._redact(case.model_dump_json()))
            statements.append(
                ("INSERT OR IGNORE INTO cases (run, benchmark, id, body, crc) VALUES (?,?,?,?,?)", (*kept, crc(*kept)))
            )
        return self._writer.write(statements)

    async def note(self, kind: str, text: str) -> None:
        await self._writer.write(
            [("INSERT INTO notes VALUES (?,?,?)", (self.run.id, kind, storable(self._redact(text))))]
        )

    def scored(self) -> set[str]:
        """Trials that need no more work."""
        rows = self._reads.execute("SELECT trial FROM outcomes WHERE run = ? AND status = 'scored'", (self.run.id,))
        return {trial for (trial,) in rows}

    def end(self, status: RunStatus) -> None:
        self._writer.write_now(
            [("UPDATE runs SET status = ?, finished = ? WHERE id = ?", (status, now(), self.run.id))]
        )

    def close(self) -> None:
        self._reads.close()


@contextmanager
def open_run(
    folder: Path,
    run: Run,
    *,
    redact: Redact = str,
    fault: Callable[[], None] | None = None,
    reuse: str | None = None,
) -> Iterator[RunWriter]:
    """Begins a new run in a results folder."""
    if (folder / FILE_NAME).exists():
        with RunReader.open(folder, thorough=False) as run_reader:
            if run_reader.has(run.id):
                raise RunConflict(f"run {run.id} exists already; continue it with --resume {run.id}, or name another")
            if reuse is not None:
                run_reader.run(reuse)  # raises where there is none
    elif reuse is not None:
        raise BadInput(str(folder), f"no run {reuse!r} to reuse", remedy="name the folder that holds it with --output")
    run = run.model_copy(update={"created": now(), "status": "running"})
    columns = (
        run.id,
        run.suite,
        redact(canonical(dict(run.spec))),
        redact(canonical(dict(run.fingerprints))),
        run.program,
        run.planned,
        run.created,
    )
    row = (
        "INSERT INTO runs (id, suite, spec, fingerprints, program, planned, created, crc, status)"
        " VALUES (?,?,?,?,?,?,?,?,'running')",
        (*columns, crc(*columns)),
    )
    with _writing(folder, run, redact, fault, reuse) as run_writer:
        run_writer._writer.write_now([row])
        yield run_writer


@contextmanager
def reopen_run(
    folder: Path,
    run_id: str,
    *,
    fingerprints: Mapping[str, Fingerprint],
    redact: Redact = str,
    fault: Callable[[], None] | None = None,
) -> Iterator[RunWriter]:
    """Continues a run, provided that all it depends on is still the same."""
    with RunReader.open(folder, thorough=False) as run_reader:
        run = run_reader.run(run_id)
    changed = differences(run.fingerprints, _redacted(fingerprints, redact))
    if changed:
        raise RunConflict(
            f"run {run_id} can not be resumed: {'; '.join(changed)}; undo the change, or start a new run"
            f" with --reuse {run_id}, which takes over every step that is still the same"
        )
    with _writing(folder, run, redact, fault, _reuse_of(run)) as run_writer:
        run_writer._writer.write_now(
            [
                (
                    f"UPDATE attempts SET ended = :ended, error = 'interrupted' WHERE {OPEN_ATTEMPT}",  # noqa: S608  ours
                    {"ended": now(), "run": run_id},
                ),
                ("UPDATE runs SET status = 'running', finished = NULL WHERE id = ?", (run_id,)),
            ]
        )
        yield run_writer


@contextmanager
def _writing(
    folder: Path, run: Run, redact: Redact, fault: Callable[[], None] | None, reuse: str | None
) -> Iterator[RunWriter]:
    if (folder / FILE_NAME).exists():
        check(folder / FILE_NAME, thorough=False)  # before the lock makes a folder beside a file we refuse
    lock = RunLock(folder / run.id, run.id)
    try:
        writer = Writer(folder, fault=fault)
        try:
            run_writer = RunWriter(run, writer, redact=redact, reuse=reuse)
            try:
                yield run_writer
            finally:
                run_writer.close()
        finally:
            writer.close()
    finally:
        lock.release()


def _cleaned(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_cleaned(item, redact) for item in value]
    if isinstance(value, dict):
        return {key: _cleaned(item, redact) for key, item in value.items()}
    return value


def _reuse_of(run: Run) -> str | None:
    reuse = run.spec.get("reuse")
    return reuse if isinstance(reuse, str) else None


def _redacted(fingerprints: Mapping[str, Fingerprint], redact: Redact) -> Mapping[str, Fingerprint]:
    return {
        name: mark if mark.text is None else mark.model_copy(update={"text": redact(mark.text)})
        for name, mark in fingerprints.items()
    }
