"""Probes: the questions of an audit, with everything that scoring needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Literal

from msgspec import Struct

from memorybench.core.conversation import Turn
from memorybench.core.records import Record
from memorybench.core.trials import Case

from .evidence import IndexedConversation

Origin = Literal["structured", "cloze", "model", "given", "edited"]
"""Who made a question: code from a structured fact (`structured`) or a statement (`cloze`), a model, the dataset
(`given`), or a person (`edited`)."""

ProbeType = Literal["recall", "hallucination", "conflict", "temporal"]
PROBE_TYPES: tuple[ProbeType, ...] = ("recall", "hallucination", "conflict", "temporal")
Policy = Literal["latest", "flag"]


class Question(Struct, frozen=True):
    """The text of a question, and the value that answers it."""

    text: str
    value: str
    origin: Origin


class Check(Record):
    """One check that a probe passed before it was asked."""

    name: str
    by: str
    """Who made the check: `structure` for code, or the name of the model that was asked."""
    note: str = ""


class Probe(Case):
    type: ProbeType
    kind: str
    """The kind of the probe within its type, such as `as of`, `order`, `duration` or `near miss`."""
    conversation: str
    question: str
    expected_answer: str
    related_facts: tuple[str, ...] = ()
    current: str = ""
    """The current value of a conflict, without the other words of the expected answer."""
    stale: tuple[str, ...] = ()
    """Values of other times. An answer that gives one of them is wrong, unless `flags` is set."""
    flags: bool = False
    """Whether a correct answer must name both the current and the earlier value."""
    twin: str | None = None
    """The id of the paired probe: an answerable one for an absent fact; for an order question, the one with exchanged
    options. None if there is no pair."""
    reversed: bool = False
    """Whether this is the second of two order probes, with exchanged options."""
    abstain: bool = False
    """Whether the conversation does not contain the answer, so that "I do not know" is correct."""
    options: tuple[str, ...] = ()
    """The options of the question in their order; empty for questions without options."""
    gold_context: tuple[Turn, ...] = ()
    """The turns that contain the answer."""
    origin: Origin
    checks: tuple[Check, ...] = ()
    stale_context: tuple[Turn, ...] = ()
    """The turns that state the outdated values of a conflict."""
    category: str | None = None
    age_turns: int | None = None
    """The number of turns after the last one that contains the answer; None if no turn does."""
    age_days: int | None = None


class Skipped(Struct, frozen=True):
    """A fact without a probe, and the reason."""

    fact: str
    conversation: str
    reason: str


class Probes(Struct, frozen=True):
    probes: Sequence[Probe]
    """The probes. A dataset may have hundreds of thousands, so they are kept in packed form."""
    skipped: Sequence[Skipped]
    gates: Mapping[str, int]
    """The number of generated probes, and by reason that of the facts, past values and absent facts not asked about."""


def probe(
    indexed: IndexedConversation,
    id: str,
    type: ProbeType,
    kind: str,
    question: Question,
    *,
    places: Sequence[int] = (),
    category: str | None = None,
    checks: Sequence[str] = (),
    related_facts: Sequence[str] = (),
    **more: Any,
) -> Probe:
    """Create a probe. Its ages and labels are computed from `places`, the indexes of the turns with the answer."""
    age_turns = len(indexed.conversation.turns) - 1 - max(places) if places else None
    dates = [turn.at for turn in indexed.turns(places) if turn.at is not None]
    age_days = (indexed.now - max(dates)).days if dates and indexed.now is not None else None
    # not validated, and with shared parts: a dataset may give hundreds of thousands of probes
    return Probe.model_construct(
        _FIELDS,
        id=f"{indexed.conversation.id}/{id}",
        labels=_labels(
            probe_type=type,
            kind=kind,
            conversation=indexed.conversation.id,
            category=category,
            turns_back=_bucket(age_turns, _TURN_BUCKETS),
            days_back=_bucket(age_days, _DAY_BUCKETS),
        ),
        type=type,
        kind=kind,
        conversation=indexed.conversation.id,
        question=question.text,
        expected_answer=question.value,
        related_facts=tuple(related_facts),
        gold_context=indexed.turns(sorted(places)),
        origin=question.origin,
        checks=_checks_by_structure(tuple(checks)),
        category=category,
        age_turns=age_turns,
        age_days=age_days,
        **more,
    )


_FIELDS = set(Probe.model_fields)


@lru_cache(maxsize=1024)
def _labels(**labels: str | None) -> Mapping[str, str]:
    return {name: text for name, text in labels.items() if text}


@cache
def _checks_by_structure(names: tuple[str, ...]) -> tuple[Check, ...]:
    return tuple(Check(name=name, by="structure") for name in names)


_TURN_BUCKETS = ((10, "0-9"), (50, "10-49"), (200, "50-199"), (None, "200+"))
_DAY_BUCKETS = ((1, "0"), (8, "1-7"), (31, "8-30"), (181, "31-180"), (None, "181+"))


def _bucket(age: int | None, buckets: Sequence[tuple[int | None, str]]) -> str | None:
    if age is None:
        return None
    return next(name for below, name in buckets if below is None or age < below)
