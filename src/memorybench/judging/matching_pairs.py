"""Which fact of one side is which of the other: one-to-one within category, and by what is covered.

Two views of the same comparison. Strict: each fact is matched with at most one other. A fact that was taken apart is
matched with its largest piece, the other pieces are left over; several facts made into one are matched as one, the
others are missed. Coverage: what the other side says, in one fact or in several and under whatever category, is said.

The category counts where it could be known. A fact goes under a category that stands in the memory it came from, or it
is filed wrongly and not matched; where the gold's category was never shown, or the found fact has none, any will do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from .facts import MemoryFact
from .matching import (
    UNLIKE,
    Comparison,
    compare,
    compare_understood,
    likeness,
    size,
    together,
    understood,
    unlike,
    words_alone,
)

Pair = tuple[int, int]
"""Places in the gold and in the found facts."""
_NOTHING: Mapping[int, int] = MappingProxyType({})


class Grid(NamedTuple):
    """Every gold fact beside every found one."""

    gold: Sequence[MemoryFact]
    found: Sequence[MemoryFact]
    cells: Mapping[Pair, Comparison]
    """Of the found fact (first) with the gold one (second): `says` is whether the found one covers the gold one."""
    known: frozenset[str] = frozenset()
    """Categories that the writer of the found facts was shown."""

    def fits(self, pair: Pair) -> bool:
        gold, found = self.gold[pair[0]], self.found[pair[1]]
        if not found.categories or gold.category not in self.known:
            return True
        return gold.category in found.categories or found.category in gold.categories

    def decided(self, told: Mapping[Pair, Comparison]) -> Grid:
        """With what a judge told of some pairs."""
        return self._replace(cells={**self.cells, **told})


class Matching(NamedTuple):
    grid: Grid
    pairs: Mapping[int, int]
    """Gold → found, one-to-one."""
    undecided: Mapping[int, int] = _NOTHING
    """Gold → found among the rest: pairs that may be the same, one-to-one."""
    misfiled: Mapping[int, int] = _NOTHING
    """Gold → found among the rest: the same fact under another category."""
    twins: frozenset[int] = frozenset()
    """Found facts among the rest that say again what a matched one says."""

    def covered(self, gold: int) -> bool | None:
        """Whether the found facts say this one; None: undecided."""
        if gold in self.pairs:
            return True
        grid = self.grid
        pieces: list[MemoryFact] = []
        unsure = False
        for place, fact in enumerate(grid.found):
            cell = grid.cells[gold, place]
            if cell.says:
                return True
            if cell.said:
                pieces.append(fact)
            unsure = unsure or cell.says is None
        if together(grid.gold[gold], pieces):
            return True
        return None if unsure and self.may_be_said(gold) else False

    def may_be_said(self, gold: int) -> bool:
        """Whether a found fact that nobody could decide about, and that is not known to say something else, may say
        this one."""
        return bool(self._may_say(gold))

    def likeliest(self, gold: int) -> int:
        """Of the found facts that may say this one: its partner, or the most alike where another has taken that."""
        if gold in self.undecided:
            return self.undecided[gold]
        grid = self.grid
        return max(self._may_say(gold), key=lambda found: (_closeness(grid, (gold, found)), grid.found[found].text))

    def _may_say(self, gold: int) -> list[int]:
        cells = self.grid.cells
        places = range(len(self.grid.found))
        able = [f for f in places if (cell := cells[gold, f]).says is None and cell.relation == "undecided"]
        known = self._known_found() if able else ()
        return [found for found in able if found not in known]

    def _in_pieces(self, gold: int) -> bool:
        """Whether it is matched with the largest of several pieces, which say it together."""
        cell = self.grid.cells.get((gold, self.pairs.get(gold, -1)))
        return cell is not None and cell.held and not cell.holds

    def _known_found(self) -> frozenset[int]:
        cells = self.grid.cells
        return self.twins.union(found for gold, found in self.pairs.items() if cells[gold, found].relation == "same")

    def supported(self, found: int, among: Collection[int]) -> bool | None:
        """Whether some of these gold facts, alone or together, say what this found one says; None: undecided."""
        if found in map(self.pairs.get, among):
            return True
        grid = self.grid
        parts: list[MemoryFact] = []
        able: list[int] = []
        for gold in among:
            cell = grid.cells[gold, found]
            if cell.said or (cell.held and self._in_pieces(gold)):
                return True
            if cell.says:
                parts.append(grid.gold[gold])
            if cell.relation == "undecided":
                able.append(gold)
        if together(grid.found[found], parts):
            return True
        known = {g for g, f in self.pairs.items() if grid.cells[g, f].relation == "same"} if able else ()
        return False if all(gold in known for gold in able) else None


def grid_of(gold: Sequence[MemoryFact], found: Sequence[MemoryFact], known: Iterable[str] = ()) -> Grid:
    wanted, given = [understood(fact) for fact in gold], [understood(fact) for fact in found]
    cells = {(g, f): compare_understood(one, other) for g, other in enumerate(wanted) for f, one in enumerate(given)}
    return Grid(gold, found, cells, frozenset(known))


def quick_grid_of(gold: Sequence[MemoryFact], found: Sequence[MemoryFact]) -> Grid:
    """As `grid_of`, for who asks what is said, and not how sure it is that the rest is not: found facts that have
    nothing in common with any gold one are not read."""
    wanted = [understood(fact) for fact in gold]
    words = words_alone(wanted)
    given = [None if words is not None and unlike(fact, words) else understood(fact) for fact in found]
    cells = {
        (g, f): UNLIKE if one is None else compare_understood(one, other)
        for g, other in enumerate(wanted)
        for f, one in enumerate(given)
    }
    return Grid(gold, found, cells)


def matched(grid: Grid) -> Matching:
    """The matching that pairs most, the same whatever the order of the facts."""
    same: list[Pair] = []
    open_cells: list[Pair] = []
    parts = False
    for pair, cell in grid.cells.items():
        if cell.relation == "same":
            same.append(pair)
        elif cell.relation == "undecided":
            open_cells.append(pair)
        parts = parts or cell.holds != cell.held
    pairs = _assigned(grid, [pair for pair in same if grid.fits(pair)] if grid.known else same, {})
    if parts:
        pairs |= _split(grid, pairs)
        pairs |= _merged(grid, pairs)
    misfiled = _assigned(grid, same, pairs)
    if not open_cells:
        return Matching(grid, pairs, misfiled=misfiled)
    twins = _twins(grid, {**pairs, **misfiled}, {found for _, found in open_cells})
    able = [pair for pair in open_cells if pair[1] not in twins and grid.fits(pair)]
    return Matching(grid, pairs, _assigned(grid, able, {**pairs, **misfiled}), misfiled, twins)


def open_pairs(matching: Matching) -> list[Pair]:
    """What a judge could still decide: pairs of facts that have found no partner, and that code is not sure about."""
    grid, taken = matching.grid, matching.twins.union(matching.pairs.values())
    return [
        (gold, found)
        for (gold, found), cell in grid.cells.items()
        if not cell.sure and gold not in matching.pairs and found not in taken and grid.fits((gold, found))
    ]


def _twins(grid: Grid, pairs: Mapping[int, int], open_found: Collection[int]) -> frozenset[int]:
    """Facts that could be taken for another undecided one, but say what a found fact has said already."""
    taken = frozenset(pairs.values())
    said = [grid.found[found] for found in taken]
    seen: set[str] = set()
    twins: list[int] = []
    for place in _sorted(grid.found):
        if place not in open_found or place in taken:
            continue
        fact = grid.found[place]
        repeats = fact.text in seen or any(grid.cells[gold, place].relation == "same" for gold in pairs)
        if repeats or any(compare(fact, other).relation == "same" for other in said):
            twins.append(place)
        seen.add(fact.text)
    return frozenset(twins)


def _assigned(grid: Grid, allowed: Sequence[Pair], taken: Mapping[int, int]) -> dict[int, int]:
    """As many pairs as can be of facts that are not taken, and of these the most alike."""
    if not allowed:
        return {}
    taken_found = set(taken.values())
    able = [(g, f) for g, f in allowed if g not in taken and f not in taken_found] if taken else allowed
    pairs = dict(able)
    if len(pairs) == len(able) == len(set(pairs.values())):
        return pairs  # nobody has a choice
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    gold = [g for g in _sorted(grid.gold) if g not in taken]
    found = [f for f in _sorted(grid.found) if f not in taken_found]
    row, column = ({place: n for n, place in enumerate(places)} for places in (gold, found))
    worth = np.zeros((len(gold), len(found)))
    for g, f in able:
        # one pair more outweighs all likeness
        worth[row[g], column[f]] = 2.0 + _closeness(grid, (g, f)) + min(worth.shape)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    return {gold[r]: found[c] for r, c in zip(rows, columns, strict=True) if worth[r, c] > 0}


def _closeness(grid: Grid, pair: Pair) -> float:
    gold, found = grid.gold[pair[0]], grid.found[pair[1]]
    return likeness(gold, found) / 2 + (gold.text == found.text) / 4 + (gold.category in found.categories) / 8


def _split(grid: Grid, pairs: Mapping[int, int]) -> dict[int, int]:
    """Gold facts that were written down in several pieces, each with its largest."""
    made: dict[int, int] = {}
    taken = set(pairs.values())
    for g in _sorted(grid.gold):
        if g in pairs:
            continue
        free = [f for f in _sorted(grid.found) if f not in taken and grid.fits((g, f))]
        pieces = [f for f in free if grid.cells[g, f].held and not grid.cells[g, f].holds]
        if len(pieces) > 1 and together(grid.gold[g], [grid.found[f] for f in pieces]):
            made[g] = max(pieces, key=lambda f: size(grid.found[f]))
            taken.update(pieces)
    return made


def _merged(grid: Grid, pairs: Mapping[int, int]) -> dict[int, int]:
    """Found facts that say several gold ones and nothing else, each with the largest of them."""
    made: dict[int, int] = {}
    taken = set(pairs)
    for f in _sorted(grid.found):
        if f in pairs.values():
            continue
        free = [g for g in _sorted(grid.gold) if g not in taken and grid.fits((g, f))]
        parts = [g for g in free if grid.cells[g, f].holds and not grid.cells[g, f].held]
        if len(parts) > 1 and together(grid.found[f], [grid.gold[g] for g in parts]):
            made[max(parts, key=lambda g: size(grid.gold[g]))] = f
            taken.update(parts)
    return made


def _sorted(facts: Sequence[MemoryFact]) -> list[int]:
    """Places in an order that does not depend on the order of the facts."""
    return sorted(range(len(facts)), key=lambda place: (facts[place].text.casefold(), facts[place].categories))
