"""The results file: shared by many, trusted only when sound, never overwritten."""

import asyncio
import os
import resource
import shutil
import sqlite3
import stat
import tempfile
from pathlib import Path

import pytest

from memorybench.core.errors import BadInput, MemorybenchError, RunConflict
from memorybench.journal.database import APPLICATION_ID, check
from memorybench.journal.migrations import MIGRATIONS
from memorybench.journal.rows import Step
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import open_run
from tests.engine.workload import RUN, Ledger, in_child, plan, report, run_once


@pytest.fixture
def results(tmp_path: Path) -> Path:
    run_once(tmp_path / "results", plan(Ledger(tmp_path / "ledger")))
    return tmp_path / "results"


def test_what_another_process_has_asked_meanwhile_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memorybench.journal.run_writer._KNOWN_FOR", 0.0)  # look again each time
    step = Step(key="0" * 32, name="canary", subject="judge", inputs="{}", result='"yes"', started="", seconds=0.1)
    with open_run(tmp_path, RUN) as first, open_run(tmp_path, RUN.model_copy(update={"id": "second"})) as second:

        async def ask() -> None:
            assert first.reusable(step.key, step.name) is None
            await second.record(step)

        asyncio.run(ask())
        found = first.reusable(step.key, step.name)
    assert found is not None
    assert (found.result, found.reused_from) == ('"yes"', "second")


def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """[13]"""
    folder, ledger = tmp_path / "results", Ledger(tmp_path / "ledger")

    def cramped() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        try:
            run_once(folder, plan(ledger))
        except MemorybenchError as error:
            (tmp_path / "said").write_text(str(error))
            return
        raise AssertionError("60 kB were enough: the test no longer fills the disk")

    assert in_child(cramped) == 0
    said = (tmp_path / "said").read_text()
    assert "free some space, then resume the run" in said
    with sqlite3.connect(folder / "results.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    run_once(folder, plan(ledger))
    whole = tmp_path / "whole"
    run_once(whole, plan(Ledger(tmp_path / "whole.ledger")))
    assert report(folder) == report(whole)


def test_a_second_process_on_a_run_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    """[14]"""

    def second() -> None:
        with pytest.raises(RunConflict, match=f"being written by process {os.getppid()}"):
            run_once(tmp_path, plan(Ledger(tmp_path / "ledger")))

    with open_run(tmp_path, RUN):
        assert in_child(second) == 0


def test_a_lock_left_by_a_dead_process_clears_itself(tmp_path: Path) -> None:
    """[14]"""

    def die() -> None:
        with open_run(tmp_path, RUN):
            os.kill(os.getpid(), 9)

    assert in_child(die) is None
    assert (tmp_path / RUN.id / ".lock").read_text().strip(), "the dead process left its name"
    assert run_once(tmp_path, plan(Ledger(tmp_path / "ledger"))).status == "complete"


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


def test_a_truncated_file_is_detected_and_left_alone(results: Path) -> None:
    """[16]"""
    path = results / "results.db"
    os.truncate(path, path.stat().st_size // 2)
    before = path.read_bytes()
    with pytest.raises(BadInput, match="is damaged"):
        run_once(results, plan(Ledger(results / "ledger")))
    assert path.read_bytes() == before


def test_every_flipped_bit_that_matters_is_detected(results: Path, tmp_path: Path) -> None:
    """[16] A flip is either refused or changes nothing that is read."""
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
            assert report(copy) == expected, f"a flip at {place} went unnoticed"
        except MemorybenchError:
            refused += 1
        assert (copy / "results.db").read_bytes() == damaged
        shutil.rmtree(copy)
    assert refused > 10


def _not_sqlite(path: Path) -> None:
    path.write_text("dear diary")


def _newer(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")


def _another_programs(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_not_sqlite, "is not a SQLite file"),
        (_newer, "newer memorybench"),
        (_another_programs, "belongs to another program"),
        (Path.mkdir, "is a folder"),
    ],
)
def test_a_file_that_is_not_ours_is_refused_untouched(tmp_path: Path, make, said: str) -> None:
    path = tmp_path / "results.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(BadInput, match=said):
        check(path)
    with pytest.raises(BadInput, match=said):
        run_once(tmp_path, plan(Ledger(tmp_path / "ledger")))
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert not (tmp_path / "ledger").exists(), "nothing was called"


def test_a_read_only_file_is_refused_for_writing_and_still_read(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as open_to_all:
        results = Path(open_to_all) / "results"
        run_once(results, plan(Ledger(tmp_path / "ledger")))
        for place, mode in ((Path(open_to_all), 0o755), (results, 0o555), (results / "results.db", 0o444)):
            place.chmod(mode)

        def as_somebody_else() -> None:
            if os.geteuid() == 0:
                os.setuid(65534)  # root may write anywhere
            with pytest.raises(BadInput, match="can not be written"):
                run_once(results, plan(Ledger(Path("/dev/null"))), run=RUN.model_copy(update={"id": "other"}))
            assert "h0q0" in report(results)

        assert in_child(as_somebody_else) == 0


def test_results_are_for_their_owner_alone(results: Path) -> None:
    assert stat.S_IMODE(results.stat().st_mode) == 0o700
    assert stat.S_IMODE((results / "results.db").stat().st_mode) == 0o600


def test_an_unknown_run_names_the_nearest(results: Path) -> None:
    with RunReader.open(results) as run_reader, pytest.raises(BadInput, match="did you mean 'sweep'"):
        run_reader.run("sweeep")
