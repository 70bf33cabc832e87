"""A program that runs to its end: its input, its output up to a cap, its last words, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memorybench.vocabulary.errors import Malformed, ServiceError

from .replies import EXCERPT, printable

_PIECE = 2**16
_TAIL = 8192
"""Bytes of its last words that are kept: so many more than are quoted that no secret in a quote is cut in two."""


@dataclass(frozen=True, slots=True)
class Finished:
    status: int
    output: bytes
    last_words: bytes

    @property
    def ending(self) -> str:
        return f"ended by signal {-self.status}" if self.status < 0 else f"ended with status {self.status}"


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
    """Runs `command` with exactly the environment `env`. It is ended after `deadline` seconds, with all it started."""
    process = await _started(command, env, cwd, where)
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
        raise ServiceError(f"{where}: not finished within {deadline:g} s, and was ended") from None
    finally:
        # also when cancelled; and a program that has ended may have left others behind
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for task in (telling, complaining):
            task.cancel()
        await asyncio.gather(telling, complaining, return_exceptions=True)
        # what fled from its group may hold the pipes open, and some versions of asyncio wait for their end
        process._transport.close()  # type: ignore[attr-defined]
        await process.wait()
    return Finished(status, output, words)


def quoted(words: str) -> str:
    """Last words for a message; they were redacted before: half a key would not be recognised."""
    text = printable(words)
    return f"; its last words: {'…' if len(text) > EXCERPT else ''}{text[-EXCERPT:]}" if text else " without a word"


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
    while piece := await stderr.read(_TAIL):
        words = (words + piece)[-_TAIL:]
    return words
