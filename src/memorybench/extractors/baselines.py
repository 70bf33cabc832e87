"""The baselines: amnesiac returns the memory unchanged, hoarder adds every sentence of the user to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from copy import deepcopy

from memorybench.core.conversation import Turn
from memorybench.core.extraction import MemoryState
from memorybench.core.trials import Subject

from .config import Baseline
from .plugin import ExtractorType, OpenContext

NOTES = "notes"
"""The name of the memory block to which the baseline hoarder adds sentences."""
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")


class BaselineExtractor(ExtractorType):
    required_key = "baseline"
    keys = frozenset({"baseline"})
    spends = False

    @classmethod
    def open(cls, context: OpenContext) -> AbstractAsyncContextManager[BaselineExtractor]:
        assert context.config.baseline is not None
        return nullcontext(cls(context.config.baseline))

    def __init__(self, name: Baseline) -> None:
        self.subject = Subject(role="extractor", name=name, settings={"type": "baseline"})

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
        existing = deepcopy(existing)
        if self.subject.name == "amnesiac":
            return existing
        turns = [turn.content.strip() for turn in conversation if turn.role == "user"]
        sentences = [sentence for turn in turns for sentence in _SENTENCE_ENDS.split(turn) if sentence]
        if isinstance(existing, dict):
            return {**existing, NOTES: [*_as_list(existing.get(NOTES)), *sentences]}
        return [*_as_list(existing), *sentences]


def _as_list(block: MemoryState) -> list[MemoryState]:
    if block is None or block == "":
        return []
    return block if isinstance(block, list) else [block]
