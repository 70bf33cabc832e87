"""Provider expressions: `bm25(k1=1.5,b=0.6)` is the provider bm25 with other settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview
from memorybench.text.spelling import snake

from .yaml_file import parse_yaml

_CALL = re.compile(r"([^()]+)\((.*)\)", re.DOTALL)
_LIST_ITEM = re.compile(r"""(?:[^,(]|\((?:[^()"']|"(?:\\.|[^"\\])*"|'[^']*')*\)|\()+""")
_ARGUMENT = re.compile(r"""(?:[^,\["']|"(?:\\.|[^"\\])*"|'[^']*'|\[[^\]]*\]|["'\[])+""")
_KEY = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*")
_PLAIN_TEXT = re.compile(r"[A-Za-z][\w./:@+-]*")
_EXPECTED = "NAME or NAME(key=value,...), such as bm25(k1=1.5,b=0.6)"


def split_names(text: str) -> list[str]:
    """Split a list at its commas, but not inside parentheses: `bm25(k1=1.5,b=0.6),hybrid` has two names."""
    return [name.strip() for name in _LIST_ITEM.findall(text) if name.strip()]


class Expression(Struct, frozen=True):
    """A name with settings, such as `bm25(k1=1.5)`."""

    name: str
    settings: Mapping[str, Any]
    """The settings, sorted by key; keys are dotted and in snake_case, such as `chunking.size`."""

    def __str__(self) -> str:
        """Return the standard spelling, which is the same for all spellings of the same settings."""
        settings = ",".join(f"{key}={format_value(value)}" for key, value in self.settings.items())
        return f"{self.name}({settings})" if settings else self.name

    def nested(self) -> dict[str, Any]:
        """Return the settings as a section of a config: `chunking.size` is the key `size` of `chunking`."""
        section: dict[str, Any] = {}
        for key, value in self.settings.items():
            *parents, last = key.split(".")
            inner = section
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[last] = value
        return section


def parse_expression(text: str) -> Expression:
    """Parse a provider's name, with or without settings. Raise BadInput if it is invalid."""
    call = _CALL.fullmatch(text.strip())
    if call is None:
        if "(" in text or ")" in text:
            raise BadInput("", f"invalid provider {preview(text)}", expected=_EXPECTED)
        return Expression(text.strip(), {})
    settings: dict[str, Any] = {}
    for argument in (found for found in _ARGUMENT.findall(call[2]) if found.strip(", ")):
        key, equals, value = argument.partition("=")
        name = ".".join(snake(step) for step in key.strip().split("."))
        if not equals or not value.strip() or not _KEY.fullmatch(name):
            raise BadInput("", f"invalid setting {preview(argument.strip())} of {call[1]}", expected=_EXPECTED)
        if name in settings:
            raise BadInput(
                "", f"the setting {preview(key.strip())} of {call[1]} occurs twice", expected="each setting once"
            )
        for known in settings:
            if known.startswith(f"{name}.") or name.startswith(f"{known}."):
                raise BadInput(
                    "",
                    f"setting {max(name, known)} of {call[1]} conflicts with {min(name, known)}",
                    remedy="set only one of the two",
                )
        settings[name] = _value(parse_yaml(value, f'provider "{text.strip()}"').value, argument)
    return Expression(call[1].strip(), dict(sorted(settings.items())))


def canonical_name(text: str) -> str:
    """Return the standard spelling of a provider's name, or the text itself if it is not a valid name."""
    try:
        return str(parse_expression(text))
    except BadInput:
        return text


def _value(value: Any, argument: str) -> Any:
    if isinstance(value, list):
        return [_value(item, argument) for item in value]
    if isinstance(value, dict):
        raise BadInput("", f"invalid setting {preview(argument.strip())}", expected="a number, a text or a list")
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


def format_value(value: Any) -> str:
    """Return a value as it is written in an expression or a YAML file."""
    if isinstance(value, str) and _PLAIN_TEXT.fullmatch(value) and parse_yaml(value, "").value == value:
        return value
    if isinstance(value, list):
        return f"[{','.join(map(format_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
