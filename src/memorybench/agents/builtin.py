"""memorybench's own small agent: it asks a model for one JSON action at a time, and calls the memory server's tools.

The agent does not know the assertions of a scenario, and its prompt does not say what must not be stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from memorybench.core.agents import AgentReply, Workplace
from memorybench.core.contracts import Completion, Model
from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, Malformed, ServiceError, Transient
from memorybench.core.records import Record, digest
from memorybench.core.spending import NOTHING, Spending
from memorybench.core.trials import Subject
from memorybench.files.json_text import decode, find_json
from memorybench.files.templates import Template
from memorybench.mcp.client import Tool
from memorybench.mcp.http import open_mcp_http
from memorybench.secrets.redaction import Redactor

from .config import AgentConfig
from .config_reading import PROMPT_VARIABLES

_COPIED_KEYS = ("type", "description", "enum", "minimum", "maximum")
"""Keys of a tool's JSON schema that every model API supports. All other keys are left out of the schema that a model
gets; the memory server still checks the arguments by them."""
_ARGUMENTS_AS_TEXT = {"type": "string", "description": "The arguments: a JSON object, written as text."}


class InvalidAction(ValueError):
    """The reply of a model is not an action, which is a tool call or an answer, as JSON."""


class Action(Record):
    tool: str | None
    arguments: Mapping[str, Any] = {}
    answer: str = ""


def action_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the JSON schema of a reply: a call of one of the tools, or an answer.

    In it, optional arguments of a tool may be null instead of missing, because strict modes of model APIs require every
    key.
    """
    choices = []
    for tool in tools:
        arguments = _simplify(tool.input_schema) or _ARGUMENTS_AS_TEXT
        choices.append(_object({"tool": {"type": "string", "enum": [tool.name]}, "arguments": arguments}))
    choices.append(_object({"answer": {"type": "string", "description": "What you say to the user."}}))
    return _object({"action": {"anyOf": choices}})


def read_action(text: str) -> Action:
    """Return the action in a reply. Raise InvalidAction if it contains none.

    There may be text around the JSON, and the action need not be in an outer object `{"action": …}`.
    """
    found = find_json(text, "{")
    if not found:
        raise InvalidAction("the reply has no JSON object")
    try:
        value = decode(found, "reply")
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
        raise InvalidAction("the reply has neither a tool nor an answer")
    return action


def _simplify(schema: Any) -> dict[str, Any] | None:
    """Return a schema without the keys that some model APIs reject in their strict mode.

    None if a part of it has no single type, or is an object whose properties are not listed.
    """
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


_LARGEST_FILE = 20_000
_RETRY_MESSAGE = (
    'That could not be read ({problem}). Reply with one JSON object: {{"action": {{"tool": …, "arguments": {{…}}}}}} '
    'or {{"action": {{"answer": …}}}}.'
)


class _Conversation(Struct):
    """The turns so far, the tokens and dollars spent, and the names of the tools that the agent called."""

    turns: list[Turn]
    spent: Spending = NOTHING
    tool_calls: list[str] = field(default_factory=list)

    def add_completion(self, completion: Completion) -> None:
        self.turns.append(Turn(role="assistant", content=completion.text))
        self.spent = self.spent + completion.spent

    def add_message(self, text: str) -> None:
        self.turns.append(Turn(role="user", content=text))

    def reply(self, text: str, *, is_answer: bool) -> AgentReply:
        lines = (json.dumps({"role": turn.role, "content": turn.content}, ensure_ascii=False) for turn in self.turns)
        return AgentReply(
            text=text,
            transcript="\n".join(lines),
            ended="answered" if is_answer else "max_turns",
            spent=self.spent,
            tool_calls=tuple(self.tool_calls),
        )


class BuiltinAgent:
    def __init__(self, config: AgentConfig, model: Model, redactor: Redactor) -> None:
        assert config.prompt is not None
        self.subject = Subject(
            role="agent",
            name=config.name,
            settings={"model": model.subject.plain(), "prompt": digest(config.prompt)},
        )
        self._prompt = Template.parse(config.prompt, PROMPT_VARIABLES, f"agent {config.name}")
        self._model = model
        self._redactor = redactor

    async def turn(self, prompt: str, place: Workplace, *, session: int, max_turns: int) -> AgentReply:
        async with open_mcp_http(place.server_url, {}, self._redactor) as client:
            tools = await client.list_tools()
            schema = action_schema(tools)
            described = _describe_tools(tools, client.instructions)
            instructions = self._prompt.render({"tools": described, "files": _read_files(place.folder)})
            conversation = _Conversation([Turn(role="system", content=instructions), Turn(role="user", content=prompt)])
            for _ in range(max_turns):
                action = await self._next_action(conversation, schema)
                if action.tool is None:
                    return conversation.reply(action.answer, is_answer=True)
                conversation.tool_calls.append(action.tool)
                try:
                    result = (await client.call_tool(action.tool, action.arguments)).text
                except (Transient, Malformed):
                    raise
                except ServiceError as error:  # a tool that failed, or a call that the server rejected
                    result = f"it failed: {error}"
                conversation.add_message(f"Result of {action.tool}: {result}")
            return conversation.reply("", is_answer=False)

    async def _next_action(self, conversation: _Conversation, schema: Mapping[str, Any]) -> Action:
        """Ask the model for an action, and a second time if the reply is invalid.

        Raise ServiceError if the second reply is invalid, too.
        """
        problem = ""
        for _ in range(2):
            completion = await self._model.complete(conversation.turns, schema=schema)
            conversation.add_completion(completion)
            try:
                return read_action(completion.text)
            except InvalidAction as error:
                problem = str(error)
                conversation.add_message(_RETRY_MESSAGE.format(problem=problem))
        raise ServiceError(f"agent {self.subject.name}: the model gave two invalid replies; the second: {problem}")


def _describe_tools(tools: Sequence[Tool], instructions: str) -> str:
    lines = [f"- {tool.name}: {tool.description}\n  arguments: {json.dumps(tool.input_schema)}" for tool in tools]
    return "\n".join([*lines, *([f"The memory says: {instructions}"] if instructions else [])])


def _read_files(folder: Path) -> str:
    """Return the names and beginnings of all files in a folder as one text for the prompt; "(none)" without files."""
    parts = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_bytes()[:_LARGEST_FILE].decode("utf-8", "replace")
        parts.append(f"{path.relative_to(folder).as_posix()}:\n{text}")
    return "\n\n".join(parts) or "(none)"
