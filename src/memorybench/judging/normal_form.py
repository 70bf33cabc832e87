"""Puts a fact into one spelling: two facts with the same normal form say the same.

Unicode, the case of the first letter, the final full stop, number formats, names of units, signs of currencies, and
dates are unified; nothing else is, so facts with different normal forms may still say the same. A text that can be read
in two ways stays as it is: three (a number or a name), 1,859 (with a decimal comma or not), dollars (of which country),
03.05.2024 (March or May), 5 mm (millimetres or millions), Turkey and turkey.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from functools import cache, lru_cache, partial

from memorybench.text.normalisation import tidy
from memorybench.text.sanitize import sanitize

_UNITS = (
    "cm centimeter centimeters centimetre centimetres Zentimeter centimètres centímetros",
    "km kilometer kilometers kilometre kilometres Kilometer kilomètres kilómetros",
    "mg milligram milligrams Milligramm milligrammes miligramos",
    "gram grams gramme grammes Gramm gramos",
    "kg kilogram kilograms Kilogramm kilogrammes kilogramos",
    "ml milliliter milliliters millilitre millilitres Milliliter mililitros",
    "litre liter liters litres Liter litros",
    "°C degrees_Celsius Grad_Celsius degrés_Celsius grados_Celsius",
    "°F degrees_Fahrenheit Grad_Fahrenheit degrés_Fahrenheit grados_Fahrenheit",
    "% percent per_cent Prozent pour_cent por_ciento",
)
"""The names of each unit. The first one replaces the others.

Units with a second sense are left out: m, g, l, h, s, mm (millions), ms (manuscripts), TB (a disease), minutes (of a
meeting), metros (trains), meters (devices), pouces (thumbs), Stunden (lessons), and Chinese units, which begin other
words.
"""
_QUOTED = re.compile(
    r"""
        "[^"]*" | `[^`]*` | (?<!\w)'(?:[^'] | (?<=\w)'(?=\w))*'(?!\w)  # the last may contain an apostrophe
        | «[^»]*» | »[^«]*« | ‹[^›]*› | ›[^‹]*‹ | 《[^》]*》 | 〈[^〉]*〉 | 「[^」]*」 | 『[^』]*』
    """,
    re.VERBOSE,
)
_END = re.compile(
    r"(?P<kept>\s\S+\s(?:(?:[^\W\d_]+['-])*[^\W\d_]{3,}|(?:19|20)\d\d))\.$"
    r"|(?<=[\"'`»›%€$£])\.$|(?<=[\w\"'`»›》〉」』%])。$"
)
"""Matches the full stop at the end of a sentence.

It may belong to a code, as in `Hunter2.`, to a pattern, as in `ab.`, or to a phrase of one or two words.
"""
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
"""Words for a text that must be written as it is: the password "Red cats" is not "red cats"."""
_CURRENCIES = {
    "€": "EUR", "EUR": "EUR", "US$": "USD", "USD": "USD", "GBP": "GBP", "CHF": "CHF", "JPY": "JPY", "INR": "INR",
    "CNY": "CNY", "$": "$", "£": "£", "¥": "¥",
}  # fmt: skip
"""By sign or code: the currency. Signs that several currencies share, such as $, are kept as they are.

Names are left out: Spain won 4 euros, which are championships.
"""

_QUOTE = "\x00"
"""Stands for a quoted text, which is compared as it is written. `unify_characters` removes this character."""
_STRAIGHT = str.maketrans("‘’‚“”„⁄", "'" * 3 + '"' * 3 + "/", "\u00ad\u200b\u2060\ufeff")
"""Replaces quotes; removes soft hyphens and the invisible characters that mark where a line may break."""
_HYPHEN = re.compile(r"(?<=\d)–(?=\d)|(?<!\d)−(?=\d)")
"""Matches the dash of a range and the minus of a number, but not of a difference: 10−3 is not 10–3.

Elsewhere a dash may divide sentences: `Invited Anna—Maria is sick`.
"""
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
    r"(?:(?P<sign>\bUS\$|[€$£¥])\s?)?(?<![A-Za-z0-9_.,:/#@'-])(?P<number>-?\d+(?:[.,']\d+)*)(?![\d:/]|[.,']\d|-\d)"
    r"(?P<unit>\s?(?P<word>[%€$£¥]|°?[^\W\d_]+)(?P<next>\s[^\W\d_]+)?)?"
)
"""Matches a number, optionally with a currency sign before it, and one or two words that may be its unit."""
_GROUPED = re.compile(
    r"(?P<whole>-?[1-9]\d{0,2}(?P<mark>[.,'])\d{3}(?:(?P=mark)\d{3})*)(?:(?!(?P=mark))[.,](?P<places>\d+))?"
)
"""Matches a number with separators of thousands, optionally with decimal places after another separator."""
_GOES_ON = re.compile(r"[\w/^@'-]|[.,:]\w")
"""Matches text after a unit that makes it another word or another unit: "2 year-long", "5 km/h", "24months.org"."""
_COUNTED = re.compile(r"\s*(?!(?:an?|per|each|every|pro|par|por)\b)[^\W\d_]")
"""Matches a word after an amount, such as "coins", but not the beginning of a rate, such as "a day"."""
_NEXT_NUMBER = re.compile(r"\s*\d")
"""Matches text after a currency that belongs to the next number: "on 3.10 EUR 50"."""
_CJK, _LAST_CJK = "\u2e80", "\ud7ff"
"""Scripts between these characters write no space after a unit."""


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
    text = _unify_numbers(_QUOTED.sub(_QUOTE, _END.sub(r"\g<kept>", unified))).strip()
    for quote in quotes:
        text = text.replace(_QUOTE, quote, 1)
    # any sentence may begin with a capital; elsewhere case may tell Turkey from turkey, and US from us
    first_word, blank, _ = text.partition(" ")
    is_plain = blank and first_word.isalpha() and first_word[1:].islower()  # not X, USB, Hunter2 or Main.py
    return text[:1].lower() + text[1:] if is_plain else text


def folded(text: str) -> str:
    """Return the normal form of a text in lower case, without a full stop at its end."""
    return normal_form(text).lower().removesuffix(".")


def _unify_numbers(text: str) -> str:
    for pattern in _DATES:
        text = pattern.sub(_iso_date, text)
    # a number without a unit may belong to the next one: "3, €10"
    rest = _NUMBER.sub(_without_amount, _ISO_DATE.sub("", text))
    return _NUMBER.sub(partial(_quantity, is_complete=not any(map(str.isnumeric, rest))), text)


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
    if found["sign"] and not is_complete:
        return found[0]
    if unit in _CURRENCIES.values() and _COUNTED.match(rest + found.string[found.end() :]):
        return found[0]  # €5k, €2 coins, 12 EUR pallets
    return f"{_without_separators(found['number'], bool(unit))} {unit}".rstrip() + rest


def _read_unit(found: re.Match[str]) -> tuple[str, str]:
    """Return the currency or the unit ("" if there is none), and the text after it."""
    whole, word = found["unit"] or "", found["word"] or ""
    if found["sign"]:
        return _CURRENCIES[found["sign"]], whole
    for name in (word + (found["next"] or ""), word):
        unit, rest = _CURRENCIES.get(name) or _unit_names().get(name), whole.lstrip()[len(name) :]
        after = rest + found.string[found.end() :]
        if unit and not _GOES_ON.match(after) and not _NEXT_NUMBER.match(after):
            return unit, rest
    return "", whole


def _without_separators(number: str, has_unit: bool) -> str:
    """Return a number without separators of thousands; as it is if it may be a list, a version or a decimal.

    So 1'200 is 1200, and with a unit 1,200,000 is 1200000, but 1,200 is not 1200.
    """
    grouped = _GROUPED.fullmatch(number)
    if grouped is None:
        return number
    whole, mark, places = grouped["whole"], grouped["mark"], grouped["places"]
    if not (has_unit and (places or whole.count(mark) > 1)) and (mark != "'" or places):
        return number
    return whole.replace(mark, "") + (f".{places}" if places else "")


@cache
def _unit_names() -> dict[str, str]:
    """Return the units by name. German names may be in lower case, too. Other capitals are of titles: "7 Years"."""
    names = {name.replace("_", " "): unit for unit, *others in map(str.split, _UNITS) for name in (unit, *others)}
    return {**{name.lower(): unit for name, unit in names.items() if name[0] != "°"}, **names}
