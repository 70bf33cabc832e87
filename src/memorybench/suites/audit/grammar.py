"""Free text into questions: named shapes first, then any statement whose verb is known.

Every question leaves out exactly the words that answer it. Whether they stand in it all the same is for the gates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memorybench.vocabulary.conversation import Fact

from .askable import Askable
from .clauses import Clause, read_clause
from .lexicon import OPINIONS
from .patterns import COMPILED, KIN
from .phrases import Phrase
from .subjects import USER, split_subject, third_person, tidy
from .verbs import base_form, is_participle
from .words import plain

_LEADING_ADVERBS = re.compile(
    r"^(?:(?:currently|recently|usually|also|still|just|now|normally|mostly|mainly|really|always|often) )+"
)
_TRAILING_ADVERBS = re.compile(r" (?:recently|currently|now|these days|too|as well|already|a lot|very much)$")
_DATE_VALUE = re.compile(
    r"^(?:(?:the )?\d{1,2}(?:st|nd|rd|th)?(?: of)? )?(?:January|February|March|April|May|June|July|August|September"
    r"|October|November|December|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)\b|^\d{4}(?:-\d\d)?"
    r"|^(?:on|every) ", re.I,
)  # fmt: skip
_PERSON_VALUE = re.compile(
    rf"^(?:(?:Dr|Mr|Mrs|Ms)\.? |their (?:[\w-]+ )?(?:{'|'.join(sorted(KIN))})\b|[A-Z][a-zé]+(?: [A-Z][a-zé]+)?$)"
)
_COUNTED = re.compile(
    r"^(?:about |over |around |at least |nearly |almost )?(?P<value>\d[\d.,]*|two|three|four|five|six|seven|eight"
    r"|nine|ten|eleven|twelve|dozens of) (?P<kind>[a-z][\w-]*s|children|people)\b(?P<rest>.*)"
)


def readings(fact: Fact) -> Iterator[Askable]:
    """Ways to ask for what a free-text fact says, best first."""
    split = split_subject(tidy(fact.content))
    if split is None:
        return
    subject, predicate = split
    yield from _named_shapes(fact, subject, predicate)
    clause = read_clause(subject, predicate)
    if clause is not None:
        for made in _questions(clause):
            if _reads_well(made):
                yield _askable(fact, clause.subject, *made)


def _named_shapes(fact: Fact, subject: str, predicate: str) -> Iterator[Askable]:
    said = _LEADING_ADVERBS.sub("", predicate)
    for pattern, compiled in COMPILED:
        match = compiled.match(said)
        if match is not None:
            value = subject if pattern.name == "favourite" else match["value"]
            yield _askable(
                fact,
                subject,
                _filled(pattern.question, subject, match),
                value,
                _filled(pattern.attribute, subject, match),
                pattern.name,
            )


def _filled(template: str, subject: str, match: re.Match[str]) -> str:
    if template.startswith("What is {own} name") and subject != USER:
        template = "What is the name of {s}?"
    groups = {name: third_person(text or "") for name, text in match.groupdict().items()}
    text = template.replace("{own}", possessive(subject)).replace("{s}", subject)
    for name, put in groups.items():
        text = text.replace(f"{{{name}:base}}", _based(put)).replace(f"{{{name}}}", put)
    return re.sub(r"\s+(?=\?)", "", text)


def _based(verb: str) -> str:
    first, _, rest = verb.partition(" ")
    return f"{base_form(first.lower())} {rest}".strip()


def possessive(subject: str) -> str:
    return f"{subject}'" if subject.endswith("s") else f"{subject}'s"


def _askable(fact: Fact, subject: str, question: str, value: str, attribute: str, shape: str) -> Askable:
    question = " ".join(question.split()).replace(" ?", "?")
    return Askable(
        fact=fact.id, subject=subject, attribute=" ".join(plain(attribute).split()), value=_trimmed(value),
        question=question[0].upper() + question[1:], origin="grammar", shape=shape,
    )  # fmt: skip


def _trimmed(value: str) -> str:
    return _TRAILING_ADVERBS.sub("", third_person(value).removeprefix("of ").strip(" ,;:."))


_LONGEST_QUESTION, _LONGEST_VALUE = 18, 9
_LOOSE = re.compile(
    r"^(?:it|him|her|them|he|she|they|this|that|these|forward|everything|anything|how|what|better|well|more|less"
    r"|only|badly|together)\b(?! \w+ (?:of|from))"
    r"|\b(?:such|how|related|most|is|are|was|were|has)$|\b(?:he's|she's|it's|is|are|was|were)\b"
)
"""Values that are half of something."""


def _reads_well(made: tuple[str, str, str, str]) -> bool:
    question, value, _, _ = made
    return (
        len(question.split()) <= _LONGEST_QUESTION and 0 < len(value.split()) <= _LONGEST_VALUE
        and _LOOSE.search(value) is None
    )  # fmt: skip


_MET = ("meet", "marry", "hire", "date", "mentor", "help", "call", "supervise", "coach")
Made = tuple[str, str, str, str]
"""Question, value, attribute, shape."""


def _questions(clause: Clause) -> Iterator[Made]:
    main = [phrase for phrase in clause.phrases if phrase.kind != "clause"]
    if clause.main == "be" and not clause.verb.endswith("been"):
        yield from _copula(clause, main)
        main = [phrase for phrase in main if phrase.kind in ("with", "duration")]
    if clause.main in OPINIONS:
        main = [phrase for phrase in main if phrase.kind in ("time", "duration", "frequency")]
    # a bare `have` asks for anything; where something is had is more of a question
    order = {"have": ("place", "with", "time", "duration", "frequency", "reason", "object")}.get(
        clause.main, ("object", "place", "with", "duration", "frequency", "reason", "time")
    )
    for kind in order:
        for phrase in main:
            if phrase.kind == kind and (made := _asked_for(clause, phrase, main)):
                yield made
    yield from _purposes(clause, main)


def _asked_for(clause: Clause, phrase: Phrase, others: list[Phrase]) -> Made | None:
    spoken = [other for other in others if other.kind != "reason"]
    before = " ".join(other.whole for other in spoken if other is not phrase)
    core = f"{clause.front} {clause.subject} {clause.verb}"
    attribute = " ".join((clause.verb, phrase.marker))
    match phrase.kind:
        case "object":
            return _object(clause, phrase, core, before)
        case "place":
            strand = f" {phrase.marker}" if phrase.marker == "from" else ""
            return f"Where {core} {before}{strand}?", phrase.text, f"{clause.verb} where", "place"
        case "time":
            opening = "Since when" if phrase.marker == "since" else "Until when" if phrase.marker == "until" else "When"
            return f"{opening} {core} {before}?", phrase.text, f"{clause.verb} when", "time"
        case "frequency":
            return f"How often or when {core} {before}?", phrase.text, f"{clause.verb} how often", "frequency"
        case "duration":
            return f"For how long {core} {before}?", phrase.text, f"{clause.verb} how long", "duration"
        case "reason":
            return f"Why {core} {before}?", phrase.text, f"{clause.verb} why", "reason"
        case "with":
            wh = (
                "Who"
                if _PERSON_VALUE.match(phrase.text) and phrase.marker in ("with", "for", "to", "from", "by")
                else "What"
            )
            asked = " ".join(phrase.marker if other is phrase else other.whole for other in spoken)
            return f"{wh} {core} {asked}?", phrase.text, attribute, "preposition"
        case "clause":
            return None


def _object(clause: Clause, phrase: Phrase, core: str, others: str) -> Made | None:
    counted = _COUNTED.match(phrase.text)
    if counted:
        rest = f"{counted['rest']} {others}"
        return f"How many {counted['kind']} {core}{rest}?", counted["value"], f"number of {counted['kind']}", "number"
    if clause.main == "have" and not others:
        return _had(clause, phrase, core)
    wh = "Who" if _PERSON_VALUE.match(phrase.text) and clause.main in _MET else "What"
    return f"{wh} {core} {others}?", phrase.text, clause.verb, "object"


def _had(clause: Clause, phrase: Phrase, core: str) -> Made | None:
    """has a fear of spiders: what of; has type 2 diabetes: what kind of."""
    if " of " in phrase.text:
        head, _, value = phrase.text.partition(" of ")
        return f"What {core} {head} of?", value, head, "had of"
    parts = [word for word in phrase.text.split() if word.lower() not in ("a", "an", "the", "their", "some", "very")]
    if len(parts) < 2:
        return None
    return f"What kind of {parts[-1]} {core}?", " ".join(parts[:-1]), f"kind of {parts[-1]}", "kind"


def _copula(clause: Clause, phrases: list[Phrase]) -> Iterator[Made]:
    if not phrases:
        return
    first = phrases[0]
    negated = f" {clause.verb}" if clause.verb else ""
    if first.kind == "object":
        rest = " ".join(phrase.whole for phrase in phrases[1:])
        value = f"{first.text} {rest}".strip()
        if clause.subject == USER or (clause.subject[0].isupper() and "'s" not in clause.subject):
            yield from _adjective(clause, phrases, negated)
        elif not (
            is_participle(first.text) or re.fullmatch(r"[a-z]+ed", first.text)
        ):  # the venue was flooded: that is no answer to what it was
            wh = _what(clause.subject, first.text)
            yield f"{wh} {clause.front} {clause.subject}{negated}?", value, "", "copula"
    elif first.kind in ("time", "frequency"):
        yield f"When {clause.front} {clause.subject}{negated}?", first.text, "when", "copula time"
    elif first.kind == "place" or (first.kind == "with" and first.marker in ("in", "on", "at", "near")):
        yield f"Where {clause.front} {clause.subject}{negated}?", first.text, "where", "copula place"


def _what(subject: str, value: str) -> str:
    if _DATE_VALUE.match(value) and "date" not in subject:
        return "When"
    return "Who" if _PERSON_VALUE.match(value) and subject.split()[-1] in KIN else "What"


def _adjective(clause: Clause, phrases: list[Phrase], negated: str) -> Iterator[Made]:
    """is colour-blind in one eye: what the adjective is bound to is asked for."""
    first = phrases[0].text
    for phrase in phrases[1:]:
        if phrase.kind == "with":
            others = " ".join(other.whole for other in phrases[1:] if other is not phrase)
            yield (
                f"What {clause.front} {clause.subject}{negated} {first} {phrase.marker} {others}?",
                phrase.text,
                f"{first} {phrase.marker}",
                "adjective",
            )


def _purposes(clause: Clause, main: list[Phrase]) -> Iterator[Made]:
    """saves money to buy a canoe: what for."""
    for phrase in clause.phrases:
        if phrase.kind == "clause" and phrase.marker == "to" and main:
            said = " ".join(other.whole for other in main)
            yield (
                f"What {clause.front} {clause.subject} {clause.verb} {said} to do?",
                phrase.text,
                f"{clause.verb} to do",
                "purpose",
            )
