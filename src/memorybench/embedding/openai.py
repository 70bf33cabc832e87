"""Embeddings from OpenAI, Google, or any server with OpenAI's `/embeddings`: Ollama, vLLM, LM Studio, a proxy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memorybench.core.spending import Spending, charge, charging_unreadable
from memorybench.core.trials import Subject
from memorybench.http.client import Http
from memorybench.http.replies import Reply

BATCH = 100
"""Maximum number of texts per request. It is the limit of Google's API; the limit of OpenAI is higher."""
LARGEST = 3.4e38
"""The largest 32-bit float. A vector with a larger number is invalid."""


class OpenAIEmbedder:
    """An embedder with OpenAI's API."""

    def __init__(
        self,
        name: str,
        model: str,
        dimensions: int | None,
        base_url: str,
        http: Http,
        headers: Mapping[str, str],
        find_rate: Callable[[], float | None],
        query: Mapping[str, str],
    ) -> None:
        """`find_rate` returns US dollars per token, or None if the price is unknown."""
        self._model = model
        self._dimensions = dimensions
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._headers = headers
        self._query = query
        self._http = http
        self._find_rate = find_rate
        self.subject = Subject(
            role="embedder", name=name, settings={"model": model, "dimensions": dimensions, "base_url": base_url}
        )

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one vector per text, in the order of the texts.

        The vectors need not have length 1: not every model scales them, and Google's only with 3,072 dimensions.
        """
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        return [vector for batch in batches for vector in await self._embed(batch)]

    async def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        body: dict[str, Any] = {"model": self._model, "input": list(texts)}
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        with charging_unreadable(Spending(calls=1, cost=None)):
            reply = await self._http.request("POST", self._url, headers=self._headers, params=self._query, json=body)
            data = reply.json()
        if not isinstance(data, dict):
            charge(Spending(calls=1, cost=None))
            raise reply.malformed("the reply is not a JSON object")
        charge(_spending(data.get("usage"), self._find_rate))  # first, because an invalid reply costs as much
        return _vectors(reply, data.get("data"), len(texts), self._dimensions)


def _vectors(reply: Reply, data: Any, count: int, dimensions: int | None) -> Sequence[Sequence[float]]:
    if not isinstance(data, list) or len(data) != count or not all(isinstance(row, dict) for row in data):
        raise reply.malformed(f"the reply has missing or invalid vectors; expected {count}, one per text")
    # a server may return the vectors in another order, with the place of each in `index`
    by_index = {str(row.get("index", place)): row.get("embedding") for place, row in enumerate(data)}
    vectors = [_numbers(by_index.get(str(place))) for place in range(count)]
    lengths = {len(vector) for vector in vectors}
    if 0 in lengths or len(lengths) > 1:
        raise reply.malformed("the reply has invalid vectors; expected lists of numbers, all of the same length")
    if dimensions is not None and lengths != {dimensions}:
        raise reply.malformed(f"the vectors have {lengths.pop()} dimensions; expected {dimensions}")
    return vectors


def _numbers(value: Any) -> Sequence[float]:
    """Return the value if it is a list of numbers that 32-bit floats can represent; else ()."""
    numbers = value if isinstance(value, list) else []
    return numbers if all(type(number) in (int, float) and abs(number) < LARGEST for number in numbers) else ()


def _spending(usage: Any, find_rate: Callable[[], float | None]) -> Spending:
    """Return the spending of one call. The cost is None if the number of tokens or the model's price is unknown."""
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        return Spending(calls=1, cost=None)
    rate = find_rate()
    return Spending(calls=1, input_tokens=tokens, cost=None if rate is None else rate * tokens)
