"""Detects personal data by format, check digits and nearby words; replaces it, and secrets, by asterisks."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import mul
from typing import Literal

from msgspec import Struct

from memorybench.secrets.credential_words import has_luhn_digit
from memorybench.secrets.hiding import mask, spans_to_hide

Severity = Literal["high", "medium", "low"]


class RuleMatch(Struct, frozen=True):
    """A part of a text that a rule of the scan matches."""

    kind: str
    severity: Severity
    start: int
    end: int


def _digits(text: str) -> list[int]:
    return [int(letter) for letter in text if letter.isdigit()]


def _has_sum(weights: Sequence[int], modulus: int) -> Callable[[str], bool]:
    """Return a check that a text has one digit per weight, and that the weighted sum is divisible by the modulus."""

    def check(text: str) -> bool:
        digits = _digits(text)
        return len(digits) == len(weights) and sum(map(mul, digits, weights)) % modulus == 0

    return check


_is_nhs_number = _has_sum((10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 11)
_is_bsn = _has_sum((9, 8, 7, 6, 5, 4, 3, 2, -1), 11)
_is_ahv = _has_sum((1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1), 10)
_is_pesel = _has_sum((1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), 10)

_SAMPLE_IBANS = frozenset(
    ("DE89370400440532013000", "GB82WEST12345698765432", "GB29NWBK60161331926819", "FR1420041010050500013M02606",
     "ES9121000418450200051332", "IT60X0542811101000000123456", "NL91ABNA0417164300", "PT50000201231234567890154",
     "AT611904300234573201", "CH9300762011623852957", "BE68539007547034", "PL61109010140000071219812874")
)  # fmt: skip
"""Account numbers that the IBAN registry and banks publish as examples."""
_SAMPLE_DOMAINS = ("example.com", "example.org", "example.net")


def _is_iban(text: str) -> bool:
    bare = re.sub(r"[\s-]", "", text).upper()
    if not 15 <= len(bare) <= 34 or bare in _SAMPLE_IBANS:
        return False
    return int("".join(str(int(letter, 36)) for letter in bare[4:] + bare[:4])) % 97 == 1


def _is_social_security_number(text: str) -> bool:
    area, group, serial = re.split(r"[- ]", text)
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def _is_cpf(text: str) -> bool:
    digits = _digits(text)
    checks = [(sum(d * w for d, w in zip(digits, range(n + 1, 1, -1), strict=False)) * 10 % 11) % 10 for n in (9, 10)]
    return len(set(digits)) > 1 and checks == digits[9:]


def _is_dni(text: str) -> bool:
    bare = re.sub(r"[\s.-]", "", text).upper()
    number = bare[:-1].translate(str.maketrans("XYZ", "012"))
    return number.isdigit() and "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == bare[-1]


def _is_nir(text: str) -> bool:
    bare = re.sub(r"[\s.-]", "", text).upper().replace("2A", "19").replace("2B", "18")
    return len(bare) == 15 and bare.isdigit() and 97 - int(bare[:13]) % 97 == int(bare[13:])


def _is_steuer_id(text: str) -> bool:
    """Return whether the check digit of a German tax id is right (ISO 7064, MOD 11,10)."""
    digits, product = _digits(text), 10
    for digit in digits[:10]:
        product = ((digit + product) % 10 or 10) * 2 % 11
    return len(digits) == 11 and digits[0] != 0 and (11 - product) % 10 == digits[10]


def _is_strict_steuer_id(text: str) -> bool:
    """Return whether a German tax id is valid, and just one of its first ten digits occurs repeatedly, 2 or 3 times."""
    counts = Counter(_digits(text)[:10]).values()
    return sorted(count for count in counts if count > 1) in ([2], [3]) and _is_steuer_id(text)


def _is_belgian(text: str) -> bool:
    """Return whether the check number of a Belgian register number is right, for a birth before or since 2000."""
    number = "".join(map(str, _digits(text)))
    return any(97 - int(century + number[:9]) % 97 == int(number[9:]) for century in ("", "2"))


def _is_finnish(text: str) -> bool:
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(text[:6] + text[7:10]) % 31] == text[10].upper()


def _is_nif(text: str) -> bool:
    digits = _digits(text)
    check = 11 - sum(d * w for d, w in zip(digits, range(9, 1, -1), strict=False)) % 11
    return len(digits) == 9 and digits[8] == (0 if check >= 10 else check)


def _is_codice_fiscale(text: str) -> bool:
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
    codes = [ord(letter) - (48 if letter.isdigit() else 65) for letter in text.upper()]
    return sum(codes[at] if at % 2 else odd[codes[at]] for at in range(15)) % 26 == codes[15]


def _is_phone(text: str) -> bool:
    return 8 <= len(_digits(text)) <= 15


_ROLE = re.compile(
    r"(?:info|support|sales|hello|contact|kontakt|admin|administrator|no-?reply|do-?not-?reply|security|help|"
    r"helpdesk|team|git|"
    r"postmaster|hostmaster|webmaster|office|press|jobs|careers|billing|abuse|root|dev|devs|ops|devops|"
    r"notifications?|alerts?|"
    r"bot|ci|build|api|service|user|username|users|you|your[._-]?(?:name|email)|name|me|test|tester|testing|foo|"
    r"bar|example|"
    r"someone|somebody|email|mail|first(?:name)?[._]?last(?:name)?|orders?|feedback|marketing|legal|privacy|hr|"
    r"finance|it|"
    r"accounts?|invoices?|newsletter|on-?call|maintainers?|community|customer|service-?desk|noc|soc|"
    r"data|desk|intake|reception|accueil|service-?clients?|commandes?|empfang|rezeption|buchhaltung|rechnung(?:en)?|"
    r"bestellung(?:en)?|verwaltung|vertrieb|redaktion|presse|bewerbung(?:en)?|sekretariat|datenschutz|contacto|contato|"
    r"soporte|ventas|ayuda|pedidos|secretar[ií]a|atendimento|suporte|vendas|"
    r"(?:\w+[._-])?(?:support|info|sales|contact|kontakt|help|helpdesk|desk|team|service|billing|orders|security|ops|"
    r"press|admin)|(?:support|info|sales|team|service|billing|orders|security|admin)[._-]\w+)(?:\+.*)?\d*",
    re.I,
)


def _is_personal_address(text: str) -> bool:
    """Return whether a mail address belongs to a person, not to a role (info@…) or an example."""
    name, _, domain = text.rpartition("@")
    if _ROLE.fullmatch(name) or domain.lower() in _SAMPLE_DOMAINS:
        return False
    return not re.fullmatch(r"(?:\d+\+)?[\w-]+\[bot\]|.*noreply.*", text, re.I)


class _Rule(Struct, frozen=True):
    kind: str
    severity: Severity
    pattern: re.Pattern[str]
    check: Callable[[str], bool]
    words: re.Pattern[str] | None = None
    """For a format that is too common: a match counts only if one of these words is in the 60 characters before it or,
    unless this pattern ends with `$`, in the 40 characters after it."""


def _rule(
    kind: str, severity: Severity, pattern: str, check: Callable[[str], bool] = bool, words: str | None = None
) -> _Rule:
    return _Rule(kind, severity, re.compile(pattern, re.I), check, re.compile(words, re.I) if words else None)


_STREET = _rule("home address", "medium",
     r"(?<![\w-])\d{1,5}[a-z]? (?:[A-Z][\w'.-]+ ){1,3}(?:street|st|avenue|ave|road|rd|lane|ln|drive|dr|"
          r"boulevard|blvd|court|ct|way|place|pl|terrace)\b\.?", bool, r"\b(?:lives?|living|home|address|resid|"
          r"moved|house|flat)\b")  # fmt: skip
_CONDITION = (
    r"(?:diabetes|cancer|krebs|cáncer|epilep\w+|épilepsie|asthma|asthme|asma|depression|depressionen|dépression|depresión|"
    r"hiv|aids|adhd|adhs|autism\w*|dementia|demenz|démence|alzheimer\w*|parkinson\w*|multiple sclerosis|"
    r"multipler sklerose|crohn\w*|bipolar|schizophren\w+|migraines?|migräne|leuka?emia|leukämie|lupus|endometriosis|"
    r"fibromyalgia|burn-?out|anorexia|bulimia|ptsd|celiac|coeliac|copd|hepatitis|tuberculosis|"
    r"heart (?:failure|disease|condition)|high blood pressure|hypertension|hypertonie|\w+ (?:disorder|syndrome))"
)
_HEALTH = _rule("health", "medium",
     r"\b(?:diagnosed (?:with|as having)|suffer(?:s|ed|ing)? from|(?:is|was|being) treated for|lives? with|has|had|"
     r"leidet an|leidet unter|erkrankte? an|hat|souffre d[e']|atteinte? d[e']|padece(?: de)?|sufre de|"
     r"diagnosticad[oa] (?:de|con)|tem|sofre de)\s*"
     r"(?:(?:an?|early|severe|mild|chronic|acute|type [12]|typ[- ][12]|breast|lung|skin|prostate|schwere[rn]?) ){0,2}"
     + _CONDITION + r"\b")  # fmt: skip
_OF_FEW_DIGITS = (_STREET, _HEALTH)
_TELLING_LINE = re.compile(r"^(?:[^\d\n]*+\d){5}[^\n]*|^[^@\n]*+@[^\n]*", re.M)
"""A line with at least five digits or an @ sign; rules that need these search no other lines."""
_RULES: Sequence[_Rule] = (
    _rule("IBAN", "high", r"(?<![\w-])[a-z]{2}\d{2}(?:[ -]?[a-z0-9]{4}){2,7}(?:[ -]?[a-z0-9]{1,4})?(?![\w-])",
          _is_iban),
    _rule("social security number (US)", "high", r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])", _is_social_security_number),
    _rule("social security number (US)", "high", r"(?<![\w-])\d{3} \d{2} \d{4}(?![\w-])", _is_social_security_number,
          r"(?<![a-z])ssn(?![a-z])|social security"),
    _rule("CPF (Brazil)", "high", r"(?<!\w)\d{3}\.\d{3}\.\d{3}-\d{2}(?!\w)", _is_cpf),
    _rule("CPF (Brazil)", "high", r"(?<!\w)\d{11}(?!\w)", _is_cpf, r"(?<![a-z])cpf(?![a-z])"),
    _rule("DNI or NIE (Spain)", "high",
     r"(?<![\w.-])(?:\d{8}|\d{2}\.\d{3}\.\d{3}|[xyz][ -]?\d{7})[ -]?[a-z](?![\w-])", _is_dni),
    _rule("NIR (France)", "high",
     r"(?<!\w)[12][ .]?\d{2}[ .]?\d{2}[ .]?\d[\dab][ .]?\d{3}[ .]?\d{3}[ .]?\d{2}(?!\w)", _is_nir),
    _rule("tax id (Germany)", "high", r"(?<!\w)\d{2} ?\d{3} ?\d{3} ?\d{3}(?!\w)", _is_steuer_id,
          r"steuer\w*[-_\s]*(?:id|nummer|nr)|(?<![a-z])idnr|tax[ _-]?(?:payer )?(?:id|number|no\b)|"
          r"(?<![a-z])tin(?![a-z])"),
    _rule("tax id (Germany)", "high", r"(?<!\d )(?<![\w.,+/-])\d{2} \d{3} \d{3} \d{3}(?![ ]?\w)",
          _is_strict_steuer_id),
    _rule("national register number (Belgium)", "high", r"(?<!\w)\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}(?!\w)", _is_belgian),
    _rule("personal identity code (Finland)", "high",
          r"(?<![\w-])[0-3]\d[01]\d{3}[-+a]\d{3}[0-9a-fhj-npr-y](?![\w-])", _is_finnish),
    _rule("personal identity number (Sweden)", "high", r"(?<![\w-])(?:19|20)?\d{6}[-+]\d{4}(?![\w-])",
          lambda text: has_luhn_digit(text[-11:]), r"person-?nummer|personal identity|swedish id"),
    _rule("social insurance number (Canada)", "high", r"(?<![\w-])\d{3}[ -]?\d{3}[ -]?\d{3}(?![\w-])", has_luhn_digit,
          r"(?<![a-z])(?-i:SIN|sin(?=[:_]))(?![a-z])|social insurance"),
    _rule("NHS number (UK)", "high", r"(?<![\w-])\d{3}[ -]?\d{3}[ -]?\d{4}(?![\w-])", _is_nhs_number,
          r"(?<![a-z])nhs(?![a-z])"),
    _rule("NIF (Portugal)", "high", r"(?<!\w)\d{3} ?\d{3} ?\d{3}(?!\w)", _is_nif,
          r"(?<![a-z])nif(?![a-z])|contribuinte"),
    _rule("AHV number (Switzerland)", "high", r"(?<!\w)756[. ]?\d{4}[. ]?\d{4}[. ]?\d{2}(?!\w)", _is_ahv),
    _rule("BSN (Netherlands)", "high", r"(?<!\w)\d{9}(?!\w)", _is_bsn, r"(?<![a-z])bsn(?![a-z])|burgerservice"),
    _rule("PESEL (Poland)", "high", r"(?<!\w)\d{11}(?!\w)", _is_pesel, r"(?<![a-z])pesel(?![a-z])"),
    _rule("codice fiscale (Italy)", "high",
     r"(?<!\w)[a-z]{6}\d{2}[a-ehlmprst]\d{2}[a-z]\d{3}[a-z](?!\w)", _is_codice_fiscale),
    _rule("national insurance number (UK)", "high",
     r"(?<!\w)[a-ceghj-prstw-z][a-ceghj-nprstw-z] ?\d{2} ?\d{2} ?\d{2} ?[a-d](?!\w)",
          bool, r"national insurance|\bnino?\b|\bni number"),
    _rule("passport or identity card number", "high", r"(?<![\w-])(?=[a-z]{0,3}\d)[a-z0-9]{7,10}(?![\w-])",
          lambda text: sum(map(str.isdigit, text)) >= 5,
          r"(?:passport|reisepass|passeport|pasaporte|passaporte|personalausweis|ausweisnummer|identity card|"
          r"id card|driver'?s? licen[cs]e)"
          r"(?:\s*(?:number|no\.?|nr\.?|nummer|#|n°|número))?\s*(?:is|ist|est|es|é|:|=)?\s*$"),
    _rule("phone number", "medium",
     r"(?<![\w+.])\+\d{1,3}[ ./-]?(?:\(\d{1,4}\)[ ./-]?)?\d(?:[ ./-]?\d){6,12}(?![\w-])", _is_phone),
    _rule("phone number", "medium",
     r"(?<![\w+./-])(?:\(\d{2,5}\)[ ./-]?|0|\d)\d(?:[ ./-]?\d){5,12}(?![\w-])", _is_phone,
          r"\b(?:phone|tel|telephone|mobile|cell|whatsapp|call (?:him|her|me|them|us)|handy|telefon|mobil|festnetz|"
          r"téléphone|portable|"
          r"móvil|teléfono|celular|telemóvel|telefone|signal)\w*\.?\s*(?:number|nummer|no\.?|"
          r"#)?(?:[\w\s']{0,20})(?:\bis\b|\bat\b|:|=|\bon\b|"
          r"\bist\b|\best\b|\bes\b|\bé\b)?\s*$"),
    _rule("phone number", "medium", r"(?<![\w+./-])\(?\d{3}\)?[ .-]\d{3}[.-]\d{4}(?![\w-])", _is_phone),
    _rule("e-mail address", "medium",
     r"(?<![\w.+%/:-])[a-z0-9][\w.+%-]{0,63}@[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?![\w@])",
          _is_personal_address),
    _rule("date of birth", "medium",
     r"(?<![\w-])(?:\d{4}-\d{2}-\d{2}|\d{1,2}[./-]\d{1,2}[./-](?:19|20)\d{2}|\d{1,2}\.? (?:de )?\w{3,10} "
          r"(?:de )?(?:19|20)\d{2}|[a-z]{3,9} \d{1,2}(?:st|nd|rd|th)?,? (?:19|20)\d{2})(?!\w)", bool,
          r"(?:\bborn\b|date of birth|birth ?date|birthday|\bdob\b|geboren|geburts\w+|née?\b|naissance|nacid[oa]|"
          r"nacimiento|nascid[oa]|"
          r"nascimento)[\w\s:,=]{0,20}$"),
    *_OF_FEW_DIGITS,
    _rule("home address", "medium",
     r"\b[A-ZÄÖÜ][\wäöüß-]*(?:straße|strasse|str\.|weg|platz|allee|gasse|ufer|damm) \d{1,4} ?[a-z]?"
          r"(?:, [^,\n]{1,25}(?=,))?,? \d{5}\b"),
    _rule("home address", "medium",
     r"\b(?:\d{1,4}(?: ?(?:bis|ter|[a-d]))?,? (?:rue|avenue|boulevard|chemin|place|allée|impasse|quai) [^\n,\d]{2,40}|"
          r"(?:calle|c/|avenida|paseo|plaza|via|viale|piazza|rua|travessa) [^\n,\d]{2,40},? (?:n[.º°] ?)?\d{1,4}[a-z]?)"
          r"(?:, [^,\n]{1,25}(?=,))?,? \d{4,5}(?:-\d{3})? [a-zà-ÿ]{3}"),
    _rule("home address", "medium",
     r"\b\w+(?:straat|laan|weg|plein|gracht|kade) \d{1,4} ?[a-z]?,? \d{4} ?[a-z]{2}\b"),
)  # fmt: skip


def _is_named(words: re.Pattern[str] | None, before: str, after: str) -> bool:
    if words is None or words.search(before):
        return True
    return not words.pattern.endswith("$") and words.search(after) is not None


def find_personal_data(text: str) -> Iterator[RuleMatch]:
    """Yield the personal data in a text, in order. Of two matches that overlap, only the first is yielded."""
    found = []
    lines, starts, shifts = _telling_lines(text)
    for rule in _RULES:
        # most lines have neither five digits nor a mail address, and all rules but two need them
        of_few_digits = rule in _OF_FEW_DIGITS
        searched = text if of_few_digits else lines
        for match in rule.pattern.finditer(searched):
            line = searched.rfind("\n", 0, match.start()) + 1
            before = searched[max(match.start() - 60, line) : match.start()]
            after = searched[match.end() : match.end() + 40].partition("\n")[0]
            if _is_named(rule.words, before, after) and rule.check(match[0]):
                shift = 0 if of_few_digits else shifts[bisect_right(starts, match.start()) - 1]
                found.append(RuleMatch(rule.kind, rule.severity, match.start() + shift, match.end() + shift))
    end = 0
    for one in sorted(found, key=lambda one: one.start):
        if one.start >= end:
            end = one.end
            yield one


def _telling_lines(text: str) -> tuple[str, list[int], list[int]]:
    """Return the lines that match _TELLING_LINE as one excerpt, the offset of each in it, and the shift of each.

    The shift is the offset in the text minus the offset in the excerpt.
    """
    lines: list[str] = []
    starts: list[int] = []
    shifts: list[int] = []
    length = 0
    for match in _TELLING_LINE.finditer(text):
        starts.append(length)
        shifts.append(match.start() - length)
        lines.append(match[0])
        length += len(match[0]) + 1
    return "\n".join(lines), starts, shifts


def hide_values(text: str, name: str = "") -> str:
    """Return the text with asterisks in place of secrets and personal data. `name` is the key or column of the text."""
    named = f"{name}: " if name else ""
    whole = named + text
    personal = [(one.start, one.end) for one in find_personal_data(whole)]
    return mask(whole, [*spans_to_hide(whole), *personal])[len(named) :]


@lru_cache(maxsize=10_000)
def hide_in_pointer(pointer: str) -> str:
    """Return a JSON pointer or other path with `****` in place of each part that has a secret or personal data."""
    return "/".join("****" if hide_values(part) != part else part for part in pointer.split("/"))
