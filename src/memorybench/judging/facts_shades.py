"""What the small words of a fact say: when, who, whether at all, and in what relation.

They are no part of the words that are compared, because "the budget is" and "budget of" say the same. Where two facts
agree in all else, they are looked at: "is" and "was", "my" and "his", "to" and "by" are not for code to tell equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from memorybench.text.fact_stems import stem_of
from memorybench.text.stop_words import FACT_STOP_WORDS as FILLERS

from .facts_reading import Reading, tokens_of

_TENSES = {"was": "was", "were": "was", "had": "had", "did": "did", "been": "been"}
_MODALS = frozenset(("will", "would", "shall", "should", "can"))
_CHOICE = frozenset(("or",))
_HEDGES = frozenset(("about", "around", "approximately", "roughly", "nearly", "almost", "circa", "ca", "~"))
_PERSONS = "he she him his her hers they them their theirs i me my mine we us our ours you your yours"
_PEOPLE = frozenset(_PERSONS.split())
_LEADS = {
    "they": "",
    "user": "",
    "their": "their",
    "i": "i",
    "we": "we",
    "he": "he",
    "she": "she",
    "my": "my",
    "his": "his",
    "her": "her",
}
"""Who a fact may begin with where another names nobody: it is about the user either way."""
_LINKING = (
    "of in on at to for by with from as via through than over before after under above below against about around"
)
_LINKS = frozenset(_LINKING.split())
_DIRECTED = frozenset(("from", "to", "than", "over", "before", "after", "under", "above", "below", "against"))
"""Without them it would be another thing; without the other links it may be the same."""
_SKIPPED = _PEOPLE | {"a", "an", "the", "its"}
_NAMING = frozenset(("called", "named"))
_PLACING = frozenset(("in", "at", "near", "on"))
_SEQUENCE = frozenset(("was", "were", "had", "now", "then"))
_DESCRIBING = """
    handmade homemade small large big little long short old young new red blue green black white local own lovely nice
    beautiful good great wooden organic fresh daily weekly monthly yearly hourly
"""
_HARMLESS = frozenset(map(stem_of, _DESCRIBING.split()))
"""Words that a fact may have more without taking anything back."""
_HARMFUL = re.compile(
    r"\b(?:except|unless|rarely|hardly|barely|seldom|scarcely|never|former(?:ly)?|previous(?:ly)?|once|ex|used to"
    r"|allegedly|supposedly|fail(?:s|ed)?|or|only|not|no|if)\b"
)
_AND = re.compile(r"^(?:[,;]? and |; )(?P<rest>.+)")


@dataclass(frozen=True, slots=True)
class Shades:
    lead: str
    """Who the fact begins with."""
    people: tuple[str, ...]
    """Who else is in it, in the order of their coming."""
    sense: frozenset[str]
    """Words of tense, of modality, `or`, and `about` before a number."""
    links: Mapping[str, frozenset[str]]
    """Thing → the small words right before it; none where it stands by itself."""
    forms: Mapping[str, frozenset[str]]
    """Stem → the words it was made from."""
    article: bool
    sequence: tuple[str, ...]
    """Where it tells what was and what is: its words as they follow each other."""


def shades_of(reading: Reading) -> Shades:
    return _shades(reading.text, reading.tokens)


@lru_cache(maxsize=4_000)
def _shades(text: str, known: tuple[str, ...] | None) -> Shades:
    tokens = tokens_of(text) if known is None else list(known)
    while tokens[:1] == ["the"]:
        tokens = tokens[1:]
    lead = tokens[0] if tokens and tokens[0] in _LEADS else ""
    rest = tokens[1:] if lead else tokens
    things = [token for token in rest if token not in FILLERS]
    return Shades(
        lead=_LEADS.get(lead, ""),
        people=tuple(token for token in rest if token in _PEOPLE),
        sense=_sense(tokens),
        links=_links(rest),
        forms=_gathered((stem_of(thing), thing) for thing in things),
        article="a" in rest or "an" in rest,
        sequence=tuple(map(stem_of, things)) if not _SEQUENCE.isdisjoint(rest) else (),
    )


def alike(first: Reading, second: Reading) -> bool:
    """Whether the small words of two facts do not set them apart, as far as they have words in common."""
    if first.tokens is not None and first.tokens == second.tokens:
        return True
    a, b = shades_of(first), shades_of(second)
    if a.sense != b.sense or a.people != b.people or (a.lead and b.lead and a.lead != b.lead):
        return False
    if a.sequence and b.sequence and a.sequence != b.sequence:
        return False
    article = a.article or b.article
    return all(_linked(a.links[thing], b.links[thing]) for thing in a.links.keys() & b.links.keys()) and all(
        _inflected(a.forms[stem], b.forms[stem], article) for stem in a.forms.keys() & b.forms.keys()
    )


def entails(longer: Reading, shorter: Reading, extra: Iterable[str]) -> bool:
    """Whether a fact with these words more surely says the shorter one: they tell where or which, or stand in a clause
    of their own."""
    if longer.text.startswith(shorter.text) and (added := _AND.match(longer.text[len(shorter.text) :])):
        return len(added["rest"].split()) > 1 and not _HARMFUL.search(added["rest"])
    links = shades_of(longer).links
    counted = all(quantity.value > 0 and not quantity.mode for quantity in longer.quantities - shorter.quantities)
    return counted and alike(longer, shorter) and all(_harmless(word, longer, links) for word in extra)


def _harmless(word: str, longer: Reading, links: Mapping[str, frozenset[str]]) -> bool:
    naming = shades_of(longer).forms.get(word, frozenset((word,))) <= _NAMING
    placed = word in longer.names and bool(links.get(word)) and links[word] <= _PLACING
    return placed or naming or word in _HARMLESS


def _sense(tokens: Sequence[str]) -> frozenset[str]:
    told = {_TENSES[token] for token in tokens if token in _TENSES}
    told.update((_MODALS | _CHOICE).intersection(tokens))
    if any(token in _HEDGES and after[0].isdigit() for token, after in pairwise(tokens)):
        told.add("about")
    return frozenset(told)


def _links(tokens: Sequence[str]) -> Mapping[str, frozenset[str]]:
    linked: list[tuple[str, str]] = []
    link = ""
    for token in tokens:
        if token in _LINKS:
            link = token
        elif token not in _SKIPPED:
            linked.append((stem_of(token), link))
            link = ""
    return _gathered(linked)


def _gathered(pairs: Iterable[tuple[str, str]]) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for key, value in pairs:
        found.setdefault(key, set()).add(value)
    return {key: frozenset(values) for key, values in found.items()}


def _linked(one: frozenset[str], other: frozenset[str]) -> bool:
    here, there = one - {""}, other - {""}
    return here == there or ((not here or not there) and _DIRECTED.isdisjoint(here | there))


def _inflected(one: frozenset[str], other: frozenset[str], article: bool) -> bool:
    """Whether words of one stem may stand for each other: not another tense, not Ann for Anne, not cats for a cat."""
    for word in one - other:
        for twin in other - one:
            short, long = sorted((word, twin), key=len)
            if word.endswith("ed") != twin.endswith("ed") or long == short + "e":
                return False
            if article and long in (short + "s", short + "es"):
                return False
    return True
