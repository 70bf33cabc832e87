"""Any MCP memory server as a store, used through the tools that the `mcp` section of its config names."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from memorybench.core.agents import Serve, Served
from memorybench.core.errors import Lacking, Malformed, Refused, ServiceError
from memorybench.core.records import digest
from memorybench.core.stores import Capability, Curation, NewFact, StoredFact
from memorybench.core.trials import Subject
from memorybench.mcp.client import ClientRole, McpClient, ToolError
from memorybench.mcp.http import open_mcp_http
from memorybench.mcp.proxy import open_server_proxy
from memorybench.mcp.stdio import open_mcp_stdio
from memorybench.secrets.redaction import Redactor
from memorybench.text.patterns import Pattern
from memorybench.text.sanitize import preview, sanitize
from memorybench.text.words import content_words

from .config import StoreConfig
from .mcp_calls import CallReader
from .mcp_operations import CURRENT, Operations, ReadOperation, ToolTemplate, WriteOperation
from .programs import ProgramTemplate


class McpStore:
    """A store that calls the tools of an MCP server. Opened by `open_mcp_store`."""

    def __init__(
        self,
        subject: Subject,
        capabilities: frozenset[Capability],
        operations: Operations,
        client: McpClient,
        refusal: str | None,
    ) -> None:
        self.subject = subject
        self.capabilities = capabilities
        self._operations = operations
        self._client = client
        self._refusal = Pattern(refusal) if refusal is not None else None

    async def remember(self, user: str, fact: NewFact) -> str:
        values = {
            "user": user,
            "newId": secrets.token_hex(8),
            **fact.model_dump(exclude={"retrieval_count"}),
            "retrievalCount": fact.retrieval_count,
        }
        return await self._write(self._operations.writes["remember"], values) or values["newId"]

    async def update(self, user: str, id: str, content: str) -> str:
        update = self._operations.writes.get("update") or self._lack("update")
        values: dict[str, Any] = {"user": user, "id": id, "content": content}
        if CURRENT & update.names:
            fact = next((fact for fact in await self.list(user) if fact.id == id), None)
            if fact is None:
                raise ServiceError(f"{self.subject.name}: unknown id {preview(id)}")
            if fact.content == content:
                return id
            values |= {"previous": fact.content, "category": fact.category}
        return await self._write(update, values) or id

    async def forget(self, user: str, id: str) -> None:
        await self._write(self._operations.writes.get("forget") or self._lack("forget"), {"user": user, "id": id})

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        recall = self._operations.reads.get("recall") or self._lack("recall")
        text = query.encode("utf-8", "replace").decode().strip()
        if not text:
            return []
        queries = (content_words(text) or [text]) if recall.query_words else [text]
        searches = [self._read(recall, {"user": user, "query": word, "limit": limit}) for word in queries]
        return _rank_by_hits(await asyncio.gather(*searches))[: max(limit, 0)]

    async def curate(self, user: str, *, apply: bool) -> Curation:
        self._lack("curate")

    async def history(self, user: str) -> Sequence[str]:
        self._lack("history")

    async def get(self, user: str, id: str) -> StoredFact | None:
        facts = await self._read(self._operations.reads.get("get") or self._lack("get"), {"user": user, "id": id})
        return next(iter(facts), None)

    async def list(self, user: str) -> Sequence[StoredFact]:
        return await self._read(self._operations.reads.get("list") or self._lack("list"), {"user": user})

    def _lack(self, operation: str) -> NoReturn:
        raise Lacking(f"{self.subject.name} has no tool for the operation {operation}")

    async def _write(self, operation: WriteOperation, values: Mapping[str, Any]) -> str | None:
        """Call the tools of a write operation, in order.

        Return the id of the fact from the last result; None if the config has no path to an id.
        """
        result: Any = None
        for call in operation.calls:
            result = await self._call(call, operation.with_defaults(values))
        if operation.id is None:
            return None
        id = operation.id.first(result)
        if id is None:
            tool = operation.calls[-1].tool
            raise Malformed(
                f"{self.subject.name}: {tool}: the result has no id at {operation.id.text}: {preview(result)}"
            )
        return str(id)

    async def _read(self, operation: ReadOperation, values: Mapping[str, Any]) -> Sequence[StoredFact]:
        return operation.facts.read(await self._call(operation.call, values), operation.call.tool)

    async def _call(self, call: ToolTemplate, values: Mapping[str, Any]) -> Any:
        try:
            return (await self._client.call_tool(call.tool, _drop_nulls(call.arguments.render(values)))).value()
        except ToolError as error:
            if self._refusal is not None and self._refusal.search(str(error)):
                raise Refused(str(error)) from error
            raise


class ClearingMcpStore(McpStore):
    """An McpStore whose server has a tool that deletes all facts of a user."""

    async def clear(self, user: str) -> None:
        await self._write(self._operations.writes["clear"], {"user": user})


def _drop_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_drop_nulls(inner) for inner in value] if isinstance(value, list) else value


def _rank_by_hits(results: Sequence[Sequence[StoredFact]]) -> list[StoredFact]:
    """Return each fact once, ordered by the number of searches that returned it, highest first.

    Facts with equal numbers keep the order of the results.
    """
    facts = {fact.id: fact for result in results for fact in result}
    hits = Counter(fact.id for result in results for fact in result)
    return sorted(facts.values(), key=lambda fact: -hits[fact.id])


@asynccontextmanager
async def open_mcp_store(
    config: StoreConfig, folder: Path, *, environment: Mapping[str, str], redactor: Redactor
) -> AsyncIterator[McpStore]:
    """Start the server of a config with an `mcp` section, or connect to its URL, and yield its store.

    Of `environment`, a server that is started gets only the variables that `programs.INHERITED` names.
    """
    mcp = config.mcp
    assert mcp is not None
    where = f'store "{config.name}"'
    operations = Operations(config.name, mcp)
    async with connect_server(config, folder, environment=environment, redactor=redactor) as client:
        await client.require_tools(operations.tools, where)
        subject = Subject(
            role="store",
            name=config.name,
            settings={"server": sanitize(str(client.server_info)), "operations": digest(mcp.operations)},
        )
        program = ProgramTemplate.parse(mcp.command, mcp.env, where)
        capabilities = operations.capabilities(uses_folder=program.uses_folder) | set(config.capabilities)
        kind = ClearingMcpStore if "clear" in operations.writes else McpStore
        yield kind(subject, capabilities, operations, client, mcp.refusal)


def connect_server(
    config: StoreConfig,
    folder: Path,
    *,
    environment: Mapping[str, str],
    redactor: Redactor,
    role: ClientRole | None = None,
) -> AbstractAsyncContextManager[McpClient]:
    """Start the MCP server of a config, with its data in `folder`, or connect to its URL; return a client for it."""
    mcp = config.mcp
    assert mcp is not None
    if mcp.url is not None:
        return open_mcp_http(mcp.url, mcp.headers, redactor, deadline=mcp.timeout / 1000, role=role)
    program = ProgramTemplate.parse(mcp.command, mcp.env, f'store "{config.name}"')
    command, env = program.render(folder, environment, install=mcp.install)
    return open_mcp_stdio(command, env, folder, redactor, deadline=mcp.timeout / 1000, role=role)


def serve_own_tools(config: StoreConfig, *, environment: Mapping[str, str], redactor: Redactor) -> Serve:
    """Return a function that starts the store's MCP server for one session of an agent.

    The agent gets the server's own tools. Its calls pass through a proxy, which records them and the memory operations
    that they perform.
    """
    assert config.mcp is not None
    reader = CallReader(Operations(config.name, config.mcp), config.mcp.refusal)

    @asynccontextmanager
    async def serve(folder: Path, session: int) -> AsyncIterator[Served]:
        connect = partial(connect_server, config, folder, environment=environment, redactor=redactor)
        async with open_server_proxy(lambda role: connect(role=role), reader.read, session=session) as proxy:
            yield proxy

    return serve
