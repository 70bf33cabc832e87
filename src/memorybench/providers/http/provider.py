"""Any memory service with an HTTP and JSON API, as its YAML card describes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from memorybench.core.contracts import Embedder, Receipt, Scope
from memorybench.core.conversation import Found, Memory, Session
from memorybench.core.errors import BadInput, Malformed, ServiceError, Transient
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.http.client import encode_json, open_http
from memorybench.http.config import auth_headers
from memorybench.http.replies import Reply
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.requests import Probe
from memorybench.providers.storage.turns import replace_surrogates
from memorybench.secrets.redaction import Redactor

from .documents import SentDocument, merge_sources, shorten, sources_by_assigned_ids, sources_by_our_ids
from .paging import PageProgress, read_pages
from .requests import Api, Values, read_ids, render
from .scopes import Accepted, Scopes, ScopeState
from .service import AddRequest, ReadRequest, Service
from .signing import RequestToSign, make_signer
from .waiting import Deadline, Marker, Pacer, PollTemplate, wait_until_done

_MARKER_RESULTS = 10
"""Number of results that a search for the marker requests; the marker need not be the first."""
_NEWER_KEYS = frozenset(
    {
        "pages",
        "per_document",
        "batch_sessions",
        "batch_messages",
        "batch_bytes",
        "expires_in",
        "expires_at",
        "failed_if",
    }
)
_PARALLEL_POLLS = 8
"""Number of documents of one scope that are polled at the same time."""


class HttpProvider:
    """A provider that sends the requests that a card describes. Opened by `open_http_provider`.

    A call sends each request once, after the configured delay; retries and the limit on concurrent calls are the
    engine's task. Only `wait_until_searchable` polls. Values captured from replies are stored in receipts; a process
    that resumes the run passes the receipts to `restore`.
    """

    def __init__(
        self,
        config: ProviderConfig,
        service: Service,
        api: Api,
        subject: Subject,
        store_id: str,
        embedder: Embedder | None,
        search_settings: Mapping[str, Any],
        redactor: Redactor,
    ) -> None:
        self._where = f'provider "{config.name}"'
        self._limits = config.limits
        self._max_results = config.max_results
        self._is_live = config.type == "hosted"
        self._service = service
        self._api = api
        self._scopes = Scopes(config.name, service, api, redactor)
        self.subject = subject
        self.store_id = store_id
        self._embedder = embedder
        self._search_settings = search_settings
        self._add_pacer = Pacer(config.rate_limit.add_delay_ms)
        self._batch_pacer = Pacer(config.rate_limit.batch_delay_ms)
        self._search_pacer = Pacer(config.rate_limit.search_delay_ms)
        # for the engine, a wait is one call: if concurrent calls are limited, it must not send several polls at once
        is_limited = config.rate_limit.concurrency or config.rate_limit.requests_per_second
        self._parallel_polls = 1 if is_limited else _PARALLEL_POLLS

    async def add(self, scope: Scope, session: Session) -> Receipt:
        return await self._add(scope, self._service.splitter.split(scope, session))

    def restore(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Restore captured values from the receipts of an earlier process, without sending a request.

        Must be called before this process adds to, searches or clears a scope that another process has opened.
        """
        self._scopes.restore(scope, receipts)

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        self.restore(scope, receipts)
        for add in (self._service.add, self._service.batch_add):
            if add is None:
                continue
            of_add = [receipt for receipt in receipts if receipt.ids and receipt.captured["endpoint"] == add.endpoint]
            if isinstance(add.wait, Probe) and of_add:
                await self._wait_for_marker(scope, add.wait)
            elif isinstance(add.wait, PollTemplate) and of_add:
                send = self._scopes.sender(await self._scopes.open(scope))
                polls = [poll for receipt in of_add for poll in receipt.captured["questions"]]
                await wait_until_done(send, add.wait, polls, parallel=self._parallel_polls)

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        max_results = self._max_results
        if max_results is not None and limit > max_results:
            raise BadInput(
                self._where,
                f"cannot search for {limit} results",
                expected=f"{max_results} (limits.maxResults, or pages.size × pages.maxPages) or less",
                remedy="add --top-k N with a lower number",
            )
        if not self._service.uses_marker:
            return await self._search(scope, query, limit)
        # one more, because the marker may be among the results
        memories = await self._search(scope, query, limit if limit == max_results else limit + 1)
        found = Marker.of(scope, self._service.splitter).remove_from(memories)[:limit]
        return Found(found, memories.shortfall) if isinstance(memories, Found) and len(found) < limit else found

    async def clear(self, scope: Scope) -> None:
        await self._scopes.clear(scope)

    async def count_memories(self, scope: Scope) -> int | None:
        """Return the number of memories in a scope.

        None if the config has no endpoint `list`, or if the run itself has started the service in a container.
        """
        if self._service.list is None or not self._is_live:
            return None
        await self._scopes.open(scope)
        return len(await self._list(self._service.list, scope))

    async def _add(self, scope: Scope, documents: Sequence[SentDocument]) -> Receipt:
        add, state = self._service.add, await self._scopes.open(scope)
        accepted = []
        for document, variables in zip(documents, await self._variables(add, documents), strict=True):
            if document.id not in state.accepted:
                await self._add_pacer.wait()
                state.accepted[document.id] = await self._send(add, state, [document], variables)
            accepted.append(state.accepted[document.id])
        return self._scopes.make_receipt(state, add.endpoint, [document.id for document in documents], accepted)

    async def _variables(self, add: AddRequest, documents: Sequence[SentDocument]) -> list[dict[str, Any]]:
        """Return the values of the variables for each document, with its vector if the request uses `embedding`."""
        variables = [self._service.splitter.variables(document) for document in documents]
        if "embedding" in add.names and documents:
            vectors = await self._embed([document.content for document in documents])
            return [{**values, "embedding": vector} for values, vector in zip(variables, vectors, strict=True)]
        return variables

    async def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        assert self._embedder is not None
        # the local embedder returns numpy rows; JSON needs plain numbers
        return [[float(number) for number in vector] for vector in await self._embedder.embed(texts)]

    async def _send(
        self, add: AddRequest, state: ScopeState, documents: Sequence[SentDocument], values: Values
    ) -> Accepted:
        try:
            reply = await self._scopes.send(add.request, state, values)
            return self._read_accepted(add, documents, reply)
        except ServiceError as error:
            # after an invalid reply, the service may have stored the document, because the HTTP status was a success
            error.may_leave_data |= isinstance(error, Malformed) or bool(state.accepted)
            raise

    @staticmethod
    def _read_accepted(add: AddRequest, documents: Sequence[SentDocument], reply: Reply | None) -> Accepted:
        data = add.reader.read_json(reply)
        captures = add.reader.read_captures(reply, data)
        polls: list[Values] = []
        if isinstance(add.wait, PollTemplate):
            polls = add.wait.polls(reply, data, [{**captures, "documentId": document.id} for document in documents])
        sources = sources_by_our_ids(documents)
        if add.stored_as is not None and reply is not None:
            ids = [str(id) for id in read_ids(add.stored_as, data, reply)]
            assigned = sources_by_assigned_ids(ids, documents)
            if assigned is None:
                raise reply.malformed(
                    f"the reply has {len(ids)} ids at {add.stored_as.text}; expected {len(documents)}, one per document"
                )
            merge_sources([assigned], sources)
        return Accepted(tuple(polls), sources)

    async def _search(self, scope: Scope, query: str, limit: int) -> list[Memory]:
        search = self._service.search
        text = shorten(replace_surrogates(query).strip(), self._limits.max_query_characters)
        state = await self._scopes.require(scope, search.request.names)
        if state is None or not text:
            return []
        values: dict[str, Any] = {**self._search_settings, "query": text, "limit": limit}
        if "embedding" in search.request.names:
            [values["embedding"]] = await self._embed([text])
        progress = state.searches.pop((text, limit), None) or PageProgress()
        try:
            is_short = await self._read(search, state, values, progress, limit)
        except Transient:
            state.searches[text, limit] = progress
            raise
        distinct = search.response.distinct(progress.results)
        memories = search.response.best(distinct, limit, state.find_sources)
        if is_short:
            assert search.pages is not None
            shortfall = (
                f"{self._where} has more than {search.pages.config.max_pages} pages (pages.maxPages) of results, which "
                f"are fewer than the {limit} memories of a search; memories on later pages count as not found"
            )
            return Found(memories, shortfall)
        if len(distinct) < len(progress.results) and len(memories) < limit:
            return Found(
                memories,
                f"{self._where} returned a memory several times in one search, which counts once; a search has fewer "
                f"than {limit} memories",
            )
        return memories

    async def _read(
        self, read: ReadRequest, state: ScopeState, values: Values, progress: PageProgress, limit: int | None
    ) -> bool:
        """Add the results of a search or listing to `progress`; return whether it has more pages than `maxPages`."""

        async def send(variables: Values, url: str | None) -> Reply | None:
            await self._search_pacer.wait()
            return await self._scopes.send(read.request, state, {**values, **variables}, url)

        if read.pages is not None:
            return await read_pages(read.pages, read.response, progress, limit, send)
        reply = await send({}, None)
        progress.results = [] if reply is None else read.response.whole(reply)
        return False

    async def _list(self, listing: ReadRequest, scope: Scope) -> Sequence[Memory]:
        state = await self._scopes.require(scope, listing.request.names)
        if state is None:
            return []
        progress = PageProgress()
        if await self._read(listing, state, {}, progress, None):
            assert listing.pages is not None
            pages = listing.pages.config.max_pages
            raise ServiceError(f"{self._where}: list has more than {pages} pages; increase its pages.maxPages")
        memories = listing.response.best(progress.results, None, state.find_sources)
        uses_marker = self._service.uses_marker
        return Marker.of(scope, self._service.splitter).remove_from(memories) if uses_marker else memories

    async def _wait_for_marker(self, scope: Scope, probe: Probe) -> None:
        """Add a marker document after all other documents, and search until a search finds it."""
        marker = Marker.of(scope, self._service.splitter)
        await self._add(scope, marker.documents)
        limit = min(_MARKER_RESULTS, self._max_results or _MARKER_RESULTS)
        deadline = Deadline(probe.timeout / 1000)
        while True:
            delay = probe.interval / 1000
            try:
                if any(marker.is_source_of(memory) for memory in await self._search(scope, marker.text, limit)):
                    return
            except Transient as error:  # searching again does no harm
                delay = max(delay, error.retry_after or 0.0)
            await deadline.pause(delay, f"{self._where}: added documents are not searchable yet")


class _BatchProvider(HttpProvider):
    @property
    def batch_size(self) -> int:
        return min(self._limits.batch_size, self._limits.batch_sessions or self._limits.batch_size)

    async def add(self, scope: Scope, session: Session) -> Receipt:
        documents = self._service.splitter.split(scope, session)
        # a session with many messages is a batch
        return await (self._add_batch(scope, documents) if len(documents) > 1 else self._add(scope, documents))

    async def add_batch(self, scope: Scope, sessions: Sequence[Session]) -> Receipt:
        split = self._service.splitter.split
        return await self._add_batch(scope, [document for session in sessions for document in split(scope, session)])

    async def _add_batch(self, scope: Scope, documents: Sequence[SentDocument]) -> Receipt:
        add, state = self._service.batch_add, await self._scopes.open(scope)
        assert add is not None
        variables = await self._variables(add, documents)
        rendered = [render(add.document, {**state.variables, **values}) for values in variables]
        # a retry may form other batches, because the size of a request depends on variables, such as a token
        pending = [
            (document, body)
            for document, body in zip(documents, rendered, strict=True)
            if document.id not in state.accepted
        ]
        while pending:
            size = self._size_of_batch(add, state, pending)
            batch = [document for document, _ in pending[:size]]
            await self._batch_pacer.wait()
            values = {"documents": [body for _, body in pending[:size]]}
            state.accepted |= dict.fromkeys(
                (document.id for document in batch), await self._send(add, state, batch, values)
            )
            pending = pending[size:]
        ids = [document.id for document in documents]
        # by identity, because the documents of one request share one object
        accepted = {id(part): part for part in map(state.accepted.__getitem__, ids)}
        return self._scopes.make_receipt(state, add.endpoint, ids, list(accepted.values()))

    def _size_of_batch(self, add: AddRequest, state: ScopeState, pending: Sequence[tuple[SentDocument, Any]]) -> int:
        """Return how many of the pending documents, from the first one on, fit into one request."""
        limits = self._limits
        size, messages = 0, 0
        sessions: set[str] = set()
        for document, _ in pending[: limits.batch_size]:
            sessions.add(document.session)
            messages += max(1, len(document.messages))
            if size and (
                len(sessions) > (limits.batch_sessions or len(sessions))
                or messages > (limits.batch_messages or messages)
            ):
                break
            size += 1
        if limits.batch_bytes is None:
            return size
        while (length := self._length(add, state, [body for _, body in pending[:size]])) > limits.batch_bytes:
            if size == 1:
                problem = f"the request for one document of session {pending[0][0].sources[0]} has {length:,} bytes"
                raise ServiceError(
                    f"{self._where}: {problem}; expected at most {limits.batch_bytes:,} (limits.batchBytes); "
                    "set limits.maxCharacters, so that the document is split"
                )
            # in proportion, because documents are of similar length; at least one less
            size = max(1, min(size - 1, size * limits.batch_bytes // length))
        return size

    @staticmethod
    def _length(add: AddRequest, state: ScopeState, rendered: Sequence[Any]) -> int:
        return len(encode_json(add.request.json({**state.variables, "documents": list(rendered)})))


class _ListingProvider(HttpProvider):
    async def list(self, scope: Scope) -> Sequence[Memory]:
        assert self._service.list is not None
        return await self._list(self._service.list, scope)


class _ForgettingProvider(HttpProvider):
    async def forget(self, scope: Scope, id: str) -> None:
        assert self._service.forget is not None
        await self._scopes.forget(self._service.forget, scope, id)


@cache
def _provider_class(*, batches: bool, lists: bool, forgets: bool) -> type[HttpProvider]:
    """Return a class that has only the methods that the service supports."""
    parts = {_BatchProvider: batches, _ListingProvider: lists, _ForgettingProvider: forgets}
    bases = tuple(part for part, is_supported in parts.items() if is_supported)
    return type(HttpProvider.__name__, bases or (HttpProvider,), {})


def _without_newer_keys(value: Any) -> Any:
    """Remove keys that are not set and that earlier versions of memorybench did not have.

    So a config has the same digest as in earlier versions, and the searches that they recorded can be reused.
    """
    match value:
        case dict():
            kept = {key: inner for key, inner in value.items() if inner is not None or key not in _NEWER_KEYS}
            return {key: _without_newer_keys(inner) for key, inner in kept.items()}
        case list():
            return [_without_newer_keys(inner) for inner in value]
    return value


@asynccontextmanager
async def open_http_provider(
    config: ProviderConfig,
    *,
    key: str | None,
    redactor: Redactor,
    embedder: Embedder | None = None,
    threshold: float | None = None,
    store_id: str | None = None,
    sign: Callable[[RequestToSign], Any] | None = None,
) -> AsyncIterator[HttpProvider]:
    """Open the service that a config describes. `config` must contain values instead of `${VAR}`.

    `key` is the value of `auth.envVar`; `embedder` is the one that `config.embedding` describes; `threshold` is the
    value of the variable `threshold`; `store_id` is for a service that may lose its data, such as a container (None:
    the service keeps its data); `sign` is the function that `connection.sign` names.
    """
    where = f'provider "{config.name}"'
    if config.endpoints is None:
        raise BadInput(where, "the config has no endpoints", expected="a provider with type: hosted or docker")
    if config.embedding is not None and embedder is None:
        raise BadInput(
            where, "no embedder was passed", expected=f"an embedder for embedding.provider: {config.embedding.provider}"
        )
    base_url = (config.docker.base_url if config.docker else config.connection.base_url) or ""
    safe_url = redactor.clean(base_url)
    service = Service.parse(config)
    # requests are a digest, because a header may contain a secret
    parts = {"scoping", "setup", "endpoints", "teardown", "limits", "capabilities"}
    plain = config.model_dump(mode="json", include=parts, exclude={"endpoints": {"forget"}})
    requests = digest(_without_newer_keys(plain))[:16]
    search = {"threshold": threshold, "tokenBudget": config.endpoints.search.token_budget}
    settings: dict[str, Any] = {
        "api_version": config.api_version,
        "url": safe_url,
        "requests": requests,
        "search": search,
    }
    store_id = store_id or f"hosted:{safe_url}"
    if embedder is not None:
        settings["embedder"] = embedder.subject.plain()
        # vectors of different embedders cannot be compared, so the store id depends on the embedder
        store_id += f":{embedder.subject.key}"
    subject = Subject(role="provider", name=config.name, settings=settings)
    headers = auth_headers(config.auth, key, where)
    connection = config.connection
    async with open_http(
        redactor, insecure=connection.insecure, deadline=connection.timeout / 1000, tls=connection.tls
    ) as http:
        provider = _provider_class(
            batches=service.batch_add is not None, lists=service.list is not None, forgets=service.forget is not None
        )
        signer = None if sign is None else make_signer(sign, key, f"{where}: connection.sign")
        api = Api(http, base_url, headers, signer)
        yield provider(config, service, api, subject, store_id, embedder, search, redactor)
