"""The proxies of the environment, name resolution that rejects forbidden addresses, and the pool of connections."""

from __future__ import annotations

import select
import socket
from contextvars import ContextVar
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

from aiohttp import ClientRequest, ClientTimeout, TCPConnector, ThreadedResolver
from aiohttp.abc import ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from memorybench.core.errors import BadInput

from .addresses import check_host, is_loopback


class Routes:
    """Finds the proxy for each URL, and caches it.

    aiohttp's `trust_env` is not used: it also sends passwords from ~/.netrc, and needs two threads for every request.
    """

    def __init__(self) -> None:
        self._proxies: dict[URL, URL | None] = {}
        self.proxy_hosts: set[str] = set()

    def find_proxy(self, url: URL) -> URL | None:
        """Return the proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names for `url`; None for a direct connection.

        Addresses on this machine and those in NO_PROXY need no proxy.
        """
        origin = url.origin()
        if origin not in self._proxies:
            proxy = self._proxies[origin] = _find_proxy(origin)
            if proxy is not None and proxy.raw_host:
                self.proxy_hosts.add(proxy.raw_host)
        return self._proxies[origin]


def _find_proxy(origin: URL) -> URL | None:
    host = origin.host or ""
    if is_loopback(host) or proxy_bypass(origin.host_port_subcomponent or host):
        return None
    configured = getproxies()
    text = configured.get(origin.scheme) or configured.get("all")
    if not text:
        return None
    where = f"{origin.scheme.upper()}_PROXY"
    try:
        proxy = URL(text if "://" in text else f"http://{text}")
    except ValueError:
        raise BadInput(where, "the address of the proxy is invalid", expected="http://host:port") from None
    if not proxy.host:
        raise BadInput(where, "the address of the proxy has no host", expected="http://host:port")
    if proxy.scheme != "http":
        raise BadInput(where, f"a proxy of type {proxy.scheme} is not supported", expected="http://host:port")
    return proxy


class GuardedResolver(ThreadedResolver):
    """Resolves host names and rejects forbidden addresses. aiohttp connects only to the addresses it returns."""

    def __init__(self, routes: Routes) -> None:
        super().__init__()
        self._routes = routes

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        results = await super().resolve(host, port, family)
        if host not in self._routes.proxy_hosts:  # the user chose the proxy, which may be anywhere
            for result in results:
                check_host(result["host"], name=host)
        return results


class Progress:
    """Records whether a request has a connection yet."""

    is_connected = False


current_progress: ContextVar[Progress] = ContextVar("current_progress")


_IDLE_SECONDS = 4.0
"""Idle connections are closed after this time. Many servers, such as uvicorn, close them after 5 seconds, and a request
that is sent at that moment is lost."""


class ConnectionPool(TCPConnector):
    """A pool of connections without a limit on their number, because the engine limits the number of calls.

    An idle connection is not reused if bytes or the end of the stream have arrived on it: a request on it would be
    lost, or would get the reply to another request.
    """

    def __init__(self, routes: Routes) -> None:
        super().__init__(limit=0, keepalive_timeout=_IDLE_SECONDS, resolver=GuardedResolver(routes))
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(  # the signature is aiohttp's
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: ClientTimeout,  # noqa: ASYNC109
    ) -> Connection:
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol, transport = connection.protocol, connection.transport
            if protocol not in self._used:
                break
            if transport is not None and not _is_readable(transport.get_extra_info("socket")):
                break
            connection.close()
        if protocol is not None:
            self._used.add(protocol)
        current_progress.get().is_connected = True
        return connection


def _is_readable(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
