"""Waits until documents are searchable, by polling a status or by searching for a marker, and delays requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from memorybench.core.contracts import Scope
from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.errors import MemorybenchError, NotReady, ServiceError, Transient
from memorybench.core.records import digest
from memorybench.core.timing import excluded
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.http.replies import Reply
from memorybench.providers.config.requests import Poll
from memorybench.providers.config.variables import POLL_ID
from memorybench.text.sanitize import preview

from .documents import SentDocument, SessionSplitter
from .requests import RequestTemplate, Values, parse_path, read_ids

Send = Callable[[RequestTemplate, Values], Awaitable[Reply | None]]
"""A function that sends a request with these variables and those of a scope, and returns the reply (None if it has an
error status that the config accepts)."""


class PollTemplate(Struct, frozen=True):
    """How to wait for a request: the section `wait` of the config, with its request and paths parsed."""

    config: Poll
    request: RequestTemplate
    id: Path | None
    status: Path | None

    @classmethod
    def parse(cls, part: Document, poll: Poll) -> PollTemplate:
        id, status = parse_path(poll.id, part.where("id")), parse_path(poll.status, part.where("status"))
        return cls(poll, RequestTemplate.parse(part, poll), id, status)

    def polls(self, reply: Reply | None, data: Any, documents: Sequence[Values]) -> list[Values]:
        """Return the variables of each request for a status: one per id in the reply, or per document if the config
        has no `id`."""
        if self.id is None or reply is None:
            return list(documents)
        ids = read_ids(self.id, data, reply)
        if not ids:
            raise reply.malformed(f"the reply has no id at {self.id.text}; expected an id to poll the status with")
        if not self.config.per_document:
            return [{**documents[0], POLL_ID: id} for id in dict.fromkeys(ids)]
        if len(ids) != len(documents):
            expected = f"{len(documents)}, one per document (perDocument)"
            raise reply.malformed(f"the reply has {len(ids)} ids at {self.id.text}; expected {expected}")
        if len(set(ids)) < len(ids):
            problem = f"an id at {self.id.text} occurs twice; expected a different id for each document (perDocument)"
            raise reply.malformed(f"{problem}; remove perDocument if one id may stand for several documents")
        return [{**document, POLL_ID: id} for document, id in zip(documents, ids, strict=True)]


class Deadline:
    """The end of a wait that consists of several pauses."""

    def __init__(self, seconds: float) -> None:
        self._clock = asyncio.get_running_loop().time
        self._seconds = seconds
        self._end = self._clock() + seconds

    async def pause(self, seconds: float, waiting_for: str) -> None:
        """Sleep for `seconds`, or raise NotReady at once if the timeout would pass meanwhile."""
        if self._clock() + seconds > self._end:
            raise NotReady(f"{waiting_for}; timed out after {self._seconds:g} s")
        await asyncio.sleep(seconds)


async def wait_until_done(send: Send, poll: PollTemplate, polls: Sequence[Values], *, parallel: int = 1) -> None:
    """Poll a status with each of `polls` as variables until all are done. At most `parallel` are polled at a time.

    Raise the first failure, or NotReady after the timeout of the config.
    """
    deadline, interval = Deadline(poll.config.timeout / 1000), poll.config.interval / 1000
    pending = iter(polls)

    async def work() -> None:
        for values in pending:
            while True:
                status, delay = await _poll_status(send, poll, values)
                if status is None:
                    break
                await deadline.pause(
                    max(interval, delay), f"{poll.request.where}: the status of {_name(values)} is {status}"
                )

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(parallel, len(polls))):
                group.create_task(work())
    except* MemorybenchError as errors:
        raise errors.exceptions[0] from None


async def _poll_status(send: Send, poll: PollTemplate, values: Values) -> tuple[str | None, float]:
    """Return the status (None if done), and the seconds to wait that the service asks for (0 if it asks for none)."""
    try:
        reply = await send(poll.request, values)
    except Transient as error:
        # polling again does no harm: the accepted document is not lost
        return f"unknown ({error})", error.retry_after or 0.0
    if reply is None:
        return None, 0.0
    if poll.status is None:
        return "pending", 0.0
    values_of_status = poll.status.all(reply.json())
    statuses = [str(value).lower() if isinstance(value, bool) else str(value) for value in values_of_status]
    if not statuses:
        raise reply.malformed(f"the reply has no status at {poll.status.text}")
    for status in statuses:
        if status in poll.config.failed:
            raise ServiceError(f"{reply.where}: {_name(values)} was accepted, but its status is now {preview(status)}")
    pending = next((status for status in statuses if status not in poll.config.done), None)
    return (None if pending is None else preview(pending)), 0.0


def _name(values: Values) -> str:
    return preview(values.get(POLL_ID) or values.get("documentId") or "the scope")


class Marker(Struct, frozen=True):
    """A document that is added last to a service that reports no status.

    Once a search finds it, all documents that were added before it count as searchable. A scope has the same marker in
    every process, so that every process recognizes it, and adding it again changes nothing.
    """

    word: str
    text: str
    documents: Sequence[SentDocument]
    ids: frozenset[str]
    """Ids by which a result may name the marker as its source."""

    @classmethod
    def of(cls, scope: Scope, splitter: SessionSplitter) -> Marker:
        word = f"zq{digest(['marker', scope])[:14]}"
        # a sentence, because services that extract facts ignore a single word
        text = f"{word} is the code word of archive {word}."
        session = Session(id=f"marker {word}", turns=(Turn(role="user", content=text),))
        documents = splitter.split(scope, session)
        ids = frozenset(id for document in documents for id in (document.id, document.session, *document.sources))
        return cls(word, text, documents, ids)

    def is_source_of(self, memory: Memory) -> bool:
        return self.word in memory.content or not self.ids.isdisjoint(memory.sources or ())

    def remove_from(self, memories: Iterable[Memory]) -> list[Memory]:
        return [memory for memory in memories if not self.is_source_of(memory)]


class Pacer:
    """Delays operations so that each starts at least `milliseconds` after the start of the previous one."""

    def __init__(self, milliseconds: int) -> None:
        self._interval = milliseconds / 1000
        self._next = 0.0

    async def wait(self) -> None:
        if self._interval:
            now = asyncio.get_running_loop().time()
            start = max(now, self._next)
            self._next = start + self._interval
            with excluded():
                await asyncio.sleep(start - now)
