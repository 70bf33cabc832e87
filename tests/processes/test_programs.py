"""Programs that run to their end, and what becomes of those that nobody waits for any more."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

import pytest

from memorybench.processes import programs
from memorybench.processes.programs import Finished, abandon_all, run_program, temporary_folder

CHILDREN = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
open("pids.part", "w").write(f"{child.pid}")
__import__("os").rename("pids.part", "pids")
time.sleep(3600)
"""
OBEDIENT = """
import signal, sys, time
def end(*_):
    open("put-away", "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
open("pids", "w").close()
time.sleep(3600)
"""
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("pids", "w").close()
time.sleep(3600)
"""


def running(script: str, folder: Path) -> Awaitable[Finished]:
    command = [sys.executable, "-c", script]
    return run_program(command, stdin=b"", env={}, cwd=folder, deadline=3600, output_cap=1000, where="x")


async def begun(folder: Path) -> None:
    def wait() -> None:
        while not (folder / "pids").exists():
            time.sleep(0.01)

    await asyncio.to_thread(wait)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_who_leaves_at_once_leaves_no_program_and_no_folder_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def leave() -> tuple[int, list[str], Finished]:
        with temporary_folder("memorybench-test-") as folder:
            work = asyncio.ensure_future(running(CHILDREN, folder))
            await begun(folder)
            grandchild = int((folder / "pids").read_text())
            abandon_all()
            return grandchild, os.listdir(tmp_path), await work

    grandchild, left, finished = asyncio.run(leave())
    assert left == []
    assert finished.ending == "ended by signal 9"
    while alive(grandchild):  # it was killed in the same breath; its parent's end may be seen first
        os.sched_yield()


def test_what_has_ended_is_no_longer_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    asyncio.run(_awaited(running("", tmp_path)))
    with temporary_folder("memorybench-test-") as folder:
        pass
    folder.mkdir()  # as somebody else might have, by the same name
    monkeypatch.setattr(os, "killpg", lambda group, number: killed.append(group))
    abandon_all()
    assert killed == []
    folder.rmdir()


async def _awaited(work: Awaitable[Finished]) -> Finished:
    return await work


def cancelled(script: str, folder: Path) -> None:
    async def cancel() -> None:
        work = asyncio.ensure_future(running(script, folder))
        await begun(folder)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(cancel())


def test_a_program_whose_task_is_cancelled_may_put_away_what_it_holds(tmp_path: Path) -> None:
    cancelled(OBEDIENT, tmp_path)
    assert (tmp_path / "put-away").exists()


def test_one_that_does_not_listen_is_ended_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PATIENCE", 0.1)
    cancelled(DEAF, tmp_path)
    assert not any(alive(int(pid)) for pid in (tmp_path / "pids").read_text().split())
