"""Scopes: their names in the service, how they are opened and cleared, and what this process knows of each."""

from __future__ import annotations

import asyncio
import math
import re
from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence, Set
from typing import Any

from msgspec import Struct, field

from memorybench.core.contracts import Receipt, Scope
from memorybench.core.errors import Denied, Lacking, ServiceError
from memorybench.core.records import digest
from memorybench.files.templates import Template
from memorybench.http.replies import Reply
from memorybench.providers.config.variables import MEMORY_ID, scope_variables
from memorybench.secrets.redaction import Redactor

from .documents import merge_sources, sources_by_our_ids
from .paging import PageProgress
from .requests import Api, RequestTemplate, Values
from .service import ScopeRequest, Service
from .waiting import Marker, Send, wait_until_done

_MAX_READABLE = 60
_UNAUTHORIZED = 401
_MARGIN = 0.1
"""Credentials are renewed when this fraction of their validity is left, at most _LONGEST_MARGIN seconds before its end.
"""
_LONGEST_MARGIN = 60.0
_MAX_RENEWALS = 2
"""How many times a request is sent again with new credentials after status 401.

More than once, because the first new credentials may come from another request's login, which may be outdated too.
"""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def scope_name(scope: Scope, run_id_format: Template) -> str:
    """Return the name of a scope in the service: `run_id_format`, parts of the scope that it lacks, and a digest.

    The name is unique. It has at most 77 letters, digits, hyphens and underscores, which every known service accepts.
    """
    parts = {"benchmarkId": scope.benchmark, "runId": scope.run, "haystackId": scope.haystack}
    missing = [value for name, value in parts.items() if name not in run_id_format.names]
    readable = "-".join([run_id_format.render(parts), *missing, scope.provider])
    return f"{_UNSAFE.sub('-', readable).lstrip('-_')[:_MAX_READABLE]}-{digest(scope)[:16]}"


class Accepted(Struct, frozen=True):
    """One or more documents that the service accepted with one request."""

    polls: tuple[Mapping[str, Any], ...]
    """For each request that polls the status of these documents: the values of its variables."""
    sources: Mapping[str, tuple[str, ...]]
    """Maps each id of these documents to the benchmark's ids of the sessions and turns that it stands for."""


class Login(Struct):
    """The requests that log in, for one scope or for all scopes of a provider, and the credentials they capture."""

    requests: tuple[ScopeRequest, ...]
    variables: MutableMapping[str, Any]
    """The variables of the login requests; the values that the requests capture are added to them."""
    renewals: int = 0
    """Number of logins after the first one."""
    end: float = math.inf
    """The time to log in again, in seconds by the clock of the event loop."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class ScopeState(Struct):
    """What is known of a scope, from requests of this process or from the receipts of an earlier process."""

    variables: ChainMap[str, Any]
    """The variables of every request for the scope, including captures of setup. The last map of the chain has the
    captures of the login that all scopes share."""
    login: Login
    """The login for this scope alone, if requests of the config log in for each scope."""
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Maps each id that a result may contain to the benchmark's ids of the sessions and turns that it stands for."""
    finished_setup: int = 0
    """Number of finished setup requests."""
    is_cleared: bool = False
    """Whether this process cleared the scope and has not opened it again."""
    accepted: dict[str, Accepted] = field(default_factory=dict)
    """The documents, by id, that the service accepted from an add that then failed. A retry of the add skips them."""
    searches: dict[tuple[str, int], PageProgress] = field(default_factory=dict)
    """The pages that failed searches have read, by query and limit. A retry of the search continues after them."""
    setup_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def find_sources(self, id: str) -> Sequence[str]:
        """Return the sessions and turns that an id in a result stands for; an empty sequence if the id is unknown.

        An unknown id was made by the service, so it has no source, even if it equals the id of a session.
        """
        return self.sources.get(id, ())


class Scopes:
    def __init__(self, name: str, service: Service, api: Api, redactor: Redactor) -> None:
        self._where = f'provider "{name}"'
        self._service = service
        self._api = api
        self._captures = service.captures
        self._redactor = redactor
        # services may accept only the newest token of an account, so scopes must not log in one by one
        self._login = Login(service.shared_logins, {})
        self._states: dict[Scope, ScopeState] = {}

    def state(self, scope: Scope) -> ScopeState:
        state = self._states.get(scope)
        if state is None:
            own = scope_variables(scope, scope_name(scope, self._service.run_id_format))
            variables = ChainMap(own, self._login.variables)
            state = self._states[scope] = ScopeState(variables, Login(self._service.scope_logins, variables))
            if self._service.uses_marker:  # another process may have added it
                state.sources |= sources_by_our_ids(Marker.of(scope, self._service.splitter).documents)
        return state

    async def open(self, scope: Scope) -> ScopeState:
        """Send the setup requests of a scope that are not finished, and return the scope's state.

        If a request fails, the next call continues with it. Requests that capture secrets are sent again if an earlier
        process sent them, because receipts do not contain secrets.
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
        """Return the state of the scope, with values for the variables `names` of a request.

        If a captured value is missing, setup is repeated if it can be. If it cannot, return None for a scope that was
        cleared, and raise ServiceError for any other.
        """
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
        # to send the setup requests again would create an empty scope, which would then be searched
        problem = (
            f"{self._where}: the captured value of {', '.join(sorted(names))} is unknown for scope "
            f"{state.variables['scope']}"
        )
        if names <= self._service.secrets:
            return ServiceError(f"{problem}, because secrets are not stored; capture them in a separate setup request")
        return ServiceError(
            f"{problem}, because this process has neither added to the scope nor received the receipts of its adds"
        )

    async def clear(self, scope: Scope) -> None:
        requests = self._service.clear
        if not requests:
            raise Lacking(f"{self._where} has no endpoint that clears a scope")
        state = await self.require(scope, frozenset(name for one in requests for name in one.request.names))
        if state is not None:
            for request in requests:
                await _perform(request, self.sender(state), {})
            del self._states[scope]
            self.state(scope).is_cleared = True

    async def forget(self, request: ScopeRequest, scope: Scope, id: str) -> None:
        state = await self.require(scope, request.request.names)
        if state is not None:
            await _perform(request, self.sender(state), {MEMORY_ID: id})

    def make_receipt(
        self, state: ScopeState, endpoint: str, ids: Sequence[str], accepted: Sequence[Accepted]
    ) -> Receipt:
        """Return the receipt of a finished add, with all that another process needs to wait, search and clear."""
        sources = merge_sources(part.sources for part in accepted)
        merge_sources([sources], state.sources)
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
            state.finished_setup = len(self._service.setup)
            state.is_cleared = False
        merge_sources((receipt.captured["sources"] for receipt in receipts), state.sources)

    def _is_public(self, name: str, state: ScopeState) -> bool:
        value = str(state.variables[name])
        return name not in self._service.secrets and self._redactor.clean(value) == value

    async def send(
        self, template: RequestTemplate, state: ScopeState, values: Values, url: str | None = None
    ) -> Reply | None:
        """Send a request with the variables of its scope; if it needs credentials that have expired, log in first."""
        return await self._send_after_logins((self._login, state.login), template, values, state.variables, url)

    async def _send_after_logins(
        self,
        logins: Sequence[Login],
        template: RequestTemplate,
        values: Values,
        variables: Mapping[str, Any],
        url: str | None = None,
    ) -> Reply | None:
        """Repeat those of `logins` that have expired, then send a request. After status 401, log in and send it again.

        The request is sent at most three times. The service does not perform a request that it answers with status
        401, so nothing is done twice. Return None if the reply has an error status that the config accepts.
        """
        logins = [login for login in logins if login.requests]
        if not template.names & self._service.secrets or not logins:
            return await self._api.send(template, {**variables, **values}, url)
        for login in logins:
            if asyncio.get_running_loop().time() >= login.end:
                await self._renew(login, login.renewals)
        for _ in range(_MAX_RENEWALS):
            renewals = [login.renewals for login in logins]
            try:
                return await self._api.send(template, {**variables, **values}, url)
            except Denied as error:
                if error.status != _UNAUTHORIZED:
                    raise
            if all([await self._renew(login, before) for login, before in zip(logins, renewals, strict=True)]):
                break
        try:
            return await self._api.send(template, {**variables, **values}, url)
        except Denied as error:
            raise Denied(f"{error}; the request was denied again after a new login", status=error.status) from None

    async def _renew(self, login: Login, renewals: int) -> bool:
        """Log in again, and return True.

        If `login.renewals` is no longer `renewals`, another request has logged in meanwhile: return False instead.
        """
        async with login.lock:
            if login.renewals != renewals:
                return False
            login.end = math.inf
            for request in login.requests:
                await self._log_in(request, login)
            login.renewals += 1
            return True

    async def _log_in(self, request: ScopeRequest, login: Login) -> None:
        # the login of a scope may need the shared login, but the shared login must not wait for itself
        logins = () if login is self._login else (self._login,)

        async def send(template: RequestTemplate, values: Values) -> Reply | None:
            return await self._send_after_logins(logins, template, values, login.variables)

        captures, validity = await _perform(request, send, {})
        login.variables.update(captures)
        if validity is not None:
            margin = min(_LONGEST_MARGIN, validity * _MARGIN)
            login.end = min(login.end, asyncio.get_running_loop().time() + validity - margin)

    async def _send_setup(self, request: ScopeRequest, state: ScopeState) -> None:
        """Send a setup request for a scope. A login that all scopes share is sent only once."""
        if request in self._login.requests:
            async with self._login.lock:
                if not request.reader.captures.keys() <= self._login.variables.keys():
                    await self._log_in(request, self._login)
        elif request in state.login.requests:
            await self._log_in(request, state.login)
        else:
            captures, _ = await _perform(request, self.sender(state), {})
            state.variables.update(captures)

    def sender(self, state: ScopeState) -> Send:
        """Return a function that sends requests of this scope."""
        return lambda template, values: self.send(template, state, values)


async def _perform(request: ScopeRequest, send: Send, values: Values) -> tuple[dict[str, Any], float | None]:
    """Send a request and wait until it is done.

    Return its captures, and the number of seconds until the first of them expires (None if unknown).
    """
    reply = await send(request.request, values)
    data = request.reader.read_json(reply)
    captures = request.reader.read_captures(reply, data)
    if request.wait is not None:
        await wait_until_done(send, request.wait, request.wait.polls(reply, data, [{**values, **captures}]))
    return captures, request.reader.read_validity(reply, data)
