"""Opens each bundled config of a vendor on its stand-in."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memorybench.catalog.catalog import Catalog
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.http.provider import HttpProvider, open_http_provider
from memorybench.secrets.redaction import Redactor

from .base import KEY, StandIn
from .graphiti import Graphiti
from .hindsight import Hindsight
from .letta import Letta
from .mem0 import Mem0
from .memobase import Memobase
from .memos import Memos
from .supermemory import Supermemory
from .supermemory_v4 import SupermemoryV4
from .zep import Zep


@dataclass(frozen=True, slots=True)
class Vendor:
    stand_in: type[StandIn]
    prefix: str
    """Of its environment variables."""
    base: str = ""
    """The path of the base URL."""
    needs_key: bool = True


VENDORS: Mapping[str, Vendor] = {
    "supermemory": Vendor(Supermemory, "SUPERMEMORY"),
    "supermemory-v4": Vendor(SupermemoryV4, "SUPERMEMORY"),
    "mem0": Vendor(Mem0, "MEM0"),
    "zep": Vendor(Zep, "ZEP", base="/api/v4"),
    "letta": Vendor(Letta, "LETTA"),
    "hindsight": Vendor(Hindsight, "HINDSIGHT"),
    "memobase": Vendor(Memobase, "MEMOBASE", base="/api/v1"),
    "memos": Vendor(Memos, "MEMOS", base="/api/openmem/v1"),
    "graphiti": Vendor(Graphiti, "GRAPHITI", needs_key=False),
}


CATALOG = Catalog(Path(__file__).parent)


def shipped(name: str, environment: Mapping[str, str] | None = None) -> ProviderConfig:
    return CATALOG.provider(name, environment)


def open_vendor(
    name: str, stand_in: StandIn, key: str = KEY, max_results: int | None = None
) -> AbstractAsyncContextManager[HttpProvider]:
    """Open the shipped config; `max_results` replaces its limit of results."""
    vendor = VENDORS[name]
    environment = {f"{vendor.prefix}_API_URL": stand_in.url + vendor.base, f"{vendor.prefix}_API_KEY": key}
    config = impatient(shipped(name, environment))
    if max_results is not None:
        limits = config.limits.model_copy(update={"max_results": max_results})
        config = config.model_copy(update={"limits": limits})
    return open_http_provider(config, key=key if vendor.needs_key else None, redactor=Redactor([key]))


def impatient(config: ProviderConfig) -> ProviderConfig:
    """Return the config with a poll interval of one millisecond: a stand-in counts polls, not seconds."""
    hurried = _hurried(config.model_dump())
    hurried["rate_limit"]["batch_delay_ms"] = 0
    return ProviderConfig.model_validate(hurried)


def _hurried(node: Any) -> Any:
    match node:
        case dict():
            return {key: 1 if key == "interval" else _hurried(inner) for key, inner in node.items()}
        case list() | tuple():
            return [_hurried(inner) for inner in node]
    return node
