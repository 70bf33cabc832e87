"""Costs of model calls. The cost of each call is computed separately, because prices may depend on its length."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from msgspec import Struct

from memorybench.core.spending import Spending

from .config import ModelConfig

MILLION = 10**6


class Usage(Struct, frozen=True):
    """Tokens of one call, as the server reported them."""

    input_tokens: int
    """Number of input tokens, including cached ones."""
    output_tokens: int
    cached_tokens: int = 0
    """Number of input tokens that were read from a cache."""
    stored_tokens: int = 0
    """Number of input tokens that were written to a cache."""


def price(model: str, provider: str, usage: Usage) -> float | None:
    """Return the cost of a call in US dollars; None if the model is not in the price table or `usage` is invalid."""
    return _tariff(model, provider)(usage)


def price_by_card(card: ModelConfig, usage: Usage) -> float | None:
    """Return the cost of a call in US dollars by the price in a card; None if the card has no price."""
    rates = card.price
    return None if rates is None else (usage.input_tokens * rates.input + usage.output_tokens * rates.output) / MILLION


def spending(usage: Usage | None, provider: str | None, *models: str, card: ModelConfig | None = None) -> Spending:
    """Return the spending of one call.

    The price is that in `card`; without a card, that of the first of `models` which the price table has for `provider`.
    Without card and provider, the call is free. Otherwise, the cost is None if there is no price or `usage` is None.
    """
    cost: float | None = None
    if card is not None:
        cost = price_by_card(card, usage) if usage else None
    elif provider is None:
        cost = 0.0
    elif usage is not None:
        prices = (price(model, provider, usage) for model in models)
        cost = next((known for known in prices if known is not None), None)
    tokens = usage or Usage(0, 0)
    return Spending(calls=1, input_tokens=tokens.input_tokens, output_tokens=tokens.output_tokens, cost=cost)


@lru_cache(maxsize=256)
def _tariff(model: str, provider: str) -> Callable[[Usage], float | None]:
    """Return a function that computes the cost of a call of this model in US dollars; None if it is unknown.

    A look-up in the price table is slow. So prices that do not depend on the length of a call are looked up only once.
    """
    from genai_prices import Usage as TableUsage
    from genai_prices import calc_price
    from genai_prices.types import TieredPrices

    def by_table(usage: Usage) -> float | None:
        if usage.cached_tokens + usage.stored_tokens > usage.input_tokens:
            return None
        tokens = TableUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.stored_tokens,
        )
        return float(calc_price(tokens, model, provider_id=provider).total_price)

    try:
        example = calc_price(TableUsage(input_tokens=1, output_tokens=1), model, provider_id=provider)
    except LookupError:
        return lambda _: None
    if any(isinstance(rate, TieredPrices) for rate in vars(example.model_price).values()):
        return by_table
    kinds = (Usage(MILLION, 0), Usage(0, MILLION), Usage(MILLION, 0, MILLION), Usage(MILLION, 0, 0, MILLION))
    rates = [(by_table(kind) or 0.0) / MILLION for kind in kinds]

    def by_rates(usage: Usage) -> float | None:
        uncached = usage.input_tokens - usage.cached_tokens - usage.stored_tokens
        counts = (uncached, usage.output_tokens, usage.cached_tokens, usage.stored_tokens)
        return sum(rate * tokens for rate, tokens in zip(rates, counts, strict=True)) if uncached >= 0 else None

    return by_rates
