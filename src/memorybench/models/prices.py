"""What a call cost: each call is priced by itself, since rates may step up with its length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from memorybench.core.spending import Spending

MILLION = 10**6


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the server told them."""

    input_tokens: int
    """All of them, cached ones too."""
    output_tokens: int
    cached_tokens: int = 0
    """Input read from a cache."""
    stored_tokens: int = 0
    """Input written to a cache."""


def price(model: str, provider: str, usage: Usage) -> float | None:
    """US dollars; None: the table knows no such model, or the numbers contradict each other."""
    return _tariff(model, provider)(usage)


def spending(usage: Usage | None, provider: str | None, *models: str) -> Spending:
    """Of one call, priced by the first of `models` that the table knows. Without a provider it costs nothing."""
    cost: float | None = None
    if provider is None:
        cost = 0.0
    elif usage is not None:
        prices = (price(model, provider, usage) for model in models)
        cost = next((known for known in prices if known is not None), None)
    told = usage or Usage(0, 0)
    return Spending(calls=1, input_tokens=told.input_tokens, output_tokens=told.output_tokens, cost=cost)


@lru_cache(maxsize=256)
def _tariff(model: str, provider: str) -> Callable[[Usage], float | None]:
    """How to price the calls of a model.

    The table needs about as long to price a call as aiohttp to make it, and longer to find that it can not:
    so plain rates are asked for once.
    """
    from genai_prices import Usage as Told
    from genai_prices import calc_price
    from genai_prices.types import TieredPrices

    def by_table(usage: Usage) -> float | None:
        if usage.cached_tokens + usage.stored_tokens > usage.input_tokens:
            return None
        told = Told(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.stored_tokens,
        )
        return float(calc_price(told, model, provider_id=provider).total_price)

    try:
        listed = calc_price(Told(input_tokens=1, output_tokens=1), model, provider_id=provider)
    except LookupError:
        return lambda _: None
    if any(isinstance(rate, TieredPrices) for rate in vars(listed.model_price).values()):
        return by_table
    kinds = (Usage(MILLION, 0), Usage(0, MILLION), Usage(MILLION, 0, MILLION), Usage(MILLION, 0, 0, MILLION))
    rates = [(by_table(kind) or 0.0) / MILLION for kind in kinds]

    def by_rates(usage: Usage) -> float | None:
        fresh = usage.input_tokens - usage.cached_tokens - usage.stored_tokens
        counts = (fresh, usage.output_tokens, usage.cached_tokens, usage.stored_tokens)
        return sum(rate * tokens for rate, tokens in zip(rates, counts, strict=True)) if fresh >= 0 else None

    return by_rates
