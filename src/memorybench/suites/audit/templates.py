"""Questions for structured facts: a table of templates for (subject, attribute), and their forms for other times."""

from __future__ import annotations

import re

USER = "the user"
GAP = "____"
_NOTE = "Fill the gap in this note about {s}: {attribute} " + GAP + "."
_TEMPLATES = (
    (r"age", "How old is {s}?"),
    (r"employer|workplace", "Who does {s} work for?"),
    (r"(?:home )?city", "In which city is {s} based?"),
    (r"(?:home )?country", "In which country is {s} based?"),
    (r"birthday", "When is {own birthday}?"),
    (r"birth ?date|date of birth", "When was {s} born?"),
    (r"birth ?place|place of birth", "Where was {s} born?"),
    (r"allergy|allergies|food allergy", "What is {s} allergic to?"),
    (r"number of (?P<noun>.+)", "How many {noun} does {s} have?"),
    (r"(?!first|last|full|middle|given|family|maiden|nick|pen|stage|user|brand)(?P<noun>.+?)(?:'s)? name",
     "What is the name of {own {noun}}?"),
    (r"(?:\w+ )?(?:wife|husband|partner|spouse|fiancée?|sister|brother|mother|father|son|daughter|friend|boss|manager"
     r"|doctor|dentist|coach|teacher|landlord|landlady|neighbour|neighbor|colleague|supervisor|mentor|therapist"
     r"|accountant|lawyer|roommate|flatmate|(?:bank |tax )?advis[eo]r|nurse|carer|guide|tailor|trainer|tutor"
     r"|photographer|caterer|best man|lead|leader|\w+therapist|\w+ologist)", "Who is {own {attribute}}?"),
    # a verb with its preposition, or a verb alone: neither is a noun that `what is` can ask for
    (r".* (?:at|for|in|to|from|with|on|as|of|by|into|about)", _NOTE),
    (r"likes|loves|plays|owns|drinks|eats|teaches|wants|prefers|hates|dislikes|wears|reads|collects|speaks|drives|knows"
     r"|studies|uses|needs|has|is|was|did|does|avoids|enjoys|born|married|adopted|bought|sold|joined|left|started",
     _NOTE),
    (r".*[^sui]s", "What are {own {attribute}}?"),
    (r".*", "What is {own {attribute}}?"),
)  # fmt: skip
"""Spelling of an attribute and its question; the first that fits is used."""
_COMPILED = tuple((re.compile(spelling), question) for spelling, question in _TEMPLATES)
_PAST = {"does": "did", "do": "did", "is": "was", "are": "were", "has": "had"}
_PRESENT = re.compile(r"^(\S+(?: \S+){0,3}?) (does|do|is|are|has)\b")


def named_subject(subject: str | None) -> str:
    """Return the subject as a question names it: `the user`, `the user's sister`, `Anna`."""
    text = (subject or USER).strip()
    if text.casefold() in ("user", "the user", "i", "me", "speaker"):
        return USER
    return re.sub(r"^(?:the )?user's\b|^my\b", f"{USER}'s", text, flags=re.IGNORECASE)


def attribute_name(attribute: str) -> str:
    """Return the attribute as words: `favourite_tea` becomes `favourite tea`."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", attribute).replace("_", " ").replace("-", " ")
    return " ".join(spaced.split()).lower() if not spaced.isupper() else spaced


def question_for(subject: str | None, attribute: str) -> str:
    """Return the question that asks for an attribute of a subject."""
    named, name = named_subject(subject), attribute_name(attribute)
    for spelling, template in _COMPILED:
        found = spelling.fullmatch(name)
        if found:
            noun = found.groupdict().get("noun") or ""
            text = template.replace("{noun}", noun).replace("{attribute}", name).replace("{s}", named)
            text = re.sub(r"\{own ([^}]*)\}", lambda thing: _owned(named, thing[1]), text)
            return text[0].upper() + text[1:]
    raise AssertionError("the last template fits every attribute")


def _owned(subject: str, thing: str) -> str:
    """Return `the user's job`, or `the opening time of the user's bakery`."""
    if "'s " in subject:
        return f"the {thing} of {subject}"
    return f"{subject}{chr(39) if subject.endswith('s') else chr(39) + 's'} {thing}"


def ask_now(question: str, *, is_given: bool = False) -> str:
    """Return the question about the present."""
    if is_given:
        return f"As things stand now: {question}"
    if GAP in question:
        return question.replace(": ", ", as things stand now: ", 1)
    return f"{question.removesuffix('?')} now?"


def ask_then(question: str, when: str) -> str | None:
    """Return the question about another time, such as `in May 2024`; None if the template has no past form."""
    past = _PRESENT.sub(lambda found: f"{found[1]} {_PAST[found[2]]}", question)
    return f"{past.removesuffix('?')} {when}?" if past != question and GAP not in question else None
