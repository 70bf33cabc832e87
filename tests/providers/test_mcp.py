"""The mcp provider against the double, over stdio with a process for each scope, with one for all, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.contracts import Provider
from memorybench.core.errors import BadInput, Malformed, ServiceError
from memorybench.files.located import Document
from memorybench.files.yaml_file import parse_yaml
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.reading import read_provider
from memorybench.secrets.redaction import Redactor
from memorybench.testing import ProviderContract
from tests.doubles.mcp_server import McpHttpServer

pytest.importorskip("mcp")

from memorybench.providers.mcp_provider import McpProvider, open_mcp_provider
from tests.providers.embedded import AWAY, HOME, fill, session

DOUBLE = Path(__file__).parents[1] / "doubles" / "mcp_server.py"
ALL_TOOLS = """
    add:
      tool: remember
      unit: message
      arguments: {scope: $.scope, id: $.documentId, text: "${date} ${content}", sources: [$.documentId]}
    search:
      tool: recall
      arguments: {scope: $.scope, query: $.query, limit: $.limit}
      response: {results: $.found, contentField: text, idField: id, sourcesField: sources, scoreField: score}
    clear: {tool: forget, arguments: {scope: $.scope}}
    list:
      tool: everything
      arguments: {scope: $.scope}
      response: {results: $.found, contentField: text, idField: id, sourcesField: sources}
"""
BY_WORDS = """
    add:
      tool: remember_all
      unit: message
      document: {id: $.documentId, text: "${date} ${content}", sources: [$.documentId]}
      arguments: {scope: one, memories: $.documents}
    search:
      tool: grep
      queryWords: true
      arguments: {scope: one, word: $.query}
      response: {results: $.found, contentField: text, idField: id, sourcesField: sources}
"""


def config(server: str, tools: str) -> ProviderConfig:
    return read_provider(written(server, tools), {})


def written(server: str, tools: str) -> Document:
    head = "name: double\ntype: local\nadapter: builtin:mcp\nmcp:\n"
    return parse_yaml(f"{head}  {server}\n  tools:{tools}", "double.yaml")


def command(file: str) -> str:
    return f"command: {json.dumps([sys.executable, str(DOUBLE), file])}"


SHARED = command("${dataFolder}/kept.json")
PER_SCOPE = command("${scopeFolder}/kept.json")


def opened(folder: Path, server: str, tools: str) -> AbstractAsyncContextManager[McpProvider]:
    return open_mcp_provider(config(server, tools), folder / "mcp", environment={}, redactor=Redactor([]))


@pytest.mark.slow
class TestOneServerForAll(ProviderContract):
    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        return opened(folder, SHARED, ALL_TOOLS)


class TestAProcessForEachScope(ProviderContract):
    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        return opened(folder, PER_SCOPE, BY_WORDS)


class TestOverHttp(ProviderContract):
    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        with McpHttpServer(folder / "kept.json", events=True) as server:
            async with opened(folder, f"url: {server.url}", ALL_TOOLS) as provider:
                yield provider


def test_a_server_that_keeps_nothing_of_ours_is_filled_again(tmp_path: Path) -> None:
    async def store_id() -> str:
        async with opened(tmp_path, command(str(tmp_path / "elsewhere.json")), ALL_TOOLS) as provider:
            return provider.store_id

    assert asyncio.run(store_id()) != asyncio.run(store_id())


def test_sources_survive_a_restart_although_the_server_never_learns_them(tmp_path: Path) -> None:
    async def told() -> Any:
        async with opened(tmp_path, SHARED, ALL_TOOLS) as provider:
            await fill(provider, [session("answer_session_7", "I have a zebrafinch.")])
        async with opened(tmp_path, SHARED, ALL_TOOLS) as provider:
            return (await provider.search(HOME, "zebrafinch", 5))[0].sources

    assert asyncio.run(told()) == ("answer_session_7", "answer_session_7:1")
    assert "answer_session_7" not in (tmp_path / "mcp" / "data" / "kept.json").read_text()


def test_what_more_words_of_the_query_find_comes_first(tmp_path: Path) -> None:
    async def found() -> list[tuple[str, float | None]]:
        async with opened(tmp_path, PER_SCOPE, BY_WORDS) as provider:
            await fill(provider, [session("s", "A red kite.", "A red bus.", "A blue bus.", "Nothing at all.")])
            best = await provider.search(HOME, "Where did the red kite and the bus go?", 10)
            return [(memory.content.rpartition("user: ")[2], memory.score) for memory in best]

    assert asyncio.run(found()) == [("A red bus.", 2.0), ("A red kite.", 2.0), ("A blue bus.", 1.0)]


def test_a_cleared_scope_leaves_no_file_behind(tmp_path: Path) -> None:
    async def cleared() -> None:
        async with opened(tmp_path, PER_SCOPE, BY_WORDS) as provider:
            for scope in (HOME, AWAY):
                await fill(provider, [session("s", "A red kite.")], scope)
            await provider.clear(HOME)

    asyncio.run(cleared())
    assert [folder.name for folder in (tmp_path / "mcp" / "scopes").iterdir()] == [AWAY.name]


@pytest.mark.slow
def test_after_its_server_died_a_scope_gets_a_new_one(tmp_path: Path) -> None:
    dying = BY_WORDS.replace("tool: grep", "tool: die")

    async def search() -> int:
        async with opened(tmp_path, PER_SCOPE, BY_WORDS) as provider:
            await fill(provider, [session("s", "A red kite.")])
        async with opened(tmp_path, PER_SCOPE, dying) as provider:
            for _ in range(2):
                with pytest.raises(ServiceError, match="status 7"):
                    await provider.search(HOME, "kite", 5)
            await fill(provider, [session("t", "A red bus.")])
        async with opened(tmp_path, PER_SCOPE, BY_WORDS) as provider:
            return len(await provider.search(HOME, "red", 5))

    assert asyncio.run(search()) == 2


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("contentField: text", "contentField: body", "result 1 .* at body"),
        ("results: $.found", "results: $.hits", r".* at \$\.hits"),
        ("scoreField: score", "scoreField: text", ".* score at text"),
    ],
)
def test_a_result_that_is_not_as_the_config_says_is_an_error(tmp_path: Path, old: str, new: str, problem: str) -> None:
    async def search() -> None:
        async with opened(tmp_path, SHARED, ALL_TOOLS.replace(old, new)) as provider:
            await fill(provider, [session("s", "A red kite.")])
            with pytest.raises(Malformed, match=rf"CALL mcp://double/recall: {problem}"):
                await provider.search(HOME, "kite", 5)

    asyncio.run(search())


def test_a_tool_that_the_server_lacks_is_named_at_once(tmp_path: Path) -> None:
    async def open_it() -> None:
        async with opened(tmp_path, SHARED, ALL_TOOLS.replace("tool: recall", "tool: recal")):
            pytest.fail("it was opened")

    with pytest.raises(BadInput, match='did you mean "recall"'):
        asyncio.run(open_it())


def test_a_missing_program_is_named_at_once_with_how_to_get_it(tmp_path: Path) -> None:
    server = 'command: [no-such-server, "${scopeFolder}"]\n  install: npm install no-such-server'

    async def open_it() -> None:
        async with opened(tmp_path, server, BY_WORDS):
            pytest.fail("it was opened")

    with pytest.raises(BadInput, match="npm install no-such-server"):
        asyncio.run(open_it())


@pytest.mark.parametrize(
    ("server", "tools", "problem"),
    [
        (SHARED, BY_WORDS, "mcp.tools.add: the call does not send the scope"),
        (SHARED, ALL_TOOLS.replace("clear: {tool", "# {tool"), 'mcp.tools: "clear" is missing'),
        (SHARED, ALL_TOOLS.replace("query: $.query", "q: x"), "mcp.tools.search.arguments: "),
        (SHARED, ALL_TOOLS.replace("$.documentId, text", "$.docId, text"), 'unknown variable "docId"'),
        (SHARED, ALL_TOOLS.replace("id: $.documentId", "id: $.documents"), 'unknown variable "documents"'),
        (SHARED, ALL_TOOLS.replace("results: $.found,", ""), '"results" is missing'),
        (PER_SCOPE, BY_WORDS.replace("idField: id, ", ""), '"idField" is missing'),
        (PER_SCOPE, BY_WORDS.replace("$.documents}", "[]}"), "document and $.documents must be used together"),
        (f"url: https://x.test\n  {SHARED}", ALL_TOOLS, "expected exactly one of command and url"),
        ("timeout: 5", ALL_TOOLS, "expected exactly one of command and url"),
        ("url: http://x.test", ALL_TOOLS, "mcp.url: http://x.test: "),
        ("url: https://x.test\n  env: {A: b}", ALL_TOOLS, "mcp.env: env has no effect with url"),
        (command("${dataFolder}${scopeFolder}"), ALL_TOOLS, "${scopeFolder} and ${dataFolder}"),
        (command("${folder}"), ALL_TOOLS, 'unknown variable "folder"'),
    ],
)
def test_errors_in_a_config_name_their_place(server: str, tools: str, problem: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_provider(written(server, tools), {})
    assert str(refused.value).startswith("double.yaml:")
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: x\ntype: local\nadapter: builtin:mcp\n", '"mcp" is missing'),
        (
            f"name: x\ntype: local\nadapter: builtin:bm25\nmcp:\n  {SHARED}\n  tools:{ALL_TOOLS}",
            "mcp: mcp has no effect",
        ),
    ],
)
def test_the_mcp_section_and_its_adapter_need_each_other(text: str, problem: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_provider(parse_yaml(text, "x.yaml"), {})
    assert problem in str(refused.value)
