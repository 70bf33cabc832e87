"""Puts a fact into one spelling: two facts with the same normal form say the same.

Unicode, the case of the first letter, number words, number formats, units, money, dates and times of day are unified;
nothing else is, so facts with different normal forms may still say the same. A text that can be read in two ways stays
as it is: 1,859 (with a decimal comma or not), dollars (of which country), 03.05.2024 (March or May), one day (24 hours
or a working day), Turkey and turkey.

Names of units and months come from CLDR (babel), conversions from pint, number words from text2num; each is imported
only when a text needs it.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

from memorybench.text.normalisation import plain

if TYPE_CHECKING:
    from pint import UnitRegistry

T = TypeVar("T")

_LANGUAGES = ("en", "en_GB", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "zh", "zh_Hant", "ja")
_NUMBER_WORD_LANGUAGES = ("en", "de", "fr", "es", "nl")
_SYMBOLS_OF = ("en", "en_GB", "zh", "zh_Hant", "ja")
_UNITS = {
    "length-millimeter": "", "length-centimeter": "", "length-meter": "", "length-kilometer": "",
    "length-inch": "", "length-foot": "", "length-yard": "", "length-mile": "",
    "area-square-meter": "meter**2", "area-square-kilometer": "kilometer**2", "area-square-foot": "foot**2",
    "area-hectare": "", "area-acre": "",
    "mass-milligram": "", "mass-gram": "", "mass-kilogram": "",
    "volume-milliliter": "", "volume-liter": "",
    "duration-millisecond": "", "duration-second": "", "duration-minute": "", "duration-hour": "",
    "duration-day": "", "duration-week": "", "duration-month": "", "duration-year": "",
    "digital-kilobyte": "", "digital-megabyte": "", "digital-gigabyte": "", "digital-terabyte": "",
    "digital-megabit": "", "digital-gigabit": "",
    "temperature-celsius": "degC", "temperature-fahrenheit": "degF",
    "speed-kilometer-per-hour": "kilometer/hour", "speed-mile-per-hour": "mile/hour",
    "energy-kilowatt-hour": "kilowatt_hour", "power-watt": "", "power-kilowatt": "",
    "concentr-percent": "%",
}  # fmt: skip
"""By CLDR unit: the name of the same unit in pint; "" if it is the last part of the CLDR name."""
_NOT_CONVERTED = frozenset((
    "day", "week", "kilobyte", "megabyte", "gigabyte", "terabyte", "megabit", "gigabit", "degC", "degF", "%",
))  # fmt: skip
"""Units with one spelling but no conversion: a day may be a working day, a gigabyte may be 1000 or 1024 megabytes, and
a temperature may be a difference."""
_ONLY_SYMBOLS = frozenset(("foot", "yard", "foot**2"))
"""Units whose names in words mean something else in most languages: a table has feet, a house has a yard."""
_DURATIONS = frozenset(("millisecond", "second", "minute", "hour", "month", "year"))
_OTHER_WORDS = frozenset((
    "in", "mi", "cal", "cale", "cali", "pie", "pies", "mila", "mil", "an", "ora", "ore", "lat", "lata", "分", "日",
    "once", "dos", "cent", "cents", "mille", "elf", "sept", "neuf", "onze", "un", "une", "una", "uno", "ein", "een",
    "seize", "null", "primer", "acht", "sieben", "zeven", "miles", "millions", "millones", "millionen", "miljoenen",
))  # fmt: skip
"""Names of units and numbers that are ignored, because they also mean something else.

They do so in another language or, such as "acht" in "acht geben", in the same. A number word is not ignored beside
another number word.
"""
_NOT_NUMBERS = frozenset(("miles", "quince", "tercer"))
"""Words that text2num reads as a number, although "miles" and "quince" are English words and "tercer" is not "tres"."""
_WRITTEN_AS_ONE_WORD = ("de", "nl")
"""Languages that write no spaces in a number below a million: "drei und zwanzig" may be two numbers."""
_ARTICLE = re.compile(r"\b(?:une?|una|ein|een)\b", re.IGNORECASE)
_IN_NAME = re.compile(r"[#@_/\\\"]|\.\w")
"""Matches a word that belongs to a name: two.txt, #one, four@mail.com."""
_QUOTED = re.compile(
    r"""
        "[^"]*" | `[^`]*` | (?<!\w)'(?:[^'] | (?<=\w)'(?=\w))*'(?!\w)  # the last may contain an apostrophe
        | 《[^》]*》 | 〈[^〉]*〉 | 「[^」]*」 | 『[^』]*』
    """,
    re.VERBOSE,
)
_QUOTE = "\ue000"
"""Stands for a quoted text, which is compared as it is written. `plain` removes this character from texts."""
_END = re.compile(r"(?<=[\w)\]\"'`》〉」』%°€$£+#*])[.。]$")
"""Matches the full stop at the end of a sentence, not one that belongs to "..", "./." or the like."""
_LITERAL = re.compile(
    r"\b(?:pass(?:word|phrase|code)s?|branch(?:es)?|usernames?|hashtags?|code ?words?"
    r"|passw[oö]rt\w*|kennwort\w*|wachtwoord\w*|contraseñas?)\b"
    r"|\bmots? de passe\b|密码|密碼",
    re.IGNORECASE,
)
"""Words for a text that must be written as it is: the password "three cats" is not "3 cats"."""
_WRITTEN_WITH_S = frozenset(("vingts", "eins", "milliards"))
"""Number words that end with s inside of numbers, too: "quatre-vingts", "deux milliards"."""
_INSIDE_NUMBERS = frozenset(("et", "y", "cent", "cents", "mil", "mille"))
"""Words that may stand between two number words: "trente et un", "deux cent un"."""
_CURRENCIES = {
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR", "欧元": "EUR",
    "$": "$", "dollar": "dollars", "dollars": "dollars", "usd": "USD", "us$": "USD", "美元": "USD",
    "£": "£", "gbp": "GBP", "chf": "CHF", "¥": "¥", "jpy": "JPY", "yen": "JPY", "inr": "INR",
    "cny": "CNY", "人民币": "CNY",
}  # fmt: skip
"""By sign or name: the currency. Those that several currencies share, such as $, are kept as they are."""

_STRAIGHT = str.maketrans("‘’‚‹›“”„«»–—−⁄", "'" * 5 + '"' * 5 + "---/")
_DATES = (
    re.compile(r"\b(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)\b"),
    re.compile(r"(?<!\d)(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.\s?(?P<year>\d{4})\b"),
    re.compile(r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})日"),
    re.compile(
        r"\b(?:[Tt]he\s(?=\d+[snrt]))?(?P<day>\d{1,2})(?:st|nd|rd|th|\.|º)?\s(?:of\s|de\s)?(?P<name>[^\W\d_]+)\.?\s(?:de\s)?(?P<year>\d{4})\b"
    ),
    re.compile(r"\b(?P<name>[^\W\d_]+)\.?\s(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s(?P<year>\d{4})\b"),
)
_YEAR, _DAY = re.compile(r"\d{4}"), re.compile(r"(?<!\d)\d{1,2}(?!\d)")
"""Every date matches both. Most texts with a number do not, so they need no search for dates."""
_TIME = re.compile(
    r"(?<![\w.,:])(?P<hour>1[0-2]|0?[1-9])(?::(?P<minute>[0-5]\d))?\s?(?P<half>[ap])\.?m\b\.?", re.IGNORECASE
)
_UHR = re.compile(r"(?<![\d.,:])([01]?\d|2[0-3])\.([0-5]\d)(?=\sUhr\b)")
_NUMBER = re.compile(
    r"(?:(?P<sign>\bUS\$|[€$£¥])\s?)?(?<![A-Za-z0-9_.,:/#'第-])(?<!第\s)(?P<number>-?\d+(?:[.,']\d+)*)(?![\d:/]|[.,']\d|-\d)"
    r"(?P<scale>\s10{3,}\b|\s?[万亿](?!\d)|[kKM](?![^\W\d_]|[23/]))?"
    r"(?P<unit>\s?(?P<word>[%€$£¥]|°?[^\W\d_]+[23]?(?:/[^\W\d_]+)?)(?P<next>\s[^\W\d_]+)?)?"
)
"""Matches a number, optionally with a currency sign before it, a scale, and one or two words that may be its unit."""
_SCALES = {"万": 4, "亿": 8, "k": 3, "K": 3, "M": 6}
_GROUPED = re.compile(r"-?[1-9]\d{0,2}([.,'])\d{3}(?:\1\d{3})*")
_SEPARATORS = re.compile("[.,']")
_VULGAR_FRACTION = re.compile("(?<=\\d)(?=[¼-¾⅐-⅞])")
_SUBSCRIPT = re.compile(r"(?<=[^\W\d_])(?=[₀-₉])")
_RAISED_LETTERS = r"\u02b0-\u02b8\u02e0-\u02e4\u1d2c-\u1d6a"
_POWER = re.compile(
    rf"(?P<amount>\d\s?)?(?P<base>[^\W\d_{_RAISED_LETTERS}]+|\d+|[)])(?P<power>[²³¹\u2070-\u207f{_RAISED_LETTERS}]+)"
)
_UNIT_POWER = re.compile(r"\d\s?(?:[kcdmµ]?m|ft|in|yd|mi)[²³]")
"""Matches a number with a unit such as m², which is also written m2."""
_THOUSANDS = re.compile(r"\s10{3,}\b")
_TWO_NUMBERS = re.compile(r"(?<=\d)\s(?=10{3,}\b)")
_DIGIT_WORD = (
    "(?:one|two|three|four|five|six|seven|eight|nine|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)"
)
_NOT_ONE_NUMBER = re.compile(
    rf"\s(?:(?<=\bno\s)(?=one\b)|(?<=\bat one\s)(?=point\b)|(?<=ty\s)(?=(?:and\s)?{_DIGIT_WORD}\b)"
    rf"|(?:(?<=hundred\s)|(?<=thousand\s))(?={_DIGIT_WORD}\b))",
    re.IGNORECASE,
)
"""Matches the spaces in "no one", "at one point", "sixty and five" and "forty five inch screens" (of 5 inch)."""
_SECONDS = re.compile(r"(?<=ty)-(?=second\b)", re.IGNORECASE)
"""Matches the hyphen in "thirty-second", which may be a duration."""
_OTHER_UNIT = re.compile(
    r"[-^]|\s?(?:squared|cubed|sq|cu|cúbic[oa]s?|cuadrad[oa]s?|cubes?|carrés?|cub[io]|quadrat[io]|cúbicos|quadrados?)\b",
    re.IGNORECASE,
)
"""Matches text after a unit that makes it another one, as in "2 metres squared", or a word, as in "2 year-long"."""
_RATE = re.compile(
    r"\s?(?:/|(?:an?|per|each|every|daily|weekly|monthly|yearly|pro|je|jede\w*|am|im|par|por|al?|alla|à|на|в|na|w)\b|[每/])",
    re.IGNORECASE,
)
_AGE = re.compile(
    r"\b(?:old|aged?|ages|alt|alter|âgée?|âge|edad|oud|возраст)\b|[岁歳]|\b(?:is|am|are|was|turn\w*|ist|war|wird|est?)\s\d",
    re.IGNORECASE,
)
_CJK = "\u2e80"
"""Scripts from this character on write no space after a unit."""
_LONGEST_CJK_UNIT = 4
_AFTER_CJK_UNIT = frozenset(("", *"前后後内內的了之间間以来來左右和与與及"))
"""Characters that may follow a unit of one character. Before others it may begin a word: 年 in 2年级 (second grade)."""
_MONTHS = 12
_DECIMALS = 12
"""The number of decimal places of a converted quantity."""
_MOST_DIGITS = 15


@lru_cache(maxsize=10_000)
def normal_form(text: str) -> str:
    if _LITERAL.search(text):
        return text.strip()
    text = plain(text) if text.isascii() else plain(_mark_small_digits(text)).translate(_STRAIGHT)
    is_one_word = not any(map(str.isspace, text))
    if not is_one_word or text[-2:-1] >= _CJK:  # one word may be a password or a symbol; Chinese has no blanks
        text = _END.sub("", text)
    quotes = _QUOTED.findall(text)
    text = _unify_numbers(_QUOTED.sub(_QUOTE, text)).strip()
    for quote in quotes:
        text = text.replace(_QUOTE, quote, 1)
    if is_one_word:
        return text
    # any sentence may begin with a capital; elsewhere case may tell Turkey from turkey, and US from us
    first_word = text.partition(" ")[0]
    is_name = _IN_NAME.search(first_word) or any(c.isupper() or c.isdigit() for c in first_word[1:])  # USB, Hunter2
    return text if is_name else text[:1].lower() + text[1:]


def _unify_numbers(text: str) -> str:
    digits = _number_words_as_digits(text)
    if _THOUSANDS.search(text):  # number words become such digits, too: "2 thousand" is "2 1000"
        digits = _TWO_NUMBERS.sub(" | ", digits)
    if not any(map(str.isdigit, digits)):
        return digits
    from text_to_num import alpha2digit

    for pattern in _DATES if _YEAR.search(digits) and _DAY.search(digits) else ():
        digits = pattern.sub(_iso_date, digits)
    undated = _DATES[0].sub("", digits)
    rest = _ARTICLE.sub("", _NUMBER.sub(_without_amount, _TIME.sub("", undated)))
    # a number without a unit may have that of another: "6 hours, 7 on weekends", "8 to 9 pm", "two or three hundred"
    has_numbers = (alpha2digit(rest, language, 0) != rest for language in _NUMBER_WORD_LANGUAGES)
    is_complete = not any(map(str.isnumeric, rest)) and not any(has_numbers)
    if is_complete:
        digits = _TIME.sub(_clock, digits)
    else:
        hundreds, written = (Counter(re.findall(r"\d{3,}", one)) for one in (undated, text))
        digits = text if len(re.findall(r"\d+", undated)) > 1 and not hundreds <= written else digits
    return _NUMBER.sub(partial(_quantity, is_complete=is_complete), _UHR.sub(r"\1:\2", digits))


def _mark_small_digits(text: str) -> str:
    """Return the text with a mark before what is written small: 1½ is not 11/2, x² is neither x₂ nor x2, 2ⁿ not 2n."""
    text = _SUBSCRIPT.sub("_", _VULGAR_FRACTION.sub(" ", text))
    return _POWER.sub(_mark_power, text)


def _mark_power(found: re.Match[str]) -> str:
    is_unit = _UNIT_POWER.fullmatch(found[0])
    return found[0] if is_unit else f"{found['amount'] or ''}{found['base']}^{found['power']}"


def _number_words_as_digits(text: str) -> str:
    if "billion" in text.lower():  # which is a thousand or a million millions, depending on the language
        return text
    words = _NOT_ONE_NUMBER.sub(" | ", _SECONDS.sub("-| ", text)).split(" ")
    languages = [_number_word_language(word) for word in words]
    if not any(languages):
        return " ".join(words)
    from text_to_num import alpha2digit

    def is_other_word(place: int) -> bool:
        if _bare(words[place]) in _NOT_NUMBERS or _is_plural(words[place]) or _IN_NAME.search(words[place]):
            return True
        if place > 0 and _is_capitalised(words[place]):
            return True
        if _bare(words[place]) not in _OTHER_WORDS:
            return False
        before = place - 1
        while before > 0 and _bare(words[before]) in _INSIDE_NUMBERS:
            before -= 1
        return not any((*languages[max(before, 0) : place], *languages[place + 1 : place + 2]))

    parts = []
    for is_other, places in groupby(range(len(words)), is_other_word):
        part = " ".join([words[place] for place in places])
        for language in _NUMBER_WORD_LANGUAGES if not is_other else ():
            pieces = part.split(" ") if language in _WRITTEN_AS_ONE_WORD else [part]
            part = " ".join([alpha2digit(piece, language, 0) for piece in pieces]) if language in languages else part
        parts.append(part)
    return " ".join(parts)


def _bare(word: str) -> str:
    return word.lower().strip(".,;:!?()'\"")


def _is_capitalised(word: str) -> bool:
    """Return whether a word inside a text is written like a name, such as Trente, a town. Nouns in German are not."""
    return word.lstrip("([{'¿¡")[:1].isupper() and not _bare(word).startswith(("million", "milliard"))


def _is_plural(word: str) -> bool:
    """Return whether a word is the plural of a number word, and so another word: "5 milles" are miles."""
    word = _bare(word)
    language = _number_word_language(word)
    if language is None or not word.endswith("s") or word in _WRITTEN_WITH_S:
        return False
    singular = word.removesuffix("s")
    return singular in _OTHER_WORDS or _number_word_language(singular) == language


@lru_cache(maxsize=50_000)
def _number_word_language(word: str) -> str | None:
    """Return the first language in which a word can only be part of a number; None if there is none."""
    from text_to_num import alpha2digit

    if word.lower() == word.upper() or _bare(word) in _OTHER_WORDS | _NOT_NUMBERS:  # digits and Chinese have no case
        return None
    return next((language for language in _NUMBER_WORD_LANGUAGES if alpha2digit(word, language, 0) != word), None)


def _iso_date(found: re.Match[str]) -> str:
    parts = found.groupdict()
    month, day = _months().get(parts["name"].lower()) if "name" in parts else int(parts["month"]), int(parts["day"])
    if "." in found[0] and "name" not in parts and month != day <= _MONTHS:
        return found[0]  # some write the month first
    try:
        return date(int(parts["year"]), month or 0, day).isoformat()
    except ValueError:
        return found[0]


_AMBIGUOUS_HOURS = range(10, 13)
"""Hours whose time may be meant by twelve hours if it stands alone: "10:30" may be in the evening, or a duration."""


def _clock(found: re.Match[str]) -> str:
    before, after = found.string[: found.start()].lower(), found.string[found.end() :]
    if found[0].endswith(" am") and after.startswith(" ") and not before.endswith("at "):
        return found[0]  # German "am": "um 8 am Turm"
    hour = int(found["hour"]) % 12 + (12 if found["half"] in "pP" else 0)
    time = f"{hour:02}:{found['minute'] or '00'}"
    return f"{time} by twelve hours" if hour in _AMBIGUOUS_HOURS else time


def _without_amount(found: re.Match[str]) -> str:
    """Return the text after a number that has a unit or a scale; any other number as it is."""
    unit, rest = _read_unit(found)
    return rest if unit or found["scale"] else found[0]


def _quantity(found: re.Match[str], is_complete: bool) -> str:
    """Return a number with its unit in one spelling. `is_complete`: whether all numbers of the text have a unit."""
    unit, rest = _read_unit(found)
    scale = (found["scale"] or "").strip()
    is_money = unit in _CURRENCIES.values()
    if unit and not is_money and _OTHER_UNIT.match(found.string, found.end() - len(rest)):
        return found[0]
    if (scale in ("k", "K", "M") and not is_money) or ((scale or found["sign"]) and not is_complete):
        return found[0]  # "5k" may be a run, and "5M" a size
    is_duration = unit in _DURATIONS
    # "3.10 min" may be 3 minutes and 10 seconds, or a version
    is_amount = bool(unit or scale) and not (is_duration and found["number"].endswith("0"))
    value = _read_number(found["number"], is_amount)
    if value is None:
        return found[0]
    value = value.scaleb(_SCALES.get(scale, scale.count("0")))
    is_converted = is_complete and not (is_money or unit in _NOT_CONVERTED or not unit)
    if is_converted and is_duration:
        is_rate = _RATE.match(found.string, found.end() - len(rest))
        is_converted = not (is_rate or _AGE.search(found.string))
    return (_convert(value, unit) if is_converted else f"{_digits(value)} {unit}".rstrip()) + rest


def _read_unit(found: re.Match[str]) -> tuple[str, str]:
    """Return the currency or the unit as pint writes it ("" if there is none), and the text after it."""
    whole, word = found["unit"] or "", found["word"] or ""
    if found["sign"]:
        return _CURRENCIES[found["sign"].lower()], whole
    names = [word + (found["next"] or ""), word]
    if word >= _CJK:
        shortest = 1 if word[1:2] in _AFTER_CJK_UNIT else 2
        names += [word[:length] for length in range(_LONGEST_CJK_UNIT, shortest - 1, -1)]
    names = [name for name in names if name.lower() not in _OTHER_WORDS and name != "L"]  # "40 L" is a size
    readings = [_CURRENCIES.get(name.lower()) for name in names]
    if word and not any(readings):
        symbols, long_names = _units()
        readings = [symbols.get(name) or long_names.get(name) for name in names]
    for name, unit in zip(names, readings, strict=True):
        if unit:
            return unit, whole.lstrip()[len(name) :]
    return "", whole


def _read_number(text: str, is_amount: bool) -> Decimal | None:
    """Return the value; None if the text may be a version, a code, or a decimal with three places.

    Also None for more than 15 digits: nobody states such an amount, and decimals would be rounded.
    """
    if sum(map(str.isdigit, text)) > _MOST_DIGITS:
        return None
    if text.isdecimal() and int(text[0]):
        return Decimal(text)  # most numbers are whole
    if grouped := _GROUPED.fullmatch(text):
        is_certain = grouped[1] == "'" or (text.count(grouped[1]) > 1 and (grouped[1] == "," or is_amount))
        return Decimal(_SEPARATORS.sub("", text)) if is_certain else None
    whole, _, places = max((text.rpartition(mark) for mark in ".,"), key=lambda parts: len(parts[0]))
    whole, places = (whole, places) if whole else (places, "")
    digits = whole.lstrip("-")
    is_code = len(digits) > 1 and not int(digits[0])
    if is_code or (places and not is_amount) or not (_GROUPED.fullmatch(whole) or digits.isdigit()):
        return None
    return Decimal(f"{_SEPARATORS.sub('', whole)}.{places or 0}")


def _digits(value: Decimal) -> str:
    return f"{value.normalize():f}"


@lru_cache(maxsize=10_000)
def _convert(value: Decimal, unit: str) -> str:
    written = _registry().Quantity(value, unit)
    quantity = written.to("month") if unit in ("month", "year") else written.to_base_units()
    return f"{_digits(round(quantity.magnitude, _DECIMALS))} {quantity.units}"


@cache
def _registry() -> UnitRegistry[Any]:
    from pint import UnitRegistry

    return UnitRegistry(non_int_type=Decimal)


@cache
def _units() -> tuple[dict[str, str], dict[str, str]]:
    """Return the units that CLDR names: by symbol in English, Chinese and Japanese, and by long name.

    Long names are in lower case or as CLDR writes them, with a capital in German only: "7 Years" is a title.
    """
    from babel.units import format_unit

    symbols: dict[str, set[str]] = {}
    long_names: dict[str, set[str]] = {}
    for cldr, unit in _UNITS.items():
        unit = unit or cldr.partition("-")[2]
        for language in _LANGUAGES:
            for amount in (1, 2, 5):
                name = plain(format_unit(amount, cldr, "long", locale=language).replace(str(amount), "", 1))
                for spelling in (name, name.lower()) if unit not in _ONLY_SYMBOLS else ():
                    long_names.setdefault(spelling, set()).add(unit)
        for language in _SYMBOLS_OF:
            name = plain(format_unit(2, cldr, "short", locale=language).replace("2", "", 1))
            symbols.setdefault(name, set()).add(unit)
    return _unambiguous(symbols), _unambiguous(long_names)


def _unambiguous(names: dict[str, set[T]]) -> dict[str, T]:
    """Return the names that mean one thing only. Others, such as months of two languages, are left out."""
    return {name: meaning for name, (meaning, *others) in names.items() if not others}


@cache
def _months() -> dict[str, int]:
    from babel import Locale

    names: dict[str, set[int]] = {}
    for language in _LANGUAGES:
        for forms in Locale.parse(language).months.values():
            for width in ("wide", "abbreviated"):
                for number, name in forms[width].items():
                    names.setdefault(name.lower().rstrip("."), set()).add(number)
    return _unambiguous(names)
