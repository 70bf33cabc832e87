"""Detects credentials by their name in a sentence ("my password is …") and the value beside it.

The name alone proves nothing ("the token is expired", "the key is AES-256"): the value must look chosen or random.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

WordedKind = Literal["payment card number", "PIN", "password", "recovery phrase", "API key or token"]

_CARD = re.compile(r"(?<![\w.-])(?:\d[ -]?){12,18}\d(?![.-]?\w)")
_ISSUERS = re.compile(r"4|5[1-5]|2[2-7]|3[47]|6011|65")
_CARD_LENGTHS = (13, 15, 16, 19)

_WHOSE = r"(?:my|his|her|our|their|the(?:\s+user's)?)"
_FOR = r"(?:\s+(?:for|of|to|on|at|in)(?:\s+[\w'’.-]+){1,6}?)?"
_IS = (
    r"\s*(?:(?:\b(?:is|was|are|reads|ist|est|es)|\bset to|\bchanged to)(?:\s+(?:now|still))?\b\s*[:=]?|=>|->|[:=→>])\s*"
)

_LOCKED = r"(?:safe|vault|lock|padlock|locker|gate|bike)"
_PIN_NAME = (
    r"(?:pin(?:\s+(?:code|number))?|passcode|cv[cv]|"
    r"(?:alarm|door|gate|garage|entry|access|lock|safe|keypad|security|unlock|voicemail)\s+code|"
    rf"{_LOCKED}\s+combination|combination(?=\s+(?:of|for|to)\s+(?:the|{_WHOSE})\s+(?:[\w'’-]+\s+)?{_LOCKED}\b))"
)
_PIN = re.compile(
    rf"\b{_PIN_NAME}\b{_FOR}\s*(?:\bis\b|\bwas\b|[:=]|(?<=cv[cv]))\s*"
    r"(?:\d{3,8}[#*]?|\d{1,2}(?:-\d{1,2}){2,3})(?![\w-])(?!\s*[a-z%])",
    re.I,
)
_PIN_AFTER = re.compile(rf"\b\d{{3,8}}\s+is\s+{_WHOSE}\s+(?:[\w'’-]+\s+){{0,2}}{_PIN_NAME}\b", re.I)

_PASSWORD_NAME = r"(?:pass(?:word|wd|phrase|code)s?|pwd?|passwort|kennwort|mot\s+de\s+passe|contraseña|pass(?=\s*=))"  # noqa: S105 - what people call one
_KEY_NAME = (
    r"(?:(?:api|access|secret|private|signing|encryption|deploy|license|product|activation|master|account|auth|wi-?fi|"
    r"wlan|network)[ _-]?keys?|secrets?|tokens?|credentials?)"
)
_NAME = rf"(?P<name>{_PASSWORD_NAME}|{_KEY_NAME})"
_VALUE = r"(?P<quote>[\"'`“‘]?)(?P<value>(?:\S ){5,100}\S(?!\S)|[^\s\"'`”’]{1,200})"
_GIVEN = re.compile(
    rf"(?<!\{{)(?:\b|_|\b\w{{1,12}}?(?=passw)){_NAME}\b[\"']?(?:\s*\([^)]{{0,40}}\))?{_FOR}{_IS}{_VALUE}", re.I
)
_GIVEN_AFTER = re.compile(rf"(?<!\S)(?P<value>\S{{6,200}})\s+is\s+{_WHOSE}\s+(?:[\w'’-]+\s+){{0,2}}{_NAME}\b", re.I)
_CHANGED = re.compile(
    rf"\b(?:chang|set|reset|updat)\w*\s+(?:{_WHOSE}\s+)?(?:[\w'’-]+\s+){{0,2}}(?P<name>{_PASSWORD_NAME}){_FOR}"
    rf"\s+(?:from\s+\S+\s+)?to\s+{_VALUE}",
    re.I,
)
_TYPED = re.compile(
    r"(?:--pass(?:word|wd)?[ =]|\bsshpass\s+-p\s*|\bmysql\b[^|;]{0,80}\s-p(?=\S)|\s-u\s+[\w.@-]+:|"
    r"(?:^|[,;/|&(]\s*|\b(?:my|and)\s+)pass\s*:\s*|\blogin\s+\S+\s+password\s+)[\"']?(?P<value>[^\s\"']{6,200})",
    re.I,
)
"""Command-line and config file syntax."""
_PAIR = re.compile(
    r"\b(?:login|creds?|credentials?)\s*(?:\bis\b|\bare\b|[:=])\s*[\w.@+-]{2,64}\s*[:/]\s*(?P<value>[^\s/]{6,200})",
    re.I,
)
_BESIDE = re.compile(rf"\b{_PASSWORD_NAME}\s+[\"'`“‘]?(?P<value>[^\s\"'`”’]{{6,200}})", re.I)
_NEAR = re.compile(rf"(?:\b|_){_NAME}\b\W+(?:[\w'’-]+\W+){{0,3}}?(?P<value>[A-Za-z0-9+/_.~=-]{{16,}})", re.I)
_OWNED = re.compile(
    rf"\b(?!the\s+(?!user)){_WHOSE}\s+(?:[\w'’-]+\s+){{0,2}}{_PASSWORD_NAME}\s+is\s+(?P<value>[a-z]{{6,40}})[.!]?\s*$",
    re.I,
)
_PHRASE = re.compile(
    rf"\b{_PASSWORD_NAME}\b{_FOR}{_IS}[\"'`“‘]?"
    r"(?P<words>[a-z]{2,20}(?:[ _.-][a-z]{2,20}){2,11})[\"'`”’]?[.!]?\s*$",
    re.I,
)
_SEED = re.compile(
    rf"\b(?:seed|recovery|backup|mnemonic|wallet)\s+(?:phrase|words){_FOR}{_IS}[\"'`“‘]?"
    r"(?P<words>[a-z]{3,8}(?:[ ,]+[a-z]{3,8}){7,23})\b",
    re.I,
)

_STATES = re.compile(
    r"\w+(?:ed|en|ing|able|ible|ful|less|some)|wrong|strong|secure|unsafe|unique|random|secret|private|gone|"
    r"simple|memorable|complex|common|public|missing|correct|stale|invalid|better|longer|shorter|\w+ly",
    re.I,
)
"""Adjectives that describe a password and are not one."""
_PROSE = re.compile(
    r"a|about|again|all|also|always|an|and|any|are|as|at|be|been|because|before|both|but|by|"
    r"case|characters|days|default|different|digits|down|each|easy|every|few|for|from|hard|has|"
    r"have|he|her|here|his|how|if|in|into|is|it|its|just|last|least|less|letters|long|many|"
    r"months|more|most|much|my|names|never|new|no|none|not|now|numbers|of|off|often|old|on|"
    r"once|one|only|or|other|our|out|over|own|per|reset|same|sensitive|she|short|signs|since|"
    r"so|some|still|strong|symbols|than|that|the|their|then|there|these|they|this|those|to|too|"
    r"under|until|up|use|user|very|was|we|weak|weeks|what|when|where|which|who|with|words|"
    r"years|you|your"
)
"""Words of ordinary sentences, which a random passphrase does not contain."""

_PLACEHOLDER = re.compile(r"[<${*\[(…]|x{4,}|\.{3}|(?:https?|file)://", re.I)
_ENVIRONMENT_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_AMOUNT = re.compile(
    r"[\d.,:/-]{1,15}[a-z%]{0,12}|\d{4}-\d\d-\d\dT[\d:.+-]+Z?|v\d[\w.-]*|\d+%?-[a-z-]+|\d+x\d+[a-z]{0,3}", re.I
)
_STANDARD = re.compile(
    r"(?:[A-Z]{1,6}\d{0,5}|[A-Z][a-z]{1,9}\d{0,5}|\d{1,5})(?:[-_/](?:[A-Z]{1,6}\d{0,5}|\d{1,5})){0,2}|"
    r"[a-z]{1,6}\d{2,5}(?:[a-z]\d)?|[A-Za-z]{2,}(?:[-_/.](?:[A-Za-z]{2,}|\d{1,4}))+"
)
"""`RSA-4096`, `JWT-RS256`, `secp256k1`, `color-primary-500`: names of standards and identifiers."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_SHA = re.compile(r"[0-9a-f]{7,64}", re.I)
_SIGNS = "!@#$%^&*+=~?"
_ENTROPY = 3.0
"""Bits per character. Sixteen random letters and digits have 3.5 or more. Identifiers made of words have about as much,
so a mixture of letters and digits is required as well."""


def find_worded_credential(text: str) -> WordedKind | None:
    """Return the kind of credential that the text names and contains, or None."""
    if any(_is_card(run) for run in _CARD.findall(text)):
        return "payment card number"
    if _PIN.search(text) or _PIN_AFTER.search(text):
        return "PIN"
    if any(_is_passphrase(seed["words"]) for seed in _SEED.finditer(text)):
        return "recovery phrase"
    if _password_in(text):
        return "password"
    return next(_find_named(text), None)


def _is_card(run: str) -> bool:
    digits = [int(digit) for digit in run if digit.isdigit()]
    if len(digits) not in _CARD_LENGTHS or not _ISSUERS.match("".join(map(str, digits))):
        return False
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _password_in(text: str) -> bool:
    """Return whether the text contains a password: after its name, in a command, or as a passphrase."""
    if any(_looks_secret(typed["value"]) for typed in _TYPED.finditer(text)):
        return True
    if any(_looks_secret(pair["value"]) and not _is_standard(pair["value"]) for pair in _PAIR.finditer(text)):
        return True
    if any(_looks_secret(beside["value"]) and _is_mixed(beside["value"]) for beside in _BESIDE.finditer(text)):
        return True
    owned = _OWNED.search(text)
    if owned and not _STATES.fullmatch(owned["value"]):
        return True
    return any(_is_passphrase(phrase["words"]) for phrase in _PHRASE.finditer(text))


def _find_named(text: str) -> Iterator[WordedKind]:
    for given in _all(text, _GIVEN, _GIVEN_AFTER, _CHANGED):
        called, value = _called(given["name"]), given["value"]
        quoted = bool(given.groupdict().get("quote")) and _is_chosen_word(value)
        if quoted or (_looks_secret(value) and (called == "password" or not _is_standard(value))):
            yield called
    for near in _NEAR.finditer(text):
        if _is_random(near["value"]):
            yield _called(near["name"])


def _all(text: str, *patterns: re.Pattern[str]) -> Iterator[re.Match[str]]:
    for pattern in patterns:
        yield from pattern.finditer(text)


def _called(name: str) -> WordedKind:
    return "password" if re.fullmatch(_PASSWORD_NAME.replace(r"(?=\s*=)", ""), name, re.I) else "API key or token"


def _bare(value: str) -> str:
    return value.replace(" ", "").strip("\"'`“”‘’").rstrip(".,;:!?)]")


def _looks_secret(value: str) -> bool:
    """Return whether the value mixes letters with digits or signs, and is no amount, date, version or placeholder."""
    value = _bare(value)
    if len(value) < 6 or _PLACEHOLDER.match(value) or _AMOUNT.fullmatch(value) or _ENVIRONMENT_NAME.fullmatch(value):
        return False
    letters = any(character.isalpha() for character in value)
    digits = any(character.isdigit() for character in value)
    if not letters:
        return len(value) >= 16
    return digits or any(sign in value[1:] for sign in _SIGNS)


def _is_standard(value: str) -> bool:
    return _STANDARD.fullmatch(_bare(value)) is not None


def _is_mixed(value: str) -> bool:
    """Return whether a digit is between letters or with punctuation: `hunter2!`, not `policy2`."""
    if _is_standard(value):
        return False
    digits = any(character.isdigit() for character in value)
    return digits and (any(sign in value for sign in _SIGNS) or re.search(r"[a-z]\d+[a-z]", value, re.I) is not None)


def _is_chosen_word(value: str) -> bool:
    value = _bare(value)
    return len(value) >= 6 and not _PLACEHOLDER.match(value) and not _STATES.fullmatch(value)


def _is_passphrase(phrase: str) -> bool:
    words: Sequence[str] = re.findall(r"[a-z]+", phrase.lower())
    prose = any(_PROSE.fullmatch(word) for word in words)
    return not prose and sum(not _STATES.fullmatch(word) for word in words) >= 3


def _is_random(value: str) -> bool:
    value = _bare(value)
    if len(value) < 16 or _UUID.fullmatch(value) or _SHA.fullmatch(value) or _ENVIRONMENT_NAME.fullmatch(value):
        return False  # ids and hashes often appear beside these words
    digits = sum(character.isdigit() for character in value)
    mixed = digits >= 2 and any(character.isalpha() for character in value) and not _made_of_words(value)
    shares = [count / len(value) for count in Counter(value).values()]
    return mixed and -sum(share * math.log2(share) for share in shares) >= _ENTROPY


def _made_of_words(value: str) -> bool:
    """Return whether every part is a word or number: `release-notes-2024-06`, `src/auth/token_v2.py`."""
    return all(re.fullmatch(r"[A-Za-z]{2,}\d{0,4}|v?\d+|[A-Za-z]|", part) for part in re.split(r"[-_./=+~]", value))
