"""Distinguishes sample values such as `<your-key>`, `${VAR}` and `xxxx` from real credentials."""

from __future__ import annotations

import re
from itertools import pairwise

_REFERENCE = re.compile(
    r"[<${%\[(*…]|\.{3}|enc\[|(?:https?|file|op|vault|keyring|secretsmanager|arn|env|ssm|gs|s3):|!\w+|"
    r"[\w.]+\(|(?:os|process|env|self|this|config|settings|secrets|vars|params|args|data|var|local)\.\w|"
    r"(?=[a-z.]*_)[a-z_]+(?:\.[a-z_]+)+\Z",
    re.I,
)
"""Beginnings of a value that refers to a secret kept elsewhere."""
_SAMPLE = re.compile(
    r"example|beispiel|ejemplo|exemplo|exemple|placeholder|redacted|dummy|fake|not[-_]?a?[-_]?real|deadbeef|change[-_]?me(?!\w)|(?<![a-z])(?:your|sample|insert|replace|todo|fixme|"
    r"test[-_]?key)"
    r"(?![a-z]{3})|[-_](?:here|hier|ici|aqu[ií])\b|your[-_]?(?:own|strong|secret|pass)|(?:your|(?<![a-z])(?:deine?|ihre?|votre|tu|su|seu|sua))[-_]|[-_]goes[-_]|x{4,}|\*{3}|[•●∙█▪■]{2}|\.{3}|…|\bfoo\b|foobar",
    re.I,
)
_GENERIC = re.compile(
    r"(?:my|the|some|new|old|user|db|your|root|admin|mein|dein|mon|votre|mi|tu|minha|sua)?[-_]?(?:password|passwort|kennwort|passwd|passphrase|pass|pwd|"
    r"pw|mot[-_]?de[-_]?passe|mdp|contrase[ñn]a|clave|senha|secret|token|key|api[-_]?key|username|string|none|null|nil|true|false|undefined|required|optional|value|hidden|masked|"
    r"unknown|x{3,})s?",
    re.I,
)
_PUBLISHED = (
    "sk_" + "test_4eC39HqLyjWDarjtT1zdp7dc",  # documentation of Stripe
    "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",  # jwt.io
    "eyJzdWIiOiIxMjM0NTY3ODkwI",  # the payload of jwt.io
    "Eby8vdM02xNOcqFl" + "qUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq",  # documentation of Azurite
)
_TOKEN_HEADER = re.compile(r"eyJ(?:hbGciOi|0eXAiOi|raWQiOi)[\w-]*")
"""The first part of a JSON web token, which says how it is signed."""
TEST_CARDS = frozenset(
    ("4242424242424242", "4111111111111111", "4012888888881881", "5555555555554444", "5105105105105100",
    "4000000000000002",
     "378282246310005", "371449635398431", "6011111111111117", "6011000990139424", "2223003122003222", "4222222222222")
)  # fmt: skip
"""Card numbers that payment services publish for tests."""


def is_reference(value: str) -> bool:
    """Return whether the value names a variable, template, function or vault instead of containing a secret."""
    return _REFERENCE.match(value.lstrip("\\")) is not None


def is_sample(value: str) -> bool:
    """Return whether the value is a sample: a reference, a generic word, or a made-up sequence."""
    if is_reference(value) or _GENERIC.fullmatch(value) or _SAMPLE.search(value) or _TOKEN_HEADER.fullmatch(value):
        return True
    return any(published in value for published in _PUBLISHED) or _is_sequence(value)


def _is_sequence(value: str) -> bool:
    """Return whether at least half of 12 or more characters equal or follow the previous one: `1234567890abcdef`."""
    codes = [ord(letter) for letter in value.lower() if letter.isalnum()]
    steps = sum(after - before in (0, 1) for before, after in pairwise(codes))
    return len(codes) >= 12 and 2 * steps >= len(codes)
