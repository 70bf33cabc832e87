"""The expected change of a memory: which facts are kept, added and removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memorybench.files.located import DEEPEST
from memorybench.judging.facts import MemoryFact, categories_of, fact_from, facts_of, without_sole_owner
from memorybench.judging.matching import Grid, Pair, likeness, match, one_to_one, refers_to
from memorybench.judging.normal_form import normal_form, unify_characters

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


def gold_of(existing: Any, expected: Any, listed: Iterable[str] = ()) -> Gold:
    """Compare the memory before a conversation with the one expected after it, and return the expected change.

    A fact of which only upper and lower case or the path changed is kept, except if the new one is in `listed`
    ("category: fact").
    """
    categories = categories_of(existing)
    before, after = without_sole_owner(recorded_facts(existing), recorded_facts(expected))
    pairs = one_to_one([*match(Grid(before, after)).pairs.items(), *_moves(before, after, listed)])
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


def _moves(before: Sequence[MemoryFact], after: Sequence[MemoryFact], listed: Iterable[str]) -> list[Pair]:
    """Return the pairs of facts that may be one fact whose upper and lower case, or whose path in the memory, changed.

    A path may only have become longer or shorter at its beginning, and no other fact may be on the new path before, or
    on the old one after. Otherwise a fact about the user may have become one about a sister, as a fact in `listed`
    has.
    """
    old_paths, new_paths = {fact.path for fact in before}, {fact.path for fact in after}
    lines = filter(None, map(fact_from, listed))
    references = [fact for line in lines for fact in facts_of({line.category: [line.text]})]
    moves = []
    for one, other in Grid(before, after, by_reference=True).same:
        old, new = before[one].path, after[other].path
        shorter, longer = sorted((old, new), key=len)
        is_moved = longer[len(longer) - len(shorter) :] == shorter and old not in new_paths and new not in old_paths
        text = normal_form(after[other].text_alone)
        is_listed = any(
            normal_form(reference.text_alone) == text and refers_to(reference, after[other]) for reference in references
        )
        is_alike = before[one].attributes == after[other].attributes
        if is_alike and (old == new or is_moved) and not is_listed:
            moves.append((one, other))
    return moves


def find_stored(text: str, facts: Sequence[MemoryFact]) -> MemoryFact | None:
    """Return the first fact that certainly contains a forbidden text; None if there is none.

    The fact is the same text, or has it as a word, if the text is a secret: one word of letters and digits. Case does
    not count. A judge must decide whether a fact says the text in other words, or has a secret in another notation.
    """
    words, forbidden = _words(text), _folded(text)
    secret = words[0] if len(words) == 1 and _is_secret(words[0]) else None
    return next((fact for fact in facts if _folded(fact.text) == forbidden or secret in _words(fact.text)), None)


def _folded(text: str) -> str:
    return normal_form(text).lower().removesuffix(".")


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
