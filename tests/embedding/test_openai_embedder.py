import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from aiohttp import web

from memorybench.catalog.catalog import Catalog
from memorybench.core.contracts import Embedder
from memorybench.core.errors import Denied, Malformed, Transient
from memorybench.core.spending import Spending, Tally
from memorybench.core.uses import Consent
from memorybench.providers.config.sections import Embedding
from memorybench.wiring.providers import ProviderOpener
from tests.doubles.stub import Behaviour, Call, Stub, html, reply, status

KEY = "sk-Sentinel/0123+456"


def vectors(dimensions: int = 3, *, backwards: bool = False, tokens: int | None = 8) -> Behaviour:
    """Returns vectors whose first number is the length of the text."""

    async def behave(_: web.BaseRequest, call: Call) -> web.StreamResponse:
        rows: list[dict[str, Any]] = [
            {"object": "embedding", "index": place, "embedding": [float(len(text)), *[0.5] * (dimensions - 1)]}
            for place, text in enumerate(call.json["input"])
        ]
        usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
        return web.json_response({"object": "list", "data": rows[::-1] if backwards else rows, "model": "m", **usage})

    return behave


def embed(stub: Stub, texts: Sequence[str], **options: Any) -> tuple[Sequence[Sequence[float]], Spending]:
    """Embed texts as a provider does whose config has these options in the section `embedding`."""
    config = {"provider": "openai", "base_url": f"{stub.url}/v1", "env_var": "VECTORS_KEY", **options}

    async def call(folder: Path) -> tuple[Sequence[Sequence[float]], Spending]:
        async with AsyncExitStack() as stack:
            opener = ProviderOpener(stack, Catalog(folder), folder, "run", Consent())
            embedder = await opener.embedder(Embedding.model_validate(config))
            assert isinstance(embedder, Embedder)
            assert embedder.subject.name == config["provider"]
            with Tally() as tally:
                return await embedder.embed(texts), tally.spent

    with TemporaryDirectory() as folder, patch.dict(os.environ, {"VECTORS_KEY": KEY}):
        return asyncio.run(call(Path(folder)))


def test_the_request_has_the_documented_shape(stub: Stub) -> None:
    stub.always(vectors(64))
    embed(stub, ["a", "bb"], dimensions=64)
    [call] = stub.calls
    assert (call.method, call.path) == ("POST", "/v1/embeddings")
    assert call.headers["Authorization"] == f"Bearer {KEY}"
    assert call.json == {"model": "text-embedding-3-small", "input": ["a", "bb"], "dimensions": 64}


def test_vectors_are_returned_in_the_order_of_the_texts(stub: Stub) -> None:
    stub.always(vectors(backwards=True))
    result, _ = embed(stub, ["a", "bb", "ccc"])
    assert [vector[0] for vector in result] == [1.0, 2.0, 3.0]


def test_texts_are_sent_in_batches_of_100(stub: Stub) -> None:
    stub.always(vectors())
    result, spent = embed(stub, ["x" * n for n in range(1, 251)])
    assert [len(call.json["input"]) for call in stub.calls] == [100, 100, 50]
    assert [vector[0] for vector in result] == [float(n) for n in range(1, 251)]
    assert spent.calls == 3


def test_an_empty_list_of_texts_sends_nothing(stub: Stub) -> None:
    assert embed(stub, []) == ([], Spending())
    assert stub.calls == []


@pytest.mark.parametrize(
    ("model", "tokens", "spent"),
    [
        ("text-embedding-3-small", 1_000_000, Spending(calls=1, input_tokens=1_000_000, cost=0.02)),
        ("own-model", 8, Spending(calls=1, input_tokens=8, cost=None)),
        ("text-embedding-3-small", None, Spending(calls=1, cost=None)),
    ],
    ids=["known model", "unknown model", "missing usage"],
)
def test_the_cost_is_unknown_without_a_price_or_usage(
    stub: Stub, model: str, tokens: int | None, spent: Spending
) -> None:
    stub.always(vectors(tokens=tokens))
    charged = embed(stub, ["a"], model=model)[1]
    assert charged.cost == (None if spent.cost is None else pytest.approx(spent.cost))
    assert (charged.calls, charged.input_tokens) == (spent.calls, spent.input_tokens)


@pytest.mark.parametrize(
    "behaviour",
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
def test_an_invalid_reply_is_malformed(stub: Stub, behaviour: Behaviour) -> None:
    stub.always(behaviour)
    with pytest.raises(Malformed):
        embed(stub, ["a", "b"])


def test_unexpected_dimensions_are_malformed(stub: Stub) -> None:
    stub.always(vectors(3))
    with pytest.raises(Malformed):
        embed(stub, ["a"], dimensions=64)


def test_errors_have_their_type_and_do_not_show_the_key(stub: Stub) -> None:
    stub.always(status(401, said=f"bad key {KEY}"))
    with pytest.raises(Denied) as denied:
        embed(stub, ["a"])
    assert KEY not in str(denied.value)
    stub.always(status(429, headers={"Retry-After": "7"}))
    with pytest.raises(Transient) as transient:
        embed(stub, ["a"])
    assert transient.value.retry_after == 7


def test_google_has_the_api_of_openai_and_its_own_price(stub: Stub) -> None:
    stub.always(vectors(3, tokens=1_000_000))
    _, spent = embed(stub, ["a"], provider="google", dimensions=3)
    assert stub.calls[0].json == {"model": "gemini-embedding-001", "input": ["a"], "dimensions": 3}
    assert spent.cost == pytest.approx(0.15)


def test_a_model_at_an_address_has_the_price_of_its_prefix(stub: Stub) -> None:
    stub.always(vectors(tokens=1_000_000))
    _, spent = embed(stub, ["a"], model=f"ollama/nomic-embed-text@{stub.url}/v1")
    assert spent == Spending(calls=1, input_tokens=1_000_000, cost=0)
