"""Decides which requests are answered, and sets the headers of every response.

Web pages of other sites in the user's browser must not read results. So the Host header must name this server (against
DNS rebinding), and requests from other sites are refused, unless the user follows a link. No route changes anything.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
SHORTEST_TOKEN = 16
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_COOKIE = "memorybench_token"
_METHODS = ("GET", "HEAD")


class Guard:
    """Middleware that refuses unsafe requests before they reach a page, and adds security headers to responses."""

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1", token: str | None = None) -> None:
        self._app = app
        self._host = host
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refusal = self._refusal(scope)
            await (refusal or self._app)(scope, receive, _with_headers(send))
        # any other protocol gets no reply

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in _METHODS:
            return PlainTextResponse("method not allowed; expected GET", 405, {"Allow": ", ".join(_METHODS)})
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not is_own_host(hosts[0], self._host):
            return PlainTextResponse("invalid Host header; open the address that `memorybench view` printed", 421)
        if any(origin != f"http://{hosts[0]}" for origin in headers.getlist("origin")) or _is_embedded(headers):
            return PlainTextResponse("requests of other sites are refused", 403)
        return self._without_token(scope, headers) if self._token is not None else None

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Return None if a cookie or a header of the request has the token, else a refusal.

        If the address has the token, return a redirect that sets the cookie.
        """
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if given and self._is_token(given[-1]):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            path = "/" + scope["raw_path"].decode("latin-1").lstrip("/\\")  # never the address of another host
            response = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
            response.set_cookie(_COOKIE, given[-1], httponly=True, samesite="strict")
            return response
        sent = headers.get("authorization", "").removeprefix("Bearer ")
        if self._is_token(sent) or self._is_token(Request(scope).cookies.get(_COOKIE, "")):
            return None
        return PlainTextResponse("missing token; open the address that `memorybench view` printed", 401)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), (self._token or "").encode())


def is_own_host(header: str, bound: str) -> bool:
    """Return whether a Host header names this server: the name or address that it is bound to, which is `bound`.

    If the server listens on all addresses (0.0.0.0 or ::), the name of this machine and any IP address count; only the
    token protects it then.
    """
    name = header.rpartition(":")[0] if header.rpartition(":")[2].isdecimal() else header
    name = name.removeprefix("[").removesuffix("]").rstrip(".").lower()
    if name == bound.lower() or (name in LOOPBACK and bound in (*LOOPBACK, "0.0.0.0", "::")):  # noqa: S104
        return True
    if bound not in ("0.0.0.0", "::"):  # noqa: S104  compared, not bound
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == socket.gethostname().lower()
    return True


def _is_embedded(headers: Headers) -> bool:
    """Return whether a page of another site sent the request. A link that the user follows does not count."""
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    return headers.get("sec-fetch-mode") != "navigate" or headers.get("sec-fetch-dest") != "document"


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await send(message)

    return send_with_headers
