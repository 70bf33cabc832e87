"""Finds which facts are true at the end of a conversation, and which fact superseded which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memorybench.datasets.audit import AuditFact

from .evidence import IndexedConversation

PLAN = "a plan"
"""The fact becomes true only after the conversation."""
UNDATED = "undated"
"""The fact has a start, and the conversation has no date to compare it with."""


@dataclass(frozen=True, slots=True)
class History:
    current: tuple[AuditFact, ...]
    past: tuple[tuple[AuditFact, str], ...]
    """Facts that are not true at the end of the conversation, with the reason."""
    chains: tuple[tuple[AuditFact, ...], ...]
    """Facts of which each supersedes the previous one, oldest first."""


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
            past.append((fact, "superseded"))
        elif fact.id in plans:
            past.append((fact, PLAN))
        elif now is None and fact.valid_from is not None:
            past.append((fact, UNDATED))
        elif fact.valid_to is not None and now is not None and fact.valid_to <= now:
            past.append((fact, "no longer valid"))
    past_ids = {fact.id for fact, _ in past}
    return History(
        current=tuple(fact for fact in facts if fact.id not in past_ids), past=tuple(past),
        chains=tuple(_chains(facts, followers, past_ids)),
    )  # fmt: skip


def _plans(facts: Sequence[AuditFact], now: datetime | None) -> set[str]:
    """Return the ids of facts that become true after `now` and were not superseded by a fact that is true."""
    plans = {
        fact.id
        for fact in facts
        if fact.valid_from is not None and now is not None and fact.valid_from.date() > now.date()
    }
    while replaced := plans & {fact.supersedes for fact in facts if fact.id not in plans}:
        plans -= replaced
    return plans


def _chains(
    facts: Sequence[AuditFact], followers: dict[str, list[AuditFact]], past_ids: set[str]
) -> list[tuple[AuditFact, ...]]:
    """Follow each first fact to its last. If two facts supersede one, it is unknown which is true: no chain."""
    known = {fact.id for fact in facts}
    chains = []
    for first in facts:
        if first.supersedes in known or first.id not in followers:
            continue
        chain = [first]
        while len(after := followers.get(chain[-1].id, [])) == 1 and after[0] not in chain:
            chain.append(after[0])
        if len(chain) > 1 and not after and chain[-1].id not in past_ids:
            chains.append(tuple(chain))
    return chains
