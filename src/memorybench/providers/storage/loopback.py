"""Serves memorybench's model and embedder as OpenAI's API on this machine, for libraries that run in this process.

So every model call of a library is limited, priced and charged like any other call of memorybench. Each part of a
library that uses the server, such as the memory of one scope, is a client with its own key.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from aiohttp import web

from memorybench.core.contracts import Completion, Embedder, Model
from memorybench.core.conversation import Turn

_MAX_REQUEST_BYTES = 32 * 2**20
_FINISH_REASONS = {"filter": "content_filter", "tools": "tool_calls", "length": "length"}
_NO_RETRY = {"x-should-retry": "false"}
"""A header of replies that tells OpenAI's client library not to retry, because the engine retries."""


class LoopbackClient:
    """One client of the server. The cost of requests with its key is charged to the step that entered `serving`."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.key = secrets.token_hex(16)
        self._context: Context | None = None
        self._failure: Exception | None = None

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Return a context manager that accepts requests while it is entered.

        At its end, it raises the first exception that the model or the embedder raised meanwhile, even if the library
        caught it. It must not be entered twice at the same time: the cost of a request could then belong to either
        step.
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
            return _error(409, "the call that this request belongs to has ended")

        async def within() -> Any:
            return await work()

        try:
            reply = await asyncio.get_running_loop().create_task(within(), context=self._context)
        except _NotSupported as error:
            return _error(400, str(error))
        except Exception as error:
            self._failure = self._failure or error
            return _error(424, str(error))
        return web.json_response(reply, headers=_NO_RETRY)


class _NotSupported(Exception):
    """A request needs something that models and embedders of memorybench do not support, such as tools."""


class Loopback:
    """The server. Opened by `open_loopback`."""

    def __init__(self, model: Model | None, embedder: Embedder) -> None:
        self._model = model
        self._embedder = embedder
        self._clients: dict[str, LoopbackClient] = {}
        self.base_url = ""

    @contextmanager
    def client(self) -> Iterator[LoopbackClient]:
        client = LoopbackClient(self.base_url)
        self._clients[client.key] = client
        try:
            yield client
        finally:
            del self._clients[client.key]

    async def handle(self, work: Callable[[Mapping[str, Any]], Awaitable[Any]], request: web.Request) -> web.Response:
        """Return the reply to a request: the result of `work` for its JSON body, or an error if its key is unknown."""
        client = self._clients.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if client is None:
            return _error(401, "unknown key")
        body = await request.json()
        return await client.answer(lambda: work(body))

    async def complete(self, body: Mapping[str, Any]) -> Any:
        if self._model is None:
            raise _NotSupported("this provider has no model")
        for option in ("stream", "tools", "functions"):
            if body.get(option):
                raise _NotSupported(f"{option} is not supported")
        turns = [Turn(role=message["role"], content=_text(message["content"])) for message in body["messages"]]
        return _chat(await self._model.complete(turns, schema=_schema(body.get("response_format"))))

    async def embed(self, body: Mapping[str, Any]) -> Any:
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        if not all(isinstance(text, str) for text in texts):
            raise _NotSupported("input of tokens is not supported; expected text")
        vectors = [[float(number) for number in vector] for vector in await self._embedder.embed(texts)]
        is_base64 = body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": n, "embedding": _to_base64(vector) if is_base64 else vector}
            for n, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return {"object": "list", "data": data, "model": self._embedder.subject.name, "usage": usage}


@asynccontextmanager
async def open_loopback(model: Model | None, embedder: Embedder) -> AsyncIterator[Loopback]:
    """Start the server, reachable only from this machine. It accepts only requests with the key of a client."""
    loopback = Loopback(model, embedder)
    app = web.Application(client_max_size=_MAX_REQUEST_BYTES)
    app.router.add_post("/v1/chat/completions", partial(loopback.handle, loopback.complete))
    app.router.add_post("/v1/embeddings", partial(loopback.handle, loopback.embed))
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
        raise _NotSupported("only text is supported")
    return "\n".join(part["text"] for part in parts)


def _schema(response_format: Any) -> Mapping[str, Any] | None:
    """Return the JSON Schema that a request asks for; None if it asks for text or for any JSON (`json_object`)."""
    if not isinstance(response_format, dict) or response_format.get("type") != "json_schema":
        return None
    schema: Mapping[str, Any] = response_format["json_schema"]["schema"]
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
                "finish_reason": _FINISH_REASONS.get(completion.finish, "stop"),
            }
        ],
        "usage": {
            "prompt_tokens": spent.input_tokens,
            "completion_tokens": spent.output_tokens,
            "total_tokens": spent.input_tokens + spent.output_tokens,
        },
    }


def _to_base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


def _error(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "memorybench", "param": None, "code": None}
    return web.json_response({"error": error}, status=status, headers=_NO_RETRY)
