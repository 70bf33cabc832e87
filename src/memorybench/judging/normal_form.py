"""Puts a fact into one spelling: two facts with the same normal form say the same.

Unicode, the case of the first letter, English number words, number formats, names of units and currencies, and dates
are unified; nothing else is, so facts with different normal forms may still say the same. A text that can
be read in two ways stays as it is: 1,859 (with a decimal comma or not), dollars (of which country), 03.05.2024 (March
or May), 3 hours of maths (of 60 or 45 minutes), Turkey and turkey.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache, partial

from memorybench.text.english_numbers import NUMBERS
from memorybench.text.normalisation import tidy
from memorybench.text.sanitize import sanitize

_UNITS = (
    "mm millimeter millimeters millimetre millimetres Millimeter millimètres milímetros 毫米",
    "cm centimeter centimeters centimetre centimetres Zentimeter centimètres centímetros 厘米",
    "km kilometer kilometers kilometre kilometres Kilometer kilomètres kilómetros 公里 千米",
    "mg milligram milligrams Milligramm milligrammes miligramos 毫克",
    "gram grams gramme grammes Gramm gramos",
    "kg kilogram kilograms Kilogramm kilogrammes kilogramos 公斤 千克",
    "ml milliliter milliliters millilitre millilitres Milliliter mililitros 毫升",
    "litre liter liters litres Liter litros",
    "ms millisecond milliseconds Millisekunden millisecondes milisegundos 毫秒",
    "second seconds secs Sekunden secondes segundos",
    "minute minutes mins Minuten minutos 分钟",
    "hour hours hr hrs heures horas 小时",
    "month months Monate Monaten mois meses 个月",
    "year years yrs Jahre Jahren ans années años",
    "°C degrees_Celsius Grad_Celsius degrés_Celsius grados_Celsius",
    "°F degrees_Fahrenheit Grad_Fahrenheit degrés_Fahrenheit grados_Fahrenheit",
    "% percent per_cent Prozent pour_cent por_ciento",
)
"""The names of each unit. The first one replaces the others.

Names with a second sense are left out: m, g, l, h, s, min (minimum), TB (a disease), metros (trains), meters (devices),
pouces (thumbs), Stunden (lessons), and Chinese units of one character, which begin other words.
"""
_DURATIONS = frozenset(("ms", "second", "minute", "hour", "month", "year"))
_NUMBER_WORDS = "|".join(
    sorted((word.replace(" ", "-") for word in NUMBERS if word not in ("zero", "one")), key=len)[::-1]
)
_NUMBER_WORD = re.compile(
    rf"(?:^(?i:{_NUMBER_WORDS})(?=\s[a-z]{{3,}}s\b)|(?<!^)(?<![\w.,:/#@'-])(?:{_NUMBER_WORDS})(?=\s[a-z]))"
    r"(?!\s(?:euro|yen|dollar|kilogram|kilomet(?:er|re)|hour|minute|second|month|year|gram|lit(?:er|re))\b)"
)
"""Matches a number in words before the thing that is counted.

Elsewhere it may be a name: "Nine is her favourite film". Before a singular, the unit belongs to another word: "ten euro
notes". "one" has other meanings, and a number of several words, such as "two hundred", may be two numbers.
"""
_IN_NAME = re.compile(r"[#@_/\\\"]|\.\w")
"""Matches a word that belongs to a name: two.txt, #one, four@mail.com."""
_QUOTED = re.compile(
    r"""
        "[^"]*" | `[^`]*` | (?<!\w)'(?:[^'] | (?<=\w)'(?=\w))*'(?!\w)  # the last may contain an apostrophe
        | 《[^》]*》 | 〈[^〉]*〉 | 「[^」]*」 | 『[^』]*』
    """,
    re.VERBOSE,
)
_END = re.compile(r"(?<=[\w)\]\"'`》〉」』%°€$£+#*])[.。]$")
"""Matches the full stop at the end of a sentence, not one that belongs to "..", "./." or the like."""
_LITERAL = re.compile(
    r"passw[oö]r[dt]|passwd|\bpwd?\b|phrase|kennwort|wachtwoord|contraseñ|senha|mots? de passe|密码|密碼|口令"
    r"|credential|benutzer|utente|utilisateur|usuari[oa]|用户名|用戶名|\b(?:logins?|accounts?|handles?|hashtags?)\b"
    r"|\b(?:codes?|pins?|tokens?|ids?|secrets?|answers?|branch(?:es)?|versions?|commands?|urls?)\b"
    r"|\bkeys?(?= (?:is|are|was)\b|:|$)|(?:code|key|safe) ?words?\b|schlüssel|befehl"
    r"|\bwi-?fi\b|\bwlan|\bcombinations?\b|\bsecurity question"
    r"|\b(?:files?|folders?|channel|titles?)\b|names?\b|ordner|datei"
    r"|\b(?:called|named|entitled|heiß(?:t|en)|lautet|genannt|appel(?:le|lé|lée)|llama|chiama)\b",
    re.IGNORECASE,
)
"""Words for a text that must be written as it is: the password "three cats" is not "3 cats"."""
_CURRENCIES = {
    "€": "EUR", "EUR": "EUR", "euro": "EUR", "euros": "EUR", "Euro": "EUR", "欧元": "EUR",
    "$": "$", "dollar": "dollars", "dollars": "dollars", "Dollar": "dollars", "USD": "USD", "US$": "USD", "美元": "USD",
    "£": "£", "GBP": "GBP", "CHF": "CHF", "¥": "¥", "JPY": "JPY", "yen": "JPY", "Yen": "JPY", "INR": "INR",
    "CNY": "CNY", "人民币": "CNY",
}  # fmt: skip
"""By sign or name: the currency. Those that several currencies share, such as $, are kept as they are.

"Euros" is left out: Spain won 4 Euros, which are championships.
"""

_QUOTE = "\x00"
"""Stands for a quoted text, which is compared as it is written. `unify_characters` removes this character."""
_STRAIGHT = str.maketrans("‘’‚“”„⁄", "'" * 3 + '"' * 3 + "/", "\u00ad\u200b\u2060\ufeff")
"""Replaces quotes; removes soft hyphens and the invisible characters that mark where a line may break."""
_HYPHEN = re.compile(r"(?<=\d)–(?=\d)|−(?=\d)")
"""Matches the dash of a range and a minus sign. Elsewhere a dash may divide sentences: `Invited Anna—Maria is sick`."""
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
_NUMBER = re.compile(
    r"(?:(?P<sign>\bUS\$|[€$£¥])\s?)?(?<![A-Za-z0-9_.,:/#@'第-])(?<!第\s)(?P<number>-?\d+(?:[.,']\d+)*)(?![\d:/]|[.,']\d|-\d)"
    r"(?P<unit>\s?(?P<word>[%€$£¥]|°?[^\W\d_]+)(?P<next>\s[^\W\d_]+)?)?"
)
"""Matches a number, optionally with a currency sign before it, and one or two words that may be its unit."""
_GROUPED = re.compile(r"-?[1-9]\d{0,2}([.,'])\d{3}(?:\1\d{3})*")
_SEPARATORS = re.compile("[.,']")
_GOES_ON = re.compile(r"[\w/^@'-]|[.,:]\w")
"""Matches text after a unit that makes it another word or another unit: "2 year-long", "5 km/h", "24months.org"."""
_COUNTED = re.compile(r"\s*(?!(?:an?|per|each|every|pro|par|por)\b)[^\W\d_]")
"""Matches a word after an amount, such as "coins", but not the beginning of a rate, such as "a day"."""
_NEXT_NUMBER = re.compile(r"\s*\d")
"""Matches text after a currency that belongs to the next number: "on 3.10 EUR 50"."""
_CJK, _LAST_CJK = "\u2e80", "\ud7ff"
"""Scripts between these characters write no space after a unit."""
_LONGEST_CJK_UNIT = 4
_MOST_DIGITS = 15


def unify_characters(text: str) -> str:
    """Return a text without control characters and repeated blanks, and with one form of equivalent characters."""
    if not text.isascii():
        composed = _HYPHEN.sub("-", unicodedata.normalize("NFC", text)).translate(_STRAIGHT)
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
    unified = unify_characters(text)
    quotes = _QUOTED.findall(unified)
    written = unicodedata.normalize("NFC", text.strip())
    if _LITERAL.search(unified) or any(quote not in written.translate(_STRAIGHT) for quote in quotes):
        return text.strip()
    if len(text.split()) < 2 and not any(_CJK <= c <= _LAST_CJK for c in text):
        return written  # it may be a password or a symbol; Chinese has no blanks
    text = _unify_numbers(_QUOTED.sub(_QUOTE, _END.sub("", unified))).strip()
    for quote in quotes:
        text = text.replace(_QUOTE, quote, 1)
    # any sentence may begin with a capital; elsewhere case may tell Turkey from turkey, and US from us
    first_word = text.partition(" ")[0]
    is_name = _IN_NAME.search(first_word) or any(c.isupper() or c.isdigit() for c in first_word[1:])  # USB, Hunter2
    is_name = is_name or len(first_word) == 1  # X is not x
    return text if is_name else text[:1].lower() + text[1:]


def _unify_numbers(text: str) -> str:
    text = _NUMBER_WORD.sub(lambda found: str(NUMBERS[found[0].lower().replace("-", " ")]), text)
    for pattern in _DATES:
        text = pattern.sub(_iso_date, text)
    # a number without a unit may belong to the next one: "3, €10"
    rest = _NUMBER.sub(_without_amount, _ISO_DATE.sub("", text))
    return _NUMBER.sub(partial(_quantity, is_complete=not any(map(str.isnumeric, rest))), text)


def begins_with_amount(text: str) -> bool:
    """Return whether the second word of a text is a unit or a currency, such as in `ten °C`. Durations do not count."""
    _, unit, *_ = [*text.split(maxsplit=2), "", ""]
    return unit in _CURRENCIES or _unit_names().get(unit, "hour") not in _DURATIONS


def _iso_date(found: re.Match[str]) -> str:
    name = found["name"]
    month = _MONTHS.get(name) or _MONTHS.get(name.lower()) or _MONTHS.get(name.capitalize(), 0)
    try:
        return found["before"] + date(int(found["year"]), month, int(found["day"])).isoformat()
    except ValueError:
        return found[0]


def _without_amount(found: re.Match[str]) -> str:
    """Return the text after a number that has a unit; any other number as it is."""
    unit, rest = _read_unit(found)
    return rest if unit else found[0]


def _quantity(found: re.Match[str], is_complete: bool) -> str:
    """Return a number with its unit in one spelling. `is_complete`: whether all numbers of the text have a unit."""
    unit, rest = _read_unit(found)
    if found["sign"] and (not is_complete or _COUNTED.match(rest)):
        return found[0]  # €5k, €2 coins
    # "3.10 hours" may be 3 hours and 10 minutes, or a version, and "5,10 km" two distances
    is_amount = bool(unit) and not (unit in _DURATIONS and found["number"].endswith("0"))
    is_amount = is_amount and (unit in _CURRENCIES.values() or "," not in found["number"])
    value = _read_number(found["number"], is_amount)
    return found[0] if value is None else f"{value.normalize():f} {unit}".rstrip() + rest


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
        after = rest + found.string[found.end() :]
        if unit and (name >= _CJK or not _GOES_ON.match(after)) and not _NEXT_NUMBER.match(after):
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


@cache
def _unit_names() -> dict[str, str]:
    """Return the units by name. German names may be in lower case, too. Other capitals are of titles: "7 Years"."""
    names = {name.replace("_", " "): unit for unit, *others in map(str.split, _UNITS) for name in (unit, *others)}
    return {**{name.lower(): unit for name, unit in names.items() if name[0] != "°"}, **names}
