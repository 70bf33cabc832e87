"""The baselines: amnesiac stores nothing, hoarder stores every sentence of the user."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from memorybench.core.conversation import Turn
from memorybench.core.extraction import MemoryState
from memorybench.core.trials import Subject

from .config import Baseline
from .plugin import ExtractorType, OpenContext
from .states import own_copy

NOTES = "notes"
"""The block that the hoarder adds sentences to."""
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")


class BaselineExtractor(ExtractorType):
    required_key = "baseline"
    keys = frozenset({"baseline"})
    spends = False

    @classmethod
    def open(cls, context: OpenContext) -> AbstractAsyncContextManager[BaselineExtractor]:
        assert context.config.baseline is not None
        return open_baseline(context.config.baseline)

    def __init__(self, subject: Subject, extract: Callable[[MemoryState, Sequence[Turn]], MemoryState]) -> None:
        self.subject = subject
        self._extract = extract

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
        return self._extract(own_copy(existing), conversation)


@asynccontextmanager
async def open_baseline(name: Baseline) -> AsyncIterator[BaselineExtractor]:
    subject = Subject(role="extractor", name=name, settings={"type": "baseline"})
    yield BaselineExtractor(subject, {"amnesiac": _keep_unchanged, "hoarder": _add_sentences}[name])


def _keep_unchanged(existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
    return existing


def _add_sentences(existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
    turns = [turn.content.strip() for turn in conversation if turn.role == "user"]
    sentences = [sentence for turn in turns for sentence in _SENTENCE_ENDS.split(turn) if sentence]
    match existing:
        case dict():
            return {**existing, NOTES: [*_as_list(existing.get(NOTES)), *sentences]}
        case list():
            return [*existing, *sentences]
    return [*_as_list(existing), *sentences]


def _as_list(block: MemoryState) -> list[MemoryState]:
    if block is None or block == "":
        return []
    return block if isinstance(block, list) else [block]
