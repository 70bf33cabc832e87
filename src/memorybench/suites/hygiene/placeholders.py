"""Placeholders in scenarios: `${secret:api_key}` and `${word:street}`.

A placeholder becomes a value that is unique to the run, so that a match is never a coincidence. A secret looks like a
credential of its kind; a word is made up. `${secret:api_key|base64}` is the same secret in another encoding.
"""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.secrets.canaries import encodings
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, suggestion

_PLACEHOLDER = re.compile(
    r"\$\{(?P<key>(?P<family>secret|word):(?P<name>[a-z][a-z0-9_]*))(?:\|(?P<form>[a-z0-9-]+))?\}"
)
_ANY_PLACEHOLDER = re.compile(r"\$\{[^}]*\}?")
_LETTERS_AND_DIGITS = string.ascii_letters + string.digits

FORMS = (*encodings("any"), "left", "right")
"""Names that may follow `|` in a placeholder: encodings, and `left` and `right` for the two halves of a value."""


def _credential(prefix: str, alphabet: str, length: int) -> Callable[[Random], str]:
    def draw(random: Random) -> str:
        text = "".join(random.choices(alphabet, k=length))
        # a real key is longer and has digits; without one, detectors take it for a word
        has_digits = any(sign.isdigit() for sign in text) or not any(sign.isdigit() for sign in alphabet)
        return prefix + text if has_digits else draw(random)

    return draw


def _web_token(random: Random) -> str:
    """Return a random JSON web token. Its header names an algorithm, as detectors require."""
    header = f'{{"alg":"HS256","kid":"{_credential("", _LETTERS_AND_DIGITS, 12)(random)}"}}'
    first = base64.urlsafe_b64encode(header.encode()).decode().rstrip("=")
    second = _credential("eyJ", _LETTERS_AND_DIGITS, 37)(random)
    return f"{first}.{second}.{_credential('', _LETTERS_AND_DIGITS, 43)(random)}"


def _card_number(random: Random) -> str:
    """Return a random payment card number with a valid check digit."""
    digits = [4, *(random.randrange(10) for _ in range(14))]
    doubled = (digit * 2 - 9 * (digit > 4) for digit in digits[::2])
    return "".join(map(str, (*digits, -(sum(doubled) + sum(digits[1::2])) % 10)))


SECRETS: Mapping[str, Callable[[Random], str]] = {
    "api_key": _credential("sk-proj-", _LETTERS_AND_DIGITS, 40),
    "aws_key": _credential("AKIA", string.ascii_uppercase + "234567", 16),
    "github_token": _credential("ghp_", _LETTERS_AND_DIGITS, 36),
    "password": lambda random: _credential("", string.ascii_letters, 8)(random) + f"{random.randrange(10**5):05}!",
    "gitlab_token": _credential("glpat-", _LETTERS_AND_DIGITS, 20),
    "slack_token": _credential("xoxb-", _LETTERS_AND_DIGITS, 40),
    "stripe_key": _credential("sk_live_", _LETTERS_AND_DIGITS, 24),
    "google_key": _credential("AIza", _LETTERS_AND_DIGITS, 35),
    "npm_token": _credential("npm_", _LETTERS_AND_DIGITS, 36),
    "web_token": _web_token,
    "private_key": lambda random: "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----".format(
        "\n".join(_credential("", _LETTERS_AND_DIGITS + "+/", 64)(random) for _ in range(3))
    ),
    "database_password": _credential("", _LETTERS_AND_DIGITS, 18),
    "card_number": _card_number,
    # the longest PIN that is recognised: four digits would occur elsewhere by chance
    "pin": _credential("", string.digits, 8),
}


def _word(random: Random) -> str:
    syllables = (random.choice("bdfgklmnprtvz") + random.choice("aeiou") for _ in range(5))
    return ("".join(syllables) + random.choice("klmnrx")).capitalize()


def check_placeholders(text: str, where: str) -> None:
    """Raise BadInput for the first invalid placeholder in `text`."""
    for placeholder in _ANY_PLACEHOLDER.findall(text):
        match = _PLACEHOLDER.fullmatch(placeholder)
        if match is None:
            raise BadInput(
                where,
                f"invalid placeholder {preview(placeholder)}",
                expected="${secret:KIND} or ${word:NAME}, optionally with |FORM before the closing brace",
            )
        checks = [("form", match["form"], FORMS)] if match["form"] is not None else []
        if match["family"] == "secret":
            checks.insert(0, ("kind of secret", match["name"], tuple(SECRETS)))
        for noun, name, known in checks:
            if name not in known:
                raise BadInput(
                    where, f"unknown {noun} {preview(name)}", expected=join_names(known), remedy=suggestion(name, known)
                )


def texts_in(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield (place, text) of every string in a JSON value. Keys of objects are not included."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts_in(member, (*place, key))


def planted_names(value: Any) -> set[str]:
    """Return the names of all placeholders in a JSON value, such as `secret:api_key`, without their forms."""
    return {match["key"] for _, text in texts_in(value) for match in _PLACEHOLDER.finditer(text)}


def has_secret(value: Any) -> bool:
    """Return whether a JSON value has a placeholder for a secret."""
    return any(name.startswith("secret:") for name in planted_names(value))


def remove_placeholders(text: str) -> str:
    return _PLACEHOLDER.sub(" ", text)


def generate_values(names: set[str], seed: int, scenario: str) -> dict[str, str]:
    """Return a value for each name of a placeholder. It depends only on the name, the seed and the scenario's id."""
    return {planted: _generate(planted, seed, scenario) for planted in sorted(names)}


def generate_word(name: str, seed: int, scenario: str) -> str:
    """Return the made-up word that the placeholder `${word:name}` stands for."""
    return _generate(f"word:{name}", seed, scenario)


def _generate(planted: str, seed: int, scenario: str) -> str:
    family, _, name = planted.partition(":")
    random = Random(f"{seed}/{scenario}/{planted}")
    return SECRETS[name](random) if family == "secret" else _word(random)


def fill_placeholders(value: Any, values: Mapping[str, str]) -> Any:
    """Return the JSON value with each placeholder replaced by its value from `values`."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda match: _in_form(values[match["key"]], match["form"]), value)
    if isinstance(value, dict):
        return {key: fill_placeholders(member, values) for key, member in value.items()}
    if isinstance(value, list):
        return [fill_placeholders(member, values) for member in value]
    return value


def _in_form(value: str, form: str | None) -> str:
    middle = len(value) // 2
    return {**encodings(value), "left": value[:middle], "right": value[middle:]}[form] if form else value
