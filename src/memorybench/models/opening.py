"""Opens a model with the API of its server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from memorybench.core.contracts import Model
from memorybench.http.client import Http
from memorybench.secrets.redaction import Redactor

from .anthropic import AnthropicModel
from .config import Kind
from .openai import OpenAIModel
from .presets import ModelAddress, Options
from .server import open_address

KINDS: Mapping[Kind, Callable[[ModelAddress, Options, Http, str | None], Model]] = {
    "openai": OpenAIModel,
    "anthropic": AnthropicModel,
}


@asynccontextmanager
async def open_model(
    address: ModelAddress,
    *,
    key: str | None,
    redactor: Redactor,
    options: Options | None = None,
) -> AsyncIterator[Model]:
    """Open the model at an address, without sending a request. `key` must have been added to `redactor` before."""
    async with open_address(address, redactor) as http:
        yield KINDS[address.kind](address, options or Options(), http, key)
