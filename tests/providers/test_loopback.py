from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from memorybench.core.contracts import Model
from memorybench.core.conversation import Turn
from memorybench.core.errors import Denied, ServiceError, Transient
from memorybench.core.spending import Spending, Tally
from memorybench.http.client import Http, open_http
from memorybench.models.opening import open_model
from memorybench.models.presets import resolve
from memorybench.providers.storage.loopback import Loopback, LoopbackClient, open_loopback
from memorybench.secrets.redaction import Redactor
from tests.doubles.scripted_embedder import ScriptedEmbedder
from tests.doubles.scripted_model import ScriptedModel

COST = Spending(calls=1, input_tokens=100, output_tokens=10, cost=0.25)


@asynccontextmanager
async def open_loopback_client(model: Model | None) -> AsyncIterator[tuple[Loopback, Http]]:
    async with open_http(Redactor([])) as http, open_loopback(model, ScriptedEmbedder(8)) as loopback:
        yield loopback, http


async def post(http: Http, client: LoopbackClient, path: str, **body: Any) -> Any:
    headers = {"Authorization": f"Bearer {client.key}"}
    return (await http.request("POST", f"{client.base_url}/{path}", headers=headers, json=body)).json()


async def chat(http: Http, client: LoopbackClient, text_sent: str = "hello") -> str:
    reply = await post(http, client, "chat/completions", model="x", messages=[{"role": "user", "content": text_sent}])
    text: str = reply["choices"][0]["message"]["content"]
    return text


def test_our_openai_client_works_with_the_loopback() -> None:
    def repeat(turns: Sequence[Turn]) -> str:
        return " / ".join(f"{turn.role}: {turn.content}" for turn in turns)

    async def use_loopback() -> str:
        async with open_loopback_client(ScriptedModel(repeat)) as (loopback, _):
            with loopback.client() as client, client.serving():
                address = resolve("ollama/x", {"OLLAMA_BASE_URL": client.base_url.removesuffix("/v1")})
                async with open_model(address, key=client.key, redactor=Redactor([])) as model:
                    turns = [Turn(role="system", content="Be kind."), Turn(role="user", content="Hello!")]
                    return (await model.complete(turns)).text

    assert asyncio.run(use_loopback()) == "system: Be kind. / user: Hello!"


def test_vectors_are_numbers_or_base64() -> None:
    async def use_loopback() -> tuple[Any, Any]:
        async with open_loopback_client(None) as (loopback, http):
            with loopback.client() as client, client.serving():
                plain = await post(http, client, "embeddings", model="x", input="kite")
                packed = await post(http, client, "embeddings", input=["kite", "bus"], encoding_format="base64")
                return plain["data"], packed["data"]

    plain, packed = asyncio.run(use_loopback())
    assert [len(one["embedding"]) for one in plain] == [8]
    assert [one["index"] for one in packed] == [0, 1]
    assert list(struct.unpack("<8f", base64.b64decode(packed[0]["embedding"]))) == pytest.approx(plain[0]["embedding"])


def test_each_client_charges_its_own_step() -> None:
    async def use_loopback() -> list[Spending]:
        async with open_loopback_client(ScriptedModel(lambda _: "ok", spent=COST)) as (loopback, http):

            async def step(calls: int) -> Spending:
                with loopback.client() as client, Tally() as tally, client.serving():
                    for _ in range(calls):
                        await chat(http, client)
                return tally.spent

            return list(await asyncio.gather(step(1), step(3), step(0)))

    assert [spent.cost for spent in asyncio.run(use_loopback())] == [0.25, 0.75, 0.0]


def test_failure_swallowed_by_the_library_is_raised() -> None:
    failure = Transient("busy", retry_after=3.0)

    async def use_loopback() -> None:
        async with open_loopback_client(ScriptedModel([failure, "fine"])) as (loopback, http):
            with loopback.client() as client:
                swallowed = pytest.raises(ServiceError, match=r"HTTP 424: .*busy")
                with pytest.raises(Transient) as raised, client.serving(), swallowed:
                    await chat(http, client)
                assert raised.value is failure
                with client.serving():
                    assert await chat(http, client) == "fine"

    asyncio.run(use_loopback())


def test_model_failure_replaces_the_exception_of_the_library() -> None:
    failure = Denied("no such key")

    async def use_loopback() -> None:
        async with open_loopback_client(ScriptedModel([failure])) as (loopback, http):
            with loopback.client() as client, client.serving():
                try:
                    await chat(http, client)
                except ServiceError:
                    raise RuntimeError("the library's own words") from None

    with pytest.raises(Denied) as raised:
        asyncio.run(use_loopback())
    assert raised.value is failure


def test_only_a_client_with_a_key_and_a_pending_call_is_served() -> None:
    async def use_loopback() -> None:
        async with open_loopback_client(ScriptedModel(lambda _: "ok")) as (loopback, http):
            with loopback.client() as client, pytest.raises(ServiceError, match=r"HTTP 409: "):
                await chat(http, client)
            with client.serving(), pytest.raises(Denied, match="unknown key"):
                await chat(http, client)

    asyncio.run(use_loopback())


@pytest.mark.parametrize(
    ("path", "body", "problem"),
    [
        ("chat/completions", {"messages": [], "tools": [{}]}, "tools is not supported"),
        ("chat/completions", {"messages": [], "stream": True}, "stream is not supported"),
        ("chat/completions", {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "only text"),
        ("embeddings", {"input": [[1, 2]]}, "input of tokens is not supported"),
    ],
)
def test_an_unsupported_request_is_an_error(path: str, body: dict[str, Any], problem: str) -> None:
    async def use_loopback() -> None:
        async with open_loopback_client(ScriptedModel(lambda _: "ok")) as (loopback, http):
            with (
                loopback.client() as client,
                client.serving(),
                pytest.raises(ServiceError, match=f"HTTP 400: .*{problem}"),
            ):
                await post(http, client, path, **body)

    asyncio.run(use_loopback())
