"""Runs commands in one process and reports everything that an audit hook sees them do.

Usage: hostile_runner.py FOLDER, with a JSON list of command lines on standard input. Prints one JSON list.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

PROCESSES = (
    "subprocess.Popen",
    "os.posix_spawn",
    "os.spawn",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.system",
    "pty.spawn",
)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "shutil.rmtree")

folder = Path(sys.argv[1]).resolve()
events: list[list[str]] = []


def is_own(path: object) -> bool:
    """Whether a path is in a place where the command may write: results, a temporary folder, a device."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return True
    place = Path(os.fsdecode(path)).absolute()
    allowed = (folder / "results", folder / "audit-results", Path(os.environ["TMPDIR"]), Path("/dev"))
    return any(place.is_relative_to(one) for one in allowed)


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in PROCESSES:
        events.append(["process", event, repr(arguments)])
    elif event == "exec" and str(getattr(arguments[0], "co_filename", "")).startswith(str(folder)):
        events.append(["code", event, arguments[0].co_filename])
    elif _changes(event, arguments) and not is_own(_place(event, arguments)):
        events.append(["write", event, repr(arguments)])


def _place(event: str, arguments: tuple[Any, ...]) -> object:
    """The path of an event. A whole folder is removed by names in open folders."""
    if event in ("os.remove", "os.rmdir") and arguments[1] != -1:
        return Path(os.readlink(f"/proc/self/fd/{arguments[1]}")) / os.fsdecode(arguments[0])
    return arguments[0]


def _changes(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        return isinstance(arguments[2], int) and bool(arguments[2] & WRITES)
    if event == "sqlite3.connect":
        return "mode=ro" not in str(arguments[0]) and str(arguments[0]) != ":memory:"
    return event in CHANGES


def main() -> None:
    from memorybench.cli.main import main as command

    commands, reports = json.load(sys.stdin), []
    sys.addaudithook(watch)
    for arguments in commands:
        events.clear()
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code: object = command(arguments)
            except SystemExit as stop:
                code = stop.code
        reports.append({"arguments": arguments, "code": code, "err": err.getvalue(), "events": list(events)})
    json.dump(reports, sys.stdout)


main()
