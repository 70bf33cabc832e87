"""A memory provider's store as an extractor."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.contracts import Provider, Receipt, Scope
from memorybench.core.conversation import Memory, Session
from memorybench.core.errors import Lacking, NotReady, ServiceError
from memorybench.core.trials import Subject
from memorybench.extractors.provider import ProviderExtractor
from memorybench.providers.bm25 import Bm25
from tests.extractors.conversation import CONVERSATION, EXISTING, ask


class Rewriter:
    """A provider that always lists the same memories; the call `failing` raises `error`."""

    subject = Subject(role="provider", name="rewriter")
    store_id = "here"

    def __init__(self, held: Sequence[str], failing: str = "", error: Exception | None = None) -> None:
        self._held = held
        self.added: list[Session] = []
        self.calls: list[tuple[str, Scope]] = []
        self._failing = failing
        self._error = error

    def _call(self, name: str, scope: Scope) -> None:
        self.calls.append((name, scope))
        if self._error and name.split()[0] == self._failing:
            raise self._error

    async def add(self, scope: Scope, session: Session) -> Receipt:
        self.added.append(session)
        self._call(f"add {session.id}", scope)
        return Receipt(ids=(session.id,))

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        assert {receipt.ids[0] for receipt in receipts} <= {session.id for session in self.added}
        self._call("wait_until_searchable", scope)

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        return []

    async def list(self, scope: Scope) -> Sequence[Memory]:
        self._call("list", scope)
        return [Memory(id=str(place), content=content) for place, content in enumerate(self._held)]

    async def clear(self, scope: Scope) -> None:
        self._call("clear", scope)


@asynccontextmanager
async def over(opening: Any, leaks: list[str]) -> Any:
    async with opening as provider:
        yield ProviderExtractor(provider, "run", leaks.append)


def looked_at(provider: Provider, existing: Any = EXISTING) -> Any:
    return ask(nullcontext(ProviderExtractor(provider, "run", lambda leak: None)), existing)


def test_store_of_turns_contains_old_and_new_facts(tmp_path: Path) -> None:
    leaks: list[str] = []
    assert ask(over(Bm25.open_file(tmp_path / "store.db"), leaks)) == {
        "home": ["Lives in Bristol"],
        "pets": [],
        "memories": [f"{turn.role}: {turn.content}" for turn in CONVERSATION],
    }
    assert leaks == []


def test_old_memory_and_conversation_are_added_and_cleared() -> None:
    provider = Rewriter([])
    looked_at(provider)
    assert [call for call, _ in provider.calls] == [
        "add before",
        "add conversation",
        "wait_until_searchable",
        "list",
        "clear",
    ]
    assert len({scope for _, scope in provider.calls}) == 1


def test_each_extraction_has_its_own_scope() -> None:
    provider = Rewriter([])

    async def twice() -> list[Any]:
        extractor = ProviderExtractor(provider, "run", lambda leak: None)
        return await asyncio.gather(*(extractor.extract(EXISTING, CONVERSATION) for _ in range(2)))

    first, second = asyncio.run(twice())
    assert first == second
    assert len({scope for _, scope in provider.calls}) == 2


def test_facts_are_sent_with_the_name_of_their_block() -> None:
    provider = Rewriter([])
    looked_at(provider, {"user": {"customer_segments": ["Bakeries"], "tone": "Formal"}, "goals": []})
    assert [turn.content for turn in provider.added[0].turns] == ["customer segments: Bakeries", "tone: Formal"]


def test_facts_deleted_by_the_store_are_removed_and_changed_ones_are_new() -> None:
    provider = Rewriter(["home: Lives in Cardiff", "Has a dog named Biscuit"])
    assert looked_at(provider) == {
        "home": [],
        "pets": [],
        "memories": ["home: Lives in Cardiff", "Has a dog named Biscuit"],
    }


def test_store_with_only_the_old_memory_leaves_it_unchanged() -> None:
    assert looked_at(Rewriter(["[2026-01-01] user: home: Lives in Bristol"])) == EXISTING


def test_several_turns_in_one_memory_are_separated() -> None:
    assert looked_at(Rewriter(["user: home: Lives in Bristol\nuser: We have a dog now."])) == {
        **EXISTING,
        "memories": ["user: We have a dog now."],
    }


@pytest.mark.parametrize(("existing", "memories"), [(["Lives in Bristol"], ["Lives in Bristol", "Dog"]), ("", ["Dog"])])
def test_memory_without_blocks_gets_none(existing: Any, memories: list[str]) -> None:
    assert looked_at(Rewriter(["Lives in Bristol", "Dog"] if existing else ["Dog"]), existing) == memories


@pytest.mark.parametrize("lead", ["  - ", "1. ", "User: ", "- [2026-01-01] user: ", "2026-01-01: "])
def test_what_stores_put_before_a_fact_does_not_change_it(lead: str) -> None:
    assert looked_at(Rewriter([f"{lead}home: Lives in Bristol"])) == EXISTING


@pytest.mark.parametrize("listed", ["No longer drinks coffee", "They said that this is untrue: drinks coffee"])
def test_a_memory_that_ends_like_an_old_fact_is_new(listed: str) -> None:
    assert looked_at(Rewriter([listed]), ["drinks coffee"]) == [listed]


def test_a_text_of_several_lines_is_unchanged_if_the_store_still_has_it(tmp_path: Path) -> None:
    existing = {"profile": "Lives in Bristol.\n\nHas a dog. ", "goals": ["Run 5 km"]}
    memory = ask(over(Bm25.open_file(tmp_path / "store.db"), []), existing)
    assert {name: memory[name] for name in existing} == existing
    assert memory["memories"] == [f"{turn.role}: {turn.content}" for turn in CONVERSATION]
    assert looked_at(Rewriter(["profile: Lives in Bristol."]), existing)["memories"] == ["profile: Lives in Bristol."]


def test_nothing_is_added_for_an_empty_memory() -> None:
    provider = Rewriter([])
    assert looked_at(provider, {"pets": []}) == {"pets": []}
    assert [session.id for session in provider.added] == ["conversation"]


class Mute:
    """A provider that cannot list."""

    subject = Subject(role="provider", name="mute")
    store_id = "here"

    async def add(self, scope: Scope, session: Session) -> Receipt:
        raise AssertionError("nothing may be added")

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None: ...

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        return []

    async def clear(self, scope: Scope) -> None: ...


def test_provider_that_cannot_list_is_an_error_at_opening() -> None:
    with pytest.raises(Lacking, match='provider "mute"'):
        looked_at(Mute())


@pytest.mark.parametrize("at", ["add", "wait_until_searchable", "list"])
def test_scope_is_cleared_after_a_failure(at: str) -> None:
    provider = Rewriter([], failing=at, error=NotReady("never ready"))
    with pytest.raises(NotReady, match="never ready"):
        looked_at(provider)
    assert provider.calls[-1][0] == "clear"


def test_failed_clear_is_reported_and_the_memory_returned() -> None:
    leaks: list[str] = []
    provider = Rewriter(["Dog"], failing="clear", error=ServiceError("HTTP 500"))
    assert "memories" in ask(nullcontext(ProviderExtractor(provider, "run", leaks.append)))
    (leak,) = leaks
    assert leak.startswith("run-")
    assert leak.endswith(": HTTP 500")
