"""Facts of one user that another one is shown: in their own memory, in their history, or in an error message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from memorybench.text.words import words

from .assertions_base import Finding
from .evidence import Evidence
from .scenario import Scenario

NO_DISCLOSURE = "nobody is shown a fact of another user"
_RUN = 3
"""So many words in a row are a quotation. Fewer also occur by chance, such as a name."""


def find_disclosure(scenario: Scenario, evidence: Evidence, histories: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Return a finding if a user is shown a fact of another one that they were not shown at the beginning.

    What a user has, or wrote in a call, discloses nothing. Searches and lists are checked by assertions.
    """
    for user in evidence.users:
        own = set(chain.from_iterable(map(_runs, _known_texts(scenario, evidence, user))))
        for fact in scenario.setup.facts:
            secret = set(_runs(fact.content)) - own
            if fact.user == user or not secret:
                continue
            for place, text in _shown_texts(evidence, histories, user):
                if secret & set(_runs(text)):
                    problem = f'{place} shows {user} a fact of {fact.user}: "{fact.content}"'
                    return [Finding(claim=NO_DISCLOSURE, kind="disclosure", status="broken", found=problem)]
    return []


def _known_texts(scenario: Scenario, evidence: Evidence, user: str) -> Iterator[str]:
    yield from (fact.content for fact in scenario.setup.facts if fact.user == user)
    fixture = evidence.activity.snapshots["fixture"].facts
    yield from (fact.content for fact in fixture.get(user, ()))
    for call in evidence.activity.calls:
        if call.user == user:
            yield from (value for value in call.arguments.values() if isinstance(value, str))


def _shown_texts(evidence: Evidence, histories: Mapping[str, Sequence[str]], user: str) -> Iterator[tuple[str, str]]:
    for call in evidence.activity.calls:
        if call.user == user:
            yield from ((f"the error of {call.op}", text) for text in (call.refused, call.error) if text)
    yield from (("the history", text) for text in histories.get(user, ()))
    yield from (("the memory", fact.content) for fact in evidence.facts.get(user, ()))


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    """Yield every few words that follow each other."""
    all_words = words(text)
    yield from (tuple(all_words[start : start + _RUN]) for start in range(len(all_words) - _RUN + 1))
