"""Free text into questions: named shapes first, then any statement whose verb is known.

Every question leaves out exactly the words that answer it. Whether they stand in it all the same, and whether it reads
as English, is for the gates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memorybench.core.conversation import Fact

from .askable import Askable
from .clauses import Clause, read_clause
from .lexicon import OPINIONS, PEOPLE, PLACE_VERBS, ROLES, listed
from .patterns import COMPILED, Pattern
from .phrases import Phrase
from .subjects import USER, is_person, is_plural, split_subject, third_person, tidy
from .verbs import base_form, is_participle, is_past
from .words import plain

_LEADING_ADVERBS = re.compile(
    r"^(?:(?:currently|recently|usually|also|still|just|now|normally|mostly|mainly|really|always|often) )+"
)
_TRAILING_ADVERBS = re.compile(r" (?:recently|currently|now|these days|too|as well|already|a lot|very much|lately)$")
_DATE_VALUE = re.compile(
    r"^(?:(?:the )?\d{1,2}(?:st|nd|rd|th)?(?: of)? )?(?:January|February|March|April|May|June|July|August|September"
    r"|October|November|December|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)\b|^\d{4}(?:-\d\d)?"
    r"|^(?:on|every) ", re.I,
)  # fmt: skip
_TITLED = r"(?:Dr|Mr|Mrs|Ms)\.? "
_SOMEBODYS = rf"(?:(?:their|his|her|the user's|[A-Z]\w+'s) )?(?:[\w-]+ )?(?:{'|'.join(sorted(PEOPLE))})"
_PERSON_VALUE = re.compile(rf"^(?:{_TITLED}|{_SOMEBODYS}\b|[A-Z][a-zé]+(?: [A-Z][a-zé]+)?$)")
_PEOPLE_VALUE = re.compile(rf"^(?:{_TITLED}|{_SOMEBODYS}$)")
_COUNTED = re.compile(
    r"^(?:about |over |around |at least |nearly |almost )?(?P<value>\d[\d.,]*|two|three|four|five|six|seven|eight"
    r"|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|dozens of) (?P<kind>[a-z][\w-]*(?: [a-z]+)?s|children|people)\b"
    r"(?P<rest>.*)"
)
_MONEY_VALUE = re.compile(r"^(?:about |around )?(?:[$€£]\s?\d|[\d.,]+ (?:dollars|euros|pounds|yen|francs|kronor)\b)")
_AGREEING = {"does": "do", "is": "are", "was": "were", "has": "have"}


_NOT_ONLY = re.compile(r"\bnot (?:only|just|merely)\b", re.IGNORECASE)
"""Denies nothing, though a question made of it would."""


def readings(fact: Fact) -> Iterator[Askable]:
    """Ways to ask for what a free-text fact says, best first."""
    split = split_subject(tidy(fact.content))
    if split is None or _NOT_ONLY.search(fact.content):
        return
    subject, predicate = split
    yield from _named_shapes(fact, subject, predicate)
    clause = read_clause(subject, predicate)
    if clause is not None:
        yield from (_askable(fact, clause.subject, *made) for made in _questions(clause) if _short(made))


def _named_shapes(fact: Fact, subject: str, predicate: str) -> Iterator[Askable]:
    said = _LEADING_ADVERBS.sub("", predicate)
    for pattern, compiled in COMPILED:
        match = compiled.match(said)
        if match is not None and (is_person(subject) or not pattern.of_persons):
            question, attribute = (
                _filled(text, pattern, subject, match) for text in (pattern.question, pattern.attribute)
            )
            value = subject if pattern.asks_subject else match["value"]
            yield _askable(fact, subject, question, value, attribute, pattern.name)


def _filled(template: str, pattern: Pattern, subject: str, match: re.Match[str]) -> str:
    if template.startswith("What is {own} name") and subject != USER:
        template = "What is the name of {s}?"
    groups = {name: third_person(text or "") for name, text in match.groupdict().items()}
    spoken = groups.get("verb", match[0]).split()[0].lower()
    owner = "their" if subject == USER and " {s} " in template else possessive(subject)
    text = template.replace("{own}", owner).replace("{do}", "did" if is_past(spoken) else "does")
    if is_plural(subject) and not pattern.asks_subject:
        text = re.sub(r"\b(does|is|was|has) (?=\{s\})", lambda found: f"{_AGREEING[found[1]]} ", text)
    text = text.replace("{s}", subject)
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


_LONGEST_QUESTION, _LONGEST_VALUE = 18, 10


def _short(made: Made) -> bool:
    question, value, _, _ = made
    return len(question.split()) <= _LONGEST_QUESTION and 0 < len(value.split()) <= _LONGEST_VALUE


_MET = frozenset(
    listed("""
    meet marry hire date mentor help call supervise coach support encourage thank advise praise congratulate
    invite admire tell inspire teach ask remind
""")
)
Made = tuple[str, str, str, str]
"""Question, value, attribute, shape."""


def _questions(clause: Clause) -> Iterator[Made]:
    main = [phrase for phrase in clause.phrases if phrase.kind != "clause"]
    if clause.main == "be" and not clause.verb.endswith("been"):
        yield from _copula(clause, main)
        main = [phrase for phrase in main if phrase.kind in ("with", "duration")]
        if len(clause.phrases) > len(main):
            return  # what it is was said before: only together they tell
    if clause.main in OPINIONS:
        return
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
    match phrase.kind:
        case "object":
            return _object(clause, phrase, core, before)
        case "place":
            strand = f" {phrase.marker}" if phrase.marker == "from" else ""
            return f"Where {core} {before}{strand}?", phrase.text, f"{clause.verb} where", "place"
        case "time":
            opening = {"since": "Since when", "until": "Until when"}.get(phrase.marker, "When")
            return f"{opening} {core} {before}?", phrase.text, f"{clause.verb} when", "time"
        case "frequency":
            return f"How often or when {core} {before}?", phrase.text, f"{clause.verb} how often", "frequency"
        case "duration":
            return f"For how long {core} {before}?", phrase.text, f"{clause.verb} how long", "duration"
        case "reason":
            return f"Why {core} {before}?", phrase.text, f"{clause.verb} why", "reason"
        case "with":
            return _stranded(clause, phrase, spoken)
        case "clause":
            return None


_SITES = re.compile(
    r"(?:his|her|their|the|a|an) (?:[\w-]+ )?(?:room|house|home|garden|kitchen|office|yard|backyard|studio|car|desk"
    r"|wall|roof|chin|arm|leg|hand|shoulder|back|knee|wrist|neck|apartment|flat|shop|store|bag|attic|cellar|basement|town"
    r"|hometown|park|beach|forest|woods|city|school|library|gym)$"
)


def _stranded(clause: Clause, phrase: Phrase, spoken: list[Phrase]) -> Made | None:
    """What with, what for; only of the first phrase after the verb or its object, as it may belong to any other."""
    place = spoken.index(phrase)
    earlier = [other for other in spoken[:place] if other.kind not in ("object", "time", "frequency", "duration")]
    if earlier and [other.marker for other in earlier] != ["from"]:
        return None
    core = f"{clause.front} {clause.subject} {clause.verb}"
    asked = " ".join(phrase.marker if other is phrase else other.whole for other in spoken)
    rest = " ".join(other.whole for other in spoken if other is not phrase)
    attribute = f"{clause.verb} {phrase.marker}"
    if phrase.marker in ("in", "on") and _SITES.match(phrase.text):
        return f"Where {core} {rest}?", phrase.text, f"{clause.verb} where", "place"
    if phrase.marker == "for" and _MONEY_VALUE.match(phrase.text):
        return f"For how much {core} {rest}?", phrase.text, f"{clause.verb} for how much", "price"
    person = _PERSON_VALUE.match(phrase.text) and phrase.marker in ("with", "for", "to", "from", "by")
    wh = "Who" if person or _PEOPLE_VALUE.match(phrase.text) else "What"
    return f"{wh} {core} {asked}?", phrase.text, attribute, "preposition"


def _object(clause: Clause, phrase: Phrase, core: str, others: str) -> Made | None:
    counted = _COUNTED.match(phrase.text)
    if clause.main in PLACE_VERBS and "shift" not in phrase.text and not counted:
        return None  # works part time
    if counted and not counted["rest"].startswith(" of"):
        rest = f"{counted['rest']} {others}"
        return f"How many {counted['kind']} {core}{rest}?", counted["value"], f"number of {counted['kind']}", "number"
    if clause.main == "have" and not others:
        return _had(phrase, core)
    person = _PERSON_VALUE.match(phrase.text) and clause.main in _MET
    wh = "Who" if person or _PEOPLE_VALUE.match(phrase.text) else "What"
    return f"{wh} {core} {others}?", phrase.text, clause.verb, "object"


def _had(phrase: Phrase, core: str) -> Made | None:
    """has a fear of spiders: what of; has type 2 diabetes: what kind of."""
    if " of " in phrase.text:
        head, _, value = phrase.text.partition(" of ")
        return f"What {core} {head} of?", value, head, "had of"
    parts = [word for word in phrase.text.split() if word.lower() not in ("a", "an", "the", "their", "some", "very")]
    if not 2 <= len(parts) <= 3:
        return None
    return f"What kind of {parts[-1]} {core}?", " ".join(parts[:-1]), f"kind of {parts[-1]}", "kind"


def _copula(clause: Clause, phrases: list[Phrase]) -> Iterator[Made]:
    if not phrases:
        return
    first = phrases[0]
    negated = f" {clause.verb}" if clause.verb else ""
    if first.kind == "object":
        rest = " ".join(phrase.whole for phrase in phrases[1:] if phrase.marker not in ("for", "by", "because"))
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
    if _DATE_VALUE.match(value) and "date" not in subject.split():
        return "When"
    if _MONEY_VALUE.match(value):
        return "How much"
    person = _PERSON_VALUE.match(value) and not re.match(r"(?:an?|the) ", value)
    return "Who" if person and subject.split()[-1].lower() in ROLES else "What"


def _adjective(clause: Clause, phrases: list[Phrase], negated: str) -> Iterator[Made]:
    """is colour-blind in one eye: what the adjective is bound to is asked for."""
    first = phrases[0].text
    if len(first.split()) > 1 or len(phrases) < 2 or phrases[1].kind != "with":
        return
    phrase = phrases[1]
    others = " ".join(other.whole for other in phrases[2:])
    wh = "Who" if _PERSON_VALUE.match(phrase.text) and phrase.marker in ("to", "with", "of") else "What"
    yield (
        f"{wh} {clause.front} {clause.subject}{negated} {first} {phrase.marker} {others}?",
        phrase.text,
        f"{first} {phrase.marker}",
        "adjective",
    )


_WISHES = frozenset(("want", "need", "ask", "tell", "encourage", "help", "like", "teach", "advise", "get"))


def _purposes(clause: Clause, main: list[Phrase]) -> Iterator[Made]:
    """saves money to buy a canoe: what for."""
    for phrase in clause.phrases:
        if clause.main in _WISHES or len(main) != 1 or main[0].kind != "object" or len(phrase.text.split()) < 2:
            continue
        if phrase.kind == "clause" and phrase.marker == "to":
            yield (
                f"What {clause.front} {clause.subject} {clause.verb} {main[0].whole} to do?",
                phrase.text,
                f"{clause.verb} to do",
                "purpose",
            )
