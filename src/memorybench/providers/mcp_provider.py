"""Any MCP memory server as a provider, used through the tools that the `mcp` section of its config names."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from yarl import URL

from memorybench.core.contracts import Receipt, Scope
from memorybench.core.conversation import Memory, Session
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.files.bodies import BodyTemplate, names_in
from memorybench.files.located import Document
from memorybench.http.replies import Reply
from memorybench.mcp.client import McpClient, ToolResult
from memorybench.mcp.config import ToolCall
from memorybench.mcp.http import open_mcp_http
from memorybench.mcp.stdio import open_mcp_stdio
from memorybench.processes.programs import check_program, child_environment, temporary_folder
from memorybench.secrets.redaction import Redactor
from memorybench.text.words import content_words, space_ideographs

from .config.provider import ProviderConfig
from .config.variables import AnyName, scope_variables
from .config_mcp import ListTool, Mcp, SearchTool
from .config_mcp_reading import FOLDERS, folders_used
from .http.documents import SessionSplitter, sources_by_our_ids
from .http.requests import render
from .http.results import ResponseTemplate
from .storage.scope_folders import ScopeFolders
from .storage.scope_pool import ScopePool
from .storage.turns import replace_surrogates

_ANY = AnyName()  # the config was checked when it was read
HOME = "home"
"""Name of the folder that a server gets as its private home folder; it is next to the server's data folder."""


class _ToolTemplate(Struct, frozen=True):
    tool: str
    arguments: Any
    """The arguments of a call, as a template for `render`."""
    response: ResponseTemplate | None


class _ToolMapping:
    """The tools that a config names, with their arguments as parsed templates."""

    def __init__(self, config: ProviderConfig, mcp: Mcp) -> None:
        # errors name the keys of the config, but no lines, because the file is not available here
        part = Document(f'provider "{config.name}"', config.model_dump(by_alias=True)).at("mcp", "tools")
        tools = mcp.tools
        self.add = _call(part.at("add"), tools.add)
        self.search = _call(part.at("search"), tools.search)
        self.clear = _call(part.at("clear"), tools.clear) if tools.clear else None
        self.list = _call(part.at("list"), tools.list) if tools.list else None
        self.query_words = tools.search.query_words
        self.document = BodyTemplate.parse(part.at("add", "document"), _ANY).root
        template = self.add.arguments if self.document is None else self.document
        self.splitter = SessionSplitter(unit=tools.add.unit, by_messages="messages" in names_in(template))

    @property
    def tools(self) -> list[str]:
        return [call.tool for call in (self.add, self.search, self.clear, self.list) if call is not None]


def _call(part: Document, call: ToolCall) -> _ToolTemplate:
    response = call.response if isinstance(call, SearchTool | ListTool) else None
    return _ToolTemplate(
        call.tool,
        BodyTemplate.parse(part.at("arguments"), _ANY).root,
        ResponseTemplate.parse(part.at("response"), response) if response is not None else None,
    )


class _Servers(Protocol):
    def using(self, scope: str) -> AbstractAsyncContextManager[McpClient]: ...

    async def drop(self, scope: str) -> None:
        """Close the server of a scope that has been cleared. A server that other scopes share stays open."""
        ...


class _OneServer:
    """One server for all scopes; the arguments name the scope."""

    def __init__(self, client: McpClient) -> None:
        self._client = client

    @asynccontextmanager
    async def using(self, scope: str) -> AsyncIterator[McpClient]:
        yield self._client

    async def drop(self, scope: str) -> None:
        """Do nothing: other scopes still use the server."""


@dataclass(eq=False, repr=False)
class McpProvider:
    """A provider that calls the tools of an MCP server. Opened by `open_mcp_provider`."""

    subject: Subject
    store_id: str
    _mapping: _ToolMapping
    _servers: _Servers
    _folders: ScopeFolders
    _redactor: Redactor

    async def add(self, scope: Scope, session: Session) -> Receipt:
        sent = self._mapping.splitter.split(scope, session)
        if not sent:
            return Receipt()
        self._folders.save_sources(scope.name, sources_by_our_ids(sent))
        documents = [{**scope_variables(scope, scope.name), **self._mapping.splitter.variables(one)} for one in sent]
        if self._mapping.document is not None:
            bodies = [render(self._mapping.document, document) for document in documents]
            documents = [{**scope_variables(scope, scope.name), "documents": bodies}]
        async with self._servers.using(scope.name) as server:
            for values in documents:
                await server.call_tool(self._mapping.add.tool, render(self._mapping.add.arguments, values))
        return Receipt(ids=tuple(one.id for one in sent))

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Return at once: a document is searchable when `add` returns."""

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        text = replace_surrogates(query).strip()
        if not text:
            return []
        if not self._mapping.query_words:
            return await self._search(self._mapping.search, scope, limit, {"query": text, "limit": limit})
        words = content_words(space_ideographs(text)) or [text]
        searches = [self._search(self._mapping.search, scope, None, {"query": word, "limit": limit}) for word in words]
        return _rank_by_hits(await asyncio.gather(*searches))[:limit]

    async def clear(self, scope: Scope) -> None:
        if self._mapping.clear is not None:
            await self._call(self._mapping.clear, scope, {})
        await self._servers.drop(scope.name)
        await asyncio.to_thread(self._folders.clear, scope.name)

    async def _search(
        self, call: _ToolTemplate, scope: Scope, limit: int | None, values: Mapping[str, Any]
    ) -> Sequence[Memory]:
        assert call.response is not None
        result = await self._call(call, scope, values)
        # as an HTTP reply, so that the reader of HTTP results can be used, with its error messages
        where = URL.build(scheme="mcp", host=self.subject.name, path=f"/{call.tool}")
        reply = Reply(200, {}, json.dumps(result.value()).encode(), "CALL", where, self._redactor)
        sources = self._folders.sources_of(scope.name)
        return call.response.memories(reply, limit, lambda id: sources.get(id, ()))

    async def _call(self, call: _ToolTemplate, scope: Scope, values: Mapping[str, Any]) -> ToolResult:
        arguments = render(call.arguments, {**scope_variables(scope, scope.name), **values})
        async with self._servers.using(scope.name) as server:
            return await server.call_tool(call.tool, arguments)


class ListingMcpProvider(McpProvider):
    """An McpProvider whose server has a tool that lists all memories."""

    async def list(self, scope: Scope) -> Sequence[Memory]:
        assert self._mapping.list is not None
        return await self._search(self._mapping.list, scope, None, {})


class LiveMcpProvider(McpProvider):
    """An McpProvider whose server stores its data outside the folders that memorybench gives it.

    Such a server may already contain memories, so they can be counted.
    """

    async def count_memories(self, scope: Scope) -> int | None:
        if self._mapping.list is None:
            return None
        return len(await self._search(self._mapping.list, scope, None, {}))


class LiveListingMcpProvider(LiveMcpProvider, ListingMcpProvider):
    pass


def _rank_by_hits(results: Sequence[Sequence[Memory]]) -> list[Memory]:
    """Return each memory once, with the number of searches that returned it as its score, highest first.

    Equal scores are ordered by text, because ids and the order of adding may differ from run to run.
    """
    memories = {memory.id: memory for result in results for memory in result}
    hits = Counter(memory.id for result in results for memory in result)
    ranked = sorted(memories.values(), key=lambda memory: (-hits[memory.id], memory.content))
    return [memory.model_copy(update={"score": float(hits[memory.id])}) for memory in ranked]


@asynccontextmanager
async def open_mcp_provider(
    config: ProviderConfig, folder: Path, *, environment: Mapping[str, str], redactor: Redactor
) -> AsyncIterator[McpProvider]:
    """Open the provider of a config with an `mcp` section.

    `folder` is for the data of its servers, and for the list of which document comes from which session. Of
    `environment`, a server that is started gets only the variables that `programs.INHERITED` names.
    """
    assert config.mcp is not None
    mapping = _ToolMapping(config, config.mcp)
    folders = ScopeFolders(folder)
    uses_our_folders = bool(folders_used(config.mcp, Document(config.name, {})))
    # a server that we start without one of our folders may keep its data in memory, which a restart loses
    is_durable = config.mcp.url is not None or uses_our_folders
    subject = Subject(
        role="provider",
        name=config.name,
        settings={"api_version": config.api_version, "mapping": digest(config.mcp.tools.plain())},
    )
    async with _open_servers(config.name, config.mcp, mapping, folders, environment, redactor) as servers:
        kinds = (McpProvider, ListingMcpProvider) if uses_our_folders else (LiveMcpProvider, LiveListingMcpProvider)
        yield kinds[mapping.list is not None](
            subject, folders.store_id if is_durable else secrets.token_hex(16), mapping, servers, folders, redactor
        )


@asynccontextmanager
async def _open_servers(
    name: str,
    mcp: Mcp,
    mapping: _ToolMapping,
    folders: ScopeFolders,
    environment: Mapping[str, str],
    redactor: Redactor,
) -> AsyncIterator[_Servers]:
    deadline = mcp.timeout / 1000
    where = f'provider "{name}"'
    if mcp.url is not None:
        async with open_mcp_http(mcp.url, mcp.headers, redactor, deadline=deadline) as client:
            await client.require_tools(mapping.tools, where)
            yield _OneServer(client)
        return
    path = {**environment, **mcp.env}.get("PATH")
    check_program(mcp.command[0], where, path=path, install=mcp.install)
    part = Document(where, {"command": list(mcp.command), "env": dict(mcp.env)}, within=("mcp",))
    program = BodyTemplate.parse(part, FOLDERS)

    @asynccontextmanager
    async def start(values: Mapping[str, str], cwd: Path, home: Path) -> AsyncIterator[McpClient]:
        rendered = program.render(values)
        env = child_environment(environment, rendered["env"], home)
        async with open_mcp_stdio(rendered["command"], env, cwd, redactor, deadline=deadline) as client:
            await client.require_tools(mapping.tools, where)
            yield client

    def for_scope(scope: str) -> AbstractAsyncContextManager[McpClient]:
        data = folders.data(scope)
        return start({"scopeFolder": str(data)}, data, data.with_name(HOME))

    used = folders_used(mcp, part)
    if "scopeFolder" not in used:
        data = folders.shared
        # without one of our folders, the data counts as lost after a restart, so the home must be deleted, too
        with nullcontext(data.with_name(HOME)) if used else temporary_folder("memorybench-home-") as home:
            async with start({"dataFolder": str(data)}, data if used else home, home) as client:
                yield _OneServer(client)
        return
    pool = ScopePool(for_scope, mcp.processes)
    try:
        yield pool
    finally:
        await pool.close()
