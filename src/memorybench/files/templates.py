"""Text with `${name}` placeholders. A placeholder inside an inserted value is not replaced."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, unknown_name

_TOKEN = re.compile(r"(?P<literal>\$\$\{)|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|(?P<other>\$\{[^}\n]*\}?)")

# replacements for JavaScript expressions of earlier config files
_REPLACEMENTS = {
    "JSON.stringify(": ("session", "it is the session's JSON"),
    ".map(": ("dialogue", "it is the session's lines of `speaker: text`"),
}


class Placeholder(Struct, frozen=True):
    """A variable in a template."""

    name: str


class Template(Struct, frozen=True):
    """Text with `${name}` placeholders; `$${` stands for a literal `${`."""

    parts: tuple[str | Placeholder, ...]
    where: str

    @classmethod
    def parse(cls, text: str, known: Collection[str], where: str) -> Template:
        """Parse `text`. Raise BadInput, which begins with `where`, for a placeholder that is not in `known`."""
        parts: list[str | Placeholder] = []
        end = 0
        for token in _TOKEN.finditer(text):
            parts.append(text[end : token.start()])
            parts.append("${" if token["literal"] else _placeholder(token, known, where))
            end = token.end()
        parts.append(text[end:])
        return cls(tuple(part for part in parts if part), where)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(part.name for part in self.parts if isinstance(part, Placeholder))

    def render(self, values: Mapping[str, Any]) -> str:
        """Return the text with placeholders replaced: strings as they are, None as "", other values as JSON.

        Raise BadInput if `values` has no value for a placeholder.
        """
        return "".join(
            part if isinstance(part, str) else _as_text(value_of(part.name, values, self.where)) for part in self.parts
        )


def value_of(name: str, values: Mapping[str, Any], where: str) -> Any:
    """Return the value of a variable; raise BadInput if it has none."""
    if name not in values:
        raise BadInput(
            where, f"the variable ${{{name}}} has no value in this text", expected=f"one of {join_names(values)}"
        )
    return values[name]


def check_known(name: str, known: Collection[str], where: str) -> None:
    if name not in known:
        raise unknown_name(where, f"unknown variable {preview(name)}", name, known)


def _placeholder(token: re.Match[str], known: Collection[str], where: str) -> Placeholder:
    if token["other"]:
        raise _expression_error(token["other"], known, where)
    check_known(token["name"], known, where)
    return Placeholder(token["name"])


def _expression_error(expression: str, known: Collection[str], where: str) -> BadInput:
    for part, (name, meaning) in _REPLACEMENTS.items():
        if part in expression and name in known:
            return BadInput(
                where,
                f"{preview(expression)} is JavaScript, which is not supported",
                remedy=f"write ${{{name}}}: {meaning}",
            )
    return BadInput(
        where,
        f"{preview(expression)} is not a valid placeholder",
        expected=f"${{name}} with one of {join_names(known)}",
        remedy="write $${ for a literal ${",
    )


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
