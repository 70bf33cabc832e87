"""From names to addresses that may be asked. Apart from addresses.py, whose checks configs use without any HTTP."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from typing import cast

from aiohappyeyeballs import AddrInfoType

from .addresses import refuse_forbidden


class GuardedResolver:
    """Refuses names that lead to forbidden addresses. What it returns is what is connected to: no second look-up."""

    def __init__(self) -> None:
        self._looking: dict[tuple[str, int], asyncio.Task[Sequence[AddrInfoType]]] = {}

    async def resolve(self, host: str, port: int) -> Sequence[AddrInfoType]:
        """Those who ask at once share one look-up; an address stands for itself."""
        if _is_address(host):
            return _found(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST))
        looking = self._looking.get((host, port))
        if looking is None:
            looking = self._looking[host, port] = asyncio.create_task(_resolved(host, port))
            looking.add_done_callback(lambda done: self._looked_up(host, port, done))
        return await asyncio.shield(looking)

    def _looked_up(self, host: str, port: int, done: asyncio.Task[Sequence[AddrInfoType]]) -> None:
        del self._looking[host, port]
        if not done.cancelled():
            done.exception()  # seen: those who asked may have given up before


async def _resolved(host: str, port: int) -> Sequence[AddrInfoType]:
    found = await look_up(host, port)
    for *_, address in found:
        refuse_forbidden(str(address[0]), named=host)
    return found


async def look_up(host: str, port: int) -> Sequence[AddrInfoType]:
    """By the system, in a thread."""
    loop = asyncio.get_running_loop()
    return _found(await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG))


def _found(infos: object) -> Sequence[AddrInfoType]:
    return cast(Sequence[AddrInfoType], infos)  # typed more narrowly than what makes them


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
