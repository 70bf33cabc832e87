"""The two ends of the scale: one extractor that stores nothing, and one that stores whatever the user says."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal

from memorybench.core.conversation import Turn
from memorybench.core.extraction import MemoryState
from memorybench.core.trials import Subject

from .states import own_copy

Baseline = Literal["amnesiac", "hoarder"]

NOTES = "notes"
"""The block in which the hoarder keeps sentences: it does not know which one they belong to."""
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")


class BaselineExtractor:
    """Opened by `open_baseline`."""

    def __init__(self, subject: Subject, extract: Callable[[MemoryState, Sequence[Turn]], MemoryState]) -> None:
        self.subject = subject
        self._extract = extract

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
        return self._extract(own_copy(existing), conversation)


@asynccontextmanager
async def open_baseline(name: Baseline) -> AsyncIterator[BaselineExtractor]:
    subject = Subject(role="extractor", name=name, settings={"type": "baseline"})
    yield BaselineExtractor(subject, {"amnesiac": _unchanged, "hoarder": _hoarded}[name])


def _unchanged(existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
    return existing


def _hoarded(existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
    turns = [turn.content.strip() for turn in conversation if turn.role == "user"]
    sentences = [sentence for turn in turns for sentence in _SENTENCE_ENDS.split(turn) if sentence]
    match existing:
        case dict():
            return {**existing, NOTES: [*_listed(existing.get(NOTES)), *sentences]}
        case list():
            return [*existing, *sentences]
    return [*_listed(existing), *sentences]


def _listed(block: MemoryState) -> list[MemoryState]:
    if block is None or block == "":
        return []
    return block if isinstance(block, list) else [block]
