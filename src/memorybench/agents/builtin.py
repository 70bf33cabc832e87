"""Our own small agent: any model, one JSON action a turn, and the tools that the memory server offers.

It knows nothing of what is asserted, and its prompt says nothing of what had better not be stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memorybench.core.agents import AgentReply, Workplace
from memorybench.core.contracts import Completion, Model
from memorybench.core.conversation import Turn
from memorybench.core.errors import ServiceError
from memorybench.core.records import digest
from memorybench.core.spending import NOTHING, Spending
from memorybench.core.trials import Subject
from memorybench.files.templates import Template
from memorybench.mcp.client import McpClient
from memorybench.mcp.http_transport import open_mcp_http
from memorybench.mcp.messages import Tool, ToolError
from memorybench.secrets.redaction import Redactor

from .actions import Action, Unclear, action_schema, read_action
from .config import AgentConfig
from .config_reading import OF_THE_PROMPT

_LARGEST_FILE = 20_000
_AGAIN = (
    'That could not be read ({problem}). Reply with one JSON object: {{"action": {{"tool": …, "arguments": {{…}}}}}} '
    'or {{"action": {{"answer": …}}}}.'
)


@dataclass(slots=True)
class _Talk:
    """What was said so far, and what it cost."""

    turns: list[Turn]
    spent: Spending = NOTHING
    tool_calls: list[str] = field(default_factory=list)

    def said(self, completion: Completion) -> None:
        self.turns.append(Turn(role="assistant", content=completion.text))
        self.spent = self.spent + completion.spent

    def told(self, text: str) -> None:
        self.turns.append(Turn(role="user", content=text))

    def reply(self, text: str, *, answered: bool) -> AgentReply:
        lines = (json.dumps({"role": turn.role, "content": turn.content}, ensure_ascii=False) for turn in self.turns)
        return AgentReply(
            text=text,
            transcript="\n".join(lines),
            ended="answered" if answered else "max_turns",
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
        self._prompt = Template.parse(config.prompt, OF_THE_PROMPT, f"agent {config.name}")
        self._model = model
        self._redactor = redactor

    async def turn(self, prompt: str, place: Workplace, *, session: int, max_turns: int) -> AgentReply:
        async with open_mcp_http(place.server_url, {}, self._redactor) as client:
            tools = await client.list_tools()
            instructions = self._prompt.render({"tools": _listed(tools), "files": _written_in(place.folder)})
            schema = action_schema(tools)
            talk = _Talk([Turn(role="system", content=instructions), Turn(role="user", content=prompt)])
            for _ in range(max_turns):
                action = await self._next(talk, schema)
                if action.tool is None:
                    return talk.reply(action.answer, answered=True)
                talk.tool_calls.append(action.tool)
                talk.told(f"Result of {action.tool}: {await _called(client, action)}")
            return talk.reply("", answered=False)

    async def _next(self, talk: _Talk, schema: Mapping[str, Any]) -> Action:
        """One action; a reply that is none is asked for once more."""
        problem = ""
        for _ in range(2):
            completion = await self._model.complete(talk.turns, schema=schema)
            talk.said(completion)
            try:
                return read_action(completion.text)
            except Unclear as error:
                problem = str(error)
                talk.told(_AGAIN.format(problem=problem))
        raise ServiceError(f"agent {self.subject.name}: it gave no action that can be read, twice: {problem}")


async def _called(client: McpClient, action: Action) -> str:
    assert action.tool is not None
    try:
        return (await client.call_tool(action.tool, action.arguments)).text
    except ToolError as error:
        return f"it failed: {error}"


def _listed(tools: Sequence[Tool]) -> str:
    return "\n".join(
        f"- {tool.name}: {tool.description}\n  arguments: {json.dumps(tool.input_schema)}" for tool in tools
    )


def _written_in(folder: Path) -> str:
    """What an agent with a file tool would find there."""
    parts = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_bytes()[:_LARGEST_FILE].decode("utf-8", "replace")
        parts.append(f"{path.relative_to(folder).as_posix()}:\n{text}")
    return "\n\n".join(parts) or "(none)"
