"""Probes about what changed: what holds now, and what held at another time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from memorybench.datasets.audit import AuditFact

from .askable import Askable
from .choosing import Study
from .gates import asked_key, overlap
from .grammar import possessive
from .history import began
from .probes import Policy, Probe, probe
from .words import content, key, words

Chain = Sequence[AuditFact]

_STATES = {
    "home": "Where does {s} live now?",
    "job": "What is {own} job now?",
    "employer": "Who does {s} work for now?",
}
"""How to ask for the state that several kinds of event bring about."""
_FLAG = " If the conversation contradicts itself on this, say so and name both."


def conflict_probes(study: Study, policy: Policy) -> Iterator[Probe]:
    for chain in study.history.chains:
        found = _now(study, chain)
        if isinstance(found, str):
            study.dropped[found] += 1
            continue
        askable, stale, places = found
        question, expected = askable.question, askable.value
        if policy == "flag":
            question, expected = question + _FLAG, f"{askable.value}; before that it was {' and '.join(stale)}"
        yield probe(
            study.indexed, f"conflict/{chain[-1].id}", "conflict", policy, question, expected, origin=askable.origin,
            places=places, related_facts=[fact.id for fact in chain], category=chain[-1].category, stale=stale,
            current=askable.value, flags=policy == "flag",
        )  # fmt: skip


Now = tuple[Askable, tuple[str, ...], tuple[int, ...]]
"""The question, the stale values, and where all of them are told."""


def _now(study: Study, chain: Chain) -> Now | str:
    newest, kin = chain[-1], [fact.id for fact in chain]
    first = "no shape fits"
    for number, way in enumerate(study.ways[newest.id]):
        values = [_value_then(study, fact, newest, way) for fact in chain[:-1]]
        stale = tuple(dict.fromkeys(value for value in values if value))
        askable = way.model_copy(update={"question": asked_now(way)})
        reason, places = study.gate(askable, newest, others=stale, kin=kin)
        if reason is None and len(values) > len([value for value in values if value]):
            reason = "no stale value"
        if reason is None and any(overlap(way.value, value) for value in stale):
            reason = "values overlap"
        then = [study.indexed.gold(fact, value) for fact, value in zip(chain, values, strict=False) if value]
        if reason is None and not all(then):
            reason = "unanswerable"
        if reason is None:
            return askable, stale, tuple(sorted({place for span in (places, *then) for place in span}))
        first = reason if number == 0 else first
    return first


def _value_then(study: Study, old: AuditFact, newest: AuditFact, way: Askable) -> str | None:
    """What an older fact says to the same question; where it is worded otherwise, what it says and the new does not."""
    for other in study.ways[old.id]:
        same = (other.subject, other.attribute) == (way.subject, way.attribute) and way.attribute
        if same or asked_key(other.question) == asked_key(way.question):
            return other.value
    return _difference(old.content, newest.content)


def _difference(old: str, new: str) -> str | None:
    """The longest run of words in the old statement that the new one does not have."""
    theirs = {key(word) for word in words(new)}
    runs: list[list[str]] = [[]]
    for word in re.findall(r"\S+", old):
        if content(word) and not {key(one) for one in words(word)} & theirs:
            runs[-1].append(word.strip(".,;!"))
        else:
            runs.append([])
    longest = max(runs, key=len)
    return " ".join(longest) or None


def asked_now(way: Askable) -> str:
    """The question about the present: what did X move to becomes where does X live now."""
    if way.origin == "given":
        return f"As things stand now: {way.question}"
    if re.search(r"\b(?:now|currently|at the moment|these days)\b", way.question):
        return way.question
    if way.origin == "cloze":
        return way.question.replace("Fill the gap:", "Fill the gap with what holds now:")
    if way.attribute in _STATES:
        text = _STATES[way.attribute].replace("{own}", possessive(way.subject)).replace("{s}", way.subject)
        return text[0].upper() + text[1:]
    ending = " most recently?" if re.search(r"\bdid\b", way.question) else " now?"
    return way.question.removesuffix("?") + ending


def as_of_probes(study: Study) -> Iterator[Probe]:
    """What held between two dated changes, asked with a date between them."""
    for chain in study.history.chains:
        found = _now(study, chain)
        if isinstance(found, str):
            continue
        askable = found[0]
        values = [_value_then(study, fact, chain[-1], askable) for fact in chain[:-1]] + [askable.value]
        for place in range(len(chain) - 1):
            made = _as_of(study, chain, place, askable, values)
            if isinstance(made, Probe):
                yield made
            else:
                study.dropped[made] += 1


def _as_of(study: Study, chain: Chain, place: int, askable: Askable, values: Sequence[str | None]) -> Probe | str:
    fact, value = chain[place], values[place]
    since, until = began(fact), began(chain[place + 1])
    if value is None or since is None or until is None:
        return "undated"
    places = [at for one, told in zip(chain, values, strict=True) if told for at in study.indexed.gold(one, told)]
    if any(turn.at is None for turn in study.indexed.turns(places)):
        return "undated"
    when = between(since, until)
    question = asked_then(askable)
    if when is None or question is None:
        return "no date between" if when is None else "no past form"
    question = f"{question.removesuffix('?')} {when}?"
    others = tuple(dict.fromkeys(one for one in values if one and one != value))
    asked = askable.model_copy(update={"question": question, "value": value, "fact": fact.id})
    reason, _ = study.gate(asked, fact, others=others, kin=[one.id for one in chain])
    if reason is not None:
        return reason
    return probe(
        study.indexed, f"as-of/{fact.id}", "temporal", "as of", question, value, origin=askable.origin,
        places=sorted(set(places)), related_facts=[one.id for one in chain], category=fact.category, stale=others,
    )  # fmt: skip


def asked_then(askable: Askable) -> str | None:
    """The question in the past tense; None where it has no present to change."""
    text = re.sub(r" now\?$", "?", askable.question)
    changed = re.sub(
        r"^(\S+(?: \S+){0,3}?) (does|do|is|are|has)\b",
        lambda match: (
            f"{match[1]} { {'does': 'did', 'do': 'did', 'is': 'was', 'are': 'were', 'has': 'had'}[match[2]] }"
        ),
        text,
    )
    return changed if changed != text and askable.origin in ("structured", "grammar") else None


def between(since: datetime, until: datetime) -> str | None:
    """A whole month between two moments, else a day; None: they are too near."""
    month = (since.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=32)).replace(day=1)
    if (month + timedelta(days=32)).replace(day=1) <= until:
        return f"in {month:%B %Y}"
    middle = since + (until - since) / 2
    if since.date() < middle.date() < until.date():
        return f"on {middle.day} {middle:%B %Y}"
    return None
