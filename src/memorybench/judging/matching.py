"""Matches the facts of a memory with the gold facts, one to one.

Gold facts are the expected ones; found facts are those of the memory. The path of a fact is the tuple of its
categories. Code decides two things; a judge decides all other pairs, which are undecided until then.

Categories of one spelling are the same, such as `Pets` and `pets`, except if one memory has both. Whether singular and
plural are the same is undecided, because Robert is not Roberts.

1. Facts with the same normal form, path and attributes are the same. Anna's city is not Ben's, a former address is not
   an address, and a fact without its key `dislikes` may say the opposite.
2. Facts in different categories do not match if the writer of the found facts was shown the category of the gold fact.
   Categories with nearly the same letters, such as `child` and `children`, are not certainly different.

`Matching.pairs` is the strict view: each fact is matched with at most one other. A gold fact that was written in
several pieces is matched with the longest piece; several gold facts that were written as one give one pair.
`Matching.covered` and `Matching.supported` are the lenient view: whether all facts of one side together say a fact of
the other, in any category. Of a fact that is not matched, only a judge knows this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct, field

from .facts import MemoryFact, normal_category, spelling
from .normal_form import folded

Path = tuple[str, ...]
Pair = tuple[int, int]
"""The index of a gold fact and the index of a found fact."""
_FEW_WORDS = 2
_FEW_PAIRS = 100
"""Up to this many pairs, `_assign` may take the most similar pairs first, which is faster than scipy's assignment."""


class Comparison(NamedTuple):
    """Whether a found fact says all that a gold fact says, and the reverse."""

    says: bool | None
    """Whether the found fact says all that the gold fact says; None if that is undecided."""
    said: bool | None
    """Whether the gold fact says all that the found fact says; None if that is undecided."""

    @property
    def is_undecided(self) -> bool:
        return None in self


SAME = Comparison(says=True, said=True)
UNDECIDED = Comparison(says=None, said=None)


def is_same(gold: MemoryFact, found: MemoryFact) -> bool:
    """Whether two facts have the same normal form, path and attributes."""
    return gold.path == found.path and _says_the_same(gold, found)


def repeats(first: MemoryFact, second: MemoryFact) -> bool:
    """Whether two facts of one memory have the same normal form, path and attributes: Anna's city is not Ben's."""
    return first.categories == second.categories and _says_the_same(first, second)


def _says_the_same(first: MemoryFact, second: MemoryFact) -> bool:
    return first.normal_text == second.normal_text and first.attributes == second.attributes


def refers_to(reference: MemoryFact, fact: MemoryFact) -> bool:
    """Whether a reference may mean a fact: the texts are equal, and the category of one is in the path of the other.

    Upper and lower case and a final full stop do not count. If only one of the two has a category, the category is
    ignored, but a text of one or two words says too little, and the result is False.
    """
    text = folded(reference.text_alone)
    if text != folded(fact.text_alone):
        return False
    if reference.categories and fact.categories:
        return fact.is_under(reference.category) or reference.is_under(fact.category)
    return bool(reference.categories) == bool(fact.categories) or len(text.split()) > _FEW_WORDS


def likeness(first: MemoryFact, second: MemoryFact) -> float:
    """Return how similar two facts are, from 0 to 1, by the words that they share. Only used to sort pairs."""
    a, b = first.words, second.words
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


def _may_fit(first: MemoryFact, second: MemoryFact) -> bool:
    if not first.categories or not second.categories:
        return True
    return second.may_be_under(first.category) or first.may_be_under(second.category)


class Grid(Struct, frozen=True, dict=True):
    """The gold facts, the found facts, and the decisions of a judge about pairs of them."""

    gold: Sequence[MemoryFact]
    found: Sequence[MemoryFact]
    known: frozenset[str] = frozenset()
    """The categories that the writer of the found facts was shown, as the memory has them."""
    to_remove: Collection[int] = ()
    """Indexes of gold facts that are wrong, in any category. The other gold facts are valid."""
    by_reference: bool = False
    """Whether the gold facts are references to facts, which `refers_to` compares."""
    judged: Mapping[Pair, Comparison] = field(default_factory=dict)
    split: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """By index of a gold fact: the found facts that together say it, as a judge decided."""
    merged: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """By index of a found fact: the gold facts that together say it, as a judge decided."""
    covered: Mapping[int, bool | None] = field(default_factory=dict)
    """By index of a gold fact: whether all found facts together say it, as a judge decided."""
    supported: Mapping[int, bool | None] = field(default_factory=dict)
    """By index of a found fact: whether all valid gold facts together say it, as a judge decided."""

    @cached_property
    def valid(self) -> list[int]:
        return [g for g in range(len(self.gold)) if g not in self.to_remove]

    @cached_property
    def equal(self) -> Sequence[Pair]:
        """The pairs of a gold and a found fact with the same normal form; their categories may differ."""
        if not self.gold or not self.found:
            return []  # without computing the normal forms of the other side
        places: dict[str, list[int]] = {}
        for place, fact in enumerate(self.found):
            places.setdefault(self._text(fact), []).append(place)
        return [(g, f) for g, fact in enumerate(self.gold) for f in places.get(self._text(fact), ())]

    def _text(self, fact: MemoryFact) -> str:
        return folded(fact.text_alone) if self.by_reference else fact.normal_text

    @cached_property
    def _decided(self) -> Mapping[Pair, Comparison]:
        same = {(g, f): SAME for g, f in self.equal if self._is_same(self.gold[g], self.found[f])}
        return {**self.judged, **same}

    def _is_same(self, gold: MemoryFact, found: MemoryFact) -> bool:
        """Whether two facts are the same by the first rule in the docstring of this module.

        With `by_reference`, `refers_to` decides instead.
        """
        if self.by_reference:
            return refers_to(gold, found) and not self._is_apart(gold, found)
        return self._path(gold) == self._path(found) and _says_the_same(gold, found)

    def _path(self, fact: MemoryFact) -> Path:
        """Return the categories of a fact in the form in which those of one place are equal."""
        return tuple(map(self._place, fact.categories))

    def _place(self, category: str) -> str:
        return category if spelling(category) in self._shared_spellings else spelling(category)

    def _is_apart(self, gold: MemoryFact, found: MemoryFact) -> bool:
        """Whether the categories of two facts have one normal form, but are two categories of one memory."""
        form = normal_category(gold.category)
        is_shared = form == normal_category(found.category) and form in self._shared_forms
        return is_shared and self._place(gold.category) != self._place(found.category)

    @cached_property
    def _shared_spellings(self) -> frozenset[str]:
        return self._shared(spelling)

    @cached_property
    def _shared_forms(self) -> frozenset[str]:
        return self._shared(normal_category)

    def _shared(self, form_of: Callable[[str], str]) -> frozenset[str]:
        """Return the forms that two categories of one memory have: the normal form `robert` of Robert and Roberts."""
        shared: set[str] = set()
        for facts, known in ((self.gold, self.known), (self.found, frozenset[str]())):
            numbers = Counter(map(form_of, known.union(*(fact.categories for fact in facts))))
            shared |= {form for form, number in numbers.items() if number > 1}
        return frozenset(shared)

    def compare(self, pair: Pair) -> Comparison:
        return self._decided.get(pair, UNDECIDED)

    @property
    def same(self) -> list[Pair]:
        return [pair for pair, one in self._decided.items() if one == SAME]

    def fits(self, pair: Pair) -> bool:
        """Whether the categories of a pair allow a match.

        They may differ if the category of the gold fact is not in `known`, or the fact is in `to_remove`.
        """
        gold, found = self.gold[pair[0]], self.found[pair[1]]
        is_known = normal_category(gold.category) in self._known_forms
        return pair[0] in self.to_remove or not is_known or _may_fit(gold, found)

    @cached_property
    def _known_forms(self) -> frozenset[str]:
        return frozenset(map(normal_category, self.known))


class Matching(Struct, frozen=True, dict=True):
    grid: Grid
    pairs: Mapping[int, int]
    """By index of a gold fact: the index of the found fact that it is matched with."""
    misfiled: Mapping[int, int]
    """By index of an unmatched gold fact: an unmatched found fact that says the same, but in a wrong category.

    Each of the two may still match another fact. Pairs that a judge called different are left out.
    """
    twins: Mapping[int, int]
    """By index of an unmatched found fact that repeats another one: the index of the first of them."""

    @cached_property
    def open_gold(self) -> list[int]:
        """The gold facts that are not matched."""
        return [g for g in range(len(self.grid.gold)) if g not in self.pairs]

    @cached_property
    def open_found(self) -> list[int]:
        """The found facts that are not matched and repeat no other."""
        taken = {*self.pairs.values(), *self.twins}
        return [f for f in range(len(self.grid.found)) if f not in taken]

    @cached_property
    def open_pairs(self) -> list[Pair]:
        """The pairs of open facts that a judge could still decide."""
        return [pair for pair in self._open if self.grid.fits(pair)]

    @property
    def open_elsewhere(self) -> list[Pair]:
        """The pairs as in `open_pairs`, but in categories that do not fit. They do not match."""
        return [pair for pair in self._open if not self.grid.fits(pair)]

    @cached_property
    def _open(self) -> dict[Pair, None]:
        pairs = ((g, f) for g in self.open_gold for f in self.open_found)
        return dict.fromkeys(pair for pair in pairs if self.grid.compare(pair).is_undecided)

    @cached_property
    def undecided(self) -> Mapping[int, int]:
        """By index of a gold fact: the index of a found fact.

        As many of `open_pairs` as possible with each fact in one pair only, preferring similar facts.
        """
        return _assign(self.grid, self.open_pairs)

    def most(self, gold: Collection[int]) -> int:
        """Return how many of these gold facts a judge could still match by deciding the open pairs."""
        pairs = [pair for pair in self.open_pairs if pair[0] in gold]
        if not pairs:
            return 0
        rows, columns = {g for g, _ in pairs}, {f for _, f in pairs}
        return (
            min(len(rows), len(columns)) if len(pairs) == len(rows) * len(columns) else len(_assign(self.grid, pairs))
        )

    def may_match(self, gold: int) -> bool:
        """Whether one of `open_pairs` has this gold fact."""
        return any(pair[0] == gold for pair in self.open_pairs)

    def covered(self, gold: int) -> bool | None:
        """Whether all found facts together say this gold fact, in any category; None if that is undecided."""
        grid, found = self.grid, range(len(self.grid.found))
        if gold in self.pairs or gold in grid.split or any(grid.compare((gold, f)).says for f in found):
            return True
        return grid.covered.get(gold) if found else False

    def supported(self, found: int) -> bool | None:
        """Whether all valid gold facts together say this found fact, in any category; None if that is undecided."""
        grid, place = self.grid, self.twins.get(found, found)
        if any(self.pairs.get(g) == place or grid.compare((g, place)).said for g in grid.valid):
            return True
        parts = grid.merged.get(place)
        if parts and not any(g in grid.to_remove for g in parts):
            return True
        return grid.supported.get(place) if grid.valid else False


def match(grid: Grid) -> Matching:
    """Match facts that are the same, as code or a judge decided: as many pairs as possible.

    The order of the facts does not affect the result.
    """
    pairs = _assign(grid, [pair for pair in grid.same if grid.fits(pair)])
    for gold, pieces in grid.split.items():
        if gold not in pairs and not set(pieces) & set(pairs.values()):
            pairs[gold] = max(pieces, key=lambda f: (len(grid.found[f].text), grid.found[f].text))
    for found, parts in grid.merged.items():
        if found not in pairs.values() and not set(parts) & pairs.keys():
            pairs[max(parts, key=lambda g: (len(grid.gold[g].text), grid.gold[g].text))] = found
    taken = set(pairs.values())
    twins = _twins(grid, taken)
    free = {(g, f) for g, f in (*grid.equal, *grid.same) if g not in pairs and f not in taken and f not in twins}
    elsewhere = [
        pair for pair in free if not grid.fits(pair) and (grid.compare(pair) == SAME or grid.compare(pair).is_undecided)
    ]
    return Matching(grid, pairs, _assign(grid, elsewhere), twins)


def _twins(grid: Grid, taken: Collection[int]) -> dict[int, int]:
    first: dict[str, list[int]] = {}
    twins = {}
    for place in sorted(range(len(grid.found)), key=lambda place: place not in taken):
        fact = grid.found[place]
        others = first.setdefault(fact.normal_text, [])
        repeated = next((other for other in others if repeats(fact, grid.found[other])), None)
        if place in taken or repeated is None:
            others.append(place)
        else:
            twins[place] = repeated
    return twins


def _assign(grid: Grid, allowed: Iterable[Pair]) -> dict[int, int]:
    """Return as many of these pairs as possible with each fact in one pair only, preferring the most similar."""
    able = list(allowed)
    pairs = dict(able)
    if len(pairs) == len(able) == len(set(pairs.values())):
        return pairs  # no fact has a choice
    gold, found = _sorted(grid.gold, {g for g, _ in able}), _sorted(grid.found, {f for _, f in able})
    if len(able) == len(gold) * len(found) <= _FEW_PAIRS:
        # every fact may have every partner, so that taking the most alike first gives as many pairs as possible
        return one_to_one(sorted(((g, f) for g in gold for f in found), key=lambda pair: -_closeness(grid, pair)))
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    row, column = ({place: n for n, place in enumerate(places)} for places in (gold, found))
    worth = np.zeros((len(gold), len(found)))
    for g, f in able:
        # one pair more outweighs all likeness
        worth[row[g], column[f]] = 2.0 + _closeness(grid, (g, f)) + min(worth.shape)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    return {gold[r]: found[c] for r, c in zip(rows, columns, strict=True) if worth[r, c] > 0}


def one_to_one(ranked: Iterable[Pair]) -> dict[int, int]:
    """Return the pairs from best to worst, without those that have a fact of a better pair.

    Keys are the first indexes.
    """
    chosen: dict[int, int] = {}
    for one, other in ranked:
        if one not in chosen and other not in chosen.values():
            chosen[one] = other
    return chosen


def _closeness(grid: Grid, pair: Pair) -> float:
    gold, found = grid.gold[pair[0]], grid.found[pair[1]]
    place = (spelling(gold.category) in found.path) / 8 + (gold.path == found.path) / 16
    return likeness(gold, found) / 2 + (gold.text == found.text) / 4 + place


def _sorted(facts: Sequence[MemoryFact], places: Iterable[int]) -> list[int]:
    """Sort indexes by the facts they stand for, so that the result does not depend on the order of the facts."""
    return sorted(
        places, key=lambda place: (facts[place].text.casefold(), facts[place].categories, facts[place].attributes)
    )
