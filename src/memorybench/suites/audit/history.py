"""Which facts hold at the end of a conversation, and which gave way to which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memorybench.datasets.audit import AuditFact

from .evidence import Heard


@dataclass(frozen=True, slots=True)
class History:
    current: tuple[AuditFact, ...]
    past: tuple[tuple[AuditFact, str], ...]
    """Facts that no longer hold, and why."""
    chains: tuple[tuple[AuditFact, ...], ...]
    """Facts that superseded one another, oldest first."""


def history(heard: Heard) -> History:
    facts = heard.conversation.facts
    followers: dict[str, list[AuditFact]] = {}
    for fact in facts:
        if fact.supersedes is not None:
            followers.setdefault(fact.supersedes, []).append(fact)
    past = [(fact, reason) for fact in facts if (reason := _past(fact, followers, heard))]
    gone = {fact.id for fact, _ in past}
    return History(
        current=tuple(fact for fact in facts if fact.id not in gone), past=tuple(past),
        chains=tuple(_chains(facts, followers, gone)),
    )  # fmt: skip


def _past(fact: AuditFact, followers: dict[str, list[AuditFact]], heard: Heard) -> str:
    if fact.id in followers:
        return "superseded"
    if fact.valid_to is not None and heard.now is not None and fact.valid_to <= heard.now:
        return "no longer valid"
    return ""


def _chains(
    facts: Sequence[AuditFact], followers: dict[str, list[AuditFact]], gone: set[str]
) -> list[tuple[AuditFact, ...]]:
    """From every first fact along its followers. Where two facts supersede one, which holds is not told: no chain."""
    known = {fact.id for fact in facts}
    found = []
    for first in facts:
        if first.supersedes in known or first.id not in followers:
            continue
        chain = [first]
        while len(after := followers.get(chain[-1].id, [])) == 1 and after[0] not in chain:
            chain.append(after[0])
        if len(chain) > 1 and not after and chain[-1].id not in gone:
            found.append(tuple(chain))
    return found


def began(fact: AuditFact) -> datetime | None:
    return fact.valid_from or fact.at
