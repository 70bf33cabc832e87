"""What a scenario plants: secrets and made-up words, unique in every run, so that a find is never a coincidence.

`${secret:api_key}` looks like a credential of that kind; `${word:street}` is a word that nobody uses. Files hold the
placeholders alone. `${secret:api_key|base64}` is the same secret in other clothes: an agent that was told not to keep
it may yet try.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.secrets.canaries import encodings
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, suggestion

_PLACEHOLDER = re.compile(r"\$\{(?P<family>secret|word):(?P<name>[a-z][a-z0-9_]*)(?:\|(?P<form>[a-z0-9-]+))?\}")
_ANY_PLACEHOLDER = re.compile(r"\$\{[^}]*\}?")
_LETTERS_AND_DIGITS = string.ascii_letters + string.digits


FORMS = (*encodings("any"), "left", "right")
"""left and right are the two halves, for secrets that are split over two records."""


def disguised(value: str, form: str) -> str:
    middle = len(value) // 2
    return {**encodings(value), "left": value[:middle], "right": value[middle:]}[form]


def _credential(prefix: str, alphabet: str, length: int) -> Callable[[Random], str]:
    return lambda chance: prefix + "".join(chance.choices(alphabet, k=length))


SECRETS: Mapping[str, Callable[[Random], str]] = {
    "api_key": _credential("sk-proj-", _LETTERS_AND_DIGITS, 40),
    "aws_key": _credential("AKIA", string.ascii_uppercase + "234567", 16),
    "github_token": _credential("ghp_", _LETTERS_AND_DIGITS, 36),
    "password": lambda chance: _credential("", string.ascii_letters, 8)(chance) + f"{chance.randrange(10**5):05}!",
}


def _word(chance: Random) -> str:
    syllables = (chance.choice("bdfgklmnprtvz") + chance.choice("aeiou") for _ in range(5))
    return ("".join(syllables) + chance.choice("klmnrx")).capitalize()


def complaints(text: str, where: str) -> Iterator[BadInput]:
    """What is wrong with the placeholders in `text`."""
    for written in _ANY_PLACEHOLDER.findall(text):
        found = _PLACEHOLDER.fullmatch(written)
        if found is None:
            expected = "${secret:KIND} or ${word:NAME}, both with |FORM where wanted"
            yield BadInput(where, f"{preview(written)} is no placeholder", expected=expected)
            continue
        family, name, form = found["family"], found["name"], found["form"]
        if family == "secret" and name not in SECRETS:
            yield BadInput(
                where,
                f"no secret of the kind {preview(name)} is known",
                expected=join_names(SECRETS),
                remedy=suggestion(name, SECRETS),
            )
        if form is not None and form not in FORMS:
            yield BadInput(
                where, f"no form {preview(form)} is known", expected=join_names(FORMS), remedy=suggestion(form, FORMS)
            )


def planted_in(value: Any) -> set[str]:
    """`secret:api_key`, `word:street` …: all that is planted anywhere in a JSON value."""
    return {
        f"{found['family']}:{found['name']}" for text in _texts(value) for found in _PLACEHOLDER.finditer(text)
    }  # fmt: skip


def grown(names: set[str], seed: int, scenario: str) -> dict[str, str]:
    """The value of each planted name: the same for the same seed and scenario, and like no other."""
    values = {}
    for planted in sorted(names):
        family, _, name = planted.partition(":")
        chance = Random(f"{seed}/{scenario}/{planted}")
        values[planted] = SECRETS[name](chance) if family == "secret" else _word(chance)
    return values


def expanded(value: Any, values: Mapping[str, str]) -> Any:
    """A JSON value with what is planted in the place of its placeholders."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda found: _form_of(found, values), value)
    if isinstance(value, dict):
        return {key: expanded(member, values) for key, member in value.items()}
    if isinstance(value, list):
        return [expanded(member, values) for member in value]
    return value


def _form_of(found: re.Match[str], values: Mapping[str, str]) -> str:
    value = values[f"{found['family']}:{found['name']}"]
    return disguised(value, found["form"]) if found["form"] else value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _texts(member)
