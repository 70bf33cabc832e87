"""Finds which facts are true at the end of a conversation, and which fact superseded which."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from memorybench.datasets.audit import AuditFact

from .evidence import IndexedConversation
from .templates import attribute_name
from .time_words import has_time_words

PLAN = "a plan"
"""The reason for a fact that becomes true after the conversation, or for a plan that may be outdated at its end."""
UNDATED = "undated"
"""The reason for a fact with a start date in a conversation without dates to compare it with."""
SUPERSEDED, ENDED = "superseded", "no longer valid"

_INTENDS = re.compile(
    r"\b(?:will|shall|might|may|(?:is|are) (?:going|about) to|plans|planning|intends|thinking (?:of|about)"
    r"|considering)\b"
)
"""Words of a plan. They are searched for in free text only: an attribute or a question may ask for the plan itself."""


class History(Struct, frozen=True):
    current: tuple[AuditFact, ...]
    past: tuple[tuple[AuditFact, str], ...]
    """Facts that are not true at the end of the conversation, or may not be, each with the reason."""
    chains: tuple[tuple[AuditFact, ...], ...]
    """Facts that supersede each other, oldest first. The last fact of a chain is current, or an outdated plan."""


def history(indexed: IndexedConversation) -> History:
    facts, now = indexed.conversation.facts, indexed.now
    plans = _plans(facts, now)
    followers: dict[str, list[AuditFact]] = {}
    for fact in facts:
        if fact.supersedes is not None and fact.id not in plans:
            followers.setdefault(fact.supersedes, []).append(fact)
    past: list[tuple[AuditFact, str]] = []
    for fact in facts:
        if fact.id in followers:
            past.append((fact, SUPERSEDED))
        elif fact.id in plans:
            past.append((fact, PLAN))
        elif now is None and fact.valid_from is not None:
            past.append((fact, UNDATED))
        elif fact.valid_to is not None and now is not None and fact.valid_to <= now:
            past.append((fact, ENDED))
    ended = {fact.id for fact, _ in past}
    past += [(fact, PLAN) for fact in facts if fact.id not in ended and _is_outdated_plan(fact, indexed)]
    past_ids = {fact.id for fact, _ in past}
    return History(
        current=tuple(fact for fact in facts if fact.id not in past_ids), past=tuple(past),
        chains=tuple(_chains(facts, followers, ended)),
    )  # fmt: skip


def _plans(facts: Sequence[AuditFact], now: datetime | None) -> set[str]:
    """Return the ids of facts that become true after `now` and that no true fact has superseded."""
    plans = {
        fact.id
        for fact in facts
        if fact.valid_from is not None and now is not None and fact.valid_from.date() > now.date()
    }
    while replaced := plans & {fact.supersedes for fact in facts if fact.id not in plans}:
        plans -= replaced
    return plans


def _is_outdated_plan(fact: AuditFact, indexed: IndexedConversation) -> bool:
    """Return whether a fact is about a future event (`next test: 11 August`) that may be past as the conversation ends.

    It may be past on any day after the one on which it was stated.
    """
    is_free_text = not (fact.attribute or fact.question)
    topics = (attribute_name(fact.attribute or ""), fact.question or "", fact.content if is_free_text else "")
    is_plan = any(has_time_words("plan", topic, indexed.languages) for topic in filter(None, topics))
    if not is_plan and not (is_free_text and _INTENDS.search(fact.content)):
        return False
    stated, now = indexed.told(fact), indexed.now
    return stated is None or now is None or stated.date() < now.date()


def _chains(
    facts: Sequence[AuditFact], followers: dict[str, list[AuditFact]], ended: set[str]
) -> list[tuple[AuditFact, ...]]:
    """Return the chains of facts, each from its first fact to its last.

    If two facts supersede the same one, it is unknown which is true, and there is no chain.
    """
    known = {fact.id for fact in facts}
    chains = []
    for first in facts:
        if first.supersedes in known or first.id not in followers:
            continue
        chain = [first]
        while len(after := followers.get(chain[-1].id, [])) == 1 and after[0] not in chain:
            chain.append(after[0])
        if len(chain) > 1 and not after and chain[-1].id not in ended:
            chains.append(tuple(chain))
    return chains
