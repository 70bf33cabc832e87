"""A program as an extractor: one process a conversation, JSON on its standard input, JSON on its standard output."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, Malformed, ServiceError, Transient
from memorybench.core.extraction import MemoryState
from memorybench.core.trials import Subject
from memorybench.processes.programs import ProgramTimeout, describe_exit, quote_stderr, run_program
from memorybench.text.sanitize import printable

from .states import Redact, handed, read_memory, redacted

DEADLINE = 120.0
OUTPUT_CAP = 8 * 2**20


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
        try:
            finished = await run_program(
                self._command,
                stdin=asked,
                env=self._environment,
                cwd=self._folder,
                deadline=self._deadline,
                output_cap=self._output_cap,
                where=self._where,
            )
        except ProgramTimeout as error:
            raise Transient(str(error), uncertain=True) from None
        if finished.status != 0:
            stderr = self._redact(finished.stderr.decode("utf-8", "replace"))
            raise ServiceError(f"{self._where}: {describe_exit(finished.status)}{quote_stderr(stderr)}")
        return finished.output


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
