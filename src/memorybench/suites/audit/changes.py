"""Probes about facts that changed: what is true now, and what was true at another time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from memorybench.datasets.audit import AuditFact

from .answers import normalise, overlaps
from .cloze import is_one_weekday
from .history import ENDED, PLAN, UNDATED
from .probes import Policy, Probe, Question, probe
from .recall import RELATIVE, Material

Chain = Sequence[AuditFact]
FLAG_REQUEST = " If the conversation contradicts itself on this, say so and name both."
_CHECKS = ("no leak", "answer in evidence", "one attribute", "values differ")


Asked = tuple[Question, list[str], list[tuple[int, ...]]]
"""The question, the value of each fact, and for each fact the indexes of the turns that state it."""
Change = tuple[Chain, Asked | str]
"""Facts that supersede each other, and the question that all of them answer, or the reason why there is none."""


def find_changes(material: Material) -> list[Change]:
    return [(chain, _shared_question(material, chain)) for chain in material.history.chains]


def conflict_probes(material: Material, changes: Sequence[Change], policy: Policy) -> Iterator[Probe]:
    for chain, asked in changes:
        if isinstance(asked, str) or chain[-1] not in material.history.current:
            continue
        question, values, places = asked
        stale = tuple(dict.fromkeys(values[:-1]))
        day = material.last_day(places[-1])
        text, expected = material.ask_as_of(day, question), question.value
        if policy == "flag":
            text, expected = text + FLAG_REQUEST, f"{question.value}; before that it was {' and '.join(stale)}"
        asked_now = Question(text, expected, question.origin)
        yield probe(
            material.indexed, f"conflict/{chain[-1].id}", "conflict", policy, asked_now, places=places[-1],
            related_facts=[fact.id for fact in chain], category=chain[-1].category, stale=stale,
            current=question.value, flags=policy == "flag", checks=_CHECKS,
            stale_context=material.indexed.turns(sorted({place for span in places[:-1] for place in span})),
        )  # fmt: skip


def _shared_question(material: Material, chain: Chain) -> Asked | str:
    """Return the question that all facts of a chain answer with different values, or the reason why there is none."""
    questions = [next(material.questions(fact), None) for fact in chain]
    found = [one for one in questions if one is not None and one.origin != "cloze"]
    newest = found[-1] if found else None
    if newest is None or len(found) < len(chain) or len({normalise(one.text) for one in found}) > 1:
        return "no shared attribute" if material.indexed.is_english else "not English"
    values = [one.value for one in found]
    if any(
        material.is_relative(one.value) or is_one_weekday(fact.content, one.value)
        for fact, one in zip(chain, found, strict=True)
    ):
        return RELATIVE
    if any(overlaps(newest.value, value) for value in values[:-1]):
        return "values overlap"
    if material.has_other_answer(chain[-1], newest):
        return "not unique"
    reason = material.reject(newest, values[:-1])
    if reason is not None:
        return reason
    places = [material.indexed.find(fact, value) for fact, value in zip(chain, values, strict=True)]
    if not all(places):
        return "unanswerable"
    if material.is_planned(chain[-1], places[-1]):
        return PLAN
    day = material.last_day(places[-1])
    if day is not None and material.day_tells(day, newest, values):
        return "leak"
    return RELATIVE if material.is_outdated_question(newest, places[-1]) else (newest, values, places)


def as_of_probes(material: Material, changes: Sequence[Change]) -> Iterator[Probe]:
    """Yield a probe for each past value that can be asked about; count the others in `material.dropped`.

    It asks what was true on the day on which the value was stated.
    """
    for chain, asked in changes:
        if isinstance(asked, str):
            continue
        for place in range(len(chain) - 1):
            made = _as_of(material, chain, place, asked)
            if isinstance(made, Probe):
                yield made
            else:
                material.dropped[made] += 1


def _as_of(material: Material, chain: Chain, place: int, asked: Asked) -> Probe | str:
    question, values, spans = asked
    fact, day = chain[place], material.last_day(spans[place])
    later = list(zip(chain, spans, strict=True))[place + 1 :]
    starts = [one.valid_from.date() if one.valid_from else material.last_day(span) for one, span in later]
    if day is None or not all(starts):
        return UNDATED
    if fact.valid_from is not None and day < fact.valid_from.date():
        return PLAN  # nothing tells whether it came true
    if fact.valid_to is not None and fact.valid_to.date() < day:
        return ENDED
    if day >= min(filter(None, starts)):
        return "same date"
    if question.origin != "structured":
        return "no past form"  # the author may mean a plan: `Who teaches the class?`
    text, value = material.ask_as_of(day, question), values[place]
    others = tuple(dict.fromkeys(one for one in values if one != value))
    # the date may share a numeral with a value, such as 10 March and `ten to six`; it must not tell a whole value
    reason = material.reject(replace(question, value=value), others)
    if reason is not None or material.day_tells(day, question, (value, *others)):
        return reason or "leak"
    return probe(
        material.indexed, f"as-of/{fact.id}", "temporal", "as of", Question(text, value, question.origin),
        places=sorted({at for span in spans for at in span}), related_facts=[one.id for one in chain],
        category=fact.category, stale=others, checks=(*_CHECKS, "dates"),
    )  # fmt: skip
