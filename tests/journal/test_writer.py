"""Group commit: rows are on disk when `write` returns, and an invalid entry fails alone."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest

from memorybench.core.errors import JournalError
from memorybench.journal.places import journal_of
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import now
from memorybench.journal.writer import Statement, Writer
from tests.engine.workload import in_child

OpenWriter = Callable[..., Writer]


@pytest.fixture
def open_writer(tmp_path: Path) -> Iterator[OpenWriter]:
    writers: list[Writer] = []

    def open_writer(fault: Callable[[], None] | None = None) -> Writer:
        writers.append(Writer(journal_of(tmp_path), fault=fault))
        writers[-1].write_now([insert_run("r")])
        return writers[-1]

    yield open_writer
    for writer in writers:
        writer.close()


def insert_run(id: str) -> Statement:
    columns = "id, suite, spec, fingerprints, program, status, planned, created, crc"
    return f"INSERT INTO runs ({columns}) VALUES (?, '', '', '', '', '', 0, '', 0)", (id,)


def insert_note(text: str) -> Statement:
    return "INSERT INTO notes (run, kind, text) VALUES ('r', 'note', ?)", (text,)


def read_notes(writer: Writer) -> list[str]:
    """Read the notes with another connection."""
    with closing(sqlite3.connect(writer.journal.name)) as db:
        return [text for (text,) in db.execute("SELECT text FROM notes ORDER BY rowid")]


def log_size(writer: Writer) -> int:
    return Path(f"{writer.journal.name}-wal").stat().st_size


async def write_note(writer: Writer, text: str) -> None:
    await writer.write([insert_note(text)])


def test_rows_are_visible_to_others_when_write_returns(open_writer: OpenWriter) -> None:
    writer = open_writer()

    async def write() -> None:
        for n in range(3):
            await write_note(writer, f"{n}")
            assert read_notes(writer) == [f"{k}" for k in range(n + 1)]

    asyncio.run(write())
    asyncio.run(write_note(writer, "from another loop"))
    assert read_notes(writer) == ["0", "1", "2", "from another loop"]


def test_a_commit_waits_for_the_disk(open_writer: OpenWriter) -> None:
    """With `synchronous=FULL` (2) and WAL, COMMIT returns after the log is synced."""
    db = open_writer()._db
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_rows_survive_a_kill_right_after_write_returns(tmp_path: Path) -> None:
    def write_and_die() -> None:
        writer = Writer(journal_of(tmp_path))
        writer.write_now([insert_run("r")])

        async def write() -> None:
            await write_note(writer, "kept")
            os.kill(os.getpid(), 9)

        asyncio.run(write())

    assert in_child(write_and_die) is None
    with closing(sqlite3.connect(tmp_path / "results.db")) as db:
        assert db.execute("SELECT text FROM notes").fetchall() == [("kept",)]


def test_callers_that_arrive_during_a_commit_share_the_next_one(open_writer: OpenWriter) -> None:
    commits, release = [0], Event()

    def fault() -> None:
        commits[0] += 1
        if commits[0] == 3:  # before the commit of the first note
            release.wait()

    writer = open_writer(fault)

    async def write() -> None:
        first = asyncio.create_task(write_note(writer, "first"))
        while commits[0] < 3:  # noqa: ASYNC110  the thread sets it
            await asyncio.sleep(0)
        others = [asyncio.create_task(write_note(writer, f"{n}")) for n in range(100)]
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(first, *others)

    asyncio.run(write())
    assert read_notes(writer) == ["first", *(f"{n}" for n in range(100))]
    assert commits[0] == 6, "one call before and one after each of three commits"


def test_an_invalid_entry_fails_alone(open_writer: OpenWriter) -> None:
    writer = open_writer()

    async def write() -> list[BaseException | None]:
        duplicate = [insert_note("rolled back with its entry"), insert_run("r")]
        entries = [[insert_note("before")], duplicate, [insert_note("after")]]
        return await asyncio.gather(*map(writer.write, entries), return_exceptions=True)

    before, invalid, after = asyncio.run(write())
    assert (before, after) == (None, None)
    assert isinstance(invalid, JournalError)
    assert read_notes(writer) == ["before", "after"]


@pytest.mark.parametrize("error", [OSError("device removed"), sqlite3.OperationalError("disk I/O error")])
def test_a_failed_commit_raises_in_its_caller_only(open_writer: OpenWriter, error: Exception) -> None:
    errors: list[Exception] = []

    def fault() -> None:
        if errors:
            raise errors.pop()

    writer = open_writer(fault)

    async def write() -> None:
        errors.append(error)
        with pytest.raises(JournalError):
            await write_note(writer, "lost")
        await write_note(writer, "kept")

    asyncio.run(write())
    assert read_notes(writer) == ["kept"]


def test_a_cancelled_caller_leaves_after_the_commit(open_writer: OpenWriter) -> None:
    """Otherwise it could start the same paid call again while its result is being committed."""
    release, commits = Event(), [0]

    def fault() -> None:
        commits[0] += 1
        if commits[0] == 3:
            release.wait()

    writer = open_writer(fault)

    async def write() -> None:
        task = asyncio.create_task(write_note(writer, "kept"))
        while commits[0] < 3:  # noqa: ASYNC110  the thread sets it
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done()
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert read_notes(writer) == ["kept"]

    asyncio.run(write())


def test_a_caller_cancelled_between_the_commit_and_its_notice_leaves_at_once(tmp_path: Path) -> None:
    async def write() -> None:
        writer = Writer(journal_of(tmp_path))
        writer.write_now([insert_run("r")])
        task = asyncio.ensure_future(write_note(writer, "kept"))
        await asyncio.sleep(0)
        writer.close()  # commits; the loop has not run since
        task.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        assert task.cancelled()
        assert read_notes(writer) == ["kept"]

    asyncio.run(write())


def test_a_writer_waits_for_a_file_that_another_process_has_locked(open_writer: OpenWriter) -> None:
    writer = open_writer()

    async def write() -> None:
        with closing(sqlite3.connect(writer.journal.name, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            task = asyncio.create_task(write_note(writer, "kept"))
            await asyncio.sleep(0)
            assert not task.done()
            other.execute("COMMIT")
            await task

    asyncio.run(write())
    assert read_notes(writer) == ["kept"]


def test_a_file_that_stays_locked_is_an_error(open_writer: OpenWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memorybench.journal.sqlite.BUSY_SECONDS", 0.01)
    writer = open_writer()

    async def write() -> None:
        with closing(sqlite3.connect(writer.journal.name, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(JournalError):
                await write_note(writer, "lost")
        await write_note(writer, "kept")

    asyncio.run(write())
    assert read_notes(writer) == ["kept"]


def test_entries_of_a_closed_loop_do_not_disturb_the_next_loop(open_writer: OpenWriter) -> None:
    writer = open_writer()
    loop = asyncio.new_event_loop()
    task = loop.create_task(write_note(writer, "of the closed loop"))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    asyncio.run(write_note(writer, "kept"))
    assert read_notes(writer) == ["of the closed loop", "kept"]
    del task


def test_readers_do_not_disturb_the_writer(open_writer: OpenWriter) -> None:
    """The last reader that closes a file deletes its log, unless SQLite sees the lock of the writer."""
    writer = open_writer()
    asyncio.run(write_note(writer, "before"))
    with RunReader.open(writer.journal.folder) as run_reader:
        assert run_reader.notes("r")
    other = f"import sqlite3; sqlite3.connect({writer.journal.name!r}).execute('SELECT count(*) FROM notes').fetchone()"
    subprocess.run([sys.executable, "-c", other], check=True)
    assert log_size(writer), "the log still exists"
    asyncio.run(write_note(writer, "after"))
    assert read_notes(writer) == ["before", "after"]


async def write_groups(writer: Writer, groups: int, text: str) -> int:
    """Write groups of 20 notes; return the size of the log."""
    for _ in range(groups):
        await asyncio.gather(*(write_note(writer, text) for _ in range(20)))
    return log_size(writer)


def test_a_long_read_blocks_no_writer_and_the_log_is_reused_after_it(open_writer: OpenWriter) -> None:
    writer = open_writer()
    with closing(sqlite3.connect(writer.journal.name, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        (before,) = reader.execute("SELECT count(*) FROM notes").fetchone()
        size = asyncio.run(write_groups(writer, 100, "x" * 2_000))
        assert reader.execute("SELECT count(*) FROM notes").fetchone() == (before,)
        reader.execute("COMMIT")
    assert asyncio.run(write_groups(writer, 200, "x" * 2_000)) < 2 * size
    assert len(read_notes(writer)) == 6_000


@pytest.mark.slow
def test_the_log_does_not_grow_with_the_run(open_writer: OpenWriter) -> None:
    writer = open_writer()
    size = asyncio.run(write_groups(writer, 100, "x" * 2_000))
    assert asyncio.run(write_groups(writer, 300, "x" * 2_000)) < 2 * size
    assert len(read_notes(writer)) == 8_000


def test_a_time_is_written_in_utc_to_the_millisecond() -> None:
    earliest = datetime.now(UTC)
    text = now()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", text)
    assert abs((datetime.fromisoformat(text) - earliest).total_seconds()) < 60
