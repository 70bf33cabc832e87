"""Context windows of models: from the price table, or from the server that runs the model."""

from __future__ import annotations

from memorybench.core.errors import ServiceError
from memorybench.secrets.redaction import Redactor

from .presets import ModelAddress
from .replying import count, members
from .server import open_address, request_headers

_NAMES = ("loaded_context_length", "max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")
"""The key in LM Studio, vLLM, OpenRouter and Groq, llama.cpp; the window in use before the maximum."""
_DEADLINE = 10.0


def known_window(address: ModelAddress) -> int | None:
    """Return the context window in tokens by the card or the price table; None if unknown. Sends nothing."""
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
    """Return the context window in tokens by the server's list of models; None if unknown."""
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
