"""Group commit: what returns is on disk, and who fails, fails alone. And how a moment is written down."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest

from memorybench.core.errors import JournalError
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import now
from memorybench.journal.writer import Statement, Writer

Open = Callable[..., Writer]


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Open]:
    opened: list[Writer] = []

    def open_writer(fault: Callable[[], None] | None = None) -> Writer:
        opened.append(Writer(tmp_path, fault=fault))
        opened[-1].write_now([run("r")])
        return opened[-1]

    yield open_writer
    for writer in opened:
        writer.close()


def run(id: str) -> Statement:
    columns = "id, suite, spec, fingerprints, program, status, planned, created, crc"
    return f"INSERT INTO runs ({columns}) VALUES (?, '', '', '', '', '', 0, '', 0)", (id,)


def note(text: str) -> Statement:
    return "INSERT INTO notes VALUES ('r', 'note', ?)", (text,)


def notes(writer: Writer) -> list[str]:
    """As another process sees them."""
    with closing(sqlite3.connect(writer.path)) as db:
        return [text for (text,) in db.execute("SELECT text FROM notes ORDER BY rowid")]


def test_what_returns_can_be_read_by_others(writing: Open) -> None:
    writer = writing()

    async def write() -> None:
        for n in range(3):
            await writer.write([note(f"{n}")])
            assert notes(writer) == [f"{k}" for k in range(n + 1)]

    asyncio.run(write())
    asyncio.run(write_one(writer, "from another loop"))
    assert notes(writer) == ["0", "1", "2", "from another loop"]


async def write_one(writer: Writer, text: str) -> None:
    await writer.write([note(text)])


def test_all_who_come_at_once_share_a_commit(writing: Open) -> None:
    commits: list[None] = []
    writer = writing(lambda: commits.append(None))
    commits.clear()

    async def write() -> None:
        await asyncio.gather(*(writer.write([note(f"{n}")]) for n in range(100)))

    asyncio.run(write())
    assert notes(writer) == [f"{n}" for n in range(100)]
    assert len(commits) == 2, "one before and one after a single commit"


def test_one_bad_entry_takes_none_of_its_neighbours_down(writing: Open) -> None:
    writer = writing()

    async def write() -> list[BaseException | None]:
        twice = [note("lost with its entry"), run("r")]
        entries = [[note("before")], twice, [note("after")]]
        return await asyncio.gather(*map(writer.write, entries), return_exceptions=True)

    before, bad, after = asyncio.run(write())
    assert (before, after) == (None, None)
    assert isinstance(bad, JournalError)
    assert "UNIQUE constraint failed: runs.id" in str(bad)
    assert notes(writer) == ["before", "after"]


def test_a_commit_that_fails_is_told_to_who_waits_and_to_nobody_else(writing: Open) -> None:
    failing = [False]

    def fault() -> None:
        if failing[0]:
            failing[0] = False
            raise OSError("the disk is gone")

    writer = writing(fault)

    async def write() -> None:
        failing[0] = True
        with pytest.raises(JournalError, match="the disk is gone"):
            await writer.write([note("lost")])
        await writer.write([note("kept")])

    asyncio.run(write())
    assert notes(writer) == ["kept"]


def test_what_is_written_can_be_read_before_it_has_landed(writing: Open) -> None:
    writer = writing()
    seen: list[tuple[list[str], bool]] = []

    async def write() -> None:
        landing = writer.write([note("kept")], lambda: seen.append((notes(writer), landing.done())))
        await landing

    asyncio.run(write())
    assert seen == [(["kept"], False)]


def test_a_disk_that_fails_is_told_to_who_waits_for_it(writing: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = writing()

    def fail(file: int) -> None:
        raise OSError(5, "Input/output error")

    async def write() -> None:
        with monkeypatch.context() as failing:
            failing.setattr("memorybench.journal.writer._sync", fail)
            with pytest.raises(JournalError, match="Input/output error"):
                await writer.write([note("doubtful")])
        await writer.write([note("kept")])

    asyncio.run(write())
    assert notes(writer)[-1] == "kept"


def test_a_file_held_by_another_process_is_waited_for(writing: Open) -> None:
    writer = writing()

    async def write() -> None:
        with closing(sqlite3.connect(writer.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            landing = writer.write([note("kept")])
            await asyncio.sleep(0.05)
            assert not landing.done()
            other.execute("COMMIT")
            await landing

    asyncio.run(write())
    assert notes(writer) == ["kept"]


def test_a_file_that_others_never_let_go_is_named(writing: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memorybench.journal.writer.BUSY_SECONDS", 0.01)
    writer = writing()

    async def write() -> None:
        with closing(sqlite3.connect(writer.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(JournalError, match=r"other processes held it for .* resume the run"):
                await writer.write([note("lost")])
        await writer.write([note("kept")])

    asyncio.run(write())
    assert notes(writer) == ["kept"]


def test_patience_begins_anew_each_time(writing: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memorybench.journal.writer.BUSY_SECONDS", 0.2)
    writer = writing()

    async def leave() -> None:
        landing = writer.write([note("left alone")])
        await asyncio.sleep(0.05)
        landing.cancel()

    async def wait() -> None:
        landing = writer.write([note("kept")])
        await asyncio.sleep(0.05)
        other.execute("COMMIT")
        await landing

    with closing(sqlite3.connect(writer.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        asyncio.run(leave())
        time.sleep(0.2)
        asyncio.run(wait())
    assert notes(writer)[-1] == "kept"


def test_a_loop_that_was_closed_takes_none_of_the_next_ones_with_it(writing: Open) -> None:
    writer = writing()
    dead = asyncio.new_event_loop()

    async def leave() -> None:
        writer.write([note("written by the next")])

    dead.run_until_complete(leave())
    dead.close()
    asyncio.run(write_one(writer, "kept"))
    assert notes(writer) == ["written by the next", "kept"]


def test_who_looks_at_the_folder_while_it_is_written_loses_nothing(writing: Open) -> None:
    writer = writing()
    asyncio.run(write_one(writer, "before"))
    with RunReader.open(writer.path.parent) as run_reader:
        assert run_reader.notes("r")
    other = f"import sqlite3; sqlite3.connect({str(writer.path)!r}).execute('SELECT count(*) FROM notes').fetchone()"
    subprocess.run([sys.executable, "-c", other], check=True)
    assert writer.path.with_name(f"{writer.path.name}-wal").exists(), "another who leaves takes our log with him"
    asyncio.run(write_one(writer, "after"))
    assert notes(writer) == ["before", "after"]


def test_all_land_while_the_log_is_tidied_again_and_again(writing: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memorybench.journal.writer._TIDIED_EVERY", 5)
    writer = writing()

    async def write(n: int) -> None:
        for _ in range(100):
            await writer.write([note("x" * 2_000)])

    async def everybody() -> None:
        await asyncio.gather(*map(write, range(20)))

    asyncio.run(everybody())
    assert len(notes(writer)) == 2_000


def test_rows_are_written_while_the_log_is_tidied(writing: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    tidying, tidied = Event(), Event()

    def tidy(writer: Writer) -> None:
        tidying.set()
        tidied.wait()

    monkeypatch.setattr("memorybench.journal.writer._TIDIED_EVERY", 1)
    monkeypatch.setattr(Writer, "_tidy", tidy)
    writer = writing()

    async def write() -> None:
        first = writer.write([note("before")])
        await asyncio.to_thread(tidying.wait)
        second = writer.write([note("meanwhile")])
        await asyncio.sleep(0.05)
        seen = notes(writer)
        tidied.set()
        await asyncio.gather(first, second)
        assert seen == ["before", "meanwhile"]

    asyncio.run(write())


def test_who_reads_for_long_holds_up_nobody_and_the_log_is_tidied_after_him(
    writing: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memorybench.journal.writer._TIDIED_EVERY", 20)
    writer = writing()
    log = writer.path.with_name(f"{writer.path.name}-wal")

    async def write(rows: int) -> int:
        for _ in range(rows // 20):
            await asyncio.gather(*(writer.write([note("x" * 2_000)]) for _ in range(20)))
        return log.stat().st_size

    with closing(sqlite3.connect(writer.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        (before,) = reader.execute("SELECT count(*) FROM notes").fetchone()
        grown = asyncio.run(write(200))
        assert reader.execute("SELECT count(*) FROM notes").fetchone() == (before,)
        reader.execute("COMMIT")
    assert asyncio.run(write(2_000)) < 2 * grown
    assert len(notes(writer)) == 2_200


def test_the_log_does_not_grow_with_the_run(writing: Open) -> None:
    writer = writing()
    log = writer.path.with_name(f"{writer.path.name}-wal")

    async def write(rows: int) -> int:
        for start in range(0, rows, 20):
            await asyncio.gather(*(writer.write([note("x" * 500)]) for _ in range(start, start + 20)))
        return log.stat().st_size

    few = asyncio.run(write(2_000))
    assert asyncio.run(write(8_000)) < 2 * few
    assert len(notes(writer)) == 10_000


def test_a_moment_is_written_in_utc_to_the_millisecond() -> None:
    earliest = datetime.now(UTC)
    written = now()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", written)
    assert abs((datetime.fromisoformat(written) - earliest).total_seconds()) < 60
