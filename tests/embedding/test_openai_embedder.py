import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from aiohttp import web

from memorybench.core.contracts import Embedder
from memorybench.core.errors import Denied, Malformed, Transient
from memorybench.core.spending import Spending, Tally
from memorybench.embedding.google import open_google_embedder
from memorybench.embedding.openai import open_openai_embedder
from memorybench.secrets.redaction import Redactor
from tests.doubles.stub import Behaviour, Call, Stub, html, reply, status

KEY = "sk-Sentinel/0123+456"


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


def vectors(dimensions: int = 3, *, backwards: bool = False, tokens: int | None = 8) -> Behaviour:
    """The first number of a vector is the length of its text."""

    async def behave(_: web.BaseRequest, call: Call) -> web.StreamResponse:
        rows: list[dict[str, Any]] = [
            {"object": "embedding", "index": place, "embedding": [float(len(text)), *[0.5] * (dimensions - 1)]}
            for place, text in enumerate(call.json["input"])
        ]
        usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
        return web.json_response({"object": "list", "data": rows[::-1] if backwards else rows, "model": "m", **usage})

    return behave


def embed(stub: Stub, texts: Sequence[str], **options: Any) -> tuple[Sequence[Sequence[float]], Spending]:
    async def asked() -> tuple[Sequence[Sequence[float]], Spending]:
        opening = open_openai_embedder(key=KEY, redactor=Redactor([KEY]), base_url=f"{stub.url}/v1", **options)
        async with opening as embedder:
            assert isinstance(embedder, Embedder)
            with Tally() as tally:
                return await embedder.embed(texts), tally.spent

    return asyncio.run(asked())


def test_a_call_has_the_shape_the_api_documents(stub: Stub) -> None:
    stub.always(vectors(64))
    embed(stub, ["a", "bb"], dimensions=64)
    [call] = stub.calls
    assert (call.method, call.path) == ("POST", "/v1/embeddings")
    assert call.headers["Authorization"] == f"Bearer {KEY}"
    assert call.json == {"model": "text-embedding-3-small", "input": ["a", "bb"], "dimensions": 64}


def test_vectors_stand_in_the_order_of_their_texts_whatever_the_order_of_the_reply(stub: Stub) -> None:
    stub.always(vectors(backwards=True))
    found, _ = embed(stub, ["a", "bb", "ccc"])
    assert [vector[0] for vector in found] == [1.0, 2.0, 3.0]


def test_many_texts_go_in_batches_of_100(stub: Stub) -> None:
    stub.always(vectors())
    found, spent = embed(stub, ["x" * n for n in range(1, 251)])
    assert [len(call.json["input"]) for call in stub.calls] == [100, 100, 50]
    assert [vector[0] for vector in found] == [float(n) for n in range(1, 251)]
    assert spent.calls == 3


def test_no_texts_are_no_call(stub: Stub) -> None:
    assert embed(stub, []) == ([], Spending())
    assert stub.calls == []


@pytest.mark.parametrize(
    ("model", "tokens", "spent"),
    [
        ("text-embedding-3-small", 1_000_000, Spending(calls=1, input_tokens=1_000_000, cost=0.02)),
        ("own-model", 8, Spending(calls=1, input_tokens=8, cost=None)),
        ("text-embedding-3-small", None, Spending(calls=1, cost=None)),
    ],
    ids=["listed", "unknown model", "no usage"],
)
def test_what_is_not_known_of_the_price_is_not_made_up(
    stub: Stub, model: str, tokens: int | None, spent: Spending
) -> None:
    stub.always(vectors(tokens=tokens))
    charged = embed(stub, ["a"], model=model)[1]
    assert charged.cost == (None if spent.cost is None else pytest.approx(spent.cost))
    assert (charged.calls, charged.input_tokens) == (spent.calls, spent.input_tokens)


@pytest.mark.parametrize(
    "answer",
    [
        html(),
        reply([]),
        reply({"data": None}),
        reply({"data": [{"embedding": [1.0]}]}),
        reply({"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]}),
        reply({"data": [{"embedding": []}, {"embedding": []}]}),
        reply({"data": [{"embedding": [1.0]}, {"embedding": ["1.0"]}]}),
        reply({"data": [{"embedding": [1.0]}, {"embedding": None}]}),
        reply({"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}),
        reply({"data": [{"index": 0, "embedding": [1.0]}, {"index": [], "embedding": [1.0]}]}),
        reply({"data": [{"embedding": [1.0]}, {"embedding": [10**400]}]}),
        reply({"data": ["x", "y"]}),
    ],
)
def test_what_is_no_vector_for_each_text_is_malformed(stub: Stub, answer: Behaviour) -> None:
    stub.always(answer)
    with pytest.raises(Malformed):
        embed(stub, ["a", "b"])


def test_other_dimensions_than_asked_for_are_malformed(stub: Stub) -> None:
    stub.always(vectors(3))
    with pytest.raises(Malformed):
        embed(stub, ["a"], dimensions=64)


def test_errors_are_those_of_the_wire_and_hide_the_key(stub: Stub) -> None:
    stub.always(status(401, said=f"bad key {KEY}"))
    with pytest.raises(Denied) as denied:
        embed(stub, ["a"])
    assert KEY not in str(denied.value)
    stub.always(status(429, headers={"Retry-After": "7"}))
    with pytest.raises(Transient) as hasty:
        embed(stub, ["a"])
    assert hasty.value.retry_after == 7


def test_google_is_asked_as_openai_is_and_has_its_own_price(stub: Stub) -> None:
    async def asked() -> Spending:
        opening = open_google_embedder(key=KEY, redactor=Redactor([KEY]), dimensions=3, base_url=stub.url)
        async with opening as embedder:
            assert embedder.subject.name == "google"
            with Tally() as tally:
                await embedder.embed(["a"])
                return tally.spent

    stub.always(vectors(3, tokens=1_000_000))
    spent = asyncio.run(asked())
    assert stub.calls[0].path == "/embeddings"
    assert stub.calls[0].json == {"model": "gemini-embedding-001", "input": ["a"], "dimensions": 3}
    assert spent.cost == pytest.approx(0.15)
