"""Finds messages, queries and memories in the inputs and outputs of recorded spans.

Services store inputs and outputs as the program passed them: texts, JSON in texts, or values in the formats of
LangChain, OpenAI, mem0 or OpenInference. If a value has another form, its content is unknown: most functions return
None.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

_MESSAGE_TEXTS = ("content", "contents", "parts", "kwargs", "data")
_MESSAGE_LISTS = ("messages", "choices", "generations", "conversation", "input_messages", "output_messages")
_MESSAGES = ("output", "input", "question", "query", "answer", "response", "reply", "result", "text", "value")
"""Keys whose value is taken as the message if an object has none of the keys in _MESSAGE_LISTS and _MESSAGE_TEXTS."""
_RECORD_LISTS = ("documents", "results", "memories", "records", "facts", "items", "hits", "matches", "output", "result")
_RECORD_TEXTS = ("content", "memory", "page_content", "pageContent", "text", "fact", "document", "value", "summary")
_QUERIES = ("query", "input", "question", "text", "search_query", "q")
_NOT_STORED = frozenset({"NONE", "NOOP", "DELETE"})
"""Values of the key `event` in mem0's results that mean that a memory was not stored."""
_MAX_DEPTH = 8


def parsed(value: Any) -> Any:
    """Parse a text that is JSON or a Python literal (as pandas writes lists into CSV); return other values unchanged.

    The arguments of a function call, as Langfuse records them, become the first positional argument, or the mapping of
    all named arguments if a known name such as `query` is among them or there is no positional argument.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            try:
                value = ast.literal_eval(value.strip())
            except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
                return value
    match value:
        case {"args": list() as args, "kwargs": Mapping() as named} if len(value) == 2:  # the decorator of Langfuse
            return args[0] if args and not any(key in named for key in (*_QUERIES, *_MESSAGE_LISTS)) else named
    return value


def messages(value: Any, role: str, depth: int = 0) -> list[Any] | None:
    """Return the messages in the input or output of a span; None if there are none, or their form is unknown.

    A text, or a message without a role, gets the role `role`.
    """
    value = parsed(value)
    if depth > _MAX_DEPTH:
        return None
    match value:
        case str():
            return [{"role": role, "content": value}] if value.strip() else None
        case list():
            found = [messages(one, role, depth + 1) for one in value]
            return [one for some in found if some for one in some] or None
        case {"message": Mapping() | str() as inner}:
            return messages(inner, role, depth + 1)
        case Mapping():
            return _object_messages(value, role, depth)
    return None


def _object_messages(value: Mapping[str, Any], role: str, depth: int) -> list[Any] | None:
    for key in _MESSAGE_LISTS:
        if isinstance(parsed(value.get(key)), list):
            return messages(value[key], role, depth + 1)
    if any(value.get(key) for key in _MESSAGE_TEXTS):
        if isinstance(contents := value.get("contents"), list):  # of OpenInference
            parts = [one.get("message_content", one) for one in contents if isinstance(one, Mapping)]
            value = {**value, "content": parts}
        has_role = "role" in value or "type" in value or "kwargs" in value
        return [dict(value) if has_role else {**value, "role": role}]
    for key in _MESSAGES:
        if value.get(key):
            return messages(value[key], role, depth + 1)
    return None


def query(value: Any) -> str:
    """Return the text of the query in the input of a search; "" if there is none, or its form is unknown."""
    value = parsed(value)
    if isinstance(value, Mapping):
        value = next((value[key] for key in _QUERIES if value.get(key)), "")
    return value if isinstance(value, str) else ""


def records(value: Any, depth: int = 0) -> list[dict[str, Any]] | None:
    """Return the memories in a value, each as `{"content": …}`; None if the form of the value is unknown."""
    value = parsed(value)
    match value:
        case list():
            return [record for one in value if (record := _record(one)) is not None]
        case str() if value.strip():
            return [{"content": value}]
        case Mapping() if depth < _MAX_DEPTH:
            for key in _RECORD_LISTS:
                if key in value and isinstance(parsed(value[key]), list | Mapping):
                    return records(value[key], depth + 1)
            record = _record(value)
            return None if record is None or ("content" not in value and not _text(value)) else [record]
    return None


def written(output: Any, input: Any) -> list[dict[str, Any]] | None:
    """Return the memories that a write stored, from its output or else from its input; None if they are unknown.

    An input that is a conversation is not stored itself, so the memories are not read from it.
    """
    result, given = parsed(output), parsed(input)
    found = records(result) if isinstance(result, list | Mapping) else None
    if found:
        return found
    if given is None or is_conversation(given):
        return found
    return records(given) or found


def is_conversation(value: Any) -> bool:
    """Return whether a value is a list of messages with roles, or an object with such a list as `messages`."""
    value = parsed(value)
    if isinstance(value, Mapping):
        value = parsed(value.get("messages"))
    return isinstance(value, list) and any(isinstance(one, Mapping) and "role" in one for one in value)


def unflatten(value: Any, depth: int = 0) -> Any:
    """Return nested objects for an object with dotted keys such as `retrieval.documents.0.content`.

    An object whose keys are all numbers becomes a list.
    """
    if depth > 2 * _MAX_DEPTH:
        return None
    if isinstance(value, list):
        return [unflatten(one, depth + 1) for one in value]
    if not isinstance(value, Mapping):
        return value
    nested: dict[str, Any] = {}
    for key, one in value.items():
        _put(nested, str(key).split("."), unflatten(one, depth + 1))
    return _with_lists(nested)


def _put(target: dict[str, Any], path: list[str], value: Any) -> None:
    *above, last = path
    for part in above[: 2 * _MAX_DEPTH]:
        inner = target.setdefault(part, {})
        if not isinstance(inner, dict):  # `a` and `a.b` are both names
            return
        target = inner
    existing = target.get(last)
    if isinstance(existing, dict) and isinstance(value, Mapping):
        existing.update(value)
    elif existing is None:
        target[last] = value


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _with_lists(one) for key, one in value.items()}
    if inner and all(key.isascii() and key.isdecimal() for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner


def _record(one: Any) -> dict[str, Any] | None:
    match one:
        case str():
            return {"content": one}
        case Mapping():
            if str(one.get("event", "")).upper() in _NOT_STORED:
                return None
            text = _text(one)
            return {"content": text if text is not None else dict(one)}
    return None


def _text(record: Mapping[str, Any]) -> str | None:
    for key in _RECORD_TEXTS:
        inner = record.get(key)
        if isinstance(inner, str):
            return inner
        if isinstance(inner, Mapping) and (found := _text(inner)) is not None:
            return found
    return None
