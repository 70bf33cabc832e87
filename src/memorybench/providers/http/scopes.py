"""Scopes: their names in the service, how they are opened and cleared, and what this process knows of each."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from memorybench.core.contracts import Receipt, Scope
from memorybench.core.errors import Denied, Lacking, ServiceError
from memorybench.core.records import digest
from memorybench.files.templates import Template
from memorybench.http.replies import Reply
from memorybench.providers.config.variables import MEMORY_ID
from memorybench.secrets.redaction import Redactor

from .paging import PageProgress
from .requests import Api, RequestTemplate, Values
from .service import ScopeRequest, Service
from .waiting import Send, wait_until_done

_MAX_READABLE = 60
_UNAUTHORIZED = 401
_MARGIN = 0.1
"""The part of its validity before whose end a login is renewed."""
_LONGEST_MARGIN = 60.0
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def scope_name(scope: Scope, run_id_format: Template) -> str:
    """Return a unique name: the configured format, the missing parts, and a digest.

    It has at most 77 letters, digits, hyphens and underscores, which every known service accepts.
    """
    parts = {"benchmarkId": scope.benchmark, "runId": scope.run, "haystackId": scope.haystack}
    missing = [value for name, value in parts.items() if name not in run_id_format.names]
    readable = "-".join([run_id_format.render(parts), *missing, scope.provider])
    return f"{_UNSAFE.sub('-', readable).lstrip('-_')[:_MAX_READABLE]}-{digest(scope)[:16]}"


@dataclass(frozen=True, slots=True)
class Accepted:
    """What is known about documents that the service accepted with one request."""

    polls: tuple[Mapping[str, Any], ...]
    """Variables of the polls for their status."""
    sources: Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class ScopeState:
    """The state of a scope, from requests of this process or from the receipts of an earlier one."""

    variables: dict[str, Any]
    """Variables of every request, with the captures of setup."""
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Session and turn of each id that a result may name."""
    finished_setup: int = 0
    """Number of finished setup requests."""
    is_cleared: bool = False
    """Whether this process cleared the scope and has not opened it again."""
    accepted: dict[str, Accepted] = field(default_factory=dict)
    """What an unfinished add has stored, by the first document of each request; a retry continues from there."""
    searches: dict[tuple[str, int], PageProgress] = field(default_factory=dict)
    """The pages of unfinished searches, by query and limit; a retry continues from there."""
    setup_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    logins: int = 0
    """Number of logins after the first one."""
    login_end: float = math.inf
    """When to log in again, by the clock of the event loop."""
    login_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def find_sources(self, id: str) -> Sequence[str]:
        """Return the sources of an id; an unknown id is returned as it is."""
        return self.sources.get(id, (id,))


class Scopes:
    def __init__(self, name: str, service: Service, api: Api, redactor: Redactor) -> None:
        self._where = f'provider "{name}"'
        self._service = service
        self._api = api
        self._captures = service.captures
        self._redactor = redactor
        self._states: dict[Scope, ScopeState] = {}

    def state(self, scope: Scope) -> ScopeState:
        state = self._states.get(scope)
        if state is None:
            names = dict.fromkeys(("scope", "runTag", "userId"), scope_name(scope, self._service.run_id_format))
            ids = {"runId": scope.run, "benchmarkId": scope.benchmark, "haystackId": scope.haystack}
            state = self._states[scope] = ScopeState({**names, **ids})
        return state

    async def open(self, scope: Scope) -> ScopeState:
        """Send the setup requests that are not finished; after a failure, continue where it stopped.

        The requests of an earlier process that captured secrets are sent again, because receipts do not contain these.
        """
        state = self.state(scope)
        if state.finished_setup < len(self._service.setup) or not self._captures <= state.variables.keys():
            async with state.setup_lock:
                for number, request in enumerate(self._service.setup, 1):
                    if number > state.finished_setup:
                        await self._send_setup(request, state)
                        state.finished_setup = number
                    elif missing := request.reader.captures.keys() - state.variables.keys():
                        if not request.is_repeatable:
                            raise self._unknown(missing, state)
                        await self._send_setup(request, state)
        state.is_cleared = False
        return state

    async def require(self, scope: Scope, names: frozenset[str]) -> ScopeState | None:
        """Return the scope with the variables that a request needs; None if it was cleared."""
        state = self.state(scope)
        missing = (names & self._captures) - state.variables.keys()
        if not missing:
            return state
        if self._service.has_repeatable_setup or state.finished_setup == len(self._service.setup):
            return await self.open(scope)
        if state.is_cleared:
            return None
        raise self._unknown(missing, state)

    def _unknown(self, names: Set[str], state: ScopeState) -> ServiceError:
        # setting it up again would create an empty scope, which would then be searched
        problem = f"{self._where}: unknown {', '.join(sorted(names))} of scope {state.variables['scope']}"
        if names <= self._service.secrets:
            return ServiceError(f"{problem}: secrets are not stored; capture them in a setup request of their own")
        return ServiceError(f"{problem}: this process has neither added to it nor received its receipts")

    async def clear(self, scope: Scope) -> None:
        requests = self._service.clear
        if not requests:
            raise Lacking(f"{self._where} has no endpoint that clears a scope")
        state = await self.require(scope, frozenset(name for one in requests for name in one.request.names))
        if state is not None:
            for request in requests:
                await self._send(request, state, {})
            del self._states[scope]
            self.state(scope).is_cleared = True

    async def forget(self, request: ScopeRequest, scope: Scope, id: str) -> None:
        state = await self.require(scope, request.request.names)
        if state is not None:
            await self._send(request, state, {MEMORY_ID: id})

    def make_receipt(
        self, state: ScopeState, endpoint: str, ids: Sequence[str], accepted: Sequence[Accepted]
    ) -> Receipt:
        """Finish an add. The receipt has all that another process needs to wait, search and clear."""
        sources = {id: ids_of_source for part in accepted for id, ids_of_source in part.sources.items()}
        state.sources |= sources
        for id in ids:
            state.accepted.pop(id, None)
        return Receipt(
            ids=tuple(ids),
            captured={
                "endpoint": endpoint,
                "setup": {
                    name: state.variables[name] for name in sorted(self._captures) if self._is_public(name, state)
                },
                "questions": [dict(poll) for part in accepted for poll in part.polls],
                "sources": {id: list(ids_of_source) for id, ids_of_source in sources.items()},
            },
        )

    def restore(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        state = self.state(scope)
        for receipt in receipts:
            # earlier versions stored secrets, which may have expired
            setup: Mapping[str, Any] = receipt.captured["setup"]
            state.variables |= {name: value for name, value in setup.items() if name not in self._service.secrets}
            self._redactor.add(*(str(value) for name, value in setup.items() if name in self._service.secrets))
            state.sources |= {id: tuple(sources) for id, sources in receipt.captured["sources"].items()}
            state.finished_setup = len(self._service.setup)
            state.is_cleared = False

    def _is_public(self, name: str, state: ScopeState) -> bool:
        value = str(state.variables[name])
        return name not in self._service.secrets and self._redactor.clean(value) == value

    async def send(
        self, template: RequestTemplate, state: ScopeState, values: Values, url: str | None = None
    ) -> Reply | None:
        """Send a request with the variables of its scope.

        If it needs a login that has expired, log in again; after a 401, send it a second time. A request with that
        status was not performed, so that nothing is done twice.
        """
        if not template.names & self._service.secrets or not self._service.logins:
            return await self._api.send(template, {**state.variables, **values}, url)
        if asyncio.get_running_loop().time() >= state.login_end:
            await self._log_in(state, state.logins)
        logins = state.logins
        try:
            return await self._api.send(template, {**state.variables, **values}, url)
        except Denied as error:
            if error.status != _UNAUTHORIZED:
                raise
        await self._log_in(state, logins)
        try:
            return await self._api.send(template, {**state.variables, **values}, url)
        except Denied as error:
            raise Denied(f"{error}; also after a new login", status=error.status) from None

    async def _log_in(self, state: ScopeState, logins: int) -> None:
        """Get new credentials, unless that was done since `logins`."""
        async with state.login_lock:
            if state.logins == logins:
                state.login_end = math.inf
                for request in self._service.logins:
                    await self._send_setup(request, state)
                state.logins += 1

    async def _send_setup(self, request: ScopeRequest, state: ScopeState) -> None:
        captures, validity = await self._send(request, state, {}, is_login=request in self._service.logins)
        state.variables |= captures
        if validity is not None:
            margin = min(_LONGEST_MARGIN, validity * _MARGIN)
            state.login_end = min(state.login_end, asyncio.get_running_loop().time() + validity - margin)

    async def _send(
        self, request: ScopeRequest, state: ScopeState, values: Values, *, is_login: bool = False
    ) -> tuple[dict[str, Any], float | None]:
        """Send a request and wait until it is done; return its captures and how many seconds they are valid."""
        reply = await self.sender(state, is_login=is_login)(request.request, values)
        data = request.reader.read_json(reply)
        captures = request.reader.read_captures(reply, data)
        if request.wait is not None:
            polls = request.wait.polls(reply, data, [{**values, **captures}])
            await wait_until_done(self.sender(state, is_login=is_login), request.wait, polls)
        return captures, request.reader.read_validity(reply, data)

    def sender(self, state: ScopeState, *, is_login: bool = False) -> Send:
        """Return a function that sends requests of this scope. A login must not wait for another login."""
        if is_login:
            return lambda template, values: self._api.send(template, {**state.variables, **values})
        return lambda template, values: self.send(template, state, values)
