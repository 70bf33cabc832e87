"""A conversation as services and LangChain write it down, as turns.

Text; a list of messages; or one object that holds such a list as `messages`. A message is an object with a role and a
content (OpenAI's, Anthropic's and LangChain's three ways to write one), a pair of role and text, or plain text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorybench.core.conversation import Turn
from memorybench.text.sanitize import preview

UNTOLD = ""
"""The role of a text that tells by itself who speaks."""
_DEEPEST = 4
_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_EXPECTED = "text, or a list of messages with role and content"


class Misshapen(ValueError):
    """What is wrong with a conversation, in words that follow its path."""

    def __init__(self, problem: str, expected: str = _EXPECTED) -> None:
        super().__init__(problem)
        self.expected = expected


def turns_of(conversation: Any) -> tuple[Turn, ...]:
    """What was said, in order; messages without text (a bare tool call) say nothing."""
    turns: list[Turn] = []
    _gather(turns, conversation, 0)
    if not turns:
        raise Misshapen("holds no text")
    return tuple(turns)


def _gather(turns: list[Turn], value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        raise Misshapen("is nested too deeply")
    match value:
        case str():
            if value.strip():
                turns.append(Turn(role=UNTOLD, content=value))
        case [str(role), str(text)] if role.lower() in _ROLES:
            _add(turns, role, text)
        case list():
            for one in value:
                _gather(turns, one, depth + 1)
        case {"messages": messages}:
            _gather(turns, messages, depth + 1)
        case Mapping():
            _add_message(turns, value)
        case _:
            raise Misshapen(f"is {preview(value)}")


def _add_message(turns: list[Turn], message: Mapping[str, Any]) -> None:
    inner = message.get("kwargs") or message.get("data")  # LangChain: `dumps`, and `messages_to_dict`
    if isinstance(inner, Mapping) and "content" in inner:
        role = inner.get("role") or inner.get("type") or _class_name(message) or message.get("type")
        _add(turns, role, inner["content"], inner.get("name"))
    elif "content" in message:
        _add(turns, message.get("role") or message.get("type"), message["content"], message.get("name"))
    else:
        raise Misshapen(f"has the message {preview(dict(message))} without content")


def _class_name(message: Mapping[str, Any]) -> str | None:
    """`HumanMessage` of `["langchain", "schema", "messages", "HumanMessage"]`."""
    path = message.get("id")
    return str(path[-1]) if isinstance(path, list) and path else None


def _add(turns: list[Turn], role: Any, content: Any, speaker: Any = None) -> None:
    if not isinstance(role, str) or not role:
        raise Misshapen(f"has a message whose role is {preview(role)}", "a role such as user or assistant")
    plain = role.lower().removesuffix("chunk").removesuffix("message")
    text = _text(content)
    if text.strip():
        name = speaker if isinstance(speaker, str) and speaker else None
        turns.append(Turn(role=_ROLES.get(plain, plain), content=text, speaker=name))


def _text(content: Any) -> str:
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "\n".join(part for one in content if (part := _part(one)))
        case _:
            raise Misshapen(f"has a message whose content is {preview(content)}", "text, or a list of parts")


def _part(part: Any) -> str:
    """Pictures and tool calls are no text, and are passed over."""
    match part:
        case str():
            return part
        case {"text": str(text)}:
            return text
        case Mapping():
            return ""
        case _:
            raise Misshapen(f"has a message with the part {preview(part)}", "text, or a part with a type")
