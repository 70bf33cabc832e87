"""Conversations as services and LangChain write them, parsed into turns.

A conversation is a text, a message, a list of messages, or an object with such a list as `messages`. A message is a
text, a pair of role and text, or an object with a role and a content in the formats of OpenAI, Anthropic and LangChain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorybench.core.conversation import Turn
from memorybench.text.sanitize import preview

NO_ROLE = ""
"""The role of a turn that was given as a text without a role, such as a transcript that names its speakers."""
_MAX_DEPTH = 4
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


class InvalidConversation(ValueError):
    """A value is not a conversation. The message of the exception describes the problem, `expected` a valid value."""

    def __init__(self, problem: str, expected: str = _EXPECTED) -> None:
        super().__init__(problem)
        self.expected = expected


def turns_of(conversation: Any) -> tuple[Turn, ...]:
    """Return the turns of a conversation; messages without text, such as tool calls, are skipped.

    Raise InvalidConversation if the value has another form, or contains no text.
    """
    turns: list[Turn] = []
    _gather(turns, conversation, 0)
    if not turns:
        raise InvalidConversation("the conversation has no text")
    return tuple(turns)


def _gather(turns: list[Turn], value: Any, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise InvalidConversation("the conversation is nested too deeply")
    match value:
        case str():
            if value.strip():
                turns.append(Turn(role=NO_ROLE, content=value))
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
            raise InvalidConversation(f"invalid conversation {preview(value)}")


def _add_message(turns: list[Turn], message: Mapping[str, Any]) -> None:
    inner = message.get("kwargs") or message.get("data")  # LangChain: `dumps`, and `messages_to_dict`
    if isinstance(inner, Mapping) and "content" in inner:
        path = message.get("id")  # such as ["langchain", "schema", "messages", "HumanMessage"]
        class_name = str(path[-1]) if isinstance(path, list) and path else None
        role = inner.get("role") or inner.get("type") or class_name or message.get("type")
        _add(turns, role, inner["content"], inner.get("name"))
    elif "content" in message:
        _add(turns, message.get("role") or message.get("type"), message["content"], message.get("name"))
    else:
        raise InvalidConversation(f"the message {preview(dict(message))} has no content")


def _add(turns: list[Turn], role: Any, content: Any, speaker: Any = None) -> None:
    if not isinstance(role, str) or not role:
        raise InvalidConversation(f"invalid role {preview(role)} of a message", "a role such as user or assistant")
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
            raise InvalidConversation(f"invalid content {preview(content)} of a message", "text, or a list of parts")


def _part(part: Any) -> str:
    """Return the text of one part of a message's content; "" for images and tool calls."""
    match part:
        case str():
            return part
        case {"text": str(text)}:
            return text
        case Mapping():
            return ""
        case _:
            raise InvalidConversation(f"invalid part {preview(part)} of a message", "text, or a part with a type")


def messages_in(attributes: Mapping[str, Any], *names: str) -> list[Any]:
    """Return the messages in the attributes `names` of a span.

    The text in the `parts` of a message, as in OpenTelemetry's conventions, is returned as its `content`.
    """
    found: list[Any] = []
    for name in names:
        value = attributes.get(name)
        found += value if isinstance(value, list) else [value] if value else []
    return [_with_content(one) for one in found]


def _with_content(message: Any) -> Any:
    if not isinstance(message, Mapping) or "content" in message or not isinstance(message.get("parts"), list):
        return message
    texts = [
        part["content"]
        for part in message["parts"]
        if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("content"), str)
    ]
    return {**message, "content": "\n".join(texts)}
