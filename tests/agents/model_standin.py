"""The APIs that Claude Code and Codex ask, as far as one story goes: the memory is told something, then an answer.

`asked` holds the bodies of what was asked.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TOLD = {"content": "The user drinks tea"}
ANSWER = "Noted."


@dataclass
class Standin:
    url: str = ""
    endless: bool = False
    """It goes on calling the tool."""
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def messages(self, request: web.Request) -> web.Response:
        """Anthropic's."""
        body = await request.json()
        self.asked.append(body)
        said = json.dumps(body["messages"])
        begun = {"id": "m1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta, stop = {"type": "text_delta", "text": ANSWER}, "end_turn"
        if self.endless or '"tool_result"' not in said:
            block = {"type": "tool_use", "id": "t1", "name": "mcp__memory__remember", "input": {}}
            delta, stop = {"type": "input_json_delta", "partial_json": json.dumps(TOLD)}, "tool_use"
        return _events(
            [
                {"type": "message_start", "message": {**begun, "usage": {"input_tokens": 11, "output_tokens": 1}}},
                {"type": "content_block_start", "index": 0, "content_block": block},
                {"type": "content_block_delta", "index": 0, "delta": delta},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}},
                {"type": "message_stop"},
            ]
        )

    async def responses(self, request: web.Request) -> web.Response:
        """OpenAI's."""
        body = await request.json()
        self.asked.append(body)
        item: dict[str, Any] = {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": ANSWER}],
        }
        if not any(part.get("type") == "function_call_output" for part in body["input"]):
            call = {"type": "function_call", "id": "f1", "call_id": "c1", "arguments": json.dumps(TOLD)}
            item = {**call, "namespace": "mcp__memory", "name": "remember"}
        usage = {"input_tokens": 11, "output_tokens": 5, "total_tokens": 16}
        return _events(
            [
                {"type": "response.created", "response": {"id": "r1"}},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": {"id": "r1", "usage": usage}},
            ]
        )


@asynccontextmanager
async def open_standin(*, endless: bool = False) -> AsyncIterator[Standin]:
    standin = Standin(endless=endless)
    application = web.Application(client_max_size=2**26)
    application.router.add_post("/v1/messages", standin.messages)
    application.router.add_post("/v1/responses", standin.responses)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        standin.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield standin
    finally:
        await runner.cleanup()


def _events(events: Sequence[dict[str, Any]]) -> web.Response:
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return web.Response(text=text, content_type="text/event-stream")
