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
    """A currency, "%", a measure ("minute", "gram", "meter", "ml", "lb", "mile"), "clock" (minutes of the day),
    "day", "month" or "year" of a date, "slashed" (a date of which nobody knows what comes first); "": a plain
    number."""
    mode: str = ""
    """As that of words: denied or in doubt."""
    written: str = ""
    """What its value does not tell: the digits of a plain decimal number, which may be a version, or of one that begins
    with a zero, which may be a code; "12h" of a time that may be before or after noon."""

    def agrees(self, other: Quantity) -> bool | None:
        """Whether the two may stand for each other; None: code can not tell.

        A plain number agrees with the same amount of money: of a budget, 5000 says what "$5,000" says; and of an
        opening hour, 17 says what "5 pm" says.
        """
        if self.unit != other.unit:
            return self._agrees_across(other)
        if self.unit == "slashed" and self.value != other.value:
            return None if sorted(divmod(self.value, 100)) == sorted(divmod(other.value, 100)) else False
        if self.unit == "clock" and "12h" in (self.written, other.written) and self.value != other.value:
            return None if (self.value - other.value) % _HALF_DAY == 0 else False
        if not self.unit and self.value == other.value and self._may_be_a_name_beside(other):
            return True if self.written == other.written else None
        return self.value == other.value

    def _may_be_a_name_beside(self, other: Quantity) -> bool:
        """Versions such as 3.10, and numbers that begin with a zero, which count nothing."""
        return bool(self.written and other.written) or self.written.isdigit() or other.written.isdigit()

    def _agrees_across(self, other: Quantity) -> bool | None:
        units = {self.unit, other.unit}
        if "slashed" in units and units & _OF_A_DATE:
            return None
        if "" not in units:
            return None if units in _CONVERTIBLE else False
        if "clock" in units:
            return True if self.value * _per_plain(other) == other.value * _per_plain(self) else None
        return None if units & _COUNTING else self.value == other.value


_HALF_DAY = 720
_OF_A_DATE = frozenset(("day", "month"))
_CONVERTIBLE = ({"gram", "lb"}, {"meter", "mile"}, {"meter", "minute"})
"""Of pounds and miles, the same is told in round numbers; and `m` may be minutes."""
_COUNTING = frozenset(("%", "minute", "gram", "meter", "ml", "lb", "mile"))


def _per_plain(quantity: Quantity) -> int:
    """How many of its units a plain number would count as one: minutes, if it is a time of day."""
    return 60 if quantity.unit == "clock" else 1


_CURRENCIES = {
    "$": "usd", "usd": "usd", "dollar": "usd", "dollars": "usd", "€": "eur", "eur": "eur", "euro": "eur",
    "euros": "eur", "£": "gbp", "gbp": "gbp", "pound": "gbp", "pounds": "gbp", "¥": "jpy", "jpy": "jpy", "yen": "jpy",
    "chf": "chf", "francs": "chf", "₹": "inr", "inr": "inr", "rupees": "inr",
}  # fmt: skip
_MEASURES = {
    "minute": ("minute", 1), "min": ("minute", 1), "hour": ("minute", 60), "hr": ("minute", 60), "h": ("minute", 60),
    "day": ("minute", 1440), "week": ("minute", 10_080), "g": ("gram", 1), "gram": ("gram", 1), "kg": ("gram", 1000),
    "kilo": ("gram", 1000), "kilogram": ("gram", 1000), "m": ("meter", 1), "meter": ("meter", 1),
    "metre": ("meter", 1), "km": ("meter", 1000), "kilometer": ("meter", 1000), "kilometre": ("meter", 1000),
    "ml": ("ml", 1), "l": ("ml", 1000), "litre": ("ml", 1000), "liter": ("ml", 1000), "lb": ("lb", 1),
    "mile": ("mile", 1),
}  # fmt: skip
"""By name, without the `s` of many: the unit it is counted in, and how many of these it is."""
_MAGNITUDES = {"k": 3, "thousand": 3, "m": 6, "mn": 6, "million": 6, "bn": 9, "billion": 9}
_MONTH_NAMES = "january february march april may june july august september october november december"
MONTHS = tuple(_MONTH_NAMES.split())
_MONTH_OF = {name[:3]: place for place, name in enumerate(MONTHS, 1)}

_MONTH = r"(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS) + r"|sept)\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_FIRST_DIGIT = r"\d(?<!\w\d)"
"""As `\\b\\d`; but a pattern that begins with it is tried at digits only, and not at every character."""
_ISO_DATE = re.compile(rf"(?P<year>{_FIRST_DIGIT}\d{{3}})-(?P<month>\d{{2}})-(?P<day>\d{{2}})\b")
_DATES = (
    re.compile(rf"\b{_DAY}(?:\s+of)?\s+{_MONTH}(?:,?\s+(?P<year>\d{{4}}))?", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}\s+{_DAY}(?!\d)(?:,?\s+(?P<year>\d{{4}}))?", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}(?:,?\s+(?P<year>\d{{4}}))", re.IGNORECASE),
    # alone, a month is known by its capital; and May, which may be a verb, by the word before it
    re.compile(r"\b(?P<month>" + "|".join(name.title() for name in MONTHS if name != "may") + r")\b"),
    re.compile(r"(?:(?<=\b[Ii]n )|(?<=\b[Bb]y )|(?<=\bof ))(?P<month>May)\b"),
)
_DOTTED_DATE = re.compile(rf"(?P<day>{_FIRST_DIGIT}\d?)\.(?P<month>\d{{1,2}})\.(?P<year>\d{{4}})\b")
_SLASHED_DATE = re.compile(rf"(?P<one>{_FIRST_DIGIT}\d?)/(?P<two>\d{{1,2}})/(?P<year>\d{{4}})\b")
_HALF_DAY_CLOCK = re.compile(
    rf"(?P<hour>{_FIRST_DIGIT}\d?+)(?::(?P<minute>\d{{2}}))?+\s?+(?P<half>[ap])\.?m\b\.?", re.IGNORECASE
)
_CLOCK = re.compile(rf"(?P<hour>{_FIRST_DIGIT}\d?):(?P<minute>\d{{2}})\b")
_AMOUNT = re.compile(
    r"(?=[-$€£¥₹\d]|\b[uegcji])"  # how one may begin: spares most places of a text all that follows
    r"(?P<minus>(?<![^\s(:,])-(?=[$€£¥₹]?\d))?"
    r"(?:(?P<sign>[$€£¥₹]|\b(?:usd|eur|gbp|chf|jpy|inr)\s?)\s?(?P<less>-)?|(?<![\w.]))"
    r"(?P<number>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:(?=[\s-]?[%a-z])"  # else nothing of all this follows
    r"(?:\s?+(?P<share>%|percent\b|per\s+cent\b|pct\b)"
    r"|(?:st|nd|rd|th)\b"
    r"|[\s-]?+(?P<measure>minutes?|mins?|hours?|hrs?|h|days?|weeks?|g|grams?|kg|kgs|kilos?|kilograms?|met(?:er|re)s?|km"
    r"|kilomet(?:er|re)s?|ml|l|lit(?:er|re)s?|lbs?|miles?|m(?!\s?(?:usd|dollar|eur|gbp|pound|jpy|yen|chf|franc|inr)))\b"
    r"|(?:\s?+(?P<magnitude>k|thousand|mn?|million|bn|billion)\b)?"
    r"(?:\s?+(?P<named>usd|dollars?|eur|euros?|gbp|pounds?|jpy|yen|chf|francs|inr|rupees)\b)?))?",
    re.IGNORECASE,
)
_BEFORE_NUMBER = 7
"""Characters that an amount may have before its first digit: "-", "usd", two blanks, "-"."""
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
FIXED = rules(
    rule("twice", r"\btwice\b", "2 times"),
    rule("dozen", r"\b(?:a|one)\s+dozen\b", "12"),
    rule("dozen", r"\bdozen\b", "12"),
    rule("half", r"\bhalf\s+past\s+(\w+)\b", r"\1:30"),
    rule("half", r"(?<!\band )\b(?:an?|one)\s+half\b", "50%"),
    rule("half", r"\bhalf\s+of\b", "50% of"),
    rule("minus", r"\bminus\s+(?=\d)", "-"),
    rule("/", r"\b1/2\b(?!/)", "0.5"),
    rule("hundred thousand million", r"\ba\s+(?=hundred|thousand|million)\b", "1 "),
    rule("hundred", r"\b(?<=\d )hundred\b", "00"),
)
_IN_WORDS = FIXED.needs | _SPELLED_IN
_APART = re.compile(r"(?<=\d) 00\b")
_CODE = re.compile(r"0\d")
_AND_A_HALF = re.compile(r"(?<=\d)\s+and\s+a\s+half\b", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
MONTH_SIGNS = frozenset((*MONTHS, *_MONTH_OF, "sept"))

_FIRST_MARK, _LAST_MARK = 0xF0000, 0xFFFFD
"""Characters for private use, of which `plain` text has none."""
_MOST_MARKS = _LAST_MARK - _FIRST_MARK
_FORGED = re.compile(f"[{chr(_FIRST_MARK)}-{chr(_LAST_MARK)}]")


def taken_out(text: str, signs: Signs) -> tuple[str, dict[str, Quantity]]:
    """The text with a mark of one character in the place of every quantity, and these by their marks.

    `signs` are those of the text, or of a longer one that it is part of. Marks that it brings with it are dropped.
    """
    if not text.isascii():
        text = _FORGED.sub("", text)
    if not _IN_WORDS.isdisjoint(signs):
        text, signs = _in_figures(text, signs)
    elif " 00" in text:
        text = _APART.sub("00", text)
    found: dict[str, Quantity] = {}
    digit = _DIGIT.search(text)
    if digit is None and MONTH_SIGNS.isdisjoint(signs):
        return text, found
    if not _DATED_BY.isdisjoint(signs):
        for needs, read, patterns in _DATED:
            if not needs.isdisjoint(signs):
                for pattern in patterns:
                    text = pattern.sub(partial(_take, read, found), text)
    text = _HALF_DAY_CLOCK.sub(partial(_take, _clock, found), text)
    if ":" in text:
        text = _CLOCK.sub(partial(_take, _clock, found), text)
    if found:
        digit = _DIGIT.search(text)
    if digit is not None:
        # from a blank on, before which no amount can begin: to look for one there takes longer than to read it
        start = text.rfind(" ", 0, max(0, digit.start() - _BEFORE_NUMBER)) + 1
        text = text[:start] + _AMOUNT.sub(partial(_take, _amount, found), text[start:])
    return text, found


def _in_figures(text: str, signs: Signs) -> tuple[str, Signs]:
    text, told = rewritten(text, signs, FIXED)
    signs |= told
    if not _SPELLED_IN.isdisjoint(signs):
        text = _SPELLED.sub(_in_digits, text)
    return _AND_A_HALF.sub(".5", _APART.sub("00", text)), signs


def _take(read: Callable[[re.Match[str]], list[Quantity]], found: dict[str, Quantity], match: re.Match[str]) -> str:
    taken = read(match)
    if len(found) + len(taken) > _MOST_MARKS:
        return match[0]  # out of marks: no text has that much to say
    marks = ""
    for quantity in taken:
        mark = chr(_FIRST_MARK + len(found))
        found[mark] = quantity
        marks += f" {mark}"
    return f"{marks} "


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


def _slashed_date(match: re.Match[str]) -> list[Quantity]:
    """Of 3/4/2026 only the year is certain: who wrote the month first?"""
    one, two, year = Decimal(match["one"]), Decimal(match["two"]), Quantity(Decimal(match["year"]), "year")
    if one <= 12 and two <= 12 and one != two:
        return [Quantity(one * 100 + two, "slashed"), year]
    month, day = (one, two) if one <= 12 else (two, one)
    return [Quantity(day, "day"), Quantity(month, "month"), year]


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
    either = "12h" if not half and 0 < hour <= 12 else ""
    return [Quantity(Decimal(hour * 60 + int(told["minute"] or 0)), "clock", written=either)]


def _amount(match: re.Match[str]) -> list[Quantity]:
    minus, sign, less, number, share, measure, magnitude, named = match.groups()
    value = Decimal(number.replace(",", ""))
    if minus or less:
        value = -value
    currency = sign or named
    unit = "%" if share else _CURRENCIES.get(currency.strip().lower(), "") if currency else ""
    if measure and unit and measure.lower() in ("m", "l", "h", "g"):
        magnitude, measure = measure, ""  # $5m are millions
    if measure and not unit:
        counted = measure.lower()
        unit, times = _MEASURES.get(counted) or _MEASURES[counted.removesuffix("s")]
        return [Quantity((value * times).normalize(), unit)]
    if magnitude:
        value *= 10 ** _MAGNITUDES.get(magnitude.lower(), 0)
    telling = not unit and ("." in number or _CODE.match(number))
    return [Quantity(value.normalize(), unit, "", number if telling else "")]


_DATED: tuple[tuple[Signs, Callable[[re.Match[str]], list[Quantity]], tuple[re.Pattern[str], ...]], ...] = (
    (frozenset("-"), _numbered_date, (_ISO_DATE,)),
    (frozenset("."), _numbered_date, (_DOTTED_DATE,)),
    (frozenset("/"), _slashed_date, (_SLASHED_DATE,)),
    (MONTH_SIGNS, _date, _DATES),
)
"""Dates, in their order: which signs a text needs for one, how it is read, and what it looks like."""
_DATED_BY = MONTH_SIGNS | frozenset("-./")
