"""Polls services that reply before they are done, and keeps a minimum delay between requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memorybench.core.errors import MemorybenchError, NotReady, ServiceError, Transient
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.http.replies import Reply
from memorybench.providers.config.requests import Poll
from memorybench.providers.config.variables import POLL_ID
from memorybench.text.sanitize import preview

from .requests import Api, RequestTemplate, Values, identifiers, parsed


@dataclass(frozen=True, slots=True)
class PollTemplate:
    request: RequestTemplate
    id: Path | None
    status: Path | None
    done: frozenset[str]
    failed: frozenset[str]
    interval: float
    timeout: float

    @classmethod
    def parse(cls, part: Document, poll: Poll) -> PollTemplate:
        return cls(
            RequestTemplate.parse(part, poll),
            parsed(poll.id, part.where("id")),
            parsed(poll.status, part.where("status")),
            frozenset(poll.done),
            frozenset(poll.failed),
            poll.interval / 1000,
            poll.timeout / 1000,
        )

    def questions(self, reply: Reply | None, data: Any, about: Sequence[Values]) -> list[Values]:
        """Return the variables of each poll: for each id in the reply, or for each of `about`."""
        if self.id is None or reply is None:
            return list(about)
        ids = identifiers(self.id, data, reply)
        if not ids:
            raise reply.malformed(f"no id at {self.id.text}, by which to ask for the status")
        return [{**about[0], POLL_ID: id} for id in ids]


class Deadline:
    """A timeout for a series of pauses."""

    def __init__(self, seconds: float) -> None:
        self._clock = asyncio.get_running_loop().time
        self._seconds = seconds
        self._end = self._clock() + seconds

    async def pause(self, seconds: float, waiting_for: str) -> None:
        """Sleep, or raise NotReady if no time would be left afterwards."""
        if self._clock() + seconds > self._end:
            raise NotReady(f"{waiting_for}, and no more than {self._seconds:g} s are waited")
        await asyncio.sleep(seconds)


async def until_done(api: Api, poll: PollTemplate, questions: Sequence[Values], *, at_once: int = 1) -> None:
    """Return when all polls are done, or raise the first failure. `at_once` of them run at a time, in order."""
    deadline = Deadline(poll.timeout)
    left = iter(questions)

    async def ask() -> None:
        for values in left:
            await _done(api, poll, values, deadline)

    try:
        async with asyncio.TaskGroup() as asking:
            for _ in range(min(at_once, len(questions))):
                asking.create_task(ask())
    except* MemorybenchError as failed:
        raise failed.exceptions[0] from None


async def _done(api: Api, poll: PollTemplate, values: Values, deadline: Deadline) -> None:
    while True:
        state, patience = await _state(api, poll, values)
        if state is None:
            return
        await deadline.pause(max(poll.interval, patience), f"{poll.request.where}: {_named(values)} is {state}")


async def _state(api: Api, poll: PollTemplate, values: Values) -> tuple[str | None, float]:
    """Return the status (None if done), and the delay that the service requests."""
    try:
        reply = await api.send(poll.request, values)
    except Transient as error:
        # polling again does no harm: the accepted document is not lost
        return f"not told ({error})", error.retry_after or 0.0
    if reply is None:
        return None, 0.0
    if poll.status is None:
        return "not over", 0.0
    states = [_word(state) for state in poll.status.all(reply.json())]
    if not states:
        raise reply.malformed(f"no status at {poll.status.text}")
    failed = [state for state in states if state in poll.failed]
    if failed:
        raise ServiceError(f"{reply.where}: {_named(values)} was accepted, but is {preview(failed[0])} now")
    waiting = [state for state in states if state not in poll.done]
    return (preview(waiting[0]), 0.0) if waiting else (None, 0.0)


def _word(state: Any) -> str:
    if isinstance(state, bool):
        return "true" if state else "false"
    return str(state)


def _named(values: Values) -> str:
    return preview(values.get(POLL_ID) or values.get("documentId") or values["scope"])


class Pace:
    """Delays operations: each starts at least `milliseconds` after the previous one."""

    def __init__(self, milliseconds: int) -> None:
        self._interval = milliseconds / 1000
        self._next = 0.0

    async def turn(self) -> None:
        if self._interval:
            now = asyncio.get_running_loop().time()
            mine = max(now, self._next)
            self._next = mine + self._interval
            await asyncio.sleep(mine - now)
