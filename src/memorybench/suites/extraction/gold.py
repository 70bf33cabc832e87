"""What should become of a memory: which of its facts are kept, which are removed, and which are new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memorybench.judging.facts import MemoryFact, categories_of, facts_of
from memorybench.judging.matching import holds, likeness
from memorybench.judging.matching_pairs import grid_of, matched
from memorybench.text.normalisation import plain

_SHORTEST_SECRET, _MOST_WORDS_IN_SECRET = 6, 4


@dataclass(frozen=True, slots=True)
class Gold:
    kept: tuple[MemoryFact, ...]
    added: tuple[MemoryFact, ...]
    removed: tuple[MemoryFact, ...]
    replaces: Mapping[int, int]
    """Place in `added` → place in `removed`: an update is a removal and what takes its place."""
    categories: frozenset[str]
    """Those of the memory before: what an extractor could know."""

    @property
    def targets(self) -> tuple[MemoryFact, ...]:
        return (*self.kept, *self.added, *self.removed)


def gold_of(existing: Any, expected: Any) -> Gold:
    before, after, categories = facts_of(existing), facts_of(expected), categories_of(existing)
    pairs = same(before, after, categories)
    added = tuple(fact for place, fact in enumerate(after) if place not in pairs.values())
    removed = tuple(fact for place, fact in enumerate(before) if place not in pairs)
    return Gold(
        kept=tuple(after[place] for place in sorted(pairs.values())),
        added=added,
        removed=removed,
        replaces=_replacements(added, removed),
        categories=categories,
    )


def same(gold: Sequence[MemoryFact], found: Sequence[MemoryFact], known: frozenset[str]) -> dict[int, int]:
    """Gold → found, of facts that surely say the same: nothing in a gold may be a matter of opinion."""
    grid = grid_of(gold, found, known)
    return {g: f for g, f in matched(grid).pairs.items() if grid.cells[g, f].relation == "same"}


def stored(text: str, facts: Sequence[MemoryFact]) -> MemoryFact | None:
    """The fact that holds a text which must not be stored: in whatever order and form, if it is not denied; a secret
    also where it is, and however it is set apart."""
    secrets = _secrets(text)
    for fact in facts:
        if holds(fact, text) or any(secret in _run_together(fact.text) for secret in secrets):
            return fact
    return None


def _secrets(text: str) -> list[str]:
    """The words of a text, or the text itself where it is but one thing, that mix letters and figures."""
    whole = _run_together(text) if len(text.split()) <= _MOST_WORDS_IN_SECRET else ""
    return [
        word
        for word in {whole, *map(_run_together, text.split())}
        if len(word) >= _SHORTEST_SECRET and any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    ]


def _run_together(text: str) -> str:
    return "".join(filter(str.isalnum, plain(text).casefold()))


def _replacements(added: Sequence[MemoryFact], removed: Sequence[MemoryFact]) -> dict[int, int]:
    """Which new fact takes the place of which old one: of the same category first, then the most alike."""
    ranked = sorted(
        ((new.category != old.category, -likeness(new, old), a, r) for a, new in enumerate(added)
         for r, old in enumerate(removed)),
    )  # fmt: skip
    chosen: dict[int, int] = {}
    for elsewhere, unlikeness, a, r in ranked:
        if a not in chosen and r not in chosen.values() and (not elsewhere or unlikeness):
            chosen[a] = r
    return chosen
