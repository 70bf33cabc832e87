"""Probes about the days between events, and parts of probes about their order.

Code asks for no order: it often follows from common sense, as that of a proposal and a wedding dress, and only a model
can tell. See `writing` for the order probes that a probe model makes.

An event is a fact of the category `event` with a date of its own, `validFrom`. The date of an event must not be after
that of the turn that states it: a future event is a plan.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from memorybench.core.records import digest
from memorybench.datasets.audit import AuditFact

from .answers import MONTHS, content, is_same, leaks
from .evidence import IndexedConversation
from .probes import Probe, Question, probe
from .recall import Material
from .templates import USER

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TELLS_TIME = re.compile(
    rf"\b(?:{'|'.join((*MONTHS, *_WEEKDAYS))}|\d{{4}}|first|second|third|last|next|before|after|earlier|later"
    r"|previously|ago|yesterday|today|tomorrow|recently|now|new|again|since|already|finally|then|old|former|no longer"
    r"|anymore|initially|originally|still|year|month|week|born|birth|grew up|childhood|retire|died|funeral)s?\b",
    re.IGNORECASE,
)
"""Words that reveal when an event happened. A statement with one of them cannot be an option."""
_LONGEST_OPTION = 18
FIRST, LAST = "What happened first?", "What happened last?"
_DAYS = (
    "", "day", "days", "dag", "dagen", "Tag", "Tage", "Tagen", "jour", "jours", "día", "días", "dia", "dias", "giorno",
    "giorni", "天", "日", "日間",
)  # fmt: skip
"""What may follow the number of days in the answer of a duration."""
_CHECKS = ("dates", "not a plan", "no leak")


class Event(Struct, frozen=True):
    fact: AuditFact
    option: str
    place: int
    """The index of the turn that states the event."""
    at: datetime


def duration_probes(material: Material, *, with_recall: bool = True) -> Iterator[Probe]:
    """Yield probes that ask for the number of days between two events.

    `with_recall`: recall probes are made as well. The reason why an event is not used is then noted only if the event
    has no recall question.
    """
    if not material.indexed.is_english:
        return
    events: list[Event] = []
    unused: list[tuple[str, AuditFact]] = []
    for fact in material.history.current:
        if fact.category == "event":
            found = _event(material, fact)
            if isinstance(found, Event):
                events.append(found)
            else:
                unused.append((found, fact))
    events.sort(key=lambda one: (one.at, one.place, one.fact.id))
    apart = max(1, len(events) // 2)  # pair events that are far apart in time
    paired = set()
    for one, other in zip(events, events[apart:], strict=False):
        made = _duration(material, one, other)
        if made is not None:
            paired |= {one.fact.id, other.fact.id}
            yield made
    unused += [("needs a probe model", one.fact) for one in events if one.fact.id not in paired]
    # with recall probes, only facts without a recall question count as left out
    material.left_out.update((fact.id, why) for why, fact in unused if not with_recall or fact.id in material.left_out)


def _event(material: Material, fact: AuditFact) -> Event | str:
    """Return the fact as an event, or the reason why code cannot ask about it."""
    place = material.indexed.place(fact.turn)
    if fact.valid_from is None or place is None:
        return "undated"
    stated = material.indexed.conversation.turns[place].at
    if stated is None:
        return "undated"
    if stated.date() < fact.valid_from.date():
        return "a plan"
    option = option_text(fact)
    if option is None:
        return "option tells the time"
    if _describes_another(option, fact, material):
        return "options overlap"
    return Event(fact, option, place, fact.valid_from)


def _describes_another(option: str, fact: AuditFact, material: Material) -> bool:
    """Return whether an event of another day has all words of this option: `Tobias had a seizure` fits each seizure."""
    day = fact.valid_from and fact.valid_from.date()
    return any(
        other.category == "event" and content(option) <= content(other.content)
        for other in material.indexed.conversation.facts
        if other.valid_from is not None and other.valid_from.date() != day
    )


def option_text(fact: AuditFact) -> str | None:
    """Return the statement of an event as an option; None if it reveals when the event happened, or is too long."""
    option = re.sub(r"^(?:the )?user\b", USER, fact.content.strip().rstrip("."), flags=re.IGNORECASE)
    option = option[:1].upper() + option[1:]
    is_clear = len(option.split()) <= _LONGEST_OPTION and "?" not in option and len(content(option)) >= 2
    return option if is_clear and not _TELLS_TIME.search(option) else None


def both_orders(
    indexed: IndexedConversation,
    facts: tuple[AuditFact, AuditFact],
    options: tuple[str, str],
    asked: Question,
    places: Sequence[int],
) -> Iterator[Probe]:
    """Yield a probe that asks about the order of two events, and its twin with exchanged options."""
    stem = f"order/{facts[0].id}+{facts[1].id}"
    for number, (first, second) in enumerate((options, options[::-1]), 1):
        yield probe(
            indexed, f"{stem}/{number}", "temporal", "order",
            replace(asked, text=f"{asked.text} (A) {first}. (B) {second}."), places=places, options=(first, second),
            related_facts=[fact.id for fact in facts], category=facts[0].category, reversed=number == 2,
            twin=f"{indexed.conversation.id}/{stem}/{3 - number}",
        )  # fmt: skip


def order_questions(conversation: str) -> Iterator[str]:
    """Yield the question for the earlier and the one for the later event in turn, so that no answer is always right.

    The id of the conversation decides which of the two comes first.
    """
    begin = int(digest(conversation), 16) % 2  # most conversations have one pair
    return itertools.cycle((FIRST, LAST) if begin == 0 else (LAST, FIRST))


def asked_order(probe: Probe) -> int:
    """Return -1 if the question is the one for the earlier event, 1 if it is the one for the later event, else 0.

    A question in other words, such as one that a person wrote, may ask for either.
    """
    return -1 if probe.question.startswith(FIRST) else 1 if probe.question.startswith(LAST) else 0


def fits_dates(probe: Probe, facts: Sequence[AuditFact]) -> bool:
    """Return whether the answer of a probe about two events agrees with their dates in the dataset.

    True also if the dates are unknown, or if a person wrote the question about the order.
    """
    by_id = {fact.id: fact for fact in facts}
    events = [by_id[id] for id in probe.related_facts if id in by_id]
    dates = {fact.id: fact.valid_from for fact in events if fact.valid_from is not None}
    if len(dates) != 2:
        return True
    first, last = sorted(events, key=lambda fact: dates[fact.id])
    if probe.kind == "duration":
        days = str((dates[last.id].date() - dates[first.id].date()).days)
        return any(is_same(probe.expected_answer, f"{days} {unit}") for unit in _DAYS)
    asked, earlier, later = asked_order(probe), option_text(first), option_text(last)
    if asked == 0 or {earlier, later} != set(probe.options):
        return True
    return probe.expected_answer == (earlier if asked < 0 else later)


def _duration(material: Material, one: Event, other: Event) -> Probe | None:
    """Return a probe that asks for the days between two events; None if code cannot ask for them.

    The turns must tell both days, and the question must not contain the number of days.
    """
    days = (other.at.date() - one.at.date()).days
    text = f"How many days lie between these two events? {one.option}. {other.option}."
    is_told = all(material.indexed.tells_day(event.place, event.at) for event in (one, other))
    if not days or not is_told or leaks(text, [str(days)], is_english=True):
        return None
    return probe(
        material.indexed, f"duration/{one.fact.id}+{other.fact.id}", "temporal", "duration",
        Question(text, str(days), "structured"), places=sorted({one.place, other.place}),
        related_facts=(one.fact.id, other.fact.id), category=one.fact.category, checks=_CHECKS,
    )  # fmt: skip
