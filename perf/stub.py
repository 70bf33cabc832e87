"""A model of 50 ms and a memory of 20 ms, in a process of their own, which count how many calls are in flight."""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection

from aiohttp import web

from perf.serving import served

MODEL_SECONDS = 0.050
MEMORY_SECONDS = 0.020
CHAT_REPLY = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "model": "stub-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 1, "total_tokens": 41},
    }
)


def stub_server() -> AbstractContextManager[str]:
    """The address of a running stub."""
    return served(_serve)


def _serve(pipe: Connection) -> None:
    in_flight = {"now": 0, "most": 0}

    async def slow(request: web.Request, seconds: float, reply: str) -> web.Response:
        await request.read()
        in_flight["now"] += 1
        in_flight["most"] = max(in_flight["most"], in_flight["now"])
        await asyncio.sleep(seconds)
        in_flight["now"] -= 1
        return web.Response(text=reply, content_type="application/json")

    async def model(request: web.Request) -> web.Response:
        return await slow(request, MODEL_SECONDS, CHAT_REPLY)

    async def memory(request: web.Request) -> web.Response:
        return await slow(request, MEMORY_SECONDS, '{"results": [{"id": "m1", "memory": "tea", "score": 0.5}]}')

    async def most(request: web.Request) -> web.Response:
        seen, in_flight["most"] = in_flight["most"], 0
        return web.json_response(seen)

    async def serve() -> None:
        app = web.Application()
        app.add_routes(
            [
                web.post("/v1/chat/completions", model),
                web.post("/memory/{operation}", memory),
                web.get("/most-in-flight", most),
            ]
        )
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        pipe.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(serve())
