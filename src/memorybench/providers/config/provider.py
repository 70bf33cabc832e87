"""All keys of a provider config. Field docstrings are the user's documentation, as in requests.py."""

from __future__ import annotations

from memorybench.providers.config_mcp import Mcp

from .requests import Endpoints, Housekeeping
from .sections import PlainProviderConfig


class ProviderConfig(PlainProviderConfig):
    """A memory system and how it is called."""

    setup: tuple[Housekeeping, ...] = ()
    """Requests that open a scope, in this order, before its first add."""
    endpoints: Endpoints | None = None
    """The requests of a `hosted` or `docker` provider."""
    teardown: tuple[Housekeeping, ...] = ()
    """Requests that close a scope, in this order, after `endpoints.clear`."""
    mcp: Mcp | None = None
    """The server behind `adapter: builtin:mcp`."""
