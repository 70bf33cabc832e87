"""Requests through the proxies that the environment names."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import ThreadedResolver
from aiohttp.abc import ResolveResult
from yarl import URL

from memorybench.core.errors import BadInput, MemorybenchError, ServiceError, Transient
from memorybench.http.client import open_http
from memorybench.http.routes import GuardedResolver, Routes
from memorybench.http.tls import HOST_MISMATCH
from memorybench.secrets.redaction import Redactor

from .servers import HELLO, ByteServer, Proxy, outcome, resolve_to, running

# Only the proxy can resolve this name.
HOST = "memory.example.com"


@pytest.fixture(autouse=True)
def no_proxy_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A certificate for HOST, whose authority is trusted."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)
    return context


def send_by_proxy(
    url: str,
    environment: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    tls: ssl.SSLContext | None = None,
    status: int = 200,
    times: int = 1,
    **opened: Any,
) -> tuple[list[bytes | MemorybenchError], ByteServer, list[str]]:
    """Return the outcomes, the server behind the proxy, and the heads of the requests that the proxy received.

    PROXY and SERVER in `environment` and `url` stand for the ports.
    """
    server = ByteServer(HELLO)

    async def send_all() -> tuple[list[bytes | MemorybenchError], ByteServer, list[str]]:
        async with running(server, tls) as port:
            proxy = Proxy(port, status=status)
            async with running(proxy) as proxy_port:
                for name, value in environment.items():
                    monkeypatch.setenv(name, value.replace("PROXY", str(proxy_port)))
                async with open_http(Redactor([]), **opened) as http:
                    target = url.replace("SERVER", str(port))
                    outcomes = [await outcome(http, "POST", target, json={}) for _ in range(times)]
                return outcomes, server, proxy.heads

    return asyncio.run(send_all())


def test_https_goes_through_a_tunnel_of_the_proxy(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    replies, server, heads = send_by_proxy(
        f"https://{HOST}/v1", {"HTTPS_PROXY": "http://127.0.0.1:PROXY"}, monkeypatch, tls=tls, times=2
    )
    assert replies == [b"hello"] * 2
    assert [head.split("\r\n")[0] for head in heads] == [f"CONNECT {HOST}:443 HTTP/1.1"]
    assert (server.connections, len(server.requests)) == (1, 2)


def test_plain_http_goes_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    replies, _, heads = send_by_proxy(
        f"http://{HOST}/v1", {"http_proxy": "http://127.0.0.1:PROXY"}, monkeypatch, insecure=True
    )
    assert replies == [b"hello"]
    assert [head.split("\r\n")[0] for head in heads] == [f"POST http://{HOST}/v1 HTTP/1.1"]


def test_password_of_the_proxy_is_sent_to_the_proxy_alone(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"HTTPS_PROXY": "http://user:sesame@127.0.0.1:PROXY"}
    replies, server, [head] = send_by_proxy(f"https://{HOST}/", environment, monkeypatch, tls=tls)
    assert replies == [b"hello"]
    assert f"Proxy-Authorization: Basic {b64encode(b'user:sesame').decode()}\r\n" in head
    assert b"uthorization" not in server.requests[0]


@pytest.mark.parametrize("no_proxy", [HOST, "example.com", ".example.com", "*"])
def test_no_proxy_is_respected(no_proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThreadedResolver, "resolve", resolve_to("127.0.0.1"))
    environment = {"HTTP_PROXY": "http://127.0.0.1:PROXY", "NO_PROXY": no_proxy}
    replies, _, heads = send_by_proxy(f"http://{HOST}:SERVER/", environment, monkeypatch, insecure=True)
    assert replies == [b"hello"]
    assert heads == []


def test_this_machine_is_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"HTTP_PROXY": "http://127.0.0.1:PROXY"}
    replies, _, heads = send_by_proxy("http://127.0.0.1:SERVER/", environment, monkeypatch)
    assert replies == [b"hello"]
    assert heads == []


@pytest.mark.parametrize(("status", "kind"), [(407, ServiceError), (403, ServiceError), (502, Transient)])
def test_refusal_of_the_proxy_is_not_a_reply_of_the_service(
    status: int, kind: type[ServiceError], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"HTTPS_PROXY": "http://user:sesame@127.0.0.1:PROXY"}
    [error], server, _ = send_by_proxy(f"https://{HOST}/", environment, monkeypatch, status=status)
    assert isinstance(error, ServiceError)
    assert (type(error), error.status) == (kind, None)
    assert not getattr(error, "uncertain", False)
    assert "sesame" not in str(error)
    assert server.requests == []


def test_unreachable_proxy_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    [error], _, _ = send_by_proxy(f"https://{HOST}/", {"HTTPS_PROXY": "http://127.0.0.1:1"}, monkeypatch)
    assert isinstance(error, Transient)
    assert not error.uncertain


def test_certificate_is_checked_behind_the_proxy(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"HTTPS_PROXY": "http://127.0.0.1:PROXY"}
    [error], server, _ = send_by_proxy("https://other.example.com/", environment, monkeypatch, tls=tls)
    assert isinstance(error, ServiceError)
    assert error.reason == HOST_MISMATCH
    assert server.requests == []


@pytest.mark.parametrize("url", ["https://169.254.169.254/", "https://metadata.google.internal/"])
def test_forbidden_address_is_rejected_behind_a_proxy(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    [error], _, heads = send_by_proxy(url, {"HTTPS_PROXY": "http://127.0.0.1:PROXY"}, monkeypatch)
    assert isinstance(error, BadInput)
    assert heads == []


def test_proxy_itself_may_have_a_link_local_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.internal:3128")
    monkeypatch.setattr(ThreadedResolver, "resolve", resolve_to("169.254.7.7"))

    async def resolve_all() -> list[ResolveResult]:
        routes = Routes()
        resolver = GuardedResolver(routes)
        with pytest.raises(BadInput):
            await resolver.resolve("proxy.internal", 3128)
        routes.find_proxy(URL(f"https://{HOST}/"))
        return await resolver.resolve("proxy.internal", 3128)

    [address] = asyncio.run(resolve_all())
    assert address["host"] == "169.254.7.7"


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "https://127.0.0.1:1", "http://[::1"])
def test_unsupported_proxy_is_bad_input(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    [error], _, _ = send_by_proxy(f"https://{HOST}/", {"HTTPS_PROXY": proxy}, monkeypatch)
    assert isinstance(error, BadInput)
    assert error.where == "HTTPS_PROXY"


def test_password_file_of_the_user_is_not_read(
    tls: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine {HOST} login user password sesame\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    environment = {"HTTPS_PROXY": "http://127.0.0.1:PROXY"}
    replies, server, _ = send_by_proxy(f"https://{HOST}/", environment, monkeypatch, tls=tls)
    assert replies == [b"hello"]
    assert b"uthorization" not in server.requests[0]
