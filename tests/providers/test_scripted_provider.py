import asyncio
import json
from pathlib import Path

import pytest

from memorybench.core.contracts import Receipt, Scope
from memorybench.core.conversation import Memory
from memorybench.core.errors import NotReady, Transient
from memorybench.providers.scripted import open_scripted
from tests.providers.embedded import HOME, fill, session


def test_each_call_writes_one_line(tmp_path: Path) -> None:
    ledger = tmp_path / "calls.jsonl"

    async def live() -> None:
        for _ in range(2):
            async with open_scripted(ledger=ledger) as provider:
                await fill(provider, [session("s1", "Hello there.")])
                await provider.search(HOME, "hello", 5)
                await provider.clear(HOME)

    asyncio.run(live())
    assert [json.loads(line) for line in ledger.read_text().splitlines()] == 2 * [
        {"op": "add", "scope": HOME.name, "session": "s1"},
        {"op": "wait_until_searchable", "scope": HOME.name},
        {"op": "search", "scope": HOME.name, "query": "hello"},
        {"op": "clear", "scope": HOME.name},
    ]


def test_call_that_a_hook_fails_is_logged(tmp_path: Path) -> None:
    ledger = tmp_path / "calls.jsonl"

    async def refuse_search(op: str, scope: Scope) -> None:
        if op == "search":
            raise Transient("busy", retry_after=1.0)

    async def live() -> None:
        async with open_scripted(ledger=ledger, hook=refuse_search) as provider:
            await fill(provider, [session("s1", "Hello there.")])
            await provider.search(HOME, "hello", 5)

    with pytest.raises(Transient):
        asyncio.run(live())
    assert json.loads(ledger.read_text().splitlines()[-1])["op"] == "search"


def test_a_function_can_answer_every_search() -> None:
    def recall(scope: Scope, query: str, limit: int) -> list[Memory]:
        return [Memory(id="m1", content=f"{scope.haystack}: {query}"[:limit])]

    async def ask() -> str:
        async with open_scripted(recall=recall) as provider:
            return (await provider.search(HOME, "hello", 11))[0].content

    assert asyncio.run(ask()) == "home: hello"


def test_waiting_for_an_unknown_session_is_not_ready() -> None:
    async def wait_until_searchable() -> None:
        async with open_scripted() as provider:
            await provider.wait_until_searchable(HOME, [Receipt(ids=("s1",))])

    with pytest.raises(NotReady, match='session "s1" was never added'):
        asyncio.run(wait_until_searchable())


def test_given_store_id_is_used() -> None:
    async def store_id() -> str:
        async with open_scripted(store_id="always") as provider:
            return provider.store_id

    assert asyncio.run(store_id()) == "always"
