"""Any program as a memory store: one JSON request a line, one JSON answer a line (`config.Command` tells which)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

from memorybench.core.errors import BadInput, Lacking, Malformed, Refused, ServiceError, Transient
from memorybench.core.records import digest
from memorybench.core.stores import Capability, Curation, NewFact, Proposal, StoredFact
from memorybench.core.trials import Subject
from memorybench.processes.programs import ended, running
from memorybench.secrets.redaction import Redactor
from memorybench.text.sanitize import preview, sanitize

from .config import StoreConfig
from .programs import Program

T = TypeVar("T")

_LONGEST_LINE = 32 * 2**20
_FACTS = TypeAdapter(tuple[StoredFact, ...])
_PROPOSALS = TypeAdapter(tuple[Proposal, ...])
_TEXTS = TypeAdapter(tuple[str, ...])
_OPERATIONS: tuple[Capability, ...] = ("update", "forget", "recall", "list", "curate", "history")


class CommandStore:
    """Opened by `open_command_store`. One request is under way at a time."""

    def __init__(self, subject: Subject, capabilities: frozenset[Capability], conversation: _Conversation) -> None:
        self.subject = subject
        self.capabilities = capabilities
        self._conversation = conversation

    async def remember(self, user: str, fact: NewFact) -> str:
        return _id(await self._asked("remember", user, fact=fact.plain()))

    async def update(self, user: str, id: str, content: str) -> str:
        return _id(await self._asked("update", user, id=id, content=content))

    async def forget(self, user: str, id: str) -> None:
        await self._asked("forget", user, id=id)

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return _as(_FACTS, await self._asked("recall", user, query=query, limit=limit))

    async def curate(self, user: str, *, apply: bool) -> Curation:
        told = await self._asked("curate", user, apply=apply)
        return Curation(applied=apply, proposals=_as(_PROPOSALS, told.get("proposals") if _is_object(told) else told))

    async def history(self, user: str) -> Sequence[str]:
        return _as(_TEXTS, await self._asked("history", user))

    async def list(self, user: str) -> Sequence[StoredFact]:
        return _as(_FACTS, await self._asked("list", user))

    async def _asked(self, op: str, user: str, **details: Any) -> Any:
        if op in _OPERATIONS and op not in self.capabilities:
            raise Lacking(f"{self.subject.name} can not {op}")
        answer = await self._conversation.ask({"op": op, "user": user, **details})
        return _understood(answer, f"{self.subject.name}: {op}")


def _understood(answer: Any, where: str) -> Any:
    match answer:
        case {"ok": told}:
            return told
        case {"refused": reason}:
            raise Refused(f"{where}: {sanitize(str(reason))}")
        case {"lacking": what}:
            raise Lacking(f"{where}: {sanitize(str(what))}")
        case {"error": message}:
            raise ServiceError(f"{where}: {sanitize(str(message))}")
    raise Malformed(f"{where}: the answer is {preview(answer)}; expected ok, refused, lacking or error")


def _id(told: Any) -> str:
    id = told.get("id") if _is_object(told) else told
    if not isinstance(id, str | int) or id == "":
        raise Malformed(f"the answer tells no id: {preview(told)}")
    return str(id)


def _as(kind: TypeAdapter[T], told: Any) -> T:
    try:
        return kind.validate_python(told)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise Malformed(f"the answer is not what was asked for: {place}: {first['msg']}") from None


def _is_object(told: Any) -> bool:
    return isinstance(told, dict)


class _Conversation:
    """With a child process; what it says on its error stream is left to the terminal."""

    def __init__(self, process: asyncio.subprocess.Process, name: str, deadline: float, redactor: Redactor) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._name = name
        self._deadline = deadline
        self._redactor = redactor
        self._one_at_a_time = asyncio.Lock()
        self._broken = ""

    async def ask(self, request: Mapping[str, Any]) -> Any:
        async with self._one_at_a_time:
            if self._broken:
                raise ServiceError(self._broken)
            try:
                async with asyncio.timeout(self._deadline):
                    return await self._answered(request)
            except TimeoutError:
                # a late answer would be taken for that of the next request
                self._breaks(f"no answer within {self._deadline:g} s")
                raise Transient(self._broken, uncertain=True) from None
            except asyncio.CancelledError:
                self._breaks("a request was given up")
                raise

    async def _answered(self, request: Mapping[str, Any]) -> Any:
        try:
            self._stdin.write(json.dumps(request).encode() + b"\n")
            await self._stdin.drain()
            line = await self._stdout.readline()
        except (BrokenPipeError, ConnectionResetError):
            line = b""
        except ValueError:
            self._fails(f"an answer is longer than {_LONGEST_LINE:,} bytes")
        if not line:
            self._fails("it ended without an answer")
        try:
            return json.loads(line)
        except ValueError:
            raise Malformed(f"{self._name}: {preview(self._redactor.clean(line.decode('utf-8', 'replace')))}") from None

    def _breaks(self, problem: str) -> None:
        self._broken = f"{self._name}: {problem}"

    def _fails(self, problem: str) -> NoReturn:
        self._breaks(problem)
        raise ServiceError(self._broken)

    async def close(self) -> None:
        """Its input is closed, which ends most programs; then it is ended, with all it has started."""
        self._stdin.close()
        if not self._broken:
            await ended(self._process)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        with suppress(BrokenPipeError, ConnectionResetError):
            await self._stdin.wait_closed()


@asynccontextmanager
async def open_command_store(
    config: StoreConfig, folder: Path, *, environment: Mapping[str, str], redactor: Redactor
) -> AsyncIterator[CommandStore]:
    """A session with the program of a config with a `command` section, which runs as long as the session."""
    section = config.command
    assert section is not None
    where = f'store "{config.name}"'
    command, env = Program.parse(section.run, section.env, where).prepared(folder, environment)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=env,
            cwd=folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LONGEST_LINE,
            start_new_session=True,  # so that what the child starts can be ended with it
        )
    except OSError as error:
        raise BadInput(where, f"can not be started: {error.strerror}") from None
    conversation = _Conversation(process, config.name, section.timeout / 1000, redactor)
    subject = Subject(role="store", name=config.name, settings={"command": digest(section)})
    with running(process.pid):
        try:
            yield CommandStore(subject, frozenset(config.capabilities), conversation)
        finally:
            await conversation.close()
