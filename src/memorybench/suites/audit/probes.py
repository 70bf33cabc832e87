"""What an audit asks, and what scoring it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from memorybench.core.conversation import Turn
from memorybench.core.records import Record
from memorybench.core.trials import Case

from .askable import Origin
from .evidence import Heard

ProbeType = Literal["recall", "hallucination", "conflict", "temporal"]
PROBE_TYPES: tuple[ProbeType, ...] = ("recall", "hallucination", "conflict", "temporal")
Policy = Literal["latest", "flag"]


class Probe(Case):
    type: ProbeType
    kind: str
    """Within its type: `as of`, `order`, `duration`, `near miss`…"""
    conversation: str
    question: str
    expected_answer: str
    related_facts: tuple[str, ...] = ()
    current: str = ""
    """Of a conflict the value that holds, whatever else the expected answer says."""
    stale: tuple[str, ...] = ()
    """Values that held at other times: to give one is wrong, unless the probe flags."""
    flags: bool = False
    """To name what holds and what held before is right."""
    twin: str | None = None
    """Of an absent probe the answerable one beside it; of an order probe the one with its options exchanged."""
    reversed: bool = False
    """The second of two order probes."""
    abstain: bool = False
    """The conversation does not tell; to say so is right."""
    options: tuple[str, ...] = ()
    """As the question lists them."""
    gold_context: tuple[Turn, ...] = ()
    """The turns that answer it."""
    origin: Origin
    category: str | None = None
    age_turns: int | None = None
    """How many turns come after the one that answers it."""
    age_days: int | None = None


class Skipped(Record):
    """A fact that no probe asks about, and why."""

    fact: str
    conversation: str
    reason: str


class Probes(Record):
    probes: tuple[Probe, ...]
    skipped: tuple[Skipped, ...]
    gates: Mapping[str, int]
    """How many probes were made, and how many candidate questions each gate has dropped."""


def probe(
    heard: Heard,
    id: str,
    type: ProbeType,
    kind: str,
    question: str,
    expected: str,
    *,
    origin: Origin,
    places: Sequence[int] = (),
    category: str | None = None,
    **more: Any,
) -> Probe:
    """A probe with its ages and labels, from the places of the turns that answer it."""
    age_turns = len(heard.conversation.turns) - 1 - max(places) if places else None
    age_days = _days_back(heard, places)
    labels = {
        "probe_type": type,
        "kind": kind,
        "conversation": heard.conversation.id,
        "category": category,
        "turns_back": _bucket(age_turns, _TURN_BUCKETS),
        "days_back": _bucket(age_days, _DAY_BUCKETS),
    }
    return Probe(
        id=f"{heard.conversation.id}/{id}",
        labels={name: text for name, text in labels.items() if text},
        type=type,
        kind=kind,
        conversation=heard.conversation.id,
        question=question,
        expected_answer=expected,
        gold_context=heard.turns(sorted(places)),
        origin=origin,
        category=category,
        age_turns=age_turns,
        age_days=age_days,
        **more,
    )


def _days_back(heard: Heard, places: Sequence[int]) -> int | None:
    told: list[datetime] = [turn.at for turn in heard.turns(places) if turn.at is not None]
    return (heard.now - max(told)).days if told and heard.now is not None else None


_TURN_BUCKETS = ((10, "0-9"), (50, "10-49"), (200, "50-199"), (None, "200+"))
_DAY_BUCKETS = ((1, "0"), (8, "1-7"), (31, "8-30"), (181, "31-180"), (None, "181+"))


def _bucket(age: int | None, buckets: Sequence[tuple[int | None, str]]) -> str | None:
    if age is None:
        return None
    return next(name for below, name in buckets if below is None or age < below)
