"""The expected change of a memory: which facts are kept, added and removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from memorybench.files.located import DEEPEST
from memorybench.judging.facts import MemoryFact, categories_of, facts_of, without_sole_owner
from memorybench.judging.matching import Grid, likeness, match, one_to_one
from memorybench.judging.normal_form import folded, unify_characters

_SHORTEST_SECRET = 6
_AROUND_WORD = ".,;:\"'`“”‘’«»()[]{}"
"""Signs that do not belong to the word before or after them."""


class Gold(Struct, frozen=True):
    """The facts that a correct memory keeps, adds and removes."""

    kept: tuple[MemoryFact, ...]
    added: tuple[MemoryFact, ...]
    removed: tuple[MemoryFact, ...]
    replaces: Mapping[int, int]
    """By index in `added`: the index in `removed` of the fact that it replaces. The two together are an update."""
    categories: frozenset[str]
    """The categories of the memory before the conversation, which the extractor could see."""

    @property
    def targets(self) -> tuple[MemoryFact, ...]:
        return (*self.kept, *self.added, *self.removed)

    @property
    def valid(self) -> int:
        """The number of facts to keep and to add, which come first in `targets`."""
        return len(self.kept) + len(self.added)


def recorded_facts(memory: Any) -> tuple[MemoryFact, ...]:
    """Return the facts of a memory with sorted keys, as the journal has it.

    A resumed run then makes the same remarks.
    """
    return facts_of(_with_sorted_keys(memory))


def _with_sorted_keys(memory: Any, depth: int = 0) -> Any:
    if depth > DEEPEST:
        return memory  # `facts_of` raises Malformed
    if isinstance(memory, dict):
        return {key: _with_sorted_keys(memory[key], depth + 1) for key in sorted(memory, key=str)}
    return [_with_sorted_keys(one, depth + 1) for one in memory] if isinstance(memory, list | tuple) else memory


def gold_of(existing: Any, expected: Any) -> Gold:
    """Compare the memory before a conversation with the one expected after it, and return the expected change."""
    categories = categories_of(existing)
    before, after = without_sole_owner(recorded_facts(existing), recorded_facts(expected))
    pairs = match(Grid(before, after)).pairs
    added = tuple(fact for index, fact in enumerate(after) if index not in pairs.values())
    removed = tuple(fact for index, fact in enumerate(before) if index not in pairs)
    return Gold(
        kept=tuple(after[index] for index in sorted(pairs.values())),
        added=added,
        removed=removed,
        replaces=_replacements(added, removed),
        categories=categories,
    )


def identical_pairs(references: Sequence[MemoryFact], facts: Sequence[MemoryFact]) -> Mapping[int, int]:
    """Pair references with the facts that they name, by index. Facts in the same words and category are preferred."""
    return match(Grid(references, facts, by_reference=True)).pairs


def find_stored(text: str, facts: Sequence[MemoryFact]) -> MemoryFact | None:
    """Return the first fact that certainly contains a forbidden text; None if there is none.

    The fact is the same text, or has it as a word, if the text is a secret: one word of letters and digits. Case does
    not count. A judge must decide whether a fact says the text in other words, or has a secret in another notation.
    """
    words, forbidden = _words(text), folded(text)
    secret = words[0] if len(words) == 1 and _is_secret(words[0]) else None
    return next((fact for fact in facts if folded(fact.text) == forbidden or secret in _words(fact.text)), None)


def _words(text: str) -> list[str]:
    return [word.strip(_AROUND_WORD) for word in unify_characters(text).casefold().split()]


def _is_secret(word: str) -> bool:
    return len(word) >= _SHORTEST_SECRET and any(map(str.isdigit, word)) and any(map(str.isalpha, word))


def _replacements(added: Sequence[MemoryFact], removed: Sequence[MemoryFact]) -> dict[int, int]:
    """Pair added facts with the removed facts that they replace: first on the same path, then the most similar."""
    ranked = sorted(
        (new.path[-1:] != old.path[-1:], new.path != old.path, -alike, a, r)
        for a, new in enumerate(added)
        for r, old in enumerate(removed)
        if (alike := likeness(new, old)) or new.path[-1:] == old.path[-1:]
    )
    return one_to_one((a, r) for *_, a, r in ranked)
