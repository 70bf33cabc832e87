"""Probes about order and duration.

Facts of the category `event` happened when their date says: these are asked for what happened first. Of all others
only the order of telling is known, and that is what is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from memorybench.datasets.audit import AuditFact

from .askable import Origin
from .choosing import AskableFact, Study
from .gates import overlap
from .history import began
from .probes import Probe, probe
from .subjects import split_subject, tidy
from .words import MONTHS, WEEKDAYS, content, keys

_DATED = re.compile(
    r",? ?\b(?:(?:in|on|since|by|until|from|around|early|late|during) )*(?:the )?"
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)? )?(?:{'|'.join(MONTHS[:4] + MONTHS[5:])}|May(?= \d))(?: \d{{1,2}}(?:st|nd|rd"
    rf"|th)?\b)?(?:,? \d{{4}})?"
    rf"|,? ?\b(?:in|since|by|until|on|of) \d{{4}}(?:-\d\d-\d\d)?\b|,? ?\bon {'|on '.join(WEEKDAYS)}\b",
    re.IGNORECASE,
)
_TELLS_TIME = re.compile(
    rf"\b(?:{'|'.join((*MONTHS[:4], *MONTHS[5:], *WEEKDAYS))}|\d{{4}}|first|second|third|last|next|before|after"
    rf"|earlier|later|previously"
    r"|ago|yesterday|today|tomorrow|recently|now|new|again|since|already|finally|then|old|former|no longer|anymore"
    r"|initially|originally|still|year|month|week)s?\b",
    re.IGNORECASE,
)
_LIFE = re.compile(
    r"\b(?:born|birth|grew up|childhood|as a (?:child|kid)|retired?|died|passed away|funeral)\b", re.IGNORECASE
)
"""Anybody can put these in order who has heard nothing."""
_CUT_OFF = re.compile(r" (?:to|in|on|at|for|from|by|until|is|was|the|a|an)$")
"""The date was what it said."""
_LONGEST_OPTION = 18


@dataclass(frozen=True, slots=True)
class Moment:
    fact: AuditFact
    option: str
    place: int
    """Where it is told."""
    value: str
    """What of it is looked for in other turns."""
    origin: Origin
    at: datetime | None
    """When it happened; None: only the order of telling is known."""


def temporal_probes(study: Study, told: Sequence[AskableFact]) -> Iterator[Probe]:
    by_fact = {one.fact.id: one for one in told}
    moments = [moment for fact in study.history.current if (moment := _moment(study, fact, by_fact.get(fact.id)))]
    events = sorted((one for one in moments if one.at is not None), key=lambda one: (one.at, one.place, one.fact.id))
    mentions = sorted((one for one in moments if one.at is None), key=lambda one: (one.place, one.fact.id))
    for one, other in (*_pairs(events), *_pairs(mentions)):
        reason = _unfit(study, one, other)
        if reason is not None:
            study.dropped[reason] += 1
            continue
        yield from _both_orders(study, one, other)
        if one.at is not None and other.at is not None:
            yield from _duration(study, one, other)


def _moment(study: Study, fact: AuditFact, told: AskableFact | None) -> Moment | None:
    """An event may be put in order that no question can ask for: `the code freeze began`."""
    event = fact.category == "event"
    place = told.places[0] if told is not None else _named_place(study, fact) if event else None
    if place is None:
        return None
    option = option_text(fact)
    if option is None:
        study.dropped["option tells the time"] += 1
        return None
    value, origin = (told.askable.value, told.askable.origin) if told is not None else (option, "grammar")
    return Moment(fact, option, place, value, origin, began(fact) if event else None)


def _named_place(study: Study, fact: AuditFact) -> int | None:
    """Of the turn that the dataset names, if it speaks of the fact at all."""
    place = None if fact.turn is None else study.indexed.place(fact.turn)
    return place if place is not None and content(fact.content) & study.indexed.turn_keys[place] else None


def option_text(fact: AuditFact) -> str | None:
    """The statement without its dates, about `the user`; None where it still tells when, or is too long."""
    if "?" in fact.content:
        return None  # a question and its answer is no statement
    statement = tidy(fact.content)
    split = split_subject(statement)
    text = " ".join(split) if split is not None else statement
    text = " ".join(_DATED.sub("", text).split()).strip(" ,")
    if (
        _TELLS_TIME.search(text)
        or _CUT_OFF.search(text)
        or len(text.split()) > _LONGEST_OPTION
        or len(content(text)) < 2
    ):
        return None
    return text


def _pairs(moments: Sequence[Moment]) -> Iterator[tuple[Moment, Moment]]:
    """Each with the one half the list away: neighbours in time are paired only where there is nobody else."""
    apart = max(1, len(moments) // 2)
    for place in range(len(moments) - apart):
        yield moments[place], moments[place + apart]


def _unfit(study: Study, one: Moment, other: Moment) -> str | None:
    if overlap(one.option, other.option):
        return "options overlap"
    if _LIFE.search(one.option) or _LIFE.search(other.option):
        return "empty context"
    if any({one.fact.id, other.fact.id} <= {fact.id for fact in chain} for chain in study.history.chains):
        return "same chain"
    if one.at is not None and other.at is not None:
        if one.at.date() == other.at.date():
            return "tie"
        turns = study.indexed.turns((one.place, other.place))
        return None if one.place < other.place or all(turn.at for turn in turns) else "undated"
    if one.place == other.place:
        return "tie"
    # told again earlier, the second may be the first
    return "told twice" if _first_told(study, other) <= one.place else None


_MOSTLY = 0.6
"""So much of what an option speaks of, said within two turns, tells it."""


def _first_told(study: Study, moment: Moment) -> int:
    """The first place at which its value, or most of what it speaks of, is told: in one turn, or a question and its
    answer, or another fact."""
    value, spoken = content(moment.value), study.indexed.without_speakers(moment.option)
    held = study.indexed.turn_keys
    for at in range(moment.place):
        said = held[at] | (held[at + 1] if at + 1 < moment.place else frozenset())
        if value <= held[at] or _mostly(spoken, said):
            return at
    earlier = (
        place for fact in study.indexed.conversation.facts
        if fact.id != moment.fact.id and (place := _named_place(study, fact)) is not None
        and _mostly(spoken, content(fact.content))
    )  # fmt: skip
    return min((moment.place, *earlier))


def _mostly(wanted: frozenset[str], said: frozenset[str]) -> bool:
    return len(wanted & said) >= _MOSTLY * len(wanted)


def _both_orders(study: Study, first: Moment, second: Moment) -> Iterator[Probe]:
    stem = f"order/{first.fact.id}+{second.fact.id}"
    opening = "What happened first" if first.at is not None else "Which was mentioned first in the conversation"
    for number, options in enumerate(((first.option, second.option), (second.option, first.option)), 1):
        question = f"{opening}: (A) {options[0]}, or (B) {options[1]}?"
        yield probe(
            study.indexed, f"{stem}/{number}", "temporal", "order", question, first.option,
            origin=first.origin, places=sorted({first.place, second.place}), options=options,
            related_facts=(first.fact.id, second.fact.id), category=first.fact.category,
            reversed=number == 2, twin=f"{study.indexed.conversation.id}/{stem}/{3 - number}",
        )  # fmt: skip


def _duration(study: Study, one: Moment, other: Moment) -> Iterator[Probe]:
    """Only where the turns tell both days: by their own dates, or in words."""
    assert one.at is not None  # durations are of events
    assert other.at is not None
    if not (_tells_day(study, one) and _tells_day(study, other)):
        study.dropped["undated"] += 1
        return
    days = (other.at.date() - one.at.date()).days
    question = f"How many days lie between these two: {one.option}; {other.option}?"
    if str(days) in keys(question):
        study.dropped["leak"] += 1
        return
    yield probe(
        study.indexed, f"duration/{one.fact.id}+{other.fact.id}", "temporal", "duration", question, str(days),
        origin=one.origin, places=sorted({one.place, other.place}),
        related_facts=(one.fact.id, other.fact.id), category=one.fact.category,
    )  # fmt: skip


def _tells_day(study: Study, moment: Moment) -> bool:
    """By the date of its turn, by day and month, or by how long before its turn it was: yesterday, on Monday."""
    assert moment.at is not None  # durations are of events
    said = study.indexed.turn_keys[moment.place]
    if set(keys(f"{moment.at.day} {MONTHS[moment.at.month - 1]}")) <= said:
        return True
    turn = study.indexed.conversation.turns[moment.place]
    if turn.at is None:
        return False
    back = (turn.at.date() - moment.at.date()).days
    telling = {0: (), 1: keys("yesterday")}.get(back, keys(f"{back} days ago"))
    weekday = set(keys(WEEKDAYS[moment.at.weekday()])) <= said and 0 < back < 7
    return back >= 0 and (set(telling) <= said or weekday)
