"""Every way to ask about a fact, best first: the dataset's own question, by its structure, by grammar, by a gap."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memorybench.core.conversation import Fact

from .askable import Askable
from .clauses import read_clause
from .grammar import possessive, readings
from .lexicon import KIN, ROLES, listed
from .subjects import USER, split_subject, tidy
from .verbs import BASES, base_form, is_past, is_third_person
from .wellformed import GAP
from .words import NUMBERS, content, plain

_ASKED = (
    (r"(?:full |first |last |given )?name", "name", "What is {own} {attribute}?"),
    (r"age", "age", "How old is {s}?"),
    (r"job|occupation|profession|job title|role|position|work|career", "job", "What is {own} job?"),
    (r"employer|company|workplace|works (?:at|for)", "employer", "Who does {s} work for?"),
    (r"city|home|home city|location|residence|lives in|town|current city|country|place of residence|address", "home",
     "Where does {s} live?"),
    (r"origin|from|country of origin", "origin", "Where is {s} from?"),
    (r"birth ?place|place of birth", "birth place", "Where was {s} born?"),
    (r"birthday", "birthday", "When is {own} birthday?"),
    (r"birth ?date|date of birth|born", "birth date", "When was {s} born?"),
    (r"allerg(?:y|ies)|allergic to|food allergy", "allergy", "What is {s} allergic to?"),
    (r"diet|dietary preference|diet type", "diet", "What diet does {s} follow?"),
    (r"languages?|speaks", "language", "Which language does {s} speak?"),
    (r"car|vehicle|drives", "car", "What does {s} drive?"),
    (r"height|weight|size|length", "{attribute}", "What is {own} {attribute}?"),
    (r"spouse|wife|husband|partner|fiancée?|married to", "spouse", "Who is {own} spouse or fiancé?"),
    (r"(?:major|degree|field of study|studies|subject)", "field of study",
     "What subject does {s} study or hold a degree in?"),
    (r"(?:number of|count of) (?P<kind>.+)|(?P<kind2>.+) count", "number of {kind}", "How many {kind} does {s} have?"),
    (r"(?P<kind>dog|cat|pet|parrot|rabbit|horse)(?:'s)? name", "{kind} name", "What is the name of {own} {kind}?"),
)  # fmt: skip
"""Spelling of an attribute, the name it shares with the grammar's shapes, and its question."""
_VERBS = frozenset(
    listed("likes loves plays owns drinks eats teaches wants prefers hates dislikes wears reads collects")
)
"""Attributes of one word that are verbs; others, such as plans and works, are as likely nouns."""
_COMPILED = tuple((re.compile(spelling), name, question) for spelling, name, question in _ASKED)


def structured_reading(fact: Fact) -> Askable | None:
    """None: the fact has no attribute or no value."""
    if not fact.attribute or not fact.value:
        return None
    subject = named_subject(fact.subject)
    attribute = " ".join(plain(fact.attribute).replace("_", " ").replace("-", " ").split())
    name, question = _template(attribute, fact.value)
    text = question.replace("{own}", possessive(subject)).replace("{s}", subject).replace("{attribute}", attribute)
    return Askable(
        fact=fact.id, subject=subject, attribute=name.replace("{attribute}", attribute), value=fact.value,
        question=text[0].upper() + text[1:], origin="structured", shape=name,
    )  # fmt: skip


def named_subject(subject: str | None) -> str:
    text = (subject or USER).strip()
    if plain(text) in ("user", "the user", "i", "me", "speaker"):
        return USER
    return re.sub(r"^(?:[Tt]he )?[Uu]ser's\b|^[Mm]y\b", f"{USER}'s", text)


_NAME_VALUE = re.compile(r"(?:(?:Dr|Mr|Mrs|Ms|Sir)\.? )?[^\W\da-z_][\w'-]*(?: [^\W\da-z_][\w'-]*){0,2}")


def _template(attribute: str, value: str) -> tuple[str, str]:
    for compiled, name, question in _COMPILED:
        if match := compiled.fullmatch(attribute):
            kind = next((text for text in match.groupdict().values() if text), "")
            return name.replace("{kind}", kind), question.replace("{kind}", kind)
    first, _, rest = attribute.partition(" ")
    if (is_third_person(first) or is_past(first)) and base_form(first) in BASES and (rest or first in _VERBS):
        front = "did" if is_past(first) else "does"
        return attribute, f"What {front} {{s}} {f'{base_form(first)} {rest}'.strip()}?"
    if attribute in KIN or (attribute.split()[-1] in ROLES and _NAME_VALUE.fullmatch(value)):
        return attribute, "Who is {own} {attribute}?"
    be = "are" if re.search(r"[^su]s$", attribute) else "is"
    return attribute, f"What {be} {{own}} {{attribute}}?"


_LEADING = re.compile(r"^(?:an?|the|their|his|her|its|some|about|around|over|all) ", re.IGNORECASE)
_LONGEST = 22
_SPANS = (
    re.compile(r"(?<![\w-])\d[\d.,:]*\d\b(?!-\d)|(?<![\w-])\d+\b(?!-\d)"),
    re.compile(r"(?<=[a-z,] )[A-Z][\w'-]*(?: (?:of |the )?[A-Z][\w'-]*)*"),
    re.compile(rf"\b(?:{'|'.join(NUMBERS)})\b(?<!rd)(?<!th)(?! of\b)"),
)
"""What informs most: numbers, then names."""


def gapped(fact: Fact) -> Iterator[Askable]:
    """The fact with one gap each, the most informative first."""
    split = split_subject(tidy(fact.content))
    if split is None:
        return
    subject, said = split
    shown = f"{subject} {said}"
    if len(shown.split()) > _LONGEST:
        return
    start = len(subject)  # the subject says whom it is about, so it stays
    for value in dict.fromkeys(_values(subject, said)):
        place = shown.find(value, start)
        text = f"{shown[:place]}{GAP}{shown[place + len(value) :]}"
        if place > start + 1 and len(content(text) - content(subject)) > 0 and content(value):
            yield Askable(
                fact=fact.id, subject=subject, attribute=" ".join(sorted(content(text))), value=value,
                question=f"Fill the gap: {text[0].upper()}{text[1:]}.", origin="cloze", shape="cloze",
            )  # fmt: skip


def _values(subject: str, said: str) -> Iterator[str]:
    for span in _SPANS:
        yield from (match[0].strip(" ,").removesuffix("'s") for match in span.finditer(said))
    clause = read_clause(subject, said)
    for phrase in reversed(clause.phrases if clause is not None else ()):
        value = _LEADING.sub("", phrase.text).strip(" ,")
        if phrase.kind != "clause" and 0 < len(value.split()) <= 4:
            yield value
            # in `a pottery class` the class may stay: it says what is asked
            yield from (word for word in value.split()[:-1] if content(word))


def ways_to_ask(fact: Fact) -> Iterator[Askable]:
    structured = structured_reading(fact)
    if fact.question and fact.value:
        yield _given(fact, fact.question, fact.value)
    if structured is not None:
        yield structured
    if fact.value:
        return  # the dataset says what the fact tells; a reading of its text could say otherwise
    yield from readings(fact)
    yield from gapped(fact)


def _given(fact: Fact, question: str, value: str) -> Askable:
    return Askable(
        fact=fact.id, subject=named_subject(fact.subject), attribute=fact.attribute or "", question=question,
        value=value, origin="given", shape="given",
    )  # fmt: skip
