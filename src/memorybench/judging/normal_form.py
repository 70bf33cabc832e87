"""Puts a fact into one spelling: two facts with the same normal form say the same.

Unicode, the case of the first letter, number words, number formats, units, money, dates and times of day are unified;
nothing else is, so facts with different normal forms may still say the same. A text that can be read in two ways stays
as it is: 1,859 (with a decimal comma or not), dollars (of which country), 03.05.2024 (March or May), 3 hours of maths
(of 60 or 45 minutes), Turkey and turkey.

Number words are read by text2num, which is imported only when a text needs it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache, partial
from itertools import groupby

from memorybench.text.normalisation import tidy
from memorybench.text.sanitize import sanitize

_NUMBER_WORD_LANGUAGES = ("en", "de", "fr", "es", "nl")
_UNITS = (
    ("mm", 1, "mm", "mm millimeter millimeters millimetre millimetres Millimeter millimètres milímetros 毫米"),
    ("cm", 10, "mm", "cm centimeter centimeters centimetre centimetres Zentimeter centimètres centímetros 厘米"),
    ("km", 1_000_000, "mm", "km kilometer kilometers kilometre kilometres Kilometer kilomètres kilómetros 公里 千米"),
    ("mg", 1, "mg", "mg milligram milligrams Milligramm milligrammes miligramos 毫克"),
    ("gram", 1_000, "mg", "gram grams gramme grammes Gramm gramos"),
    ("kg", 1_000_000, "mg", "kg kilogram kilograms Kilogramm kilogrammes kilogramos 公斤 千克"),
    ("ml", 1, "ml", "ml milliliter milliliters millilitre millilitres Milliliter mililitros 毫升"),
    ("litre", 1_000, "ml", "liter liters litre litres Liter litros"),
    ("ms", 1, "ms", "ms millisecond milliseconds Millisekunden millisecondes milisegundos 毫秒"),
    ("second", 1_000, "ms", "second seconds secs Sekunden secondes segundos"),
    ("minute", 60_000, "ms", "minute minutes mins Minuten minutos 分钟"),
    ("hour", 3_600_000, "ms", "hour hours hr hrs heures horas 小时"),
    ("month", 1, "month", "month months Monate Monaten mois meses 个月"),
    ("year", 12, "month", "year years yrs Jahre Jahren ans années años"),
    ("°C", 0, "", "°C degrees_Celsius Grad_Celsius degrés_Celsius grados_Celsius"),
    ("°F", 0, "", "°F degrees_Fahrenheit Grad_Fahrenheit degrés_Fahrenheit grados_Fahrenheit"),
    ("%", 0, "", "% percent per_cent Prozent pour_cent por_ciento"),
)  # fmt: skip
"""Units: the name that replaces all others, how many of another unit it is (0 if it is not converted), and all names.

Names with a second sense are left out: m, g, l, h, s, min (minimum), TB (a disease), metros (trains), meters (devices),
pouces (thumbs), Stunden (lessons), and Chinese units of one character, which begin other words. A temperature may be a
difference, so it is not converted.
"""
_DURATIONS = frozenset(("ms", "second", "minute", "hour", "month", "year"))
_OTHER_WORDS = frozenset((
    "mil", "once", "dos", "cent", "cents", "mille", "elf", "sept", "neuf", "onze", "un", "une", "una", "uno", "ein",
    "een", "seize", "null", "primer", "acht", "sieben", "zeven", "miles", "millions", "millones", "millionen",
    "miljoenen",
))  # fmt: skip
"""Number words that are ignored, because they also mean something else.

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
_QUOTE = "\x00"
"""Stands for a quoted text, which is compared as it is written. `unify_characters` removes this character."""
_END = re.compile(r"(?<=[\w)\]\"'`》〉」』%°€$£+#*])[.。]$")
"""Matches the full stop at the end of a sentence, not one that belongs to "..", "./." or the like."""
_LITERAL = re.compile(
    r"passw[oö]r[dt]|pass ?(?:phrase|code)|kennwort|wachtwoord|contraseñ|senha|mots? de passe|密码|密碼"
    r"|user ?names?\b|benutzer|utente|utilisateur|usuari[oa]|用户名|用戶名|\b(?:logins?|accounts?|handles?|hashtags?)\b"
    r"|\b(?:codes?|pins?|tokens?|ids?|secrets?|answers?|branch(?:es)?|versions?|commands?|urls?)\b"
    r"|\bkeys?(?= (?:is|are|was)\b|:|$)|(?:code|key|safe) ?words?\b|schlüssel|befehl"
    r"|\bwi-?fi\b|\bwlan|\bcombinations?\b|\bsecurity question"
    r"|\b(?:files?|folders?|channel|titles?|names?)\b|ordner|datei"
    r"|\b(?:called|named|entitled|heiß(?:t|en)|lautet|genannt|appel(?:le|lé|lée)|llama|chiama)\b",
    re.IGNORECASE,
)
"""Words for a text that must be written as it is: the password "three cats" is not "3 cats"."""
_WRITTEN_WITH_S = frozenset(("vingts", "eins", "milliards"))
"""Number words that end with s inside of numbers, too: "quatre-vingts", "deux milliards"."""
_INSIDE_NUMBERS = frozenset(("et", "y", "cent", "cents", "mil", "mille"))
"""Words that may stand between two number words: "trente et un", "deux cent un"."""
_PART_OF_NUMBER = re.compile(rf"[\d.,]*\d|and|{'|'.join(sorted(_INSIDE_NUMBERS | _OTHER_WORDS))}", re.IGNORECASE)
_CLAUSE_ENDS = (",", ";", ":", ".", "!", "?", ")")
_CURRENCIES = {
    "€": "EUR", "EUR": "EUR", "euro": "EUR", "euros": "EUR", "Euro": "EUR", "欧元": "EUR",
    "$": "$", "dollar": "dollars", "dollars": "dollars", "Dollar": "dollars", "USD": "USD", "US$": "USD", "美元": "USD",
    "£": "£", "GBP": "GBP", "CHF": "CHF", "¥": "¥", "JPY": "JPY", "yen": "JPY", "Yen": "JPY", "INR": "INR",
    "CNY": "CNY", "人民币": "CNY",
}  # fmt: skip
"""By sign or name: the currency. Those that several currencies share, such as $, are kept as they are.

"Euros" is left out: Spain won 4 Euros, which are championships.
"""

_STRAIGHT = str.maketrans("‘’‚‹›“”„«»–—−⁄", "'" * 5 + '"' * 5 + "---/", "\u00ad\u200b\u2060\ufeff")
"""Replaces quotes and dashes; removes soft hyphens and the invisible characters that mark where a line may break."""
_FORMS = ("<wide>", "<narrow>", "<noBreak>", "<compat>")
"""Kinds of characters that are another form of others, such as ﬁ. Those that mean more are kept: ², ª, ½, ①, ℝ."""
_MONTHS = {
    name: month
    for names in (
        "January February March April May June July August September October November December",
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
    for month, name in enumerate(names.split(), 1)
}
"""By name: the month. Abbreviations are left out, because many are other words: set, out, ago, mar, Jan."""
_BEFORE_DATE = (
    r"\b(?P<before>(?:on|by|until|till|since|before|after|from|am|vom|zum|bis|ab|seit|le|du|au|depuis|el|del|desde|hasta)"
    r"\s)"
)
_YEAR = r"(?P<year>(?:19|20)\d\d)(?=[!?)]*$|[,;)](?:\s|$))"
_DATES = tuple(
    re.compile(_BEFORE_DATE + date + _YEAR, re.IGNORECASE)
    for date in (
        r"(?:the\s(?=\d+[snrt]))?(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?\s(?:of\s|de\s)?(?P<name>[^\W\d_]+)\s(?:de\s)?",
        r"(?P<name>[^\W\d_]+)\s(?P<day>\d{1,2})(?:st|nd|rd|th)?,\s",
    )
)
"""Match dates with a name, after a word such as "on" and at the end of a clause.

Elsewhere a date may be a name, or its year an amount: "the folder is 3 May 2024", "gave April 12 2000 euros".
"""
_ISO_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_TIME = re.compile(
    r"(?P<before>\b(?:at|by|until|till|before|after|from|since)\s)"
    r"(?P<hour>1[0-2]|0?[1-9])(?::(?P<minute>[0-5]\d))?\s?(?P<half>[ap])\.?m\b\.?(?![\w-])",
    re.IGNORECASE,
)
"""Matches a time after an English word: elsewhere "3 am" may be German, and "5 pm" a number of picometres or a name."""
_UHR = re.compile(r"(?<![\d.,:])([01]?\d|2[0-3])\.([0-5]\d)(?=\sUhr\b)")
_NUMBER = re.compile(
    r"(?:(?P<sign>\bUS\$|[€$£¥])\s?)?(?<![A-Za-z0-9_.,:/#@'第-])(?<!第\s)(?P<number>-?\d+(?:[.,']\d+)*)(?![\d:/]|[.,']\d|-\d)"
    r"(?P<scale>\s10{3,}\b|\s?[万亿](?!\d)|[kKM](?![^\W\d_]|[23/]))?"
    r"(?P<unit>\s?(?P<word>[%€$£¥]|°?[^\W\d_]+)(?P<next>\s[^\W\d_]+)?)?"
)
"""Matches a number, optionally with a currency sign before it, a scale, and one or two words that may be its unit."""
_SCALES = {"万": 4, "亿": 8, "k": 3, "K": 3, "M": 6}
_GROUPED = re.compile(r"-?[1-9]\d{0,2}([.,'])\d{3}(?:\1\d{3})*")
_SEPARATORS = re.compile("[.,']")
_THOUSANDS = re.compile(r"\s10{3,}\b")
_TWO_NUMBERS = re.compile(r"(?<=\d)\s(?=10{3,}\b)")
_DIGIT_WORD = "(?:one|two|three|four|five|six|seven|eight|nine)"
_NOT_ONE_NUMBER = re.compile(
    rf"\s(?:(?<=\bno\s)(?=one\b)|(?<=\bone\s)(?=point\b)|(?<=ty\s)(?=(?:and\s)?{_DIGIT_WORD}\b)"
    rf"|(?:(?<=hundred\s)|(?<=thousand\s))(?={_DIGIT_WORD}\b))",
    re.IGNORECASE,
)
"""Matches the spaces in "no one", "one point", "sixty and five" and "forty five"."""
_GOES_ON = re.compile(r"[\w/^@'-]|[.,:]\w")
"""Matches text after a unit that makes it another word or another unit: "2 year-long", "5 km/h", "24months.org"."""
_MEASURED = re.compile(
    r"(?:\b(?:lasts?|lasted|weighs?|weighed|holds|(?:runs?|ran|valid) for|dauert|dauerte|läuft|wiegt|fasst"
    r"|dure|dura|duró|pèse|pesa) |持续|长达)$",
    re.IGNORECASE,
)
"""Matches words such as "lasts" before an amount. Without them it may be a name: "the show is 60 minutes"."""
_CJK, _LAST_CJK = "\u2e80", "\ud7ff"
"""Scripts between these characters write no space after a unit."""
_LONGEST_CJK_UNIT = 4
_MOST_DIGITS = 15


def unify_characters(text: str) -> str:
    """Return a text without control characters and repeated blanks, and with one form of equivalent characters."""
    if not text.isascii():
        composed = unicodedata.normalize("NFC", text).translate(_STRAIGHT)
        text = "".join([unicodedata.normalize("NFKC", c) if _is_form(c) else c for c in composed])
    return tidy(sanitize(text))


@cache
def _is_form(character: str) -> bool:
    return unicodedata.decomposition(character).startswith(_FORMS)


def is_literal(text: str) -> bool:
    """Return whether a text or a key tells that a text is a password, a name or the like."""
    return _LITERAL.search(unify_characters(text)) is not None


@lru_cache(maxsize=10_000)
def normal_form(text: str) -> str:
    if is_literal(text):
        return text.strip()
    if len(text.split()) < 2 and not any(_CJK <= c <= _LAST_CJK for c in text):
        return unicodedata.normalize("NFC", text.strip())  # it may be a password or a symbol; Chinese has no blanks
    text = _END.sub("", unify_characters(text))
    quotes = _QUOTED.findall(text)
    text = _unify_numbers(_QUOTED.sub(_QUOTE, text)).strip()
    for quote in quotes:
        text = text.replace(_QUOTE, quote, 1)
    # any sentence may begin with a capital; elsewhere case may tell Turkey from turkey, and US from us
    first_word = text.partition(" ")[0]
    is_name = _IN_NAME.search(first_word) or any(c.isupper() or c.isdigit() for c in first_word[1:])  # USB, Hunter2
    is_name = is_name or len(first_word) == 1  # X is not x
    return text if is_name else text[:1].lower() + text[1:]


def _unify_numbers(text: str) -> str:
    digits = _number_words_as_digits(text)
    if _THOUSANDS.search(text):  # number words become such digits, too: "2 thousand" is "2 1000"
        digits = _TWO_NUMBERS.sub(" | ", digits)
    if not any(map(str.isdigit, digits)):
        return digits
    from text_to_num import alpha2digit

    for pattern in _DATES:
        digits = pattern.sub(_iso_date, digits)
    undated = _ISO_DATE.sub("", digits)
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


def _number_words_as_digits(text: str) -> str:
    if "billion" in text.lower():  # which is a thousand or a million millions, depending on the language
        return text
    words = _NOT_ONE_NUMBER.sub(" | ", text).split(" ")
    languages = [_number_word_language(word) for word in words]
    if not any(languages):
        return " ".join(words)
    from text_to_num import alpha2digit

    unclear = _unclear_numbers(words, languages)

    def is_other_word(place: int) -> bool:
        if place in unclear or _is_ordinal(words[place]):
            return True
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


def _unclear_numbers(words: Sequence[str], languages: Sequence[str | None]) -> frozenset[int]:
    """Return the places of numbers of several words that may be two numbers.

    They are followed by a word that may belong to the second one: "two hundred metre sprints".
    """
    unclear: set[int] = set()
    parts = [bool(language) or _PART_OF_NUMBER.fullmatch(word) for word, language in zip(words, languages, strict=True)]
    for is_number, places in groupby(range(len(words)), lambda place: bool(parts[place])):
        run = list(places)
        after = words[run[-1] + 1 :]
        is_clear = (
            len(run) == 1
            or words[run[-1]][-1:] in _CLAUSE_ENDS
            or len(after) < 2
            or (after[0].islower() and after[0].endswith(("s", "s'")) and not after[0].endswith("ss"))
            or after[0].endswith(_CLAUSE_ENDS)
            or after[0] in ("of", "de")
        )
        unclear.update(run if is_number and not is_clear else ())
    return frozenset(unclear)


def _bare(word: str) -> str:
    return word.lower().strip(".,;:!?()'\"")


def begins_with_amount(text: str) -> bool:
    """Return whether a text begins with a number word and a unit or currency, such as `ten °C`."""
    number, unit, *_ = [*text.split(maxsplit=2), "", ""]
    is_number = _bare(number) in _OTHER_WORDS or _number_word_language(number) is not None
    return is_number and (unit in _CURRENCIES or unit in _unit_names())


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
    bare = _bare(word)
    return next((lang for lang in _NUMBER_WORD_LANGUAGES if alpha2digit(bare, lang, 0).isdecimal()), None)


@lru_cache(maxsize=50_000)
def _is_ordinal(word: str) -> bool:
    """Return whether a word is read as an ordinal in a language: "second" is a duration, too, and "cuarto" a room."""
    from text_to_num import alpha2digit

    bare = _bare(word)
    readings = (alpha2digit(bare, language, 0) for language in _NUMBER_WORD_LANGUAGES)
    return any(reading != bare and not reading.isdecimal() for reading in readings)


def _iso_date(found: re.Match[str]) -> str:
    name = found["name"]
    month = _MONTHS.get(name) or _MONTHS.get(name.lower()) or _MONTHS.get(name.capitalize(), 0)
    try:
        return found["before"] + date(int(found["year"]), month, int(found["day"])).isoformat()
    except ValueError:
        return found[0]


_AMBIGUOUS_HOURS = range(10, 13)
"""Hours whose time may be meant by twelve hours if it stands alone: "10:30" may be in the evening, or a duration."""


def _clock(found: re.Match[str]) -> str:
    hour = int(found["hour"]) % 12 + (12 if found["half"] in "pP" else 0)
    time = f"{found['before']}{hour:02}:{found['minute'] or '00'}"
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
    if (scale in ("k", "K", "M") and not is_money) or ((scale or found["sign"]) and not is_complete):
        return found[0]  # "5k" may be a run, and "5M" a size
    # "3.10 hours" may be 3 hours and 10 minutes, or a version
    is_amount = bool(unit or scale) and not (unit in _DURATIONS and found["number"].endswith("0"))
    value = _read_number(found["number"], is_amount)
    if value is None:
        return found[0]
    value = value.scaleb(_SCALES.get(scale, scale.count("0")))
    is_last = not rest and not found.string[found.end() :].strip("!?")
    if unit and not is_money and is_complete and is_last and _MEASURED.search(found.string[: found.start()]):
        value, unit = _convert(value, unit)
    return f"{_digits(value)} {unit}".rstrip() + rest


def _convert(value: Decimal, unit: str) -> tuple[Decimal, str]:
    _, number, other, _ = next(row for row in _UNITS if row[0] == unit)
    return (value * number, other) if number else (value, unit)


def _read_unit(found: re.Match[str]) -> tuple[str, str]:
    """Return the currency or the unit ("" if there is none), and the text after it."""
    whole, word = found["unit"] or "", found["word"] or ""
    if found["sign"]:
        return _CURRENCIES[found["sign"]], whole
    names = [word + (found["next"] or ""), word]
    if word >= _CJK:
        names += [word[:length] for length in range(_LONGEST_CJK_UNIT, 1, -1)]
    for name in names:
        unit, rest = _CURRENCIES.get(name) or _unit_names().get(name), whole.lstrip()[len(name) :]
        if unit and (name >= _CJK or not _GOES_ON.match(rest + found.string[found.end() :])):
            return unit, rest
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


@cache
def _unit_names() -> dict[str, str]:
    """Return the units by name. German names may be in lower case, too. Other capitals are of titles: "7 Years"."""
    names = {name.replace("_", " "): unit for unit, _, _, written in _UNITS for name in written.split()}
    return {**{name.lower(): unit for name, unit in names.items() if name[0] != "°"}, **names}
