"""Tells that a text holds a credential which nobody planted: by the shape of known keys, and by how people say them.

The second line of defence: what was planted is found by canaries.py. Here a miss is likely and a false alarm costly,
because a memory that refuses "the password policy" is no memory.
"""

from __future__ import annotations

import base64
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Literal
from urllib.parse import unquote

Kind = Literal[
    "AWS access key", "GitHub token", "GitLab token", "model API key", "Slack token", "Stripe key", "Google API key",
    "package registry token", "JSON web token", "private key", "connection string with a password", "bearer token",
    "payment card number", "PIN", "password", "API key or token",
]  # fmt: skip

_SHAPES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("AWS access key", re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{16}")),
    ("GitHub token", re.compile(r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{22,}")),
    ("GitLab token", re.compile(r"glpat-[A-Za-z0-9_-]{20,}")),
    ("Stripe key", re.compile(r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}")),
    ("model API key", re.compile(r"(?<![A-Za-z0-9])sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}")),
    ("Slack token", re.compile(r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,}")),
    ("Google API key", re.compile(r"AIza[A-Za-z0-9_-]{30,}|GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,}")),
    ("package registry token", re.compile(r"npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{30,}")),
    ("JSON web token", re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    ("private key", re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")),
    (
        "connection string with a password",
        re.compile(r"(?<![a-z])[a-z][a-z0-9+]{1,20}://[^\s/:@]*:[^\s/@<${*\[][^\s/@]*@[\w.\[-]"),
    ),
    ("bearer token", re.compile(r"(?i:\bbearer)\s+(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,}")),
)
"""Known by what they begin with, so that the same patterns hold for what was decoded, reversed or put together."""

_CARD = re.compile(r"(?<![\w.-])(?:\d[ -]?){12,18}\d(?![.-]?\w)")
_ISSUERS = re.compile(r"4|5[1-5]|2[2-7]|3[47]|6011|65")
_CARD_LENGTHS = (13, 15, 16, 19)

_WHOSE = r"(?:my|his|her|our|their|the(?:\s+user's)?)"
_PIN_NAME = r"(?:pin(?:\s+(?:code|number))?|passcode|cvv)"
_PIN = re.compile(
    rf"\b{_PIN_NAME}\b(?:\s+(?:for|of|to|on)(?:\s+[\w'’-]+){{1,4}}?)?"
    r"\s*(?:\bis\b|\bwas\b|[:=])\s*\d{3,8}\b(?!\s*[a-z%])",
    re.I,
)
_PIN_AFTER = re.compile(rf"\b\d{{3,8}}\s+is\s+{_WHOSE}\s+(?:[\w'’-]+\s+){{0,2}}{_PIN_NAME}\b", re.I)

_PASSWORD_NAME = r"(?:pass(?:word|wd|phrase|code)s?|pwd)"  # noqa: S105 - what people call one
_KEY_NAME = (
    r"(?:(?:api|access|secret|private|signing|encryption|deploy|license)[ _-]?keys?|secrets?|tokens?|credentials?)"
)
_NAME = rf"(?P<name>{_PASSWORD_NAME}|{_KEY_NAME})"
_GIVEN = re.compile(
    rf"(?<!\{{)(?:\b|_){_NAME}\b(?:\s*\([^)]{{0,40}}\))?"
    r"(?:\s+(?:for|of|to|on|at|in)(?:\s+[\w'’.-]+){1,6}?)?"
    r"\s*(?:(?:\bis|\bwas|\bset to|\bchanged to|\breads)(?:\s+(?:now|still))?\b\s*[:=]?|=>|->|[:=→])\s*"
    r"(?P<quote>[\"'`“‘]?)(?P<value>(?:\S ){5,100}\S(?!\S)|[^\s\"'`”’]{1,200})",
    re.I,
)
_GIVEN_AFTER = re.compile(rf"(?<!\S)(?P<value>\S{{6,200}})\s+is\s+{_WHOSE}\s+(?:[\w'’-]+\s+){{0,2}}{_NAME}\b", re.I)
_NEAR = re.compile(rf"(?:\b|_){_NAME}\b\W+(?:[\w'’-]+\W+){{0,3}}?(?P<value>[A-Za-z0-9+/_.~=-]{{16,}})", re.I)
_OWNED = re.compile(
    rf"\b(?!the\s+(?!user)){_WHOSE}\s+(?:[\w'’-]+\s+){{0,2}}{_PASSWORD_NAME}\s+is\s+(?P<value>[a-z]{{6,40}})[.!]?\s*$",
    re.I,
)
_STATES = re.compile(
    r"\w+(?:ed|en|ing|able|ible|ful|less|some)|wrong|strong|secure|unsafe|unique|random|secret|private|gone|"
    r"simple|memorable|complex|common|public|missing|correct|stale|invalid|better|longer|shorter|\w+ly",
    re.I,
)
"""What a password may be said to be, without being told."""

_PLACEHOLDER = re.compile(r"[<${*\[(…]|x{4,}|\.{3}|(?:https?|file)://", re.I)
_ENVIRONMENT_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_AMOUNT = re.compile(r"[\d.,:/-]{1,15}[a-z%]{0,12}|\d{4}-\d\d-\d\dT[\d:.+-]+Z?|v\d[\w.-]*|\d+-[a-z-]+", re.I)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_SHA = re.compile(r"[0-9a-f]{7,64}", re.I)
_ENTROPY = 3.0
"""Bits a character. Sixteen random letters and digits have 3.5 and more, an identifier in words about as much: so a
mixture of letters and digits is asked for beside it."""

_BASE64_RUN = re.compile(r"[A-Za-z0-9+/_-]{16,}")
_HEX_RUN = re.compile(r"(?:[0-9A-Fa-f]{2}[ :-]?){16,}")
_SPELLED_OUT = re.compile(r"(?:(?<=\s)|^)(?:[\w+/=-]{1,4}[ \t]){5,}[\w+/=-]{1,4}(?=\s|$|[.,;])")
_LONGEST_SPELLED_OUT = 64
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")


def credential_in(text: str) -> Kind | None:
    """What kind of credential the text holds, as far as its shape tells."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    for reading in _readings(text):
        kind = _shape_in(reading) or _said_in(reading)
        if kind is not None:
            return kind
    return next((kind for again in _rearranged(text) if (kind := _shape_in(again)) is not None), None)


def _readings(text: str) -> Iterator[str]:
    """The text, and what is encoded in it. What only looked encoded becomes noise, in which nothing is found."""
    yield text
    if "%" in text:
        yield unquote(unquote(text))  # twice, as programs do that hand on what another has quoted
    for run in _BASE64_RUN.findall(text):
        yield _from_base64(run).decode("utf-8", "replace")
    for run in _HEX_RUN.findall(text):
        yield bytes.fromhex(re.sub("[^0-9A-Fa-f]", "", run)).decode("utf-8", "replace")


def _rearranged(text: str) -> Iterator[str]:
    """Backwards, in the other case, and with the blanks taken out of what was spelled out.

    Sentences make no sense that way, keys do.
    """
    yield from (text[::-1], text.swapcase())
    for run in _SPELLED_OUT.findall(text):
        pieces = run.split()
        # where the key begins is not known: ordinary short words may stand before it
        yield from ("".join(pieces[start : start + _LONGEST_SPELLED_OUT]) for start in range(len(pieces)))


def _from_base64(run: str) -> bytes:
    standard = run.replace("-", "+").replace("_", "/")
    whole = len(standard) - (len(standard) % 4 == 1)  # one letter too many holds not even a byte
    return base64.b64decode(standard[:whole] + "=" * (-whole % 4))


def _shape_in(text: str) -> Kind | None:
    return next((kind for kind, shape in _SHAPES if shape.search(text)), None)


def _said_in(text: str) -> Kind | None:
    """What people call a credential, with one beside it."""
    if any(_is_card(run) for run in _CARD.findall(text)):
        return "payment card number"
    if _PIN.search(text) or _PIN_AFTER.search(text):
        return "PIN"
    for given in (*_GIVEN.finditer(text), *_GIVEN_AFTER.finditer(text)):
        if _looks_secret(given["value"]) or (given.groupdict().get("quote") and _is_chosen_word(given["value"])):
            return _called(given["name"])
    for near in _NEAR.finditer(text):
        if _is_random(near["value"]):
            return _called(near["name"])
    owned = _OWNED.search(text)
    if owned and not _STATES.fullmatch(owned["value"]):
        return "password"
    return None


def _called(name: str) -> Kind:
    return "password" if re.fullmatch(_PASSWORD_NAME, name, re.I) else "API key or token"


def _is_card(run: str) -> bool:
    digits = [int(digit) for digit in run if digit.isdigit()]
    if len(digits) not in _CARD_LENGTHS or not _ISSUERS.match("".join(map(str, digits))):
        return False
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _bare(value: str) -> str:
    return value.replace(" ", "").strip("\"'`“”‘’").rstrip(".,;:!?)]")


def _looks_secret(value: str) -> bool:
    """A digit or a sign among letters, as no word has it; and no amount, date, version or placeholder."""
    value = _bare(value)
    if len(value) < 6 or _PLACEHOLDER.match(value) or _AMOUNT.fullmatch(value) or _ENVIRONMENT_NAME.fullmatch(value):
        return False
    letters = any(character.isalpha() for character in value)
    digits = any(character.isdigit() for character in value)
    if not letters:
        return len(value) >= 16
    return digits or any(sign in value[1:] for sign in "!@#$%^&*+=~?")


def _is_chosen_word(value: str) -> bool:
    value = _bare(value)
    return len(value) >= 6 and not _PLACEHOLDER.match(value) and not _STATES.fullmatch(value)


def _is_random(value: str) -> bool:
    value = _bare(value)
    if len(value) < 16 or _UUID.fullmatch(value) or _SHA.fullmatch(value) or _ENVIRONMENT_NAME.fullmatch(value):
        return False  # ids and hashes stand beside such words without being meant by them
    digits = sum(character.isdigit() for character in value)
    mixed = digits >= 2 and any(character.isalpha() for character in value) and not _made_of_words(value)
    shares = [count / len(value) for count in Counter(value).values()]
    return mixed and -sum(share * math.log2(share) for share in shares) >= _ENTROPY


def _made_of_words(value: str) -> bool:
    """`release-notes-2024-06`, `src/auth/token_v2.py`: every part is a word, or a number."""
    return all(re.fullmatch(r"[A-Za-z]{2,}\d{0,4}|v?\d+|[A-Za-z]|", part) for part in re.split(r"[-_./=+~]", value))
