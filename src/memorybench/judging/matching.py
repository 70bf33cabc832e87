"""Do two facts say the same? Decided by code where code can tell, and left undecided where it can not.

Same: the same words that carry meaning and the same quantities, however they are written, filed or ordered, and no
small word (tense, person, direction) that could make a difference.
Different, or contradicting: other quantities, other names, or one denies or doubts what the other states. A denied
fact and a plain one never match. What shares some words is undecided: it may be a paraphrase. What shares none is
taken for different, though not surely: a judge, where there is one, is asked about both kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from memorybench.text.fact_stems import stem_of

from .facts import MemoryFact
from .facts_quantities import Quantity
from .facts_reading import DENIED, Reading, bare, denies, glance_of, reading_of
from .facts_shades import alike, entails

Relation = Literal["same", "different", "contradicts", "undecided"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a first fact stands to a second one."""

    relation: Relation
    says: bool | None = False
    """Whether the first says all that the second says; None: code can not tell."""
    said: bool | None = False
    """Whether the second says all that the first says."""
    sure: bool = True
    """Whether a judge could not know better."""
    holds: bool = False
    """Whether all words of the second stand in the first: it may be made of it, though it need not say it."""
    held: bool = False
    """Whether all words of the first stand in the second."""


_SAME = Comparison("same", True, True, holds=True, held=True)
_DIFFERENT = Comparison("different")
_CONTRADICTS = Comparison("contradicts")
_OPEN = Comparison("undecided", None, None, sure=False)
UNLIKE = Comparison("different", sure=False)
_AGAINST = Comparison("contradicts", sure=False)

_REPLACING = frozenset(stem_of(verb) for verb in ("replaces", "swaps", "exchanges", "substitutes", "trades"))
_EXCLUSIVE = tuple(
    frozenset(stem_of(word) for word in words)
    for words in (
        ("hourly", "daily", "weekly", "monthly", "yearly"),
        ("more", "less"),
        ("least", "most"),
        ("over", "under"),
        ("above", "below"),
        ("before", "after"),
        ("increase", "decrease"),
        ("include", "exclude"),
        ("left", "right"),
        ("inside", "outside"),
        ("first", "second", "third"),
        ("morning", "afternoon", "evening", "night"),
        ("always", "never", "sometimes"),
    )
)
"""Words of which one thing can bear but one."""
_OF_A_COUNTRY = ("ish", "es", "ian", "ean", "ench", "utch")
"""How the stems of Danish, Chinese, Italian, Chilean, French and Dutch end."""
_EXCLUDING = frozenset(word for group in _EXCLUSIVE for word in group)
_TURNED_DOWN = re.compile(r"\btoo (?:expensive|dear|costly|much|big|far|risky|late)\b|\bout of the question\b")


class Understood(NamedTuple):
    """A fact as code understands it: made once for all its comparisons."""

    reading: Reading
    filed: frozenset[str]
    """Stems of its categories' words: what they say, the fact need not repeat."""
    excluding: bool
    """It has a word of which one thing can bear but one."""


def compare(first: MemoryFact, second: MemoryFact) -> Comparison:
    """What their categories already say, neither of them needs to repeat."""
    return compare_understood(understood(first), understood(second))


def understood(fact: MemoryFact) -> Understood:
    return _understood(fact.text, fact.categories)


@lru_cache(maxsize=2_000)
def _understood(text: str, categories: tuple[str, ...]) -> Understood:
    """A category that denies, such as `dislikes`, denies what is filed under it."""
    category = categories[-1] if categories else ""
    denied = _denying(category) and not denies(text)
    reading = reading_of(f"{category.replace('_', ' ')}: {text}" if denied else text)
    return Understood(reading, _category_words(categories), not _EXCLUDING.isdisjoint(reading.stems))


def compare_understood(first: Understood, second: Understood) -> Comparison:
    """As `compare`: for those who compare each fact many times."""
    if first.reading.text == second.reading.text:
        return _SAME
    return UNLIKE if _apart(first, second) else _compare(first, second)


def words_alone(known: Iterable[Understood]) -> frozenset[str] | None:
    """For `unlike`: the words of some facts, if these have nothing else to be compared. None: quantities, and words of
    which one thing can bear but one, take a closer look."""
    told: set[str] = set()
    for fact in known:
        stems = fact.reading.stems
        if fact.reading.quantities or not stems or fact.excluding or not all(map(str.isalpha, stems)):
            return None
        told |= stems
    return frozenset(told)


def unlike(fact: MemoryFact, words: frozenset[str]) -> bool:
    """Whether a comparison of this fact with those whose words these are would surely find them different: told without
    reading it."""
    if _denying(fact.category):
        return False
    glance = glance_of(fact.text)
    return glance is not None and glance.isdisjoint(words)


def read(fact: MemoryFact) -> Reading:
    return understood(fact).reading


@lru_cache(maxsize=2_000)
def _denying(category: str) -> bool:
    return denies(category.replace("_", " "))


def contained(fact: MemoryFact, *texts: str) -> bool:
    """Whether all words and quantities of a fact stand in these texts together, denied or not as in the fact."""
    words, quantities = _gathered(map(reading_of, texts))
    known = understood(fact)
    return _within(known.reading, words | known.filed, quantities)


def holds(fact: MemoryFact, text: str) -> bool:
    """Whether a text stands in a fact, word by word or in other order and form, and is not denied, doubted or turned
    down there."""
    told, wanted = read(fact), reading_of(text)
    if _clash(told, wanted) is not None or (_TURNED_DOWN.search(told.text) and not _TURNED_DOWN.search(wanted.text)):
        return False
    return f" {wanted.text} " in f" {told.text} " or _within(wanted, told.said, told.quantities)


def together(whole: MemoryFact, pieces: Sequence[MemoryFact]) -> bool:
    """Whether the pieces say between them all that the whole says."""
    words, quantities = _gathered(map(read, pieces))
    known = understood(whole)
    return _within(known.reading, words | known.filed, quantities)


def likeness(first: MemoryFact, second: MemoryFact) -> float:
    """The share of words and quantities that two facts have in common: 2 × shared / all. For ordering, not deciding."""
    a, b = _substance(read(first)), _substance(read(second))
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


def size(fact: MemoryFact) -> int:
    """How much a fact says, in words and quantities."""
    return len(_substance(read(fact)))


def _apart(first: Understood, second: Understood) -> bool:
    """Whether they have nothing that could be compared: no word in common, and not both a quantity, a name, or a word
    of which one thing can bear but one. Most pairs are of this kind, and `_compare` would find no more."""
    a, b = first.reading, second.reading
    if (a.quantities and b.quantities) or not a.stems.isdisjoint(b.stems):
        return False
    if a.names and b.names:
        return a.empty or b.empty  # but for its name
    return not (first.excluding and second.excluding)


def _compare(first: Understood, second: Understood) -> Comparison:
    a, b = first.reading, second.reading
    clash = _clash(a, b)
    if clash is not None:
        return clash
    shared = not a.stems.isdisjoint(b.stems)
    more_a = _unmatched(a.quantities, b.quantities)
    # of two single ones, each agrees with the other or neither does
    more_b = more_a if len(a.quantities) == len(b.quantities) == 1 else _unmatched(b.quantities, a.quantities)
    if more_a and more_b:  # one thing said with two numbers, or two things
        related = shared or not a.words or not b.words
        one_thing = related and not (_beyond(first, second) and _beyond(second, first))
        return _CONTRADICTS if one_thing else _DIFFERENT
    if (named := _other_names(a, b)) is not None:
        return named
    related, exclusive = shared or _agreeing(a, b), first.excluding and second.excluding
    if not related and not exclusive:
        return UNLIKE
    only_a, only_b = _beyond(first, second), _beyond(second, first)
    if exclusive and (found := _exclusive(only_a, only_b)) is not None:
        return found
    if not related:
        return UNLIKE
    held, holds = not only_a and not more_a, not only_b and not more_b
    maybe = (held or holds) and (_maybe(a.quantities, b.quantities) or _maybe(b.quantities, a.quantities))
    if held and holds and not maybe and _same_order(first, second) and alike(a, b):
        return _SAME
    if held or holds:
        # the longer one has all the words; whether it says as much is told by those that it has more
        says = holds and not held and not maybe and entails(a, b, only_a)
        said = held and not holds and not maybe and entails(b, a, only_b)
        return Comparison("undecided", says or None, said or None, sure=False, holds=holds, held=held)
    if more_a or more_b:
        return UNLIKE  # other words, and a number that the other does not have, or has in words
    return _OPEN


def _clash(a: Reading, b: Reading) -> Comparison | None:
    """What one states and the other denies or doubts; None: nothing, or too little to tell."""
    if not (a.marked or b.marked):
        return None
    here, there = a.modes, b.modes
    shared = here.keys() & there.keys()
    clashing = {thing for thing in shared if not here[thing] & there[thing]}
    if not clashing:
        return None
    if here.keys() != there.keys() and clashing != shared:
        return _OPEN  # "does not sell soap" stands in "sells candles, not soap"
    if not (here.keys() <= there.keys() or there.keys() <= here.keys()):
        return UNLIKE  # "nothing hosted outside" may be "all hosted inside"
    denied = any(DENIED in mode for thing in clashing for mode in here[thing] ^ there[thing])
    if not denied:
        return _DIFFERENT
    # "can not" may be said in other words: "it gets in the way"
    return _CONTRADICTS if here.keys() == there.keys() else _AGAINST


def _other_names(a: Reading, b: Reading) -> Comparison | None:
    """Where each names somebody or somewhere that the other does not. Whether one can live in two towns is not for
    code to tell, nor whether Danish is of Denmark."""
    if not a.names or not b.names:
        return None
    only_a, only_b = a.names - b.stems, b.names - a.stems
    if not only_a or not only_b:
        return None
    return UNLIKE if any(name.endswith(_OF_A_COUNTRY) for name in only_a | only_b) else _DIFFERENT


def _exclusive(only_a: frozenset[str], only_b: frozenset[str]) -> Comparison | None:
    """Where one says `left` and the other `right`: contradicting if that is all they differ in."""
    if only_a.isdisjoint(_EXCLUDING) or only_b.isdisjoint(_EXCLUDING):
        return None
    for group in _EXCLUSIVE:
        left, right = only_a & group, only_b & group
        if left and right:
            return _CONTRADICTS if only_a == left and only_b == right else _DIFFERENT
    return None


def _exchanged(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether two words have changed places around a third, which may be what one does to the other: the landlord pays
    the tenant. Or what is replaced by what."""
    places = [place for place, (here, there) in enumerate(zip(a, b, strict=False)) if here != there]
    if len(a) != len(b) or len(places) != 2:
        return False
    left, right = places
    return a[left] == b[right] and a[right] == b[left] and (right > left + 1 or a[0] in _REPLACING)


def _same_order(first: Understood, second: Understood) -> bool:
    """Whether the same words mean the same: always, unless their order or direction tells who does what to whom."""
    a, b = first.reading, second.reading
    if not (a.turns or b.turns):
        return not _exchanged(a.order, b.order)  # without directions, too, and without names
    if a.directions - b.directions and b.directions - a.directions:
        return False
    if not (a.turns and b.turns) and all(name.endswith("day") for name in a.names | b.names):
        return True
    shared = set(a.order).intersection(b.order) - first.filed - second.filed
    return [word for word in a.order if word in shared] == [word for word in b.order if word in shared]


def _beyond(first: Understood, second: Understood) -> frozenset[str]:
    """What the first says more than the second, but for what their categories say."""
    more = first.reading.said - second.reading.said
    if not more:
        return more
    filed = first.filed | second.filed
    return frozenset(word for word in more if bare(word) not in filed) if first.reading.marked else more - filed


def _unmatched(quantities: Set[Quantity], others: Set[Quantity]) -> bool:
    """Whether one of them agrees with none of the others, not even perhaps."""
    # loops, here and below: of two facts with a quantity each, generators would take most of the comparison
    for quantity in quantities - others:
        for other in others:
            if quantity.agrees(other) is not False:
                break
        else:
            return True
    return False


def _maybe(quantities: frozenset[Quantity], others: frozenset[Quantity]) -> bool:
    """Whether one of them agrees with another only perhaps."""
    return quantities != others and any(
        one.agrees(other) is None and not any(one.agrees(another) for another in others)
        for one in quantities
        for other in others
    )


def _agreeing(a: Reading, b: Reading) -> bool:
    """Whether they have a quantity in common: nineteen parrots and 19 EUR have not, though 19 alone could be either."""
    if not a.quantities or not b.quantities:
        return False
    values = not a.words or not b.words
    for quantity in a.quantities:
        for other in b.quantities:
            if (values or (quantity.unit and other.unit)) and quantity.agrees(other) is not False:
                return True
    return False


def _within(reading: Reading, words: Set[str], quantities: Set[Quantity]) -> bool:
    return reading.said <= words and not reading.empty and not _unmatched(reading.quantities, quantities)


def _gathered(readings: Iterable[Reading]) -> tuple[Set[str], Set[Quantity]]:
    words: set[str] = set()
    quantities: set[Quantity] = set()
    for reading in readings:
        words |= reading.said
        quantities |= reading.quantities
    return words, quantities


def _substance(reading: Reading) -> frozenset[object]:
    return frozenset((*reading.words, *reading.quantities))


@lru_cache(maxsize=2_000)
def _category_words(categories: tuple[str, ...]) -> frozenset[str]:
    return frozenset(stem_of(word) for category in categories for word in category.split("_"))
