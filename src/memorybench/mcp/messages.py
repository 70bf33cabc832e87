"""JSON-RPC 2.0 as the Model Context Protocol uses it: what is sent, what came back, and what that means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from memorybench.core.errors import Malformed, ServiceError
from memorybench.secrets.redaction import Redactor
from memorybench.text.sanitize import EXCERPT, printable

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Protocol versions we speak, newest first."""
MESSAGE_CAP = 32 * 2**20
NO_SUCH_METHOD = -32601

Message = dict[str, Any]


class ToolError(ServiceError):
    """The tool was called, and says itself that it failed."""


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    text: str
    """All text parts, one after the other."""
    structured: Any = None
    """The structured content; None: the server sent none."""

    def value(self) -> Any:
        """The structured content, else the text as JSON, else the text."""
        if self.structured is not None:
            return self.structured
        try:
            return decode(self.text)
        except ValueError:
            return self.text


def request(id: int, method: str, params: Mapping[str, Any] | None = None) -> Message:
    return {**notification(method, params), "id": id}


def notification(method: str, params: Mapping[str, Any] | None = None) -> Message:
    message: Message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": dict(params)}


def answer(request: Message) -> Message | None:
    """What a client says to a server's request; None: it was a notification, which gets no answer."""
    if "id" not in request:
        return None
    reply: Message = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] == "ping":
        return {**reply, "result": {}}
    return {**reply, "error": {"code": NO_SUCH_METHOD, "message": "this client offers no such method"}}


def encode(message: Mapping[str, Any]) -> bytes:
    """One line: JSON escapes every line break inside."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()


def decode(text: str | bytes) -> Any:
    """The JSON value of a text; ValueError where it is none."""
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None


def messages_in(value: Any) -> list[Message]:
    """The JSON-RPC messages in a decoded value: one, a batch (as older servers send), or none."""
    found = value if isinstance(value, list) else [value]
    return [message for message in found if isinstance(message, dict) and message.get("jsonrpc") == "2.0"]


def is_reply(message: Message) -> bool:
    return "method" not in message and "id" in message


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the replies of one server, and words what is wrong with them."""

    server: str
    """What messages call it."""
    redactor: Redactor

    def result(self, reply: Message, method: str) -> Mapping[str, Any]:
        if "error" in reply:
            raise ServiceError(f"{self.server}: {method}: {self.said(_error_text(reply['error']))}")
        result = reply.get("result")
        if not isinstance(result, dict):
            raise Malformed(f"{self.server}: {method}: the reply holds no result")
        return result

    def version(self, result: Mapping[str, Any]) -> str:
        version = result.get("protocolVersion")
        if version not in VERSIONS:
            raise ServiceError(
                f"{self.server}: it speaks version {self.said(str(version))} of the protocol; "
                f"expected one of {', '.join(VERSIONS)}"
            )
        return str(version)

    def tools(self, result: Mapping[str, Any]) -> list[Tool]:
        listed = result.get("tools")
        if not isinstance(listed, list) or not all(isinstance(tool, dict) and "name" in tool for tool in listed):
            raise Malformed(f"{self.server}: tools/list: the reply holds no list of tools")
        return [
            Tool(str(tool["name"]), str(tool.get("description") or ""), tool.get("inputSchema") or {})
            for tool in listed
        ]

    def tool_result(self, result: Mapping[str, Any], tool: str) -> ToolResult:
        content = result.get("content", [])
        if not isinstance(content, list):
            raise Malformed(f"{self.server}: {tool}: the content of the reply is no list")
        texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        told = ToolResult("\n".join(texts), result.get("structuredContent"))
        if result.get("isError"):
            raise ToolError(f"{self.server}: {tool}: {self.said(told.text) or 'failed without a word'}")
        return told

    def said(self, text: str) -> str:
        """Foreign text for an error message: redacted before it is cut, as half a key would not be recognised."""
        text = printable(self.redactor.clean(text))
        return text if len(text) <= EXCERPT else f"{text[:EXCERPT]}…"


def _error_text(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    return f"error {error.get('code')}: {error.get('message')}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
