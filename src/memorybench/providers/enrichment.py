"""Has a model write something about each chunk, and pays for it once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from memorybench.core.contracts import Completion, Model
from memorybench.core.conversation import Turn
from memorybench.core.errors import Malformed
from memorybench.core.records import digest
from memorybench.text.sanitize import preview

from .turn_store import storable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Notebook:
    """What was written for one scope, by topic."""

    noted: Callable[[str], Awaitable[str | None]]
    note: Callable[[str, str], Awaitable[None]]


class Scribe(Generic[T]):
    """A reply is noted as soon as it is there. An add that is repeated, because its last chunk met a rate limit or
    because the process was killed, asks only for what is missing."""

    def __init__(self, model: Model, read: Callable[[str], T], schema: Mapping[str, Any] | None = None) -> None:
        """`read` makes of a reply what was wanted, or raises a ValueError that says what is wrong with it."""
        self._model = model
        self._read = read
        self._schema = schema

    async def write(self, prompt: str, notebook: Notebook) -> T:
        topic = digest([self._model.subject.key, prompt])
        said = await notebook.noted(topic)
        if said is None:
            said = storable(await self._readable(prompt))
            await notebook.note(topic, said)
        return self._read(said)

    async def _readable(self, prompt: str) -> str:
        """A reply that can be read, at the second attempt if need be: a third would say the same."""
        turns = [Turn(role="user", content=prompt)]
        reply = await self._model.complete(turns, schema=self._schema)
        problem = self._problem(reply)
        if problem is None:
            return reply.text
        again = [
            *turns,
            Turn(role="assistant", content=reply.text or "…"),
            Turn(role="user", content=f"That can not be used: {problem}. Answer again, as asked above."),
        ]
        reply = await self._model.complete(again, schema=self._schema)
        problem = self._problem(reply)
        if problem is not None:
            raise Malformed(f'model "{self._model.subject.name}": {problem}, asked twice: {preview(reply.text)}')
        return reply.text

    def _problem(self, reply: Completion) -> str | None:
        if reply.finish == "filter":
            return "it declined"
        try:
            self._read(reply.text)
        except ValueError as error:
            return str(error)
        return None
