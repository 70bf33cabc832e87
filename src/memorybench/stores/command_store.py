"""Any program as a memory store: it gets one JSON request per line and answers each with one line of JSON.

The docstring of `config.Command` describes requests and answers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

from memorybench.core.errors import Lacking, Malformed, Refused, ServiceError, Transient
from memorybench.core.records import digest
from memorybench.core.stores import Capability, Curation, NewFact, Proposal, StoredFact
from memorybench.core.trials import Subject
from memorybench.processes.programs import Program, open_program
from memorybench.secrets.redaction import Redactor
from memorybench.text.sanitize import preview, sanitize

from .config import StoreConfig
from .programs import ProgramTemplate

T = TypeVar("T")

_LINE_CAP = 32 * 2**20
_FACTS = TypeAdapter(tuple[StoredFact, ...])
_PROPOSALS = TypeAdapter(tuple[Proposal, ...])
_TEXTS = TypeAdapter(tuple[str, ...])
_OPTIONAL: tuple[Capability, ...] = ("update", "forget", "recall", "list", "curate", "history", "get")


class CommandStore:
    """A memory store behind a program, which gets one request at a time. Opened by `open_command_store`."""

    def __init__(
        self,
        subject: Subject,
        capabilities: frozenset[Capability],
        program: Program,
        deadline: float,
        redactor: Redactor,
    ) -> None:
        self.subject = subject
        self.capabilities = capabilities
        self._program = program
        self._deadline = deadline
        self._redactor = redactor
        self._lock = asyncio.Lock()
        self._failure = ""
        """Why the program can no longer be used, such as a timeout; "" while it can."""

    async def remember(self, user: str, fact: NewFact) -> str:
        return _read_id(await self._request("remember", user, fact=fact.plain()))

    async def update(self, user: str, id: str, content: str) -> str:
        return _read_id(await self._request("update", user, id=id, content=content))

    async def forget(self, user: str, id: str) -> None:
        await self._request("forget", user, id=id)

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return _read(_FACTS, await self._request("recall", user, query=query, limit=limit))

    async def curate(self, user: str, *, apply: bool) -> Curation:
        value = await self._request("curate", user, apply=apply)
        proposals = value.get("proposals") if isinstance(value, dict) else value
        return Curation(applied=apply, proposals=_read(_PROPOSALS, proposals))

    async def get(self, user: str, id: str) -> StoredFact | None:
        value = await self._request("get", user, id=id)
        return None if value is None else _read(_FACTS, [value])[0]

    async def history(self, user: str) -> Sequence[str]:
        return _read(_TEXTS, await self._request("history", user))

    async def list(self, user: str) -> Sequence[StoredFact]:
        return _read(_FACTS, await self._request("list", user))

    async def _request(self, op: str, user: str, **details: Any) -> Any:
        """Send a request to the program and return the value of `ok` in its answer.

        If the answer has no `ok`, raise Refused, Lacking or ServiceError, as the answer says.
        """
        if op in _OPTIONAL and op not in self.capabilities:
            raise Lacking(f"{self.subject.name}: {op} is not among the capabilities in its config")
        where = f"{self.subject.name}: {op}"
        match await self._exchange({"op": op, "user": user, **details}):
            case {"ok": value}:
                return value
            case {"refused": reason}:
                raise Refused(f"{where}: {sanitize(str(reason))}")
            case {"lacking": what}:
                raise Lacking(f"{where}: {sanitize(str(what))}")
            case {"error": message}:
                raise ServiceError(f"{where}: {sanitize(str(message))}")
            case answer:
                raise Malformed(f"{where}: invalid answer {preview(answer)}; expected ok, refused, lacking or error")

    async def _exchange(self, request: Mapping[str, Any]) -> Any:
        async with self._lock:
            if self._failure:
                raise ServiceError(self._failure)
            try:
                async with asyncio.timeout(self._deadline):
                    line = await self._exchange_lines(json.dumps(request).encode() + b"\n")
            except TimeoutError:
                # a late answer would be read as the answer to the next request
                self._break(f"timed out after {self._deadline:g} s")
                raise Transient(self._failure, uncertain=True) from None
            except asyncio.CancelledError:
                self._break("a request was cancelled")
                raise
        try:
            return json.loads(line)
        except ValueError:
            text = preview(self._redactor.clean(line.decode("utf-8", "replace")))
            raise Malformed(f"{self.subject.name}: invalid answer {text}; expected one line of JSON") from None

    async def _exchange_lines(self, request: bytes) -> bytes:
        try:
            self._program.stdin.write(request)
            await self._program.stdin.drain()
            line = await self._program.stdout.readline()
        except (BrokenPipeError, ConnectionResetError):
            line = b""
        except ValueError:
            self._fail(f"an answer is longer than {_LINE_CAP:,} bytes")
        return line or self._fail("ended without an answer; its standard error is shown in the terminal")

    def _break(self, problem: str) -> None:
        self._failure = f"{self.subject.name}: {problem}"
        self._program.kill()

    def _fail(self, problem: str) -> NoReturn:
        self._break(problem)
        raise ServiceError(self._failure)


def _read_id(value: Any) -> str:
    id = value.get("id") if isinstance(value, dict) else value
    if not isinstance(id, str | int) or id == "":
        raise Malformed(f"invalid answer {preview(value)}; expected the id of the fact")
    return str(id)


def _read(kind: TypeAdapter[T], value: Any) -> T:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise Malformed(f"invalid answer: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


@asynccontextmanager
async def open_command_store(
    config: StoreConfig, folder: Path, *, environment: Mapping[str, str], redactor: Redactor
) -> AsyncIterator[CommandStore]:
    """Start the program of a config with a `command` section and yield its store; stop the program at the end."""
    section = config.command
    assert section is not None
    where = f'store "{config.name}"'
    command, env = ProgramTemplate.parse(section.run, section.env, where).render(folder, environment)
    subject = Subject(role="store", name=config.name, settings={"command": digest(section)})
    # the program's standard error goes to the terminal, for its author
    async with open_program(command, env=env, cwd=folder, where=where, line_cap=_LINE_CAP, stderr=None) as program:
        yield CommandStore(subject, frozenset(config.capabilities), program, section.timeout / 1000, redactor)
