"""Makes a question from a free-text fact by replacing a number or a name with a gap. Used for recall probes only."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memorybench.text.english_numbers import NUMBERS

from .answers import MONTHS, content, normalise
from .templates import GAP

NUMBER_REQUEST = "Fill the gap with a number"
_LONGEST = 24
_MONTH = "|".join(name.title() for name in MONTHS)
_WORD_NUMBERS = "|".join(sorted((word for word in NUMBERS if word not in ("zero", "one")), key=len, reverse=True))
_DAY, _YEAR = r"\d{1,2}(?:st|nd|rd|th)?", r"(?:,? \d{4})?"
_NAME = r"[^\W\d_a-zß-ÿ][\w'&-]*"
_PARTICLE = r"(?:al|bin|da|das|de|del|della|den|der|di|do|dos|du|el|la|las|le|los|ter|van|von|zu|zum|zur)"
"""Matches a word in lower case inside a name, as in `Ludwig von der Au`."""
_SPANS = (
    re.compile(rf"\b{_DAY} (?:{_MONTH})\b{_YEAR}|\b(?:{_MONTH}) {_DAY}\b{_YEAR}"),
    re.compile(rf"(?<=[\w,] ){_NAME}(?:(?: (?:of|the|{_PARTICLE}|and the|&))* {_NAME}| \d\w*)*"),
    re.compile(rf"[$€£¥]?(?<![\w.,:/'’-])\d[\d.,:]*(?:st|nd|rd|th|%|(?<=\d))(?![\w/'’-])|\b(?:{_WORD_NUMBERS})\b(?!-)"),
)  # fmt: skip
"""Patterns of the texts that a gap can replace: dates, names and numbers, in this order."""
_ANCHORED = re.compile(r"\b(?:in|at|on|to|from|for|with|by|until|since|of|called|named)$")
"""Matches text before a gap that shows which kind of answer is expected.

Needed if the statement has fewer than two other content words.
"""
_NO_NAME_AFTER = re.compile(
    r"\b(?:in|into|inside|within|at|on|onto|to|towards?|from|off|out of|outside|near|nearby|around|across|through|via"
    r"|the|an?)$",
    re.IGNORECASE,
)
"""Text before a gap that can be filled by several names: a house, its town, its country, or a day.

After an article, a word in capitals is often no name, such as `the AGM`.
"""
_BEFORE_YEAR = re.compile(r"\b(?:in|from|since|until)$")
_YEAR_NUMBER = re.compile(r"(?:19|20)\d\d")
_IS_NAMED = re.compile(r"\S \S+ (?:is|are|was|were)$")
"""Used like `_ANCHORED` if the answer is not a number. Matches `User's dog is ____`, but not `User is ____`."""
_CUTS_BEFORE = re.compile(
    rf"(?:{_NAME}(?:,| (?:and|or|of|&))(?: (?:the|a|an))* |[\w,.:] (?!\S*'s ){_NAME} |\d\S* "
    rf"|\b[^\W\d_a-zß-ÿ]\w*\. (?:{_PARTICLE} )+|{_NAME} (?:{_PARTICLE} )+)$"
)
_CUTS_AFTER = re.compile(rf" (?:{_MONTH})\b|(?:[,:]| (?:and|or|of|&))(?: (?:the|a|an))* {_NAME}")
"""Text beside a gap, with `_CUTS_BEFORE`, that shows that the value is only a part, as in `War and ____`.

The whole is a title, a name, a date or a quantity.
"""
_UNCLEAR = re.compile(
    r"\b(?:not|cannot|never|no|neither|nor|between|used to|former(?:ly)?|previous(?:ly)?|ex(?=-))\b|n['’]t\b"
    r"|[?;\"“”„«»]|:\s|(?<!\w)['‘’](?=\w)",
    re.IGNORECASE,
)
"""Matches a statement that gets no gap: countless answers fit `User has never been to ____`, several may fit what was
so in the past, and a title in quotation marks or with a colon might be divided."""
_QUANTITY = re.compile(rf"\d|\b(?:one|{_WORD_NUMBERS})\b")
_OTHER_QUANTITY = re.compile(rf"\d|\b(?:{_WORD_NUMBERS}|or)\b")
"""Matches what may be the other end of a range or the other of two alternatives: `a day or ____`, `____ to 19`."""
_LIST = re.compile(rf"[,(]|{_NAME} (?:and|&) {_NAME}")
"""Matches a list, which may have as many items as a number says: `____ cats, Pip and Dot`."""
_PLAIN_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_WEEKDAY = re.compile(r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day")
_REQUESTS = (
    ("date", _SPANS[0]),
    ("month", re.compile(_MONTH)),
    ("day of the week", re.compile(f"{_WEEKDAY.pattern}s?")),
    ("time", re.compile(r"\d{1,2}(?::[0-5]\d){1,2}")),
    ("number", _SPANS[2]),
)
"""What the text that fills a gap may be, apart from a year or a name."""
_NAMES_TIME = re.compile(
    rf"\b(?:{_MONTH}|{_WEEKDAY.pattern}|Christmas|Easter|Lent|Advent|Halloween|Thanksgiving|New Year|Ramadan|Eid|Diwali"
    r"|Hanukkah|Passover|Whitsun|Midsummer|Spring|Summer|Autumn|Fall|Winter|Week|Term|Q[1-4]|Day)\b"
)
_REPEATED = re.compile(r"\b(?:every|each|weekly|usually|always)\b", re.IGNORECASE)
_NOT_A_NAME = re.compile(r"(?:I|I'm|I've|I'd|I'll|User|User's|The|A|An|It|He|She|They|We|My|OK|TV)\b")


def gaps(statement: str) -> Iterator[tuple[str, str]]:
    """Yield questions with one gap each, and the text that fills the gap.

    Dates come first, then names, then numbers.
    """
    text = statement.strip().rstrip(".!")
    if len(text.split()) > _LONGEST:
        return
    opening = len(re.match(rf"(?:{_NAME} ?)*", text)[0])  # type: ignore[index]  # the pattern also matches nothing
    for span in _SPANS:
        for found in reversed(list(span.finditer(text))):
            value = found[0].strip(" ,").removesuffix("'s")
            if found.start() < opening or _NOT_A_NAME.match(value) or not content(value):
                continue
            end = found.start() + len(value)
            if _CUTS_BEFORE.search(text[: found.start()]) or _CUTS_AFTER.match(text, end):
                continue
            if not _fits_one(text[: found.start()], value, text[end:]):
                continue
            before, after = text[: found.start()].rstrip(" $€£¥"), text[end:]
            is_number = value[0].isalnum() and bool(_PLAIN_NUMBER.fullmatch(normalise(value)))
            is_clear = _ANCHORED.search(before) or (not is_number and _IS_NAMED.search(before))
            if len(content(text) - content(value)) < 2 and not is_clear:
                continue  # `User kept ____` and `User is ____` say too little
            if is_number and _LIST.search(f"{before} {after}"):
                continue
            kind = _kind(before, value, after)
            if kind is not None:
                yield f"Fill the gap with a {kind}: {text[: found.start()]}{GAP}{after}.", value


def _kind(before: str, value: str, after: str) -> str | None:
    """Return what the question asks for, such as `number`; None if names of several kinds fit the gap."""
    if _YEAR_NUMBER.fullmatch(value) and _BEFORE_YEAR.search(before) and not re.match(r" \w", after):
        return "year"
    for kind, pattern in _REQUESTS:
        if pattern.fullmatch(value):
            return kind
    return None if _NO_NAME_AFTER.search(before) or _NAMES_TIME.search(value) else "name"


def is_one_weekday(statement: str, value: str) -> bool:
    """Return whether the value is the weekday of a single event, as in `on Thursday`, but not `every Thursday`."""
    return bool(_WEEKDAY.fullmatch(value)) and not _REPEATED.search(statement)


def _fits_one(before: str, value: str, after: str) -> bool:
    """Return whether, as far as the text around a gap shows, only the whole value fits it.

    False if the text shows that other answers fit too, or that the value is a part of something. A dot or another mark
    beside the gap is taken for a part of a name, as in `Dr. ____` or `____-by-Sea`.
    """
    if (
        _UNCLEAR.search(f"{before}{value}{after}")
        or value.endswith("'")
        or not re.search(r"(?:^|[^.\s]\s)$", before)
        or not re.match(r"(?:['’]s)?[,:)]*(?:\s|$)", after)
    ):
        return False
    return not (_QUANTITY.search(value) and _OTHER_QUANTITY.search(f"{before} {after}"))
