"""A program as an extractor: one process a conversation, JSON on its standard input, JSON on its standard output."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from memorybench.vocabulary.conversation import Turn
from memorybench.vocabulary.errors import BadInput, Malformed, ServiceError, Transient
from memorybench.vocabulary.extraction import MemoryState
from memorybench.vocabulary.trials import Subject
from memorybench.wire.replies import EXCERPT, printable

from .states import Redact, handed, read_memory, redacted

DEADLINE = 120.0
OUTPUT_CAP = 8 * 2**20
_PIECE = 2**16
_TAIL = 8192
"""Bytes of its last words that are kept: so many more than are quoted that no secret in a quote is cut in two."""


def split_command(command: str, where: str) -> tuple[str, ...]:
    """The program and its arguments, as a shell would split them; no shell ever sees them."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise BadInput(where, f"can not be split into words: {error}", remedy="close its quotes") from None
    if not words:
        raise BadInput(where, "is empty", expected="a program and its arguments")
    return words


class CommandExtractor:
    """Opened by `open_command`."""

    def __init__(
        self,
        subject: Subject,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        redact: Redact,
        deadline: float,
        output_cap: int,
    ) -> None:
        self.subject = subject
        self._command = command
        self._environment = environment
        self._folder = folder
        self._redact = redact
        self._deadline = deadline
        self._output_cap = output_cap
        self._where = printable(redact(Path(command[0]).name))

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
        asked = json.dumps(handed(existing, conversation)).encode()
        output = await self._performed(asked)
        try:
            text = output.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Malformed(f"{self._where}: its output is not UTF-8") from None
        return redacted(read_memory(text, self._where), self._redact)

    async def _performed(self, asked: bytes) -> bytes:
        process = await self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        telling = asyncio.create_task(_tell(process.stdin, asked))
        complaining = asyncio.create_task(_last_words(process.stderr))
        try:
            async with asyncio.timeout(self._deadline):
                output = await self._read(process.stdout)
                status = await process.wait()
                words = await complaining
        except TimeoutError:
            problem = f"{self._where}: not finished within {self._deadline:g} s, and was ended"
            raise Transient(problem, uncertain=True) from None
        finally:
            # also when cancelled; and a program that has ended may have left others behind
            _kill(process)
            for task in (telling, complaining):
                task.cancel()
            await asyncio.gather(telling, complaining, return_exceptions=True)
            # what fled from its group may hold the pipes open, and some versions of asyncio wait for their end
            process._transport.close()  # type: ignore[attr-defined]
            await process.wait()
        if status != 0:
            raise ServiceError(f"{self._where}: {_ending(status)}{self._quoted(words)}")
        return output

    async def _started(self) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *self._command,
                env=dict(self._environment),
                cwd=self._folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # so that what it starts is ended with it
            )
        except OSError as error:
            raise ServiceError(f"{self._where}: can not be started: {error.strerror}") from None

    async def _read(self, stdout: asyncio.StreamReader) -> bytes:
        output = bytearray()
        while piece := await stdout.read(_PIECE):
            output += piece
            if len(output) > self._output_cap:
                raise Malformed(f"{self._where}: its output is larger than {self._output_cap:,} bytes")
        return bytes(output)

    def _quoted(self, words: bytes) -> str:
        # redacted before it is cut: half a key would not be recognised
        text = printable(self._redact(words.decode("utf-8", "replace")))
        return f"; its last words: {'…' if len(text) > EXCERPT else ''}{text[-EXCERPT:]}" if text else " without a word"


@asynccontextmanager
async def open_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    redact: Redact,
    *,
    name: str = "command",
    deadline: float = DEADLINE,
    output_cap: int = OUTPUT_CAP,
) -> AsyncIterator[CommandExtractor]:
    """`command` runs in `folder` with exactly `environment`; it may take `deadline` seconds a conversation."""
    program = folder / command[0] if "/" in command[0] else Path(command[0])
    if shutil.which(program, path=environment.get("PATH", os.defpath)) is None:
        raise BadInput(f'"{redact(command[0])}"', "no such program is found", remedy="install it, or name its path")
    settings = {"type": "command", "command": [redact(word) for word in command]}
    subject = Subject(role="extractor", name=name, settings=settings)
    yield CommandExtractor(subject, command, environment, folder, redact, deadline, output_cap)


async def _tell(stdin: asyncio.StreamWriter, asked: bytes) -> None:
    # a program that needs no input may close it, or end, before it has read all
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(asked)
        await stdin.drain()
    stdin.close()
    with suppress(BrokenPipeError, ConnectionResetError):
        await stdin.wait_closed()


async def _last_words(stderr: asyncio.StreamReader) -> bytes:
    words = b""
    while piece := await stderr.read(_TAIL):
        words = (words + piece)[-_TAIL:]
    return words


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _ending(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
