"""A program as an extractor: one process per conversation, JSON on standard input, JSON on standard output."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, Malformed, ServiceError, Transient
from memorybench.core.extraction import MemoryInText, MemoryState
from memorybench.core.trials import Subject
from memorybench.files.located import Document
from memorybench.processes.programs import (
    ProgramTimeout,
    describe_exit,
    make_private_home,
    quote_stderr,
    run_program,
    temporary_folder,
)
from memorybench.secrets.redaction import redact_strings
from memorybench.text.sanitize import printable

from .config import ExtractorConfig
from .plugin import ExtractorType, OpenContext
from .states import Redact, find_memory, messages

OUTPUT_CAP = 8 * 2**20


def split_command(command: str, where: str) -> tuple[str, ...]:
    """Split a command line into words as a shell does. Raise BadInput if it is empty or a quote is not closed."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise BadInput(where, f"invalid command: {error}", remedy="check its quotes") from None
    if not words:
        raise BadInput(where, "the command is empty", expected="a program and its arguments")
    return words


@dataclass(eq=False)
class CommandExtractor(ExtractorType):
    subject: Subject
    command: Sequence[str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    folder: Path
    redact: Redact
    deadline: float
    """Timeout for one conversation, in seconds."""

    required_key = "command"
    keys = frozenset({"command", "timeout"})
    runs_code = True

    @classmethod
    def check_config(cls, config: ExtractorConfig, document: Document) -> None:
        split_command(config.command or "", document.where("command"))

    @classmethod
    @asynccontextmanager
    async def open(cls, context: OpenContext) -> AsyncIterator[CommandExtractor]:
        """Yield an extractor that runs the program of a config, in the folder of the config.

        The program gets private folders instead of the user's home, but all other variables of the environment: it was
        chosen by the user and may need the user's keys.
        """
        command = split_command(context.config.command or "", f'extractor "{context.name}"')
        environment, folder, redact = context.environment, context.folder, context.redactor.clean
        program = folder / command[0] if "/" in command[0] else Path(command[0])
        if shutil.which(program, path=environment.get("PATH", os.defpath)) is None:
            raise BadInput(
                f'"{redact(command[0])}"', "the program was not found", remedy="install it, or write its path"
            )
        settings = {"type": "command", "command": [redact(word) for word in command]}
        subject = Subject(role="extractor", name=context.name, settings=settings)
        with temporary_folder("memorybench-home-") as home:
            private = {**environment, **make_private_home(home, environment)}
            yield cls(subject, command, private, folder, redact, deadline=context.config.timeout / 1000)

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState | MemoryInText:
        where = printable(self.redact(Path(self.command[0]).name))
        try:
            finished = await run_program(
                self.command,
                stdin=json.dumps({"existing_memory": existing, "conversation": messages(conversation)}).encode(),
                env=self.environment,
                cwd=self.folder,
                deadline=self.deadline,
                output_cap=OUTPUT_CAP,
                where=where,
            )
        except ProgramTimeout as error:
            raise Transient(str(error), uncertain=True) from None
        if finished.status != 0:
            stderr = self.redact(finished.stderr.decode("utf-8", "replace"))
            raise ServiceError(f"{where}: {describe_exit(finished.status)}{quote_stderr(stderr)}")
        try:
            text = finished.output.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Malformed(f"{where}: the output of the program is not UTF-8") from None
        memory = find_memory(text, where)
        if isinstance(memory, MemoryInText):
            return MemoryInText(redact_strings(memory.memory, self.redact))
        return redact_strings(memory, self.redact)
