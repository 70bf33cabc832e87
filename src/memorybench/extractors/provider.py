"""A memory provider as an extractor: adds the old memory and the conversation, and returns all memories it then has."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from memorybench.core.contracts import Listing, LiveMemory, Provider, Scope
from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.errors import Lacking, MemorybenchError, ServiceError
from memorybench.core.extraction import MemoryState
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.files.located import Document
from memorybench.files.names import safe_name

from .config import ExtractorConfig
from .plugin import ExtractorType, OpenContext
from .states import leaves

MEMORIES = "memories"
"""The name of the block for memories that the provider returns and that were not in the old memory."""

BEFORE, CONVERSATION = "before", "conversation"
_LEAD = r"^[^\S\n]*(?:(?:[-*•]|\d{1,3}[.)]) +)?(?:\[[^\]\n]*\] |\d{4}-\d\d-\d\d: )?(?:[Uu]ser: )?"
"""What a store may put before a fact: a bullet or a number, a date, and the role that it was added with."""
_LINE_END = r"[^\S\n]*$\n?"


class ProviderExtractor(ExtractorType):
    required_key = "provider"
    keys = frozenset({"provider"})

    @classmethod
    def check_config(cls, config: ExtractorConfig, document: Document) -> None:
        if config.provider is not None:
            safe_name(config.provider, document.where("provider"))

    @classmethod
    @asynccontextmanager
    async def open(cls, context: OpenContext) -> AsyncIterator[ProviderExtractor]:
        yield cls(await context.open_provider(), context.run, context.report_leak)

    def __init__(self, provider: Provider, run: str, report_leak: Callable[[str], object]) -> None:
        """Raise Lacking if the provider cannot list its memories."""
        name = provider.subject.name
        if not isinstance(provider, Listing):
            raise Lacking(f'provider "{name}" cannot list its memories, which an extractor needs')
        settings = {"type": "provider", "provider": provider.subject.plain()}
        self.subject = Subject(role="extractor", name=name, settings=settings)
        self._provider = provider
        self._run = run
        self._report_leak = report_leak

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
        scope = self._scope(existing, conversation)
        if isinstance(self._provider, LiveMemory) and (found := await self._provider.count_memories(scope)):
            raise ServiceError(
                f"{scope.provider} already has {found} memories in the new scope {scope.name}; expected none"
            )
        try:
            memories = await self._list_after(scope, existing, conversation)
        finally:
            try:
                await self._provider.clear(scope)
            except MemorybenchError as error:  # the extracted memory is still valid
                self._report_leak(f"{scope.name}: {error}")
        return _to_state(existing, memories)

    async def _list_after(self, scope: Scope, existing: MemoryState, conversation: Sequence[Turn]) -> Sequence[Memory]:
        before = tuple(Turn(role="user", content=_sentence(*leaf)) for leaf in leaves(existing))
        receipts = []
        if before:  # few services accept an empty session
            receipts.append(await self._provider.add(scope, Session(id=BEFORE, turns=before)))
        receipts.append(await self._provider.add(scope, Session(id=CONVERSATION, turns=tuple(conversation))))
        await self._provider.wait_until_searchable(scope, receipts)
        assert isinstance(self._provider, Listing)  # checked when it was opened
        return await self._provider.list(scope)

    def _scope(self, existing: MemoryState, conversation: Sequence[Turn]) -> Scope:
        case = digest([existing, list(conversation)])[:16]
        # random, so that data of a killed process is not found
        haystack = f"{case}-{secrets.token_hex(4)}"
        return Scope(run=self._run, benchmark="extraction", provider=self._provider.subject.name, haystack=haystack)


def _sentence(category: str, fact: str) -> str:
    topic = category.replace("_", " ").strip()
    return f"{topic}: {fact}" if topic else fact


def _to_state(existing: MemoryState, memories: Sequence[Memory]) -> MemoryState:
    """Return the new memory: the old one without facts that the provider no longer returns, plus its new memories.

    The new memories are in a block with the name MEMORIES, or at the end if the old memory has no blocks.
    """
    patterns = {
        fact: re.compile(f"{_LEAD}{re.escape(_sentence(*fact).strip())}{_LINE_END}", re.MULTILINE)
        for fact in leaves(existing)
    }
    contents = [memory.content for memory in memories]
    facts = {fact for fact, pattern in patterns.items() if any(map(pattern.search, contents))}
    others = []
    for text in contents:  # some stores put several turns into one memory
        for pattern in patterns.values():
            text = pattern.sub("", text)
        if text.strip():
            others.append(text.strip())
    remaining = _keep_facts(existing, facts)
    if isinstance(remaining, dict):
        return {**remaining, MEMORIES: others} if others else remaining
    return [*(fact for _, fact in leaves(remaining)), *others]


def _keep_facts(memory: MemoryState, facts: set[tuple[str, str]], category: str = "") -> MemoryState:
    match memory:
        case dict():
            blocks = {name: _keep_facts(block, facts, name) for name, block in memory.items()}
            return {name: block for name, block in blocks.items() if block is not None}
        case list():
            items = (_keep_facts(item, facts, category) for item in memory)
            return [item for item in items if item is not None]
        case str() if memory.strip():
            return memory if (category, memory) in facts else None
    return memory
