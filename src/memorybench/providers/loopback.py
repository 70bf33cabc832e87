"""Our model and embedder as an OpenAI-compatible server on this machine, for libraries that run in this process.

So whatever a library asks of a model is asked of ours: it is limited, priced and charged like every other call, and no
library needs to know of us. Each user of it has a door of its own, by whose key it is known.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context, copy_context
from typing import Any

from aiohttp import web

from memorybench.core.contracts import Completion, Embedder, Model
from memorybench.core.conversation import Turn

_LARGEST_REQUEST = 32 * 2**20
_FINISHES = {"filter": "content_filter", "tools": "tool_calls", "length": "length"}
_ONCE = {"x-should-retry": "false"}
"""Tells OpenAI's own client not to ask again: retries are the engine's."""


class Door:
    """What comes in by `key` while `serving` is open is charged to the step around it."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.key = secrets.token_hex(16)
        self._context: Context | None = None
        self._failure: Exception | None = None

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Raises what the model or the embedder raised inside, even where the library has swallowed it.

        One at a time: there is no telling whose call comes in.
        """
        assert self._context is None
        self._context, self._failure = copy_context(), None
        try:
            yield
        except Exception:
            if self._failure is None:
                raise
        finally:
            self._context = None
        if self._failure is not None:
            raise self._failure

    async def answer(self, work: Callable[[], Awaitable[Any]]) -> web.Response:
        if self._context is None:
            return _refused(409, "nobody waits for this any more")

        async def within() -> Any:
            return await work()

        try:
            told = await asyncio.get_running_loop().create_task(within(), context=self._context)
        except _Refused as refused:
            return _refused(400, str(refused))
        except Exception as error:
            self._failure = self._failure or error
            return _refused(424, str(error))
        return web.json_response(told, headers=_ONCE)


class _Refused(Exception):
    """The request asks for something that the contracts of models and embedders do not have."""


class Loopback:
    """Opened by `open_loopback`."""

    def __init__(self, model: Model | None, embedder: Embedder) -> None:
        self._model = model
        self._embedder = embedder
        self._doors: dict[str, Door] = {}
        self.base_url = ""

    @contextmanager
    def door(self) -> Iterator[Door]:
        door = Door(self.base_url)
        self._doors[door.key] = door
        try:
            yield door
        finally:
            del self._doors[door.key]

    async def chat(self, request: web.Request) -> web.Response:
        return await self._through_door(request, self._completed)

    async def embeddings(self, request: web.Request) -> web.Response:
        return await self._through_door(request, self._embedded)

    async def _through_door(
        self, request: web.Request, work: Callable[[Mapping[str, Any]], Awaitable[Any]]
    ) -> web.Response:
        door = self._doors.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if door is None:
            return _refused(401, "this key opens no door")
        asked = await request.json()
        return await door.answer(lambda: work(asked))

    async def _completed(self, asked: Mapping[str, Any]) -> Any:
        if self._model is None:
            raise _Refused("no model was given to this provider")
        for wish in ("stream", "tools", "functions"):
            if asked.get(wish):
                raise _Refused(f"{wish} is not offered here")
        turns = [Turn(role=message["role"], content=_text(message["content"])) for message in asked["messages"]]
        return _chat(await self._model.complete(turns, schema=_schema(asked.get("response_format"))))

    async def _embedded(self, asked: Mapping[str, Any]) -> Any:
        texts = [asked["input"]] if isinstance(asked["input"], str) else list(asked["input"])
        if not all(isinstance(text, str) for text in texts):
            raise _Refused("tokens can not be embedded, only text")
        vectors = [[float(number) for number in vector] for vector in await self._embedder.embed(texts)]
        packed = asked.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": n, "embedding": _packed(vector) if packed else vector}
            for n, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return {"object": "list", "data": data, "model": self._embedder.subject.name, "usage": usage}


@asynccontextmanager
async def open_loopback(model: Model | None, embedder: Embedder) -> AsyncIterator[Loopback]:
    """Listens on this machine alone, and answers only those who have a key to a door."""
    loopback = Loopback(model, embedder)
    app = web.Application(client_max_size=_LARGEST_REQUEST)
    app.router.add_post("/v1/chat/completions", loopback.chat)
    app.router.add_post("/v1/embeddings", loopback.embeddings)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        loopback.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield loopback
    finally:
        await runner.cleanup()


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content or ()
    if not all(part.get("type") == "text" for part in parts):
        raise _Refused("only text can be sent to this model")
    return "\n".join(part["text"] for part in parts)


def _schema(wanted: Any) -> Mapping[str, Any] | None:
    """`json_object` wants any JSON: the prompt asks for it, and no schema could say what it is."""
    if not isinstance(wanted, dict) or wanted.get("type") != "json_schema":
        return None
    schema: Mapping[str, Any] = wanted["json_schema"]["schema"]
    return schema


def _chat(completion: Completion) -> dict[str, Any]:
    spent = completion.spent
    return {
        "id": "loopback",
        "object": "chat.completion",
        "created": 0,
        "model": completion.model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": completion.text},
                "finish_reason": _FINISHES.get(completion.finish, "stop"),
            }
        ],
        "usage": {
            "prompt_tokens": spent.input_tokens,
            "completion_tokens": spent.output_tokens,
            "total_tokens": spent.input_tokens + spent.output_tokens,
        },
    }


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


def _refused(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "memorybench", "param": None, "code": None}
    return web.json_response({"error": error}, status=status, headers=_ONCE)
