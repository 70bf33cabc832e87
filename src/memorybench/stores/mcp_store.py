"""Any MCP memory server, as the `mcp` section of its YAML describes it: tools in the place of operations."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

from memorybench.core.errors import BadInput, Lacking, Malformed, Refused, ServiceError
from memorybench.core.records import digest
from memorybench.core.stores import Capability, Curation, NewFact, StoredFact
from memorybench.core.trials import Subject
from memorybench.mcp.client import McpClient
from memorybench.mcp.http_transport import open_mcp_http
from memorybench.mcp.messages import ToolError
from memorybench.mcp.stdio_transport import open_mcp_stdio
from memorybench.secrets.redaction import Redactor
from memorybench.text.sanitize import preview, sanitize
from memorybench.text.spelling import join_names, suggestion
from memorybench.text.words import content_words

from .config import Mcp, StoreConfig
from .mcp_operations import Call, Operations, Reading, Writing
from .programs import Program


class McpStore:
    """Opened by `open_mcp_store`."""

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
        self._refusal = re.compile(refusal) if refusal is not None else None

    async def remember(self, user: str, fact: NewFact) -> str:
        values = {
            "user": user,
            "newId": secrets.token_hex(8),
            **fact.model_dump(exclude={"retrieval_count"}),
            "retrievalCount": fact.retrieval_count,
        }
        return await self._written(self._operations.remember, values) or values["newId"]

    async def update(self, user: str, id: str, content: str) -> str:
        update = self._operations.update or self._lacks("update")
        values = {"user": user, "id": id, "content": content}
        if "previous" in update.names:
            values["previous"] = await self._said(user, id)
            if values["previous"] == content:
                return id
        return await self._written(update, values) or id

    async def forget(self, user: str, id: str) -> None:
        await self._written(self._operations.forget or self._lacks("forget"), {"user": user, "id": id})

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        recall = self._operations.recall or self._lacks("recall")
        text = query.encode("utf-8", "replace").decode().strip()
        if not text:
            return []
        asked = (content_words(text) or [text]) if recall.query_words else [text]
        finds = [self._told(recall, {"user": user, "query": word, "limit": limit}) for word in asked]
        return _by_hits(await asyncio.gather(*finds))[: max(limit, 0)]

    async def curate(self, user: str, *, apply: bool) -> Curation:
        self._lacks("curate")

    async def history(self, user: str) -> Sequence[str]:
        self._lacks("history")

    async def list(self, user: str) -> Sequence[StoredFact]:
        return await self._told(self._operations.list or self._lacks("list"), {"user": user})

    def _lacks(self, what: str) -> NoReturn:
        raise Lacking(f"{self.subject.name} has no tool to {what}")

    async def _said(self, user: str, id: str) -> str:
        for fact in await self.list(user):
            if fact.id == id:
                return fact.content
        raise ServiceError(f"{self.subject.name}: no fact has the id {preview(id)}")

    async def _written(self, write: Writing, values: Mapping[str, Any]) -> str | None:
        """The id that the last call tells, where it is asked for."""
        told: Any = None
        for call in write.calls:
            told = await self._called(call, write.values(values))
        if write.id is None:
            return None
        id = write.id.first(told)
        if id is None:
            raise Malformed(f"{self.subject.name}: {write.calls[-1].tool}: the result tells no id: {preview(told)}")
        return str(id)

    async def _told(self, read: Reading, values: Mapping[str, Any]) -> Sequence[StoredFact]:
        return read.facts.read(await self._called(read.call, values), read.call.tool)

    async def _called(self, call: Call, values: Mapping[str, Any]) -> Any:
        try:
            return (await self._client.call_tool(call.tool, _present(call.arguments.render(values)))).value()
        except ToolError as error:
            if self._refusal is not None and self._refusal.search(str(error)):
                raise Refused(str(error)) from error
            raise


def _present(value: Any) -> Any:
    """Without the keys that have no value."""
    if isinstance(value, dict):
        return {key: _present(inner) for key, inner in value.items() if inner is not None}
    return [_present(inner) for inner in value] if isinstance(value, list) else value


def _by_hits(finds: Sequence[Sequence[StoredFact]]) -> list[StoredFact]:
    """What more searches have found comes first; among equals, what was found first."""
    found = {fact.id: fact for facts in finds for fact in facts}
    hits = Counter(fact.id for facts in finds for fact in facts)
    return sorted(found.values(), key=lambda fact: -hits[fact.id])


@asynccontextmanager
async def open_mcp_store(
    config: StoreConfig, folder: Path, *, environment: Mapping[str, str], redactor: Redactor
) -> AsyncIterator[McpStore]:
    """A session with the server of a config with an `mcp` section, which ends with it.

    Of `environment`, the server sees only what any program needs (`mcp_stdio.INHERITED`).
    """
    mcp = config.mcp
    assert mcp is not None
    operations = Operations(config.name, mcp)
    program = Program.parse(mcp.command, mcp.env, f'store "{config.name}"')
    async with _connected(mcp, program, folder, environment, redactor) as client:
        await _check_tools(client, operations, config.name)
        subject = Subject(
            role="store",
            name=config.name,
            settings={"server": sanitize(str(client.server_info)), "operations": digest(mcp.operations)},
        )
        capabilities = operations.capabilities(in_folder=program.in_folder) | set(config.capabilities)
        yield McpStore(subject, capabilities, operations, client, mcp.refusal)


@asynccontextmanager
async def _connected(
    mcp: Mcp,
    program: Program,
    folder: Path,
    environment: Mapping[str, str],
    redactor: Redactor,
) -> AsyncIterator[McpClient]:
    deadline = mcp.timeout / 1000
    if mcp.url is not None:
        async with open_mcp_http(mcp.url, mcp.headers, redactor, deadline=deadline) as client:
            yield client
        return
    command, env = program.prepared(folder, environment, install=mcp.install)
    async with open_mcp_stdio(command, env, folder, redactor, deadline=deadline) as client:
        yield client


async def _check_tools(client: McpClient, operations: Operations, name: str) -> None:
    offered = [tool.name for tool in await client.list_tools()]
    for tool in operations.tools:
        if tool not in offered:
            raise BadInput(
                f'store "{name}"',
                f"the server has no tool {preview(tool)}",
                expected=f"one of {sanitize(join_names(offered))}",
                remedy=suggestion(tool, offered),
            )
