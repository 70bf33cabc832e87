"""The actions of our own agent, one per turn: call a tool, or answer.

Models reply {"action": {"tool": name, "arguments": {…}}} or {"action": {"answer": text}}. The outer object is needed
because strict modes of model APIs do not support `anyOf` at the top of a schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.files.json_text import decode
from memorybench.mcp.client import Tool

_OBJECT = re.compile(r"\{.*\}", re.DOTALL)
_COPIED_KEYS = ("type", "description", "enum", "minimum", "maximum")
"""Keys of a tool's schema that every model API supports. The server checks the rest."""
_ARGUMENTS_AS_TEXT = {"type": "string", "description": "The arguments: a JSON object, written as text."}


class InvalidAction(ValueError):
    """The reply of a model is not an action."""


class Action(Record):
    tool: str | None
    arguments: Mapping[str, Any] = {}
    answer: str = ""


def action_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the JSON schema of a reply. Optional arguments are nullable, because strict modes require every key."""
    choices = []
    for tool in tools:
        arguments = _simplify(tool.input_schema) or _ARGUMENTS_AS_TEXT
        choices.append(_object({"tool": {"type": "string", "enum": [tool.name]}, "arguments": arguments}))
    choices.append(_object({"answer": {"type": "string", "description": "What you say to the user."}}))
    return _object({"action": {"anyOf": choices}})


def read_action(text: str) -> Action:
    """Read the action from a reply, with or without the outer object and text around it."""
    match = _OBJECT.search(text)
    if match is None:
        raise InvalidAction("no JSON object")
    try:
        value = decode(match[0], "reply")
        value = value["action"] if isinstance(value.get("action"), dict) else value
        arguments = value.get("arguments") or {}
        if isinstance(arguments, str):
            arguments = decode(arguments, "arguments")
        if isinstance(arguments, dict):
            arguments = {name: argument for name, argument in arguments.items() if argument is not None}
        action = Action(tool=value.get("tool") or None, arguments=arguments, answer=value.get("answer") or "")
    except BadInput as error:
        raise InvalidAction(error.problem) from None
    except ValueError:
        raise InvalidAction("invalid type of tool, arguments or answer") from None
    if action.tool is None and not action.answer.strip():
        raise InvalidAction("neither a tool nor an answer")
    return action


def _simplify(schema: Any) -> dict[str, Any] | None:
    """Return the part of a schema that strict modes support; None if the schema cannot be expressed in it."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("type"), str):
        return None
    simple = {key: schema[key] for key in _COPIED_KEYS if key in schema}
    if simple["type"] == "array":
        items = _simplify(schema.get("items"))
        return None if items is None else {**simple, "items": items}
    if simple["type"] != "object":
        return simple
    required, properties = schema.get("required", ()), {}
    for name, part in schema.get("properties", {}).items():
        simple_part = _simplify(part)
        if simple_part is None:
            return None
        properties[name] = simple_part if name in required else {"anyOf": [simple_part, {"type": "null"}]}
    return {**simple, "properties": properties} if properties or schema.get("additionalProperties") is False else None


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties)}
