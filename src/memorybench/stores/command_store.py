"""Any program as a memory store: it gets one JSON request per line and answers each with one line of JSON.

The docstring of `config.Command` describes requests and answers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import BeforeValidator, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

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
_ANSWERS = frozenset({"ok", "refused", "lacking", "error"})
_OPTIONAL: tuple[Capability, ...] = ("update", "forget", "recall", "list", "curate", "history", "get")


def _read_id(value: Any) -> str:
    id = value.get("id") if isinstance(value, dict) else value
    if not isinstance(id, str | int) or isinstance(id, bool) or id == "":
        raise PydanticCustomError("id", "expected the id of the fact")
    return str(id)


def _read_proposals(value: Any) -> Any:
    return value.get("proposals") if isinstance(value, dict) else value


_ID = TypeAdapter(Annotated[str, BeforeValidator(_read_id)])
_FACT: TypeAdapter[StoredFact | None] = TypeAdapter(StoredFact | None)
_FACTS = TypeAdapter(tuple[StoredFact, ...])
_PROPOSALS = TypeAdapter(Annotated[tuple[Proposal, ...], BeforeValidator(_read_proposals)])
_TEXTS = TypeAdapter(tuple[str, ...])
_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


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
        return await self._request(_ID, "remember", user, fact=fact.plain())

    async def update(self, user: str, id: str, content: str) -> str:
        return await self._request(_ID, "update", user, id=id, content=content)

    async def forget(self, user: str, id: str) -> None:
        await self._request(_ANYTHING, "forget", user, id=id)

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return await self._request(_FACTS, "recall", user, query=query, limit=limit)

    async def curate(self, user: str, *, apply: bool) -> Curation:
        return Curation(applied=apply, proposals=await self._request(_PROPOSALS, "curate", user, apply=apply))

    async def get(self, user: str, id: str) -> StoredFact | None:
        return await self._request(_FACT, "get", user, id=id)

    async def history(self, user: str) -> Sequence[str]:
        return await self._request(_TEXTS, "history", user)

    async def list(self, user: str) -> Sequence[StoredFact]:
        return await self._request(_FACTS, "list", user)

    async def _request(self, kind: TypeAdapter[T], op: str, user: str, **details: Any) -> T:
        """Send a request to the program and return the value of `ok` in its answer, which must be of this kind.

        If the answer has no `ok`, raise Refused, Lacking or ServiceError, as the answer says.
        """
        if op in _OPTIONAL and op not in self.capabilities:
            raise Lacking(f"{self.subject.name}: {op} is not among the capabilities in its config")
        where = f"{self.subject.name}: {op}"
        answer = await self._exchange({"op": op, "user": user, **details})
        if not isinstance(answer, dict) or len(_ANSWERS & answer.keys()) != 1:
            raise Malformed(
                f"{where}: invalid answer {preview(answer)}; expected ok, refused, lacking or error, and one only"
            )
        match answer:
            case {"ok": value}:
                try:
                    return kind.validate_python(value)
                except ValidationError as error:
                    first = error.errors()[0]
                    place = ".".join(map(str, ("ok", *first["loc"])))
                    raise Malformed(f"{where}: invalid answer: {place}: {first['msg']}") from None
            case {"refused": reason}:
                raise Refused(f"{where}: {sanitize(str(reason))}")
            case {"lacking": what} if op == "curate":  # it may have no dry run
                raise Lacking(f"{where}: {sanitize(str(what))}")
            case {"lacking": what}:
                remedy = f"remove {op} from capabilities in the config" if op in _OPTIONAL else f"a store needs {op}"
                raise ServiceError(f"{where}: the program lacks {sanitize(str(what))}; {remedy}")
        raise ServiceError(f"{where}: {sanitize(str(answer['error']))}")

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
