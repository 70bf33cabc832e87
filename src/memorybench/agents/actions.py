"""What our own agent may do in a turn: call one tool, or answer. As a JSON schema, and read from a model's reply.

Models are asked for {"action": {"tool": name, "arguments": {…}}} or {"action": {"answer": text}}: an object around the
choice, because strict modes of model APIs allow no choice at the top.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.files.json_text import decode
from memorybench.mcp.messages import Tool

_OBJECT = re.compile(r"\{.*\}", re.DOTALL)
_KEPT = ("type", "description", "enum", "minimum", "maximum")
"""Of a tool's own schema: what every API understands. The server checks the rest."""
_AS_TEXT = {"type": "string", "description": "The arguments: a JSON object, written as text."}


class Unclear(ValueError):
    """A reply that is no action."""


class Action(Record):
    tool: str | None
    arguments: Mapping[str, Any] = {}
    answer: str = ""


def action_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """The schema of a reply. What may be left out of a call may be null, and everything is said."""
    calls = [
        _object({"tool": {"type": "string", "enum": [tool.name]}, "arguments": _arguments(tool)}) for tool in tools
    ]
    answer = _object({"answer": {"type": "string", "description": "What you say to the user."}})
    return _object({"action": {"anyOf": [*calls, answer]}})


def read_action(text: str) -> Action:
    """The action in a reply, with or without the object around it, and whatever a model has said beside it."""
    found = _OBJECT.search(text)
    if found is None:
        raise Unclear("no JSON object")
    try:
        value = decode(found[0], "reply")
        value = value["action"] if isinstance(value.get("action"), dict) else value
        action = Action(
            tool=value.get("tool") or None,
            arguments=_present(value.get("arguments") or {}),
            answer=value.get("answer") or "",
        )
    except BadInput as bad:
        raise Unclear(bad.problem) from None
    except ValueError:
        raise Unclear("tool, arguments or answer are of the wrong kind") from None
    if action.tool is None and not action.answer.strip():
        raise Unclear("neither a tool nor an answer")
    return action


def _present(arguments: Any) -> Any:
    """Without what was left out by saying null; an object that came as text is read."""
    value = decode(arguments, "arguments") if isinstance(arguments, str) else arguments
    return {name: one for name, one in value.items() if one is not None} if isinstance(value, dict) else value


def _arguments(tool: Tool) -> dict[str, Any]:
    schema = _plain(tool.input_schema)
    return _AS_TEXT if schema is None else schema


def _plain(schema: Any) -> dict[str, Any] | None:
    """The part of a schema that strict modes take; None: it can not be told in that part."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("type"), str):
        return None
    kept = {key: schema[key] for key in _KEPT if key in schema}
    if kept["type"] == "array":
        items = _plain(schema.get("items"))
        return None if items is None else {**kept, "items": items}
    if kept["type"] != "object":
        return kept
    needed, properties = schema.get("required", ()), {}
    for name, part in schema.get("properties", {}).items():
        told = _plain(part)
        if told is None:
            return None
        properties[name] = told if name in needed else _or_null(told)
    return {**kept, "properties": properties} if properties or schema.get("additionalProperties") is False else None


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [dict(schema), {"type": "null"}]}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties)}
