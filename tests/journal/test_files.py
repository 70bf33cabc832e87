"""The results file: shared by processes, checked when it is opened, never overwritten."""

import asyncio
import os
import re
import resource
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from memorybench.core.errors import BadInput, JournalError, MemorybenchError, RunConflict
from memorybench.journal.migrations import MIGRATIONS
from memorybench.journal.rows import Step
from memorybench.journal.run_opening import open_run
from memorybench.journal.run_reader import RunReader
from memorybench.journal.sqlite import APPLICATION_ID, check
from tests.engine.workload import RUN, Ledger, in_child, plan, report, run_once


@pytest.fixture
def results(tmp_path: Path) -> Path:
    run_once(tmp_path / "results", plan(Ledger(tmp_path / "ledger")))
    return tmp_path / "results"


def test_a_shared_step_of_another_run_is_reusable_once_recorded(tmp_path: Path) -> None:
    step = Step(
        key="0" * 32, name="canary", subject="judge", inputs="{}", result='"yes"', started="", seconds=0.1, shared=True
    )
    with open_run(tmp_path, RUN) as first, open_run(tmp_path, RUN.model_copy(update={"id": "second"})) as second:

        async def record() -> None:
            assert first.find_reusable(step.key, shared=True) is None
            await second.record_step(step)

        asyncio.run(record())
        found = first.find_reusable(step.key, shared=True)
    assert found is not None
    assert (found.result, found.reused_from) == ('"yes"', "second")


def test_a_full_disk_is_an_error_and_the_run_resumes_when_there_is_space(tmp_path: Path) -> None:
    """[13]"""
    folder, ledger = tmp_path / "results", Ledger(tmp_path / "ledger")

    def run_with_little_space() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        with pytest.raises(JournalError):
            run_once(folder, plan(ledger))

    assert in_child(run_with_little_space) == 0
    with sqlite3.connect(folder / "results.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    run_once(folder, plan(ledger))
    whole = tmp_path / "whole"
    run_once(whole, plan(Ledger(tmp_path / "whole.ledger")))
    assert report(folder) == report(whole)


def test_a_second_process_on_a_run_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    """[14]"""

    def second() -> None:
        with pytest.raises(RunConflict, match=f"process {os.getppid()} "):
            run_once(tmp_path, plan(Ledger(tmp_path / "ledger")))

    with open_run(tmp_path, RUN):
        assert in_child(second) == 0


def test_a_lock_left_by_a_dead_process_clears_itself(tmp_path: Path) -> None:
    """[14]"""

    def die() -> None:
        with open_run(tmp_path, RUN):
            os.kill(os.getpid(), 9)

    assert in_child(die) is None
    assert (tmp_path / RUN.id / ".lock").read_text().strip(), "the dead process left its pid"
    assert run_once(tmp_path, plan(Ledger(tmp_path / "ledger"))).status == "complete"


@pytest.mark.slow
def test_eight_processes_and_their_readers_share_a_folder(tmp_path: Path) -> None:
    """[15]"""
    folder = tmp_path / "results"
    children = []
    for n in range(8):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run_once(folder, plan(Ledger(tmp_path / f"{n}.ledger")), run=RUN.model_copy(update={"id": f"run{n}"}))
                with RunReader.open(folder) as run_reader:
                    code = 0 if run_reader.counts(f"run{n}")["scored"] == 40 else 2
            finally:
                os._exit(code)
        children.append(child)
    while not (folder / "results.db").exists():
        pass
    ended = []
    while children:
        with RunReader.open(folder) as run_reader:
            for run in run_reader.runs():
                run_reader.counts(run.id)
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            children.remove(child)
            ended.append(os.waitstatus_to_exitcode(status))
    assert ended == [0] * 8
    with RunReader.open(folder) as run_reader:
        assert len(run_reader.runs()) == 8


def test_a_truncated_file_is_refused_and_not_changed(results: Path) -> None:
    """[16]"""
    path = results / "results.db"
    os.truncate(path, path.stat().st_size // 2)
    before = path.read_bytes()
    with pytest.raises(BadInput):
        run_once(results, plan(Ledger(results / "ledger")))
    assert path.read_bytes() == before


@pytest.mark.slow
def test_every_flipped_bit_is_detected_or_harmless(results: Path, tmp_path: Path) -> None:
    """[16]"""
    path = results / "results.db"
    whole, expected = path.read_bytes(), report(results)
    refused = 0
    for place in range(100, len(whole), 997):
        damaged = bytearray(whole)
        damaged[place] ^= 0x04
        copy = tmp_path / f"flip-{place}"
        copy.mkdir()
        (copy / "results.db").write_bytes(damaged)
        try:
            assert report(copy) == expected, f"a flip at {place} was not detected"
        except MemorybenchError:
            refused += 1
        assert (copy / "results.db").read_bytes() == damaged
        shutil.rmtree(copy)
    assert refused > 10


def test_the_error_of_a_damaged_file_names_the_damaged_page(results: Path) -> None:
    """SQLite's answer begins with a heading that says nothing."""
    path = results / "results.db"
    size = 4096
    pages = bytearray(path.read_bytes())
    for page in range(2, len(pages) // size):
        pages[page * size] ^= 0xFF  # the kind of the page
    path.write_bytes(pages)
    with pytest.raises(BadInput) as raised, RunReader.open(results) as run_reader:
        list(run_reader.outcomes(RUN.id))
    assert re.search(r"[Pp]age \d+", raised.value.problem)


def _not_sqlite(path: Path) -> None:
    path.write_text("not a database")


def _newer(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")


def _of_another_program(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")


@pytest.mark.parametrize(
    "make", [_not_sqlite, _newer, _of_another_program, Path.mkdir], ids=["text", "newer", "other program", "folder"]
)
def test_a_file_of_another_kind_is_refused_and_not_changed(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "results.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    for read in (check, lambda path: run_once(path.parent, plan(Ledger(tmp_path / "ledger")))):
        with pytest.raises(BadInput) as refusal:
            read(path)
        assert refusal.value.where == str(path)
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert not (tmp_path / "ledger").exists(), "nothing was called"


def test_a_read_only_file_can_be_read_and_not_written(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as public:
        results = Path(public) / "results"
        run_once(results, plan(Ledger(tmp_path / "ledger")))
        for place, mode in ((Path(public), 0o755), (results, 0o555), (results / "results.db", 0o444)):
            place.chmod(mode)

        def as_another_user() -> None:
            if os.geteuid() == 0:
                os.setuid(65534)  # root can write anywhere
            with pytest.raises(BadInput):
                run_once(results, plan(Ledger(Path("/dev/null"))), run=RUN.model_copy(update={"id": "other"}))
            assert "h0q0" in report(results)

        assert in_child(as_another_user) == 0


def test_only_the_owner_can_read_results(results: Path) -> None:
    assert stat.S_IMODE(results.stat().st_mode) == 0o700
    assert stat.S_IMODE((results / "results.db").stat().st_mode) == 0o600


def test_the_error_for_an_unknown_run_suggests_the_nearest_name(results: Path) -> None:
    with RunReader.open(results) as run_reader, pytest.raises(BadInput) as error:
        run_reader.run("sweeep")
    assert '"sweep"' in error.value.remedy


def test_a_row_that_is_not_text_is_damage_and_not_a_full_disk(results: Path) -> None:
    """The error of SQLite repeats the row, and a row may contain the word full."""
    db = sqlite3.connect(results / "results.db")
    db.execute("UPDATE outcomes SET body = CAST(CAST('full-context' AS BLOB) || x'ff' AS TEXT)")
    db.commit()
    db.close()
    with pytest.raises(BadInput) as raised, RunReader.open(results) as run_reader:
        list(run_reader.outcomes(RUN.id))
    assert "damaged" in raised.value.problem
    assert "full" not in str(raised.value)
