"""A program that runs to its end: its input, its output up to a cap, its last words, and nothing left behind.

What is under way is written down, so that a process that can not wait leaves nothing behind, either (`abandon_all`).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from memorybench.core.errors import Malformed, ServiceError
from memorybench.text.sanitize import EXCERPT, printable

PATIENCE = 3.0
"""Seconds that a program has to end by itself, or to obey SIGTERM, when nobody waits for it any more."""
_PIECE = 2**16
TAIL = 8192
"""Bytes of its last words that are kept: so many more than are quoted that no secret in a quote is cut in two."""

# of this process: whoever leaves it at once must know all of them, whichever run or thread they belong to
_groups: set[int] = set()
_folders: set[Path] = set()


@contextmanager
def running(group: int) -> Iterator[None]:
    """While open, the process group is ended by `abandon_all`."""
    _groups.add(group)
    try:
        yield
    finally:
        _groups.discard(group)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder that is gone afterwards, also after `abandon_all`."""
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _folders.add(folder)
        try:
            yield folder
        finally:
            _folders.discard(folder)


def abandon_all() -> None:
    """Ends every program under way and removes every temporary folder, without waiting for anything.

    For whoever is about to leave by `os._exit`: nothing that is open is closed, and no task hears of it.
    """
    for group in tuple(_groups):
        _signal(group, signal.SIGKILL)
    for _ in range(3):  # what is just being killed may have written into a folder that was being removed
        for folder in tuple(_folders):
            shutil.rmtree(folder, ignore_errors=True)


class Overdue(ServiceError):
    """It was ended for taking too long; what it was asked to do may have been done."""


@dataclass(frozen=True, slots=True)
class Finished:
    status: int
    output: bytes
    last_words: bytes

    @property
    def ending(self) -> str:
        return how_ended(self.status)


async def run_program(
    command: Sequence[str],
    *,
    stdin: bytes,
    env: Mapping[str, str],
    cwd: Path,
    deadline: float,
    output_cap: int,
    where: str,
) -> Finished:
    """Runs `command` with exactly the environment `env`. It is ended after `deadline` seconds, with all it started.

    Where the task is cancelled, it is asked to end first: an agent may have something to put away.
    """
    process = await _started(command, env, cwd, where)
    with running(process.pid):
        return await _finished(process, stdin=stdin, deadline=deadline, output_cap=output_cap, where=where)


async def _finished(
    process: asyncio.subprocess.Process, *, stdin: bytes, deadline: float, output_cap: int, where: str
) -> Finished:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    telling = asyncio.create_task(_tell(process.stdin, stdin))
    complaining = asyncio.create_task(_last_words(process.stderr))
    try:
        async with asyncio.timeout(deadline):
            output = await _read(process.stdout, output_cap, where)
            status = await process.wait()
            words = await complaining
    except TimeoutError:
        raise Overdue(f"{where}: not finished within {deadline:g} s, and was ended") from None
    except asyncio.CancelledError:
        _signal(process.pid, signal.SIGTERM)
        await ended(process)
        raise
    finally:
        # also when cancelled twice; and a program that has ended may have left others behind
        _signal(process.pid, signal.SIGKILL)
        for task in (telling, complaining):
            task.cancel()
        await asyncio.gather(telling, complaining, return_exceptions=True)
        # what fled from its group may hold the pipes open, and some versions of asyncio wait for their end
        process._transport.close()  # type: ignore[attr-defined]
        await process.wait()
    return Finished(status, output, words)


async def ended(process: asyncio.subprocess.Process) -> bool:
    """Whether it ends by itself, given a little time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            await process.wait()
    return process.returncode is not None


def how_ended(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"


def quoted(words: str) -> str:
    """Last words for a message; they were redacted before: half a key would not be recognised."""
    text = printable(words)
    return f"; its last words: {'…' if len(text) > EXCERPT else ''}{text[-EXCERPT:]}" if text else " without a word"


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def _started(command: Sequence[str], env: Mapping[str, str], cwd: Path, where: str) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            env=dict(env),
            cwd=cwd,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # so that what it starts is ended with it
        )
    except OSError as error:
        raise ServiceError(f"{where}: can not be started: {error.strerror}") from None


async def _tell(stdin: asyncio.StreamWriter, text: bytes) -> None:
    # a program that needs no input may close it, or end, before it has read all
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(text)
        await stdin.drain()
    stdin.close()
    with suppress(BrokenPipeError, ConnectionResetError):
        await stdin.wait_closed()


async def _read(stdout: asyncio.StreamReader, cap: int, where: str) -> bytes:
    output = bytearray()
    while piece := await stdout.read(_PIECE):
        output += piece
        if len(output) > cap:
            raise Malformed(f"{where}: its output is larger than {cap:,} bytes")
    return bytes(output)


async def _last_words(stderr: asyncio.StreamReader) -> bytes:
    words = b""
    while piece := await stderr.read(TAIL):
        words = (words + piece)[-TAIL:]
    return words
