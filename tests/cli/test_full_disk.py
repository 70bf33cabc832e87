"""A full disk at any moment: one line, a sound database, and the run resumes when there is space again."""

import gc
import json
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest

from memorybench.cli.main import main
from memorybench.suites import running
from memorybench.wiring.live import LiveWiring
from tests.cli.command import Command, Said, measured
from tests.engine.workload import in_child

EVAL = ("eval", "--providers", "bm25", "none", "--end", "40", "--seed", "1", "--run-id", "r")
OUTPUT = ("--output", "disk/results")


def in_process(*arguments: str, before: Callable[[], object]) -> Said:
    """Run a command in a child, after `before`; return its exit code and what it wrote to standard error."""
    read, write = os.pipe()

    def work() -> None:
        os.dup2(write, 2)
        sys.stdout, sys.stderr = open(os.devnull, "w"), os.fdopen(2, "w")  # noqa: SIM115  pytest captures the parent's
        before()
        code = main(list(arguments))
        gc.collect()  # asyncio reports exceptions that nobody retrieved
        sys.stderr.flush()
        os._exit(code)

    code = in_child(work)
    os.close(write)
    with open(read) as errors:
        lines = [line for line in errors if not line.startswith("starter × ")]  # progress
    return Said(-9 if code is None else code, "", "".join(lines))


def limit_files(size: int) -> Callable[[], None]:
    """No file may grow beyond this size: writes fail as they do on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def assert_one_line_and_resumable(command: Command, said: Said, whole: object) -> None:
    assert said.code in (1, 2), said.err
    assert len(said.err.splitlines()) == 1, said.err
    assert said.err.startswith("memorybench: ")
    assert "disk/results" in said.err
    assert "unexpected" not in said.err
    database = command.folder / "disk/results/results.db"
    recorded = False
    if database.exists():
        with closing(sqlite3.connect(database)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            recorded = bool(db.execute("SELECT count(*) FROM runs").fetchone()[0])
        assert command("validate", str(database)).code == 0
    again = command(*(("eval", "--resume", "r") if recorded else EVAL), *OUTPUT)
    assert again.code == 0, again.err
    document = json.loads((command.folder / "disk/results/r/report.json").read_text())
    assert measured(document) == measured(whole)
    assert command("validate", str(database)).code == 0


@pytest.fixture
def whole(command: Command) -> object:
    return command(*EVAL, "--json", "--output", "whole").json


# the results file has about 500 kB, the memory's own file 100 kB, each report 10 kB
SIZES = [0, 1, 5_000, 30_000, 50_000, 80_000, 100_000, 150_000, 200_000, 250_000]


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 30_000, 100_000, *(pytest.param(n, marks=pytest.mark.slow) for n in SIZES)])
def test_a_run_without_space_says_so_in_one_line_and_resumes(command: Command, whole: object, size: int) -> None:
    """R4"""
    (command.folder / "disk").mkdir()
    said = in_process(*EVAL, *OUTPUT, before=limit_files(size))
    assert_one_line_and_resumable(command, said, whole)


@pytest.mark.slow
def test_a_report_without_space_says_so_in_one_line_and_is_written_on_resume(command: Command, whole: object) -> None:
    """R4"""
    (command.folder / "disk").mkdir()
    write = running.write_reports

    def before() -> None:
        def write_without_space(*args: object, **options: object) -> object:
            limit_files(100)()
            return write(*args, **options)

        running.write_reports = write_without_space

    said = in_process(*EVAL, *OUTPUT, before=before)
    assert not list((command.folder / "disk/results/r").glob("*report*")), "no half a file"
    assert_one_line_and_resumable(command, said, whole)


@pytest.fixture
def disk(command: Command) -> Iterator[Callable[[str], None]]:
    """Mount a small disk at ./disk, or change its size."""
    place = command.folder / "disk"
    place.mkdir()

    def resize(size: str) -> None:
        mounted = ["remount"] if os.path.ismount(place) else []
        line = ["mount", "-t", "tmpfs", "-o", ",".join([*mounted, f"size={size}"]), "tmpfs", str(place)]
        if subprocess.run(line, capture_output=True, check=False).returncode:
            pytest.skip("only root can mount a disk")

    yield resize
    with suppress(OSError):
        subprocess.run(["umount", "--lazy", str(place)], capture_output=True, check=False)


MOUNTED = ["4k", "16k", "48k", "96k", "160k", "256k", "320k", "400k", "500k", "700k"]


@pytest.mark.slow
@pytest.mark.parametrize("size", ["160k", *(pytest.param(n, marks=pytest.mark.slow) for n in MOUNTED)])
def test_a_run_on_a_small_disk_says_so_in_one_line_and_resumes(
    command: Command, disk: Callable[[str], None], whole: object, size: str
) -> None:
    """R4"""
    disk(size)
    said = in_process(*EVAL, *OUTPUT, before=lambda: None)
    disk("50m")
    assert_one_line_and_resumable(command, said, whole)


@pytest.mark.slow
@pytest.mark.parametrize("at", [15, 24, 33, 42])
def test_a_disk_error_leaves_no_task_behind(
    command: Command, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """R4: asyncio logs exceptions of tasks that nobody awaited."""
    left = [at]

    def fault() -> None:
        left[0] -= 1
        if left[0] <= 0:
            raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(LiveWiring, "fault", lambda self: fault)
    said = command(*EVAL)
    gc.collect()
    assert said.code == 1
    assert [line for line in said.err.splitlines() if not line.startswith("starter × ")] == [said.err.splitlines()[-1]]
    assert [record.getMessage() for record in caplog.records] == []
