"""Numbers, money, shares, times of day and dates in a text, in one form however they are written."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from .facts_signs import Signs, rewritten, rule, rules


class Quantity(NamedTuple):
    value: Decimal
    unit: str = ""
    """A currency, "%", "clock" (minutes of the day), "day", "month" or "year" of a date; "": a plain number."""
    mode: str = ""
    """As that of words: denied or in doubt."""

    def agrees(self, other: Quantity) -> bool:
        """A plain number agrees with the same number of anything: of a budget, 5000 says what "$5,000" says, and of
        an opening hour, 17 what "5 pm" says."""
        if self.unit != other.unit:
            if self.unit and other.unit:
                return False
            if "clock" in (self.unit, other.unit):
                return self.value * _per_plain(other) == other.value * _per_plain(self)
        return self.value == other.value


def _per_plain(quantity: Quantity) -> int:
    """How many of its units a plain number would count as one: minutes, if it is a time of day."""
    return 60 if quantity.unit == "clock" else 1


_CURRENCIES = {
    "$": "usd", "usd": "usd", "dollar": "usd", "dollars": "usd", "€": "eur", "eur": "eur", "euro": "eur",
    "euros": "eur", "£": "gbp", "gbp": "gbp", "pound": "gbp", "pounds": "gbp", "¥": "jpy", "jpy": "jpy", "yen": "jpy",
    "chf": "chf", "francs": "chf", "₹": "inr", "inr": "inr", "rupees": "inr",
}  # fmt: skip
_MAGNITUDES = {"k": 3, "thousand": 3, "m": 6, "mn": 6, "million": 6, "bn": 9, "billion": 9}
_MONTH_NAMES = "january february march april may june july august september october november december"
MONTHS = tuple(_MONTH_NAMES.split())
_MONTH_OF = {name[:3]: place for place, name in enumerate(MONTHS, 1)}

_MONTH = r"(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS) + r"|sept)\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_ISO_DATE = re.compile(r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b")
_DATES = (
    re.compile(rf"\b{_DAY}(?:\s+of)?\s+{_MONTH}(?:,?\s+(?P<year>\d{{4}}))?", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}\s+{_DAY}(?!\d)(?:,?\s+(?P<year>\d{{4}}))?", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}(?:,?\s+(?P<year>\d{{4}}))", re.IGNORECASE),
    # alone, a month is known by its capital; and May, which may be a verb, by the word before it
    re.compile(r"\b(?P<month>" + "|".join(name.title() for name in MONTHS if name != "may") + r")\b"),
    re.compile(r"(?:(?<=\b[Ii]n )|(?<=\b[Bb]y )|(?<=\bof ))(?P<month>May)\b"),
)
_DOTTED_DATE = re.compile(r"\b(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})\b")
_SLASHED_DATE = re.compile(r"\b\d{1,2}/\d{1,2}/(?P<year>\d{4})\b")
_HALF_DAY_CLOCK = re.compile(r"\b(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s?(?P<half>[ap])\.?m\b\.?", re.IGNORECASE)
_CLOCK = re.compile(r"\b(?P<hour>\d{1,2}):(?P<minute>\d{2})\b")
_AMOUNT = re.compile(
    r"(?:(?P<sign>[$€£¥₹]|\b(?:usd|eur|gbp|chf|jpy|inr)\s?)\s?|(?<![\w.]))"
    r"(?P<number>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:\s?(?P<share>%|percent\b|per\s+cent\b|pct\b)"
    r"|(?:st|nd|rd|th)\b"
    r"|(?:\s?(?P<magnitude>k|thousand|mn?|million|bn|billion)\b)?"
    r"(?:\s?(?P<named>usd|dollars?|eur|euros?|gbp|pounds?|jpy|yen|chf|francs|inr|rupees)\b)?)",
    re.IGNORECASE,
)
_TO_NINETEEN = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_TO_NINETY = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {word: n for n, word in enumerate(_TO_NINETEEN.split())}
_TENS = {word: n * 10 for n, word in enumerate(_TO_NINETY.split(), 2)}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_WORD = "|".join((*_SMALL, *_TENS))
_SPELLED = re.compile(
    rf"\b(?<!no )(?<!any )(?<!every )(?:{_WORD})"
    rf"(?:(?:\s+and\s+|[\s-]+)(?:{_WORD}|hundred|thousand|million))*\b(?!\s+of\b)",
    re.IGNORECASE,
)
_SPELLED_IN = frozenset((*_SMALL, *_TENS))
_FIXED = rules(
    rule("twice", r"\btwice\b", "2 times"),
    rule("dozen", r"\b(?:a|one)\s+dozen\b", "12"),
    rule("dozen", r"\bdozen\b", "12"),
    rule("half", r"\bhalf\s+of\b", "50% of"),
    rule("hundred thousand million", r"\ba\s+(?=hundred|thousand|million)\b", "1 "),
    rule("hundred", r"\b(?<=\d )hundred\b", "00"),
)
_APART = re.compile(r"(?<=\d) 00\b")
_DIGIT = re.compile(r"\d")
_MONTH_SIGNS = frozenset((*MONTHS, *_MONTH_OF, "sept"))

_FIRST_MARK, _LAST_MARK = 0xF0000, 0xFFFFD
"""Characters for private use, of which `plain` text has none."""


def taken_out(text: str, signs: Signs) -> tuple[str, list[Quantity]]:
    """The text with a mark (`is_mark`) in the place of every quantity, and these in the order of their marks.

    `signs` are those of the text, or of a longer one that it is part of.
    """
    text, _ = rewritten(text, signs, _FIXED)
    if not _SPELLED_IN.isdisjoint(signs):
        text = _SPELLED.sub(_in_digits, text)
    if " 00" in text:
        text = _APART.sub("00", text)
    found: list[Quantity] = []
    if _MONTH_SIGNS.isdisjoint(signs) and _DIGIT.search(text) is None:
        return text, found
    for needs, read, patterns in _READERS:
        if not needs or not needs.isdisjoint(signs):
            for pattern in patterns:
                text = pattern.sub(partial(_take, read, found), text)
    return text, found


def _take(read: Callable[[re.Match[str]], list[Quantity]], found: list[Quantity], match: re.Match[str]) -> str:
    taken = read(match)
    if len(found) + len(taken) > _LAST_MARK - _FIRST_MARK:
        return match[0]  # out of marks: no text has that much to say
    marks = "".join(chr(_FIRST_MARK + len(found) + n) for n in range(len(taken)))
    found.extend(taken)
    return f" {marks} "


def is_mark(character: str) -> bool:
    return _FIRST_MARK <= ord(character) <= _LAST_MARK


def place_of(mark: str) -> int:
    return ord(mark) - _FIRST_MARK


def _in_digits(match: re.Match[str]) -> str:
    total, group = 0, 0
    for word in re.findall(r"[a-z]+", match[0].lower()):
        if word == "hundred":
            group = max(group, 1) * 100
        elif word in _SCALES:
            total, group = total + max(group, 1) * _SCALES[word], 0
        else:
            group += _SMALL.get(word, 0) + _TENS.get(word, 0)
    return str(total + group)


def _year(match: re.Match[str]) -> list[Quantity]:
    """Of 3/4/2026 only the year is certain: who wrote the month first?"""
    return [Quantity(Decimal(match["year"]), "year")]


def _numbered_date(match: re.Match[str]) -> list[Quantity]:
    return [Quantity(Decimal(match[part]), part) for part in ("day", "month", "year")]


def _date(match: re.Match[str]) -> list[Quantity]:
    """By its parts, so that "March" stands in "3 March 2026"."""
    told = match.groupdict()
    month = Quantity(Decimal(_MONTH_OF[told["month"][:3].lower()]), "month")
    return [month, *(Quantity(Decimal(told[part]), part) for part in ("day", "year") if told.get(part))]


def _clock(match: re.Match[str]) -> list[Quantity]:
    told = match.groupdict()
    hour, half = int(told["hour"]), (told.get("half") or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return [Quantity(Decimal(hour * 60 + int(told["minute"] or 0)), "clock")]


def _amount(match: re.Match[str]) -> list[Quantity]:
    value = Decimal(match["number"].replace(",", ""))
    currency = (match["sign"] or match["named"] or "").strip().lower()
    unit = "%" if match["share"] else _CURRENCIES.get(currency, "")
    magnitude = (match["magnitude"] or "").lower()
    if magnitude in ("m", "mn") and not unit:
        return [Quantity(value)]  # metres or minutes, more likely
    return [Quantity((value * 10 ** _MAGNITUDES.get(magnitude, 0)).normalize(), unit)]


_READERS: tuple[tuple[Signs, Callable[[re.Match[str]], list[Quantity]], tuple[re.Pattern[str], ...]], ...] = (
    (frozenset("-"), _numbered_date, (_ISO_DATE,)),
    (frozenset("."), _numbered_date, (_DOTTED_DATE,)),
    (frozenset("/"), _year, (_SLASHED_DATE,)),
    (_MONTH_SIGNS, _date, _DATES),
    (frozenset(), _clock, (_HALF_DAY_CLOCK,)),
    (frozenset(":"), _clock, (_CLOCK,)),
    (frozenset(), _amount, (_AMOUNT,)),
)
"""In their order: which signs a text needs, if any, how it is read, and what it looks like."""
