"""Which facts repeat another, and which were superseded by a later one. Proposals come from the facts alone.

Conservative: two facts are the same where one says all the other says, in its order, with the same numbers and the same
yes or no. That a word was exchanged for another makes a different fact, except where a preference changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from memorybench.core.stores import Proposal, StoredFact
from memorybench.text.words import is_negated, numbers, stems, words

HIGH_TRUST = 0.8
HIGH_ACCESS = 5
"""Retrievals. A fact that is trusted and used as much as this goes only for a very good reason."""
LOW_TRUST = 0.3
"""What is trusted less takes no other fact's place: a stranger could rewrite the memory by it."""
SIMILAR = 0.7
STRONGLY_SIMILAR = 0.9
"""Shared words among all words of both."""

_CHANGE = re.compile(
    r"\b(?:now|nowadays|instead|anymore|no longer|from now on|these days|going forward|as of|"
    r"switched|changed|moved|migrated)\b",
    re.I,
)
_PREFERENCE = re.compile(
    r"^(?P<subject>.*?)\b(?P<verb>prefers?|favou?rs?|uses|switched|changed|moved|migrated)\b(?P<rest>.*)$",
    re.I | re.DOTALL,
)
_EXCLUSIVE = ("prefer", "favor", "favour")
"""One prefers one thing, and uses many: of these, only a change that is told supersedes."""
_FAVOURITE = re.compile(
    r"^(?P<subject>.*?\b(?:favou?rite|preferred|default|current)\b.*?)\b(?:is|are)\b(?P<rest>.*)$", re.I | re.DOTALL
)
_SCOPE = re.compile(r"\b(?:for|in|on|at|when|during|while|with|as)\b", re.I)
_RANKED = re.compile(r"\b(?:over|than|rather than|instead of|not)\b", re.I)
_FILLERS = re.compile(r"\b(?:now|nowadays|instead|anymore|longer|from now on|these days|going forward|to)\b", re.I)


def proposals(facts: Sequence[StoredFact]) -> list[Proposal]:
    """What a curator would do to facts that are given oldest first. Done, it leaves nothing more to propose."""
    kept: list[_Read] = []
    proposed: list[Proposal] = []
    for fact in reversed(facts):
        older = _Read(fact)
        stays = True
        for newer in tuple(kept):
            proposal = _superseded(older, newer) or _repeated(older, newer)
            if proposal is None:
                continue
            proposed.append(proposal)
            if older.fact.id in proposal.ids:
                stays = False
                break
            kept.remove(newer)
        if stays:
            kept.append(older)
    return proposed


@dataclass(frozen=True)
class _Preference:
    subject: tuple[str, ...]
    object: tuple[str, ...]
    scope: frozenset[str]
    exclusive: bool
    changed: bool

    def replaces(self, earlier: _Preference) -> bool:
        if self.subject != earlier.subject or self.object == earlier.object:
            return False
        if self.scope != earlier.scope and not (self.changed and not self.scope):
            return False
        shared = set(self.object) & set(earlier.object)
        if self.changed:
            return bool(shared) or bool(self.scope & earlier.scope)
        exchanged = (len(set(self.object) - shared), len(set(earlier.object) - shared))
        reversed_order = exchanged == (0, 0)
        return self.exclusive and earlier.exclusive and bool(shared) and (reversed_order or exchanged == (1, 1))


@dataclass(frozen=True)
class _Read:
    """A fact, and what its words tell. Worked out once, compared with many."""

    fact: StoredFact

    @cached_property
    def words(self) -> list[str]:
        return words(self.fact.content)

    @cached_property
    def stems(self) -> tuple[str, ...]:
        return stems(self.words)

    @property
    def trust(self) -> float:
        return self.fact.trust or 0.0

    @property
    def accesses(self) -> int:
        return self.fact.retrieval_count or 0

    @property
    def protected(self) -> bool:
        return self.trust >= HIGH_TRUST and self.accesses >= HIGH_ACCESS

    @cached_property
    def preference(self) -> _Preference | None:
        text = self.fact.content.strip()
        changed = _CHANGE.search(text) is not None
        favourite = _FAVOURITE.match(text)
        if favourite:
            # the subject names the topic, so that every other object is a change of it
            topic = stems(words(_FILLERS.sub(" ", favourite["subject"])))
            return _Preference(topic, _objects(favourite["rest"]), frozenset(topic), True, changed=True)
        preference = _PREFERENCE.match(text)
        if preference is None:
            return None
        subject, verb, rest = preference["subject"], preference["verb"].lower(), preference["rest"]
        scope = _SCOPE.search(rest)
        cut = scope.start() if scope else len(rest)
        return _Preference(
            stems(words(_FILLERS.sub(" ", subject).replace(" no ", " "))),
            _objects(rest[:cut]),
            frozenset(_objects(rest[cut:])),
            verb.startswith(_EXCLUSIVE),
            changed,
        )


def _objects(text: str) -> tuple[str, ...]:
    return stems(words(_FILLERS.sub(" ", text)))


def _superseded(older: _Read, newer: _Read) -> Proposal | None:
    earlier, later = older.preference, newer.preference
    if earlier is None or later is None or newer.trust < LOW_TRUST or not later.replaces(earlier):
        return None
    if older.protected and not _CHANGE.search(newer.fact.content):
        return None
    return Proposal(
        action="delete", ids=(older.fact.id,), kept=newer.fact.id, reason="superseded by a later preference"
    )


def _repeated(older: _Read, newer: _Read) -> Proposal | None:
    if numbers(older.words) != numbers(newer.words) or is_negated(older.words) != is_negated(newer.words):
        return None
    if not older.stems or not newer.stems:
        return None
    goes, stays = sorted((older, newer), key=lambda read: (len(read.stems), read.trust, read.accesses, read is older))
    similarity = len(set(goes.stems) & set(stays.stems)) / len(set(goes.stems) | set(stays.stems))
    if similarity < (STRONGLY_SIMILAR if goes.protected else SIMILAR) or not _follows(goes.stems, stays.stems):
        return None
    if stays.trust < LOW_TRUST <= goes.trust:
        return None
    return Proposal(action="merge", ids=(goes.fact.id,), kept=stays.fact.id, reason=f"says the same ({similarity:.2f})")


def _follows(short: Sequence[str], long: Sequence[str]) -> bool:
    """Whether the words of the short one stand in the long one, in order: Ann likes Bob is not Bob likes Ann."""
    rest = iter(long)
    return all(stem in rest for stem in short)
