"""A memory provider as an extractor: what its store holds after it was told the old memory and the conversation."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from memorybench.core.contracts import Listing, Provider, Scope
from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.errors import Lacking, MemorybenchError
from memorybench.core.extraction import MemoryState
from memorybench.core.records import digest
from memorybench.core.trials import Subject

from .states import leaves

MEMORIES = "memories"
"""The block of what the store holds and the old memory did not: a provider knows no blocks."""

BEFORE, CONVERSATION = "before", "conversation"


class ProviderExtractor:
    """Opened by `open_provider_extractor`."""

    def __init__(self, subject: Subject, provider: Provider, run: str, leaked: Callable[[str], object]) -> None:
        self.subject = subject
        self._provider = provider
        self._run = run
        self._leaked = leaked

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
        scope = self._scope(existing, conversation)
        try:
            listed = await self._told(scope, existing, conversation)
        finally:
            await self._clear(scope)
        return _memory(existing, listed)

    async def _told(self, scope: Scope, existing: MemoryState, conversation: Sequence[Turn]) -> Sequence[Memory]:
        before = tuple(Turn(role="user", content=_sentence(*leaf)) for leaf in leaves(existing))
        receipts = []
        if before:  # few services take a session in which nobody says a word
            receipts.append(await self._provider.add(scope, Session(id=BEFORE, turns=before)))
        receipts.append(await self._provider.add(scope, Session(id=CONVERSATION, turns=tuple(conversation))))
        await self._provider.wait_until_searchable(scope, receipts)
        assert isinstance(self._provider, Listing)  # looked at when it was opened
        return await self._provider.list(scope)

    async def _clear(self, scope: Scope) -> None:
        try:
            await self._provider.clear(scope)
        except MemorybenchError as error:
            # what it extracted stands; that something stays behind is told
            self._leaked(f"{scope.name}: {error}")

    def _scope(self, existing: MemoryState, conversation: Sequence[Turn]) -> Scope:
        case = digest([existing, list(conversation)])[:16]
        # new every time: what a process that was killed left behind must not be found by the next
        haystack = f"{case}-{secrets.token_hex(4)}"
        return Scope(run=self._run, benchmark="extraction", provider=self._provider.subject.name, haystack=haystack)


@asynccontextmanager
async def open_provider_extractor(
    provider: Provider, run: str, leaked: Callable[[str], object]
) -> AsyncIterator[ProviderExtractor]:
    """`leaked` is told of each scope that could not be cleared. Lacking where the provider can not list."""
    name = provider.subject.name
    if not isinstance(provider, Listing):
        raise Lacking(f'provider "{name}" can not list what it holds, which is what is looked at here')
    settings = {"type": "provider", "provider": provider.subject.plain()}
    yield ProviderExtractor(Subject(role="extractor", name=name, settings=settings), provider, run, leaked)


def _sentence(category: str, fact: str) -> str:
    topic = category.replace("_", " ").strip()
    return f"{topic}: {fact}" if topic else fact


def _memory(existing: MemoryState, listed: Sequence[Memory]) -> MemoryState:
    """The old memory without what the store no longer holds as it was told, and the rest in a block of its own."""
    lines = [line for memory in listed for line in memory.content.splitlines()]
    kept = {leaf for leaf in leaves(existing) if any(_tells(line, leaf) for line in lines)}
    others = [other for memory in listed if (other := _beside(memory.content, kept))]
    remaining = _only(existing, kept)
    if isinstance(remaining, dict):
        return {**remaining, MEMORIES: others} if others else remaining
    return [*(fact for _, fact in leaves(remaining)), *others]


def _tells(line: str, leaf: tuple[str, str]) -> bool:
    """Whether a line is what was told of the old memory, behind whatever a store writes before it."""
    return line.rstrip().endswith(_sentence(*leaf))


def _beside(content: str, kept: set[tuple[str, str]]) -> str:
    """What a memory says beside what was kept: some stores put several turns in one."""
    lines = content.splitlines()
    return "\n".join(line for line in lines if not any(_tells(line, leaf) for leaf in kept)).strip()


def _only(memory: MemoryState, kept: set[tuple[str, str]], category: str = "") -> MemoryState:
    match memory:
        case dict():
            blocks = {name: _only(block, kept, name) for name, block in memory.items()}
            return {name: block for name, block in blocks.items() if block is not None}
        case list():
            items = (_only(item, kept, category) for item in memory)
            return [item for item in items if item is not None]
        case str() if memory.strip():
            return memory if (category, memory) in kept else None
    return memory
