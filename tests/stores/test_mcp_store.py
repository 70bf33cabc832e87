"""MCP servers as stores: a test server over stdio and over HTTP, with short configs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from memorybench.core.errors import BadInput, Lacking, Malformed, Refused, ServiceError
from memorybench.core.stores import MemoryStore, NewFact
from memorybench.files.yaml_file import parse_yaml
from memorybench.secrets.redaction import Redactor
from memorybench.stores.config import StoreConfig
from memorybench.stores.config_reading import read_store
from memorybench.stores.opening import open_store
from tests.doubles.mcp_server import McpHttpServer

pytest.importorskip("mcp")
from tests.stores.contract import ANN, BOB, KAYAK, TEA, StoreContract, contents

DOUBLE = Path(__file__).parents[1] / "doubles" / "mcp_server.py"
STDIO = f"command: {json.dumps([sys.executable, str(DOUBLE), '${folder}/data.json'])}"
REMEMBER = "{tool: remember, arguments: {scope: $.user, id: $.newId, text: $.content, sources: [$.category]}}"
FACTS = "facts: {results: $.found, id: id, content: text, category: '$.sources[0]'}"
OPERATIONS = f"""
    remember: {{calls: [{REMEMBER}]}}
    update:
      calls:
        - tool: remember
          arguments: {{scope: $.user, id: $.id, text: $.content, sources: []}}
    recall:
      tool: recall
      arguments: {{scope: $.user, query: $.query, limit: $.limit}}
      {FACTS}
    list:
      tool: everything
      arguments: {{scope: $.user}}
      {FACTS}
"""


def config(server: str = STDIO, operations: str = OPERATIONS, more: str = "") -> StoreConfig:
    text = f"name: double\ntype: mcp\nmcp:\n  {server}\n  timeout: 20000\n{more}  operations:{operations}"
    return read_store(parse_yaml(text, "double.yaml"), {})


def open_configured(folder: Path, store_config: StoreConfig | None = None) -> AbstractAsyncContextManager[MemoryStore]:
    return open_store(store_config or config(), folder, environment={}, redactor=Redactor([]))


def in_store(folder: Path, store_config: StoreConfig, work: Callable[[MemoryStore], Awaitable[None]]) -> None:
    async def live() -> None:
        async with open_configured(folder, store_config) as store:
            await work(store)

    asyncio.run(live())


class TestContractOverStdio(StoreContract):
    def open_store(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
        return open_configured(folder)


class TestContractOverHttp(StoreContract):
    @pytest.fixture(autouse=True)
    def _served(self, tmp_path: Path) -> Iterator[None]:
        with McpHttpServer(tmp_path / "data.json") as server:
            self.url = server.url
            yield

    def open_store(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
        return open_configured(folder, config(f"url: {self.url}"))


def test_capabilities_follow_from_the_config(tmp_path: Path) -> None:
    async def whole(store: MemoryStore) -> None:
        assert store.capabilities == {"update", "recall", "list", "category", "users", "files"}

    async def blind(store: MemoryStore) -> None:
        assert store.capabilities == {"list", "category"}, "one memory for all users, not in the folder"
        for lacking in (store.forget(ANN, "1"), store.update(ANN, "1", "a"), store.recall(ANN, "a", 1)):
            with pytest.raises(Lacking):
                await lacking
        for lacking in (store.curate(ANN, apply=True), store.history(ANN)):
            with pytest.raises(Lacking):
                await lacking

    in_store(tmp_path, config(), whole)
    operations = f"""
    remember: {{calls: [{REMEMBER.replace("$.user", "one")}]}}
    list: {{tool: everything, arguments: {{scope: one}}, {FACTS}}}
"""
    in_store(tmp_path, config(STDIO.replace("${folder}", "."), operations), blind)


def test_only_errors_that_match_refusal_are_refusals(tmp_path: Path) -> None:
    operations = OPERATIONS.replace(REMEMBER, "{tool: fail, arguments: {saying: $.content}}")

    async def live(store: MemoryStore) -> None:
        with pytest.raises(Refused, match="no secrets, please"):
            await store.remember(ANN, NewFact(content="no secrets, please"))
        with pytest.raises(ServiceError, match="out of disk") as raised:
            await store.remember(ANN, NewFact(content="out of disk"))
        assert not isinstance(raised.value, Refused)

    in_store(tmp_path, config(STDIO, operations, "  refusal: '(?i)secret'\n"), live)

    async def without(store: MemoryStore) -> None:
        with pytest.raises(ServiceError):
            await store.remember(ANN, NewFact(content="no secrets, please"))

    in_store(tmp_path, config(STDIO, operations), without)


def test_a_protocol_error_is_never_a_refusal(tmp_path: Path) -> None:
    operations = OPERATIONS.replace(REMEMBER, "{tool: refuse, arguments: {saying: $.content}}")

    async def live(store: MemoryStore) -> None:
        with pytest.raises(ServiceError, match="no: a secret"):
            await store.remember(ANN, NewFact(content="a secret"))

    in_store(tmp_path, config(STDIO, operations, "  refusal: secret\n"), live)


def test_several_calls_run_in_order_and_get_the_previous_text(tmp_path: Path) -> None:
    update = """
    update:
      calls:
        - {tool: remember, arguments: {scope: $.user, id: former, text: $.previous, sources: []}}
        - {tool: remember, arguments: {scope: $.user, id: $.id, text: $.content, sources: []}}
"""
    head, _, rest = OPERATIONS.partition("    update:")
    operations = head + update.removeprefix("\n") + "    recall:" + rest.partition("    recall:")[2]

    async def live(store: MemoryStore) -> None:
        id = await store.remember(ANN, TEA)
        assert await store.update(ANN, id, TEA.content) == id
        assert len(await store.list(ANN)) == 1
        assert await store.update(ANN, id, KAYAK.content) == id
        assert {fact.id: fact.content for fact in await store.list(ANN)} == {"former": TEA.content, id: KAYAK.content}
        with pytest.raises(ServiceError, match="unknown id"):
            await store.update(BOB, id, "Nothing")

    in_store(tmp_path, config(STDIO, operations), live)


def test_an_update_of_a_tool_that_replaces_facts_keeps_the_category(tmp_path: Path) -> None:
    operations = OPERATIONS.replace(
        "id: $.id, text: $.content, sources: []", "id: $.id, text: $.content, sources: [$.category]"
    )

    async def live(store: MemoryStore) -> None:
        id = await store.remember(ANN, TEA.model_copy(update={"category": "habit"}))
        await store.update(ANN, id, KAYAK.content)
        (fact,) = await store.list(ANN)
        assert (fact.content, fact.category) == (KAYAK.content, "habit")

    in_store(tmp_path, config(STDIO, operations), live)


def test_query_words_searches_once_per_keyword(tmp_path: Path) -> None:
    recall = """
    recall:
      tool: grep
      queryWords: true
      arguments: {scope: $.user, word: $.query}
"""
    head, _, rest = OPERATIONS.partition("    recall:")
    operations = head + recall.removeprefix("\n") + f"      {FACTS}\n    list:" + rest.partition("    list:")[2]

    async def live(store: MemoryStore) -> None:
        for fact in (TEA, KAYAK):
            await store.remember(ANN, fact)
        facts = await store.recall(ANN, "Where does Ann keep the kayak?", 5)
        assert [fact.content for fact in facts] == [KAYAK.content, TEA.content]
        assert contents(await store.recall(ANN, "", 5)) == []

    in_store(tmp_path, config(STDIO, operations), live)


def test_missing_results_are_an_error(tmp_path: Path) -> None:
    async def live(store: MemoryStore) -> None:
        with pytest.raises(Malformed):
            await store.list(ANN)

    in_store(tmp_path, config(STDIO, OPERATIONS.replace("$.found", "$.facts")), live)


def test_a_missing_id_is_an_error(tmp_path: Path) -> None:
    async def live(store: MemoryStore) -> None:
        with pytest.raises(Malformed):
            await store.remember(ANN, TEA)

    in_store(tmp_path, config(STDIO, OPERATIONS.replace(f"[{REMEMBER}]", f"[{REMEMBER}], id: $.memory.id")), live)


def test_an_unknown_tool_is_reported_when_the_store_is_opened(tmp_path: Path) -> None:
    async def live(store: MemoryStore) -> None:
        raise AssertionError("it was opened")

    with pytest.raises(BadInput, match='did you mean "everything"'):
        in_store(tmp_path, config(STDIO, OPERATIONS.replace("everything", "evrything")), live)
    with pytest.raises(BadInput, match="install it: ask Ann"):
        in_store(tmp_path, config("command: [no-such-server]", OPERATIONS, "  install: ask Ann\n"), live)
