"""How programs are run and ended."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from memorybench.processes import programs
from memorybench.processes.programs import CompletedProgram, abandon_all, run_program, temporary_folder

CHILDREN = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
open("pids.part", "w").write(f"{child.pid}")
__import__("os").rename("pids.part", "pids")
time.sleep(3600)
"""
SAVES_ON_SIGTERM = """
import signal, sys, time
def end(*_):
    open("saved", "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
open("pids", "w").close()
time.sleep(3600)
"""
IGNORES_SIGTERM = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("pids", "w").close()
time.sleep(3600)
"""


def start(script: str, folder: Path) -> Awaitable[CompletedProgram]:
    command = [sys.executable, "-c", script]
    return run_program(command, stdin=b"", env={}, cwd=folder, deadline=3600, output_cap=1000, where="x")


async def wait_until_started(folder: Path) -> None:
    def wait() -> None:
        while not (folder / "pids").exists():
            time.sleep(0.01)

    await asyncio.to_thread(wait)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_abandon_all_kills_programs_with_their_children_and_removes_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def leave() -> tuple[int, list[str], CompletedProgram]:
        with temporary_folder("memorybench-test-") as folder:
            work = asyncio.ensure_future(start(CHILDREN, folder))
            await wait_until_started(folder)
            grandchild = int((folder / "pids").read_text())
            abandon_all()
            return grandchild, os.listdir(tmp_path), await work

    grandchild, left, finished = asyncio.run(leave())
    assert left == []
    assert finished.status == -9
    while is_alive(grandchild):  # its parent's end may be seen before its own
        os.sched_yield()


def test_abandon_all_kills_a_program_that_is_being_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = asyncio.create_subprocess_exec

    async def stopped(*command: str, **options: Any) -> asyncio.subprocess.Process:
        process = await begin(*command, **options)
        abandon_all()  # before anybody knows its number
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", stopped)
    finished = asyncio.run(_wait_for(start("import time; time.sleep(3600)", tmp_path)))
    assert finished.status == -9


def test_abandon_all_ignores_ended_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    asyncio.run(_wait_for(start("", tmp_path)))
    with temporary_folder("memorybench-test-") as folder:
        pass
    folder.mkdir()  # another process may have created a folder of the same name
    monkeypatch.setattr(os, "killpg", lambda group, number: killed.append(group))
    abandon_all()
    assert killed == []
    folder.rmdir()


def test_programs_get_private_folders_in_the_place_of_the_users(tmp_path: Path) -> None:
    names = ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
             "XDG_RUNTIME_DIR", "USERPROFILE", "APPDATA", "LOCALAPPDATA")  # fmt: skip
    users = {"PATH": "/bin", "SOME_KEY": "k", **dict.fromkeys(names, "/users/ann")}
    env = programs.child_environment(users, {"OWN": "yes"}, tmp_path / "home")
    assert env.keys() == {"PATH", "OWN", "TMP", "TEMP", "PYTHONUSERBASE", *names}
    assert all(Path(env[name]).is_dir() and Path(env[name]).is_relative_to(tmp_path / "home") for name in names)
    assert env["PYTHONUSERBASE"] == "/users/ann/.local", "installed packages are found"


async def _wait_for(work: Awaitable[CompletedProgram]) -> CompletedProgram:
    return await work


def cancel_program(script: str, folder: Path) -> None:
    async def cancel() -> None:
        work = asyncio.ensure_future(start(script, folder))
        await wait_until_started(folder)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(cancel())


def test_a_cancelled_program_gets_sigterm_and_time_to_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "GRACE", 60.0)  # a busy machine may need longer than 3 seconds
    cancel_program(SAVES_ON_SIGTERM, tmp_path)
    assert (tmp_path / "saved").exists()


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "GRACE", 0.1)
    cancel_program(IGNORES_SIGTERM, tmp_path)
    assert not any(is_alive(int(pid)) for pid in (tmp_path / "pids").read_text().split())
