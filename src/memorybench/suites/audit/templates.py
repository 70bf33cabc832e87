"""Questions for structured facts: `Fill the gap in this note about "ferry from Piraeus". Departure: ____.`

The fields of a fact do not say whether an attribute names a person or a thing, needs an article, or is a verb. A note
with a gap is right for all of them, and a question such as `Who is …?` is not.
"""

from __future__ import annotations

import re

USER = "the user"
GAP = "____"
_NOTE = "Fill the gap in this note about {label}. {Attribute}: " + GAP + "."
_NO_QUESTION = re.compile(
    r"(?:event|fact|note|plan|detail|thing|update|statement|other|(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?"
    r"|memory|memories|info|information|misc|miscellaneous|news|general"
    r"|(?:one|some|any|most|part) of .*|(?:an)?other .*",
    re.IGNORECASE,
)
"""Attributes that are too general to ask for (`note`), or that several values fit (`one of the boats`)."""
_CAMEL_CASE = re.compile(r"[a-z]{2,}(?:[A-Z]+[a-z]*)+|[A-Z][a-z]{2,}(?:[A-Z][a-z]+)*[A-Z][a-z]{2,}")
"""Matches `shoeSize` and `FavouriteDish`, but not `HbA1c`, `pH` or `eReader`."""


def subject_name(subject: str | None) -> str:
    """Return the subject as a question names it: `the user`, `the user's sister`, `Anna`."""
    text = (subject or USER).strip()
    if text.casefold() in ("user", "the user", "i", "me", "speaker"):
        return USER
    return re.sub(r"^(?:the )?user's\b|^my\b", f"{USER}'s", text, flags=re.IGNORECASE)


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


def question_for(subject: str | None, attribute: str) -> str | None:
    """Return a note about a subject with a gap for an attribute; None if the attribute is too general."""
    label, name = subject_name(subject), attribute_name(attribute)
    if _NO_QUESTION.fullmatch(name):
        return None
    if not label.startswith(USER):  # it may need an article: "ramipril", "van"
        label = f"'{label}'" if '"' in label else f'"{label}"'
    shown = name[0].upper() + name[1:] if name.split()[0].islower() else name
    return _NOTE.format(label=_bind_stops(label), Attribute=_bind_stops(shown))


def _bind_stops(text: str) -> str:
    """Return a text with no-break spaces after full stops, as in `no. of cats`, so that they end no sentence."""
    return text.replace(". ", ".\N{NO-BREAK SPACE}")


def with_time(note: str, time: str) -> str:
    """Return a note that says when it was true: `time` is a phrase such as `as things stood on 2 March 2024`."""
    about, _, gap = note.rpartition(". ")
    return f"{about}, {time}. {gap}"
