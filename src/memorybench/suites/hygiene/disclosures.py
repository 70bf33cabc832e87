"""Finds facts of one user that the store shows to another user: in a list, in a history or in an error message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from memorybench.text.words import words

from .assertions_base import Finding
from .evidence import Evidence
from .scenario import Scenario

NO_DISCLOSURE = "nobody is shown a fact of another user"
_RUN = 3
"""The number of equal consecutive words that count as a quotation. Fewer, such as a name, also occur by chance."""


def find_disclosure(scenario: Scenario, evidence: Evidence, histories: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Return one finding if the store shows a user a fact of another user, else an empty list.

    Words that the user already had at the beginning, or wrote in a call, are not a disclosure. Results of searches and
    list calls are checked by assertions.
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
    """Yield every sequence of _RUN consecutive words of the text."""
    all_words = words(text)
    yield from (tuple(all_words[start : start + _RUN]) for start in range(len(all_words) - _RUN + 1))
