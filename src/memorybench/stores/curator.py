"""Proposes which facts to merge or delete: those that repeat another fact, and preferences that have changed.

Proposals are conservative. Two facts are merged only if one contains all words of the other in the same order, with the
same numbers and the same negation. Facts that differ in a word are kept, except if a later one changes a preference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from memorybench.core.stores import Proposal, StoredFact
from memorybench.text.words import is_negated, numbers, stems, words

HIGH_TRUST = 0.8
HIGH_RETRIEVAL_COUNT = 5
"""A fact with a trust of at least HIGH_TRUST and at least HIGH_RETRIEVAL_COUNT retrievals is protected. It is merged
only into a fact that is STRONGLY_SIMILAR, and deleted only if the new preference mentions a change, such as "now"."""
LOW_TRUST = 0.3
"""An untrusted source must not change the memory. So a fact with less trust than LOW_TRUST does not replace an older
preference, and facts with at least LOW_TRUST are not merged into it."""
SIMILAR = 0.7
STRONGLY_SIMILAR = 0.9
"""Two facts say the same if, of the words that occur in either, at least the share SIMILAR occurs in both. If the fact
to remove is protected, the share must be at least STRONGLY_SIMILAR."""

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
"""Beginnings of verbs for which a person has one object at a time, so that a new object replaces the old one. "use" is
not among them, because a person may use several things."""
_FAVOURITE = re.compile(
    r"^(?P<subject>.*?\b(?:favou?rite|preferred|default|current)\b.*?)\b(?:is|are)\b(?P<rest>.*)$", re.I | re.DOTALL
)
_SCOPE = re.compile(r"\b(?:for|in|on|at|when|during|while|with|as)\b", re.I)
_FILLERS = re.compile(r"\b(?:now|nowadays|instead|anymore|longer|from now on|these days|going forward|to)\b", re.I)


def propose_changes(facts: Sequence[StoredFact]) -> list[Proposal]:
    """Return proposals to merge or delete some of `facts`, which must be sorted oldest first.

    After all of them are applied, a second call returns none.
    """
    remaining: list[_ParsedFact] = []
    proposals: list[Proposal] = []
    for fact in reversed(facts):
        older = _ParsedFact(fact)
        for newer in tuple(remaining):
            proposal = _propose_delete(older, newer) or _propose_merge(older, newer)
            if proposal is None:
                continue
            proposals.append(proposal)
            if fact.id in proposal.ids:
                break
            remaining.remove(newer)
        else:
            remaining.append(older)
    return proposals


class _Preference(Struct, frozen=True):
    """A preference such as "User (subject) prefers tabs (object) for Go (scope)", as word stems."""

    subject: tuple[str, ...]
    object: tuple[str, ...]
    scope: frozenset[str]
    exclusive: bool
    changed: bool
    """Whether the text mentions a change, such as "now" or "switched"."""

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


class _ParsedFact(Struct, frozen=True, dict=True):
    """A fact with its words and the preference that it states (None if it states none), each computed only once."""

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
    def retrieval_count(self) -> int:
        return self.fact.retrieval_count or 0

    @property
    def is_protected(self) -> bool:
        return self.trust >= HIGH_TRUST and self.retrieval_count >= HIGH_RETRIEVAL_COUNT

    @cached_property
    def preference(self) -> _Preference | None:
        text = self.fact.content.strip()
        changed = _CHANGE.search(text) is not None
        favourite = _FAVOURITE.match(text)
        if favourite:
            # "the default editor is …" names its topic, so that any other object is a change
            topic = _content_stems(favourite["subject"])
            return _Preference(topic, _content_stems(favourite["rest"]), frozenset(topic), True, changed=True)
        preference = _PREFERENCE.match(text)
        if preference is None:
            return None
        subject, verb, rest = preference["subject"], preference["verb"].lower(), preference["rest"]
        scope = _SCOPE.search(rest)
        cut = scope.start() if scope else len(rest)
        return _Preference(
            stems(words(_FILLERS.sub(" ", subject).replace(" no ", " "))),  # from "no longer"
            _content_stems(rest[:cut]),
            frozenset(_content_stems(rest[cut:])),
            verb.startswith(_EXCLUSIVE),
            changed,
        )


def _content_stems(text: str) -> tuple[str, ...]:
    return stems(words(_FILLERS.sub(" ", text)))


def _propose_delete(older: _ParsedFact, newer: _ParsedFact) -> Proposal | None:
    """Return a proposal to delete the older fact if the newer fact changes the preference that it states; else None."""
    earlier, later = older.preference, newer.preference
    if earlier is None or later is None or newer.trust < LOW_TRUST or not later.replaces(earlier):
        return None
    if older.is_protected and not _CHANGE.search(newer.fact.content):
        return None
    return Proposal(
        action="delete", ids=(older.fact.id,), kept=newer.fact.id, reason="superseded by a later preference"
    )


def _propose_merge(older: _ParsedFact, newer: _ParsedFact) -> Proposal | None:
    """Return a proposal to merge one fact into the other if both say the same; else None.

    The fact with fewer words is removed; with equal numbers of words, the less trusted one.
    """
    if numbers(older.words) != numbers(newer.words) or is_negated(older.words) != is_negated(newer.words):
        return None
    if not older.stems or not newer.stems:
        return None
    removed, kept = sorted(
        (older, newer), key=lambda fact: (len(fact.stems), fact.trust, fact.retrieval_count, fact is older)
    )
    similarity = len(set(removed.stems) & set(kept.stems)) / len(set(removed.stems) | set(kept.stems))
    rest = iter(kept.stems)
    in_order = all(stem in rest for stem in removed.stems)  # "Ann likes Bob" is not "Bob likes Ann"
    if similarity < (STRONGLY_SIMILAR if removed.is_protected else SIMILAR) or not in_order:
        return None
    if kept.trust < LOW_TRUST <= removed.trust:
        return None
    reason = f"says the same ({similarity:.2f})"
    return Proposal(action="merge", ids=(removed.fact.id,), kept=kept.fact.id, reason=reason)
