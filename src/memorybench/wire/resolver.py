"""From names to addresses that may be asked. Apart from addresses.py, whose checks configs use without any HTTP."""

from __future__ import annotations

import socket

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult

from .addresses import refuse_forbidden


class GuardedResolver(AbstractResolver):
    """Refuses names that lead to forbidden addresses. What it returns is what is connected to: no second look-up."""

    def __init__(self) -> None:
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for one in found:
            refuse_forbidden(one["host"], named=host)
        return found

    async def close(self) -> None:
        await self._resolver.close()
