"""Sends requests to the server of a model: what is common to the APIs of OpenAI and Anthropic."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from memorybench.core.errors import ServiceError
from memorybench.core.spending import Spending, charge, charging_unreadable
from memorybench.core.trials import Subject
from memorybench.http.config import auth_headers
from memorybench.secrets.redaction import Redactor

from .presets import ModelAddress, Options
from .prices import Usage, spending
from .replying import count, members

if TYPE_CHECKING:
    from memorybench.http.client import Http
    from memorybench.http.replies import Reply

_NAMES = ("loaded_context_length", "max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")
"""Keys of the context window in replies of LM Studio, vLLM, OpenRouter, Groq and llama.cpp. Keys for the window that is
in use come before those for the largest possible window."""
_DEADLINE = 10.0


def known_window(address: ModelAddress) -> int | None:
    """Return the context window in tokens, from the card or the price table; None if unknown. Sends no request."""
    if address.card is not None:
        return address.card.context_window
    if address.priced_as is None:
        return None
    from genai_prices import Usage, calc_price

    try:
        return calc_price(Usage(input_tokens=1), address.model, provider_id=address.priced_as).model.context_window
    except LookupError:
        return None


async def fetch_window(address: ModelAddress, *, key: str | None, redactor: Redactor) -> int | None:
    """Return the context window in tokens from the server's list of models; None if the list does not have it, or the
    request fails."""
    headers, query = request_headers(address, key), address.card.query if address.card else {}
    try:
        async with open_address(address, redactor) as http:
            reply = await http.request(
                "GET", f"{address.base_url}/models", headers=headers, params=query, deadline=_DEADLINE
            )
            models = reply.json()
    except ServiceError:
        return None
    rows = members(models).get("data")
    for row in rows if isinstance(rows, list) else ():
        if members(row).get("id") == address.model:
            lengths = (count(part.get(name)) for part in (row, members(row.get("meta"))) for name in _NAMES)
            return next(filter(None, lengths), None)
    return None


API_VERSION = "2023-06-01"
"""Version of Anthropic's API, which is sent with each request."""


class Server:
    """Sends the requests of one model to a path of its server, and charges what they cost."""

    def __init__(self, address: ModelAddress, path: str, http: Http, key: str | None, timeout: float) -> None:
        self._address = address
        self._url = f"{address.base_url}{path}"
        self._headers = request_headers(address, key)
        self._query = address.card.query if address.card else {}
        self._timeout = timeout
        self._http = http

    async def post(self, body: Mapping[str, Any]) -> tuple[Reply, Mapping[str, Any]]:
        """Send a request; return the reply and its JSON object. If the JSON is not an object, return an empty one."""
        fields = self._fields(body)
        with charging_unreadable(self._spending(None)):
            reply = await self._http.request(
                "POST", self._url, headers=self._headers, params=self._query, json=fields, deadline=self._timeout
            )
            return reply, members(reply.json())

    def highest_cost(self, body: Mapping[str, Any]) -> float | None:
        """Return the most that a request with this body can cost, in US dollars.

        None if the length of the reply has no limit, or the price is unknown.
        """
        fields = self._fields(body)
        longest_reply = count(fields.get("max_completion_tokens", fields.get("max_tokens")))
        if longest_reply is None:
            return None
        # a token has at least one byte, so a prompt has fewer tokens than the JSON of its request has bytes
        return self._spending(Usage(len(json.dumps(fields)), longest_reply)).cost

    def _fields(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON that is sent: `body` with the fields that the card adds, replaces or removes."""
        card = self._address.card
        sent = {**body, **(card.body if card else {})}
        return {name: value for name, value in sent.items() if value is not None}

    def charge(self, usage: Usage | None, model: str) -> Spending:
        """Charge the tokens and the cost of one call to the current step, and return them.

        Must be called before the reply is checked, because an invalid reply costs as much as a valid one.
        """
        spent = self._spending(usage, model)
        charge(spent)
        return spent

    def _spending(self, usage: Usage | None, *models: str) -> Spending:
        address = self._address
        return spending(usage, address.priced_as, *models, address.model, card=address.card)


@asynccontextmanager
async def open_address(address: ModelAddress, redactor: Redactor) -> AsyncIterator[Http]:
    """Open connections to a model's server, with the TLS files and the `insecure` of its card."""
    from memorybench.http.client import open_http

    card = address.card
    async with open_http(redactor, insecure=card is not None and card.insecure, tls=card.tls if card else None) as http:
        yield http


def model_subject(address: ModelAddress, options: Options, *, temperature: float | None, seed: int | None) -> Subject:
    """Return the subject of a model, with the settings of its calls, such as the temperature that is sent."""
    settings = {"temperature": temperature, "seed": seed, "max_tokens": options.max_tokens}
    return Subject(
        role="model", name=address.name, settings={**settings, "base_url": address.base_url, **address.card_settings}
    )


def request_headers(address: ModelAddress, key: str | None) -> Mapping[str, str]:
    """Return the headers of every request: with the key, with the version of Anthropic's API, and those of the card."""
    version = {"anthropic-version": API_VERSION} if address.kind == "anthropic" else {}
    if address.card is not None:
        headers = auth_headers(address.card.effective_auth, key, f'model "{address.name}"')
        return {**version, **headers, **address.card.headers}
    if key is None:
        return version
    return {**version, **({"x-api-key": key} if address.kind == "anthropic" else {"Authorization": f"Bearer {key}"})}
