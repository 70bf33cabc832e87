"""Vectors from OpenAI, or from any server that speaks its `/embeddings`: Ollama, vLLM, LM Studio, a proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

from memorybench.core.spending import Spending, charge
from memorybench.core.trials import Subject
from memorybench.http.client import Http, open_http
from memorybench.http.replies import Reply
from memorybench.secrets.redaction import Redactor

BASE_URL = "https://api.openai.com/v1"
MODEL = "text-embedding-3-small"
KEY_VARIABLES = ("OPENAI_API_KEY",)
BATCH = 100
"""Texts in one request: Google takes no more, OpenAI some more."""
LARGEST = 3.4e38
"""What a 32-bit float can hold."""


class OpenAIEmbedder:
    """Opened by `open_openai_embedder`."""

    def __init__(
        self, name: str, model: str, dimensions: int | None, base_url: str, headers: Mapping[str, str], http: Http
    ) -> None:
        self._model = model
        self._dimensions = dimensions
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._headers = headers
        self._http = http
        self._priced_as = name
        self._subject = Subject(
            role="embedder", name=name, settings={"model": model, "dimensions": dimensions, "base_url": base_url}
        )

    @property
    def subject(self) -> Subject:
        return self._subject

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """In the order of the texts, as the server made them: not every model gives vectors of length 1."""
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        return [vector for batch in batches for vector in await self._embed(batch)]

    async def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        body: dict[str, Any] = {"model": self._model, "input": list(texts)}
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        reply = await self._http.request("POST", self._url, headers=self._headers, json=body)
        told = reply.json()
        if not isinstance(told, dict):
            raise reply.malformed("the reply is no object")
        charge(_spending(told.get("usage"), self._priced_as, self._model))  # whether the reply is of use or not
        return _vectors(reply, told.get("data"), len(texts), self._dimensions)


def _vectors(reply: Reply, data: Any, count: int, dimensions: int | None) -> Sequence[Sequence[float]]:
    if not isinstance(data, list) or len(data) != count or not all(isinstance(row, dict) for row in data):
        raise reply.malformed(f"wanted a vector for each of {count} texts")
    # a server may answer in another order, and says so by the index
    by_index = {str(row.get("index", place)): row.get("embedding") for place, row in enumerate(data)}
    vectors = [_numbers(by_index.get(str(place))) for place in range(count)]
    lengths = {len(vector) for vector in vectors}
    if 0 in lengths or len(lengths) > 1:
        raise reply.malformed("the vectors are not lists of numbers of one length")
    if dimensions is not None and lengths != {dimensions}:
        raise reply.malformed(f"wanted {dimensions} dimensions, got {lengths.pop()}")
    return vectors


def _numbers(value: Any) -> Sequence[float]:
    """Empty where it is anything else than a list of numbers."""
    numbers = value if isinstance(value, list) else []
    return numbers if all(type(number) in (int, float) and abs(number) < LARGEST for number in numbers) else ()


def _spending(usage: Any, provider: str, model: str) -> Spending:
    """Of one call. Without usage, or a price for the model, the cost is not known."""
    read = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if not isinstance(read, int) or isinstance(read, bool) or read < 0:
        return Spending(calls=1, cost=None)
    rate = _rate(provider, model)
    return Spending(calls=1, input_tokens=read, cost=None if rate is None else rate * read)


@lru_cache(maxsize=16)
def _rate(provider: str, model: str) -> float | None:
    """US dollars for one token; None: the table knows no such model."""
    from genai_prices import Usage, calc_price

    try:
        return float(calc_price(Usage(input_tokens=10**6), model, provider_id=provider).total_price) / 10**6
    except LookupError:
        return None


@asynccontextmanager
async def open_openai_embedder(
    *,
    key: str | None,
    redactor: Redactor,
    model: str | None = None,
    dimensions: int | None = None,
    base_url: str | None = None,
    insecure: bool = False,
    name: str = "openai",
) -> AsyncIterator[OpenAIEmbedder]:
    """`key` None: none is sent, as a server of one's own may want none. `redactor` must know it.

    `name` is what reports call it, and the provider in the price table.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with open_http(redactor, insecure=insecure) as http:
        yield OpenAIEmbedder(name, model or MODEL, dimensions, base_url or BASE_URL, headers, http)
