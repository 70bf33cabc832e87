"""Any memory service with an HTTP and JSON API, as its YAML card describes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from memorybench.core.contracts import Embedder, Receipt, Scope
from memorybench.core.conversation import Memory, Session
from memorybench.core.errors import BadInput, Transient
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.http.client import open_http
from memorybench.providers.config.provider import Auth, ProviderConfig
from memorybench.providers.config.requests import Probe
from memorybench.providers.storage.turns import replace_surrogates
from memorybench.secrets.redaction import Redactor

from .dialect import Dialect, Storing
from .documents import Portion, shortened, sources_by_id, sources_of
from .probing import Marker
from .requests import Api, Values, identifiers
from .scopes import Scopes, ScopeState, Stored
from .waiting import Deadline, Pace, PollTemplate, until_done

_PREFIXES = {"bearer": "Bearer ", "token": "Token ", "apikey": ""}
_PROBED_WITH = 10
"""Number of results of a search for the marker."""
_POLLS_AT_ONCE = 8
"""Number of documents of one scope that are polled at the same time."""


class HttpProvider:
    """Opened by `open_http_provider`. It sends each request once: the engine retries and limits; only `wait` polls.

    Values captured from replies are stored in receipts; a process that resumes passes these to `restore`.
    """

    def __init__(
        self,
        config: ProviderConfig,
        dialect: Dialect,
        api: Api,
        subject: Subject,
        store_id: str,
        embedder: Embedder | None,
        search_settings: Mapping[str, Any],
    ) -> None:
        self._where = f'provider "{config.name}"'
        self._limits = config.limits
        self._dialect = dialect
        self._api = api
        self._scopes = Scopes(config.name, dialect, api)
        self.subject = subject
        self.store_id = store_id
        self._embedder = embedder
        self._search_settings = search_settings
        self._add_pace = Pace(config.rate_limit.add_delay_ms)
        self._batch_pace = Pace(config.rate_limit.batch_delay_ms)
        self._search_pace = Pace(config.rate_limit.search_delay_ms)
        # the engine counts a wait as one call: if calls are limited, it must not send several at once
        limited = config.rate_limit.concurrency or config.rate_limit.requests_per_second
        self._polls_at_once = 1 if limited else _POLLS_AT_ONCE

    async def add(self, scope: Scope, session: Session) -> Receipt:
        return await self._add(scope, self._dialect.portioning.portions(scope, session))

    def restore(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Restore captured values from the receipts of an earlier process; send nothing.

        Must be called before this process adds to, searches or clears a scope of another process.
        """
        self._scopes.restore(scope, receipts)

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        self.restore(scope, receipts)
        for storing in (self._dialect.add, self._dialect.batch_add):
            if storing is None:
                continue
            kept = [one for one in receipts if one.ids and one.captured["endpoint"] == storing.endpoint]
            if isinstance(storing.wait, Probe) and kept:
                await self._probe(scope, storing.wait)
            elif isinstance(storing.wait, PollTemplate):
                variables = self._scopes.state(scope).variables
                questions = [{**variables, **one} for receipt in kept for one in receipt.captured["questions"]]
                await until_done(self._api, storing.wait, questions, at_once=self._polls_at_once)

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        most = self._limits.max_results
        if most is not None and limit > most:
            raise BadInput(self._where, f"{limit} results are wanted", expected=f"limits.maxResults, {most}, or less")
        if not self._dialect.probes:
            return await self._find(scope, query, limit)
        # one more, because the marker may be among the results
        found = await self._find(scope, query, limit if limit == most else limit + 1)
        return Marker.of(scope, self._dialect.portioning).without(found)[:limit]

    async def clear(self, scope: Scope) -> None:
        await self._scopes.close(scope)

    async def _add(self, scope: Scope, portions: Sequence[Portion]) -> Receipt:
        storing, state = self._dialect.add, await self._scopes.open(scope)
        stored = []
        for portion, document in zip(portions, await self._documents(storing, portions), strict=True):
            if portion.id not in state.stored:
                await self._add_pace.turn()
                state.stored[portion.id] = await self._store(storing, state, [portion], document)
            stored.append(state.stored[portion.id])
        return self._scopes.receipt(state, storing.endpoint, [portion.id for portion in portions], stored)

    async def _documents(self, storing: Storing, portions: Sequence[Portion]) -> list[dict[str, Any]]:
        """Return the variables of each document."""
        documents = [self._dialect.portioning.variables(portion) for portion in portions]
        if "embedding" in storing.names and documents:
            vectors = await self._vectors([portion.content for portion in portions])
            return [{**document, "embedding": vector} for document, vector in zip(documents, vectors, strict=True)]
        return documents

    async def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        assert self._embedder is not None
        # the local embedder returns numpy rows; JSON needs plain numbers
        return [[float(number) for number in vector] for vector in await self._embedder.embed(texts)]

    async def _store(self, storing: Storing, state: ScopeState, portions: Sequence[Portion], values: Values) -> Stored:
        reply = await self._api.send(storing.request, {**state.variables, **values})
        data = storing.reading.data(reply)
        found = storing.reading.captured(reply, data)
        questions: list[Values] = []
        if isinstance(storing.wait, PollTemplate):
            about = [{**found, "documentId": portion.id} for portion in portions]
            questions = storing.wait.questions(reply, data, about)
        sources = sources_of(portions)
        if storing.stored_as is not None and reply is not None:
            ids = [str(id) for id in identifiers(storing.stored_as, data, reply)]
            given = sources_by_id(ids, portions)
            if given is None:
                raise reply.malformed(f"{len(ids)} ids at {storing.stored_as.text} for {len(portions)} documents")
            sources |= given
        return Stored(tuple(questions), sources)

    async def _find(self, scope: Scope, query: str, limit: int) -> list[Memory]:
        finding = self._dialect.search
        text = shortened(replace_surrogates(query).strip(), self._limits.max_query_characters)
        state = await self._scopes.known(scope, finding.request.names)
        if state is None or not text:
            return []
        values = {**state.variables, **self._search_settings, "query": text, "limit": limit}
        if "embedding" in finding.request.names:
            [values["embedding"]] = await self._vectors([text])
        await self._search_pace.turn()
        reply = await self._api.send(finding.request, values)
        return [] if reply is None else finding.response.memories(reply, limit, state.whence)

    async def _probe(self, scope: Scope, probe: Probe) -> None:
        """Add a marker after all documents, and return when it is found."""
        marker = Marker.of(scope, self._dialect.portioning)
        await self._add(scope, marker.portions)
        limit = min(_PROBED_WITH, self._limits.max_results or _PROBED_WITH)
        deadline = Deadline(probe.timeout / 1000)
        while True:
            patience = probe.interval / 1000
            try:
                if any(marker.made(memory) for memory in await self._find(scope, marker.text, limit)):
                    return
            except Transient as error:  # searching again does no harm
                patience = max(patience, error.retry_after or 0.0)
            await deadline.pause(patience, f"{self._where}: what was added is not found yet")


class _Batches(HttpProvider):
    @property
    def batch_size(self) -> int:
        return self._limits.batch_size

    async def add(self, scope: Scope, session: Session) -> Receipt:
        portions = self._dialect.portioning.portions(scope, session)
        # a session with many messages is a batch
        return await (self._add_batch(scope, portions) if len(portions) > 1 else self._add(scope, portions))

    async def add_batch(self, scope: Scope, sessions: Sequence[Session]) -> Receipt:
        return await self._add_batch(
            scope, [part for one in sessions for part in self._dialect.portioning.portions(scope, one)]
        )

    async def _add_batch(self, scope: Scope, portions: Sequence[Portion]) -> Receipt:
        storing, state = self._dialect.batch_add, await self._scopes.open(scope)
        assert storing is not None
        assert storing.document is not None
        documents = [
            storing.document({**state.variables, **document}) for document in await self._documents(storing, portions)
        ]
        stored = []
        for start in range(0, len(portions), self.batch_size):
            batch, first = slice(start, start + self.batch_size), portions[start].id
            if first not in state.stored:
                await self._batch_pace.turn()
                values = {"documents": documents[batch]}
                state.stored[first] = await self._store(storing, state, portions[batch], values)
            stored.append(state.stored[first])
        return self._scopes.receipt(state, storing.endpoint, [portion.id for portion in portions], stored)


class _Lists(HttpProvider):
    async def list(self, scope: Scope) -> Sequence[Memory]:
        finding = self._dialect.list
        assert finding is not None
        state = await self._scopes.known(scope, finding.request.names)
        reply = await self._api.send(finding.request, state.variables) if state else None
        if state is None or reply is None:
            return []
        memories = finding.response.memories(reply, None, state.whence)
        return Marker.of(scope, self._dialect.portioning).without(memories) if self._dialect.probes else memories


class _BatchesAndLists(_Batches, _Lists):
    pass


_KINDS = {
    (False, False): HttpProvider,
    (True, False): _Batches,
    (False, True): _Lists,
    (True, True): _BatchesAndLists,
}
"""By whether it supports batches and listing: a provider has only the methods that it supports."""


@asynccontextmanager
async def open_http_provider(
    config: ProviderConfig,
    *,
    key: str | None,
    redactor: Redactor,
    embedder: Embedder | None = None,
    threshold: float | None = None,
    token_budget: int | None = None,
    store_id: str | None = None,
) -> AsyncIterator[HttpProvider]:
    """Open the service of a config that was read with an environment. `key` is the value of `auth.envVar`.

    `embedder` is the one of `config.embedding`; `threshold` and `token_budget` are those of the run, if any;
    `store_id` is for a service that may lose its data between two openings.
    """
    where = f'provider "{config.name}"'
    if config.endpoints is None:
        raise BadInput(where, "has no endpoints", expected="a hosted or docker provider")
    if config.embedding is not None and embedder is None:
        raise BadInput(where, "needs an embedder", expected=f"the {config.embedding.provider} one")
    headers = _auth_headers(config.auth, key, where)
    base_url = (config.docker.base_url if config.docker else config.connection.base_url) or ""
    told_url = redactor.clean(base_url)
    dialect = Dialect.parse(config)
    settings = {"threshold": threshold, "tokenBudget": token_budget or config.endpoints.search.token_budget}
    subject = Subject(
        role="provider", name=config.name, settings={**_settings(config, told_url, embedder), "search": settings}
    )
    data_lives_in = store_id or f"hosted:{told_url}"
    if embedder is not None:
        # vectors of different embedders cannot be compared: with another embedder, it is another store
        data_lives_in += f":{embedder.subject.key}"
    kind = _KINDS[dialect.batch_add is not None, dialect.list is not None]
    seconds = config.connection.timeout / 1000
    connection = config.connection
    async with open_http(redactor, insecure=connection.insecure, deadline=seconds, tls=connection.tls) as http:
        yield kind(config, dialect, Api(http, base_url, headers), subject, data_lives_in, embedder, settings)


def _settings(config: ProviderConfig, told_url: str, embedder: Embedder | None) -> dict[str, Any]:
    """Return what affects results. Requests are a digest, because a header may contain a secret."""
    parts = {"scoping", "setup", "endpoints", "teardown", "limits", "capabilities"}
    settings: dict[str, Any] = {
        "api_version": config.api_version,
        "url": told_url,
        "requests": digest(config.model_dump(mode="json", include=parts))[:16],
    }
    if embedder is not None:
        settings["embedder"] = embedder.subject.plain()
    return settings


def _auth_headers(auth: Auth, key: str | None, where: str) -> Mapping[str, str]:
    if auth.type == "none":
        return {}
    if not key:
        raise BadInput(where, f"its key is missing; {auth.env_var} is not set", remedy=f"export {auth.env_var}=…")
    prefix = _PREFIXES[auth.type] if auth.prefix is None else auth.prefix
    return {auth.header: f"{prefix}{key}"}
