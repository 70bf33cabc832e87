"""Lets a model write something about each chunk, and pays for it once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from memorybench.core.contracts import Model
from memorybench.core.conversation import Turn
from memorybench.core.errors import Malformed
from memorybench.core.records import digest
from memorybench.text.sanitize import preview

from .turns import replace_surrogates

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SavedReplies:
    """Replies of the model for one scope, by topic."""

    load: Callable[[str], Awaitable[str | None]]
    save: Callable[[str, str], Awaitable[None]]


class Writer(Generic[T]):
    """Asks a model about a chunk.

    A reply is saved at once: when an add is repeated, after a rate limit or a killed process, only the missing
    replies are requested.
    """

    def __init__(self, model: Model, parse: Callable[[str], T], schema: Mapping[str, Any] | None = None) -> None:
        """`parse` reads a reply, or raises a ValueError that explains what is wrong with it."""
        self._model = model
        self._parse = parse
        self._schema = schema

    async def write(self, prompt: str, saved: SavedReplies) -> T:
        topic = digest([self._model.subject.key, prompt])
        text = await saved.load(topic)
        if text is None:
            text = replace_surrogates(await self._request(prompt))
            await saved.save(topic, text)
        return self._parse(text)

    async def _request(self, prompt: str) -> str:
        """Return a reply that can be parsed, at the second attempt if necessary."""
        turns = [Turn(role="user", content=prompt)]
        for _ in range(2):
            reply = await self._model.complete(turns, schema=self._schema)
            try:
                if reply.finish == "filter":
                    raise ValueError("the model declined")
                self._parse(reply.text)
                return reply.text
            except ValueError as error:
                problem = str(error)
            turns = [
                turns[0],
                Turn(role="assistant", content=reply.text or "…"),
                Turn(role="user", content=f"That cannot be used: {problem}. Answer again, as asked above."),
            ]
        where = f'model "{self._model.subject.name}"'
        raise Malformed(f"{where}: invalid reply, also at the second attempt: {problem}: {preview(reply.text)}")
