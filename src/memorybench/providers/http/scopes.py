"""Scopes: their names in the service, how they are opened and closed, and what this process knows of each."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memorybench.core.contracts import Receipt, Scope
from memorybench.core.errors import Lacking, ServiceError
from memorybench.core.records import digest
from memorybench.files.templates import Template

from .dialect import Chore, Dialect
from .requests import Api
from .waiting import until_done

_LONGEST_READABLE = 60
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def scope_name(scope: Scope, run_id_format: Template) -> str:
    """Return a unique name: the configured format, the missing parts, and a digest.

    It has at most 77 letters, digits, hyphens and underscores, which every known service accepts.
    """
    parts = {"benchmarkId": scope.benchmark, "runId": scope.run, "haystackId": scope.haystack}
    left_out = [value for name, value in parts.items() if name not in run_id_format.names]
    readable = "-".join([run_id_format.render(parts), *left_out, scope.provider])
    return f"{_UNSAFE.sub('-', readable).lstrip('-_')[:_LONGEST_READABLE]}-{digest(scope)[:16]}"


@dataclass(frozen=True, slots=True)
class Stored:
    """What is known about documents that the service accepted."""

    questions: tuple[Mapping[str, Any], ...]
    """Variables of the polls for their status."""
    sources: Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class ScopeState:
    """The state of a scope, from requests of this process or from the receipts of an earlier one."""

    variables: dict[str, Any]
    """Variables of every request, with the captures of setup."""
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Session and turn of each id that a result may name."""
    set_up: int = 0
    """Number of finished setup requests."""
    cleared: bool = False
    """Whether this process cleared the scope and has not opened it again."""
    stored: dict[str, Stored] = field(default_factory=dict)
    """What an unfinished add has stored, by the first document of each request; a retry continues from there."""
    setting_up: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def name(self) -> str:
        name: str = self.variables["scope"]
        return name

    def whence(self, named: str) -> Sequence[str]:
        return self.sources.get(named, (named,))


class Scopes:
    def __init__(self, name: str, dialect: Dialect, api: Api) -> None:
        self._where = f'provider "{name}"'
        self._dialect = dialect
        self._api = api
        self._captured = dialect.captured
        self._states: dict[Scope, ScopeState] = {}

    def state(self, scope: Scope) -> ScopeState:
        state = self._states.get(scope)
        if state is None:
            name = scope_name(scope, self._dialect.run_id_format)
            outside = dict.fromkeys(("scope", "runTag", "userId"), name)
            named = {"runId": scope.run, "benchmarkId": scope.benchmark, "haystackId": scope.haystack}
            state = self._states[scope] = ScopeState({**outside, **named})
        return state

    async def open(self, scope: Scope) -> ScopeState:
        """Send the setup requests that are not finished; after a failure, continue where it stopped."""
        state = self.state(scope)
        if state.set_up < len(self._dialect.setup):
            async with state.setting_up:
                for chore in self._dialect.setup[state.set_up :]:
                    await self._perform(chore, state)
                    state.set_up += 1
        state.cleared = False
        return state

    async def known(self, scope: Scope, names: frozenset[str]) -> ScopeState | None:
        """Return the scope with the variables that a request needs; None if it was cleared."""
        state = self.state(scope)
        missing = (names & self._captured) - state.variables.keys()
        if not missing:
            return state
        if self._dialect.repeatable:
            return await self.open(scope)
        if state.cleared:
            return None
        # setting it up again would create an empty scope, which would then be searched
        raise ServiceError(
            f"{self._where}: {', '.join(sorted(missing))} of scope {state.name} is not known to this "
            "process, which has neither added to it nor been given its receipts"
        )

    async def close(self, scope: Scope) -> None:
        if not self._dialect.closing:
            raise Lacking(f"{self._where} has no endpoint that clears a scope")
        state = await self.known(scope, frozenset(name for one in self._dialect.closing for name in one.request.names))
        if state is not None:
            for chore in self._dialect.closing:
                await self._perform(chore, state)
            del self._states[scope]
            self.state(scope).cleared = True

    def receipt(self, state: ScopeState, endpoint: str, ids: Sequence[str], stored: Sequence[Stored]) -> Receipt:
        """Finish an add. The receipt has all that another process needs to wait, search and clear."""
        sources = {name: whence for part in stored for name, whence in part.sources.items()}
        state.sources |= sources
        for id in ids:
            state.stored.pop(id, None)
        return Receipt(
            ids=tuple(ids),
            captured={
                "endpoint": endpoint,
                "setup": {name: state.variables[name] for name in sorted(self._captured)},
                "questions": [dict(question) for part in stored for question in part.questions],
                "sources": {name: list(whence) for name, whence in sources.items()},
            },
        )

    def restore(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        state = self.state(scope)
        for receipt in receipts:
            state.variables |= receipt.captured["setup"]
            state.sources |= {name: tuple(whence) for name, whence in receipt.captured["sources"].items()}
            state.set_up = len(self._dialect.setup)
            state.cleared = False

    async def _perform(self, chore: Chore, state: ScopeState) -> None:
        reply = await self._api.send(chore.request, state.variables)
        data = chore.reading.data(reply)
        found = chore.reading.captured(reply, data)
        if chore.wait is not None:
            questions = chore.wait.questions(reply, data, [{**state.variables, **found}])
            await until_done(self._api, chore.wait, questions)
        state.variables |= found
