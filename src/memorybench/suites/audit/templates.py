"""Questions for structured facts: templates for common attributes of people, and a note with a gap for all others.

The fields of a fact do not say whether an attribute names a person or a thing, needs an article, or is a verb. A note
with a gap is right for every attribute: `Fill the gap in this note about "ferry from Piraeus". Departure: ____.`
"""

from __future__ import annotations

import itertools
import re

from .time_words import as_of_now, has_time_words

USER = "the user"
GAP = "____"
_NOTE = "Fill the gap in this note about {label}. {Attribute}: " + GAP + "."
_TEMPLATES = (
    (r"age", "How old is {s}?"),
    (r"employer", "Who does {s} work for?"),
    (r"(?:home )?city", "In which city is {s} based?"),
    (r"(?:home )?country", "In which country is {s} based?"),
    (r"birthday", "When is {own birthday}?"),
    (r"birth ?date|date of birth", "When was {s} born?"),
    (r"birth ?place|place of birth", "Where was {s} born?"),
    (r"allergy|allergies|food allergy", "What is {s} allergic to?"),
    (r"name", "What is the name of {s}?"),
    (r"(?!(?:user|person|speaker|first|last|full|middle|stage|file|brand|today)'s)(?P<noun>\w+)'s name"
     r"|(?P<possession>dog|cat|pet|horse|boat|wife|husband|partner|sister|brother|mother|father|son|daughter|boss"
     r"|company|employer|school) name", "What is the name of {own {noun}}?"),
    (r"(?:\w+ )?(?:wife|husband|partner|spouse|fiancée?|sister|brother|mother|father|son|daughter|friend|boss|manager"
     r"|doctor|dentist|coach|teacher|landlord|landlady|neighbour|neighbor|colleague|supervisor|mentor|therapist"
     r"|accountant|lawyer|roommate|flatmate|(?:bank |tax )?advis[eo]r|nurse|carer|tailor|trainer|tutor"
     r"|photographer|caterer|bookkeeper|best man|\w+therapist|\w+ologist)", "Who is {own {attribute}}?"),
)  # fmt: skip
"""Patterns for attributes of a person, each with its question. The first pattern that matches is used."""
_COMPILED = tuple((re.compile(spelling), question) for spelling, question in _TEMPLATES)
_NO_QUESTION = re.compile(
    r"(?:event|fact|note|plan|detail|thing|update|statement|other|(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?"
    r"|memory|memories|info|information|misc|miscellaneous|news|general",
    re.IGNORECASE,
)
"""Attributes that are too general to ask for, such as `note` or `info`."""
_WANTS_NAME = ("Who", "What is the name of")
_CAMEL_CASE = re.compile(r"[a-z]{2,}(?:[A-Z]+[a-z]*)+|[A-Z][a-z]{2,}(?:[A-Z][a-z]+)*[A-Z][a-z]{2,}")
"""Matches `shoeSize` and `FavouriteDish`, but not `HbA1c`, `pH` or `eReader`."""
_NAME = re.compile(r"[^\W\d_a-z][\w'-]*(?: [^\W\d_a-z][\w'-]*)?")
_RELATED = re.compile(rf"{USER}'s (?!(?:grand|step)?children\b|people\b|(?:wo)?men\b)\w+(?:[^\Ws]|ss)")
"""Matches one thing or person of the user, such as `the user's boss`, but not `the user's twins`."""
_DETERMINED = re.compile(
    r"(?:the|a|an|my|our|his|her|their|your|its|this|that|one|user's|(?-i:[^\W\d_a-zß-ÿ])\w*'s?)\b", re.IGNORECASE
)
"""Matches the beginning of a noun phrase that needs no article: `the van`, `Anna's van`, but not `vicar's van`."""
_PAST = {"does": "did", "do": "did", "is": "was", "are": "were", "has": "had"}
_AS_OF_NOW = "as things stand now"
_PRESENT = re.compile(r"^(\S+(?: \S+){0,3}?) (does|do|is|are|has)\b")


def named_subject(subject: str | None, statement: str = "") -> str:
    """Return the subject as a question names it: `the user`, `the user's sister`, `the bakery`, `Anna`."""
    text = (subject or USER).strip()
    if text.casefold() in ("user", "the user", "i", "me", "speaker"):
        return USER
    text = re.sub(r"^(?:the )?user's\b|^my\b", f"{USER}'s", text, flags=re.IGNORECASE)
    if not text.islower() or _DETERMINED.match(text):
        return text
    # every first word of a sentence has a capital
    is_name = re.search(rf"(?<!^)(?<![.!?:] )\b{re.escape(text.title())}\b", statement)
    return text.title() if is_name else f"the {text}"


def attribute_name(attribute: str) -> str:
    """Return the attribute as words: `favourite_tea` becomes `favourite tea`. Names, `GP` and `HbA1c` are kept."""
    is_phrase = " " in attribute.strip()
    if not is_phrase:
        if _CAMEL_CASE.fullmatch(attribute.strip()):
            attribute = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", attribute)
        attribute = re.sub(r"(?<=\w\w)-(?=\w\w)", " ", attribute)  # not in `e-mail`
    words = attribute.replace("_", " ").split()
    names_stay = is_phrase and any(word.islower() for word in words)  # in `Seat at Larkfield`, not in `Favourite Tea`
    return " ".join(
        word.lower() if re.fullmatch(r"[A-Z][a-z]+", word) and not (names_stay and place) else word
        for place, word in enumerate(words)
    )


def question_for(subject: str | None, attribute: str, statement: str = "", *, wants_name: bool = True) -> str | None:
    """Return the question for an attribute of a subject; None if the attribute is unsuitable.

    `statement`, the sentence of the fact, shows how its words are spelled. `wants_name=False`: the answer is not a
    name, so templates that ask for a name are not used.
    """
    named, name = named_subject(subject, statement), attribute_name(attribute)
    if _NO_QUESTION.fullmatch(name) or _splits_word(attribute, name, statement):
        return None
    is_person = named == USER or bool(_NAME.fullmatch(named)) or bool(_RELATED.fullmatch(named))
    for spelling, template in _COMPILED if is_person else ():
        if (found := spelling.fullmatch(name)) and (wants_name or not template.startswith(_WANTS_NAME)):
            noun = next(filter(None, found.groupdict().values()), "")
            return _fill(template.replace("{noun}", noun), named, name)
    shown = name[0].upper() + name[1:] if name.split()[0].islower() else name
    return _NOTE.format(label=_label(subject, named), Attribute=shown)


def _label(subject: str | None, named: str) -> str:
    """Return the subject for a note: in quotes if it might need an article, such as "ramipril"."""
    needs_article = any(word[0].islower() for word in named.split()) and not _DETERMINED.match(subject or USER)
    if not needs_article or named.startswith(USER):
        return named
    quoted = (subject or USER).strip()
    return f"'{quoted}'" if '"' in quoted else f'"{quoted}"'


def _fill(template: str, named: str, name: str) -> str:
    text = template.replace("{attribute}", name).replace("{s}", named)
    text = re.sub(r"\{own ([^}]*)\}", lambda thing: _owned(named, thing[1]), text)
    return text[0].upper() + text[1:]


def _splits_word(attribute: str, name: str, statement: str) -> bool:
    """Return whether splitting camel case divided a word of the statement: `EpiPens` became `epi pens`."""
    words = name.casefold().split() if attribute.isalpha() else []
    return any(f"{one}{other}".rstrip("s") in statement.casefold() for one, other in itertools.pairwise(words))


def _owned(subject: str, thing: str) -> str:
    """Return a possessive phrase: `the user's job`, or `the opening time of the user's bakery`."""
    if "'s " in subject:
        return f"the {thing} of {subject}"
    return f"{subject}{chr(39) if subject.endswith('s') else chr(39) + 's'} {thing}"


def ask_now(question: str, *, given_in: str | None = None) -> str:
    """Return the question, worded to ask about the present; unchanged if it does so already.

    `given_in` is the language of a question that the author of the dataset wrote. It gets a prefix in that language, or
    none if the language is not in the table.
    """
    if has_time_words("now", question, (given_in or "en",)):
        return question
    if given_in:
        return f"{as_of_now(given_in) or ''}{question}"
    if GAP in question:
        return _with_time(question, _AS_OF_NOW)
    if question.startswith(("When was", "Where was")):
        return f"{as_of_now('en')}{question}"
    return f"{question.removesuffix('?')} now?"


def ask_then(question: str, when: str) -> str | None:
    """Return the question, worded to ask about another time, such as `in May 2024`; None if it has no past form.

    Questions for the day or place of a birth have none: their answer is the same at all times.
    """
    if GAP in question:
        return None if _AS_OF_NOW in question else _with_time(question, f"as things stood {when}")
    if has_time_words("now", question, ("en",)) or question.startswith(("When is", "When was", "Where was")):
        return None
    past = _PRESENT.sub(lambda found: f"{found[1]} {_PAST[found[2]]}", question)
    return f"{past.removesuffix('?')} {when}?" if past != question else None


def _with_time(note: str, time: str) -> str:
    about, _, gap = note.rpartition(". ")
    return f"{about}, {time}. {gap}"
