from __future__ import annotations

import asyncio
import socket

import pytest
from aiohttp.abc import ResolveResult
from yarl import URL

from memorybench.vocabulary.errors import BadInput
from memorybench.wire.addresses import check_url
from memorybench.wire.resolver import GuardedResolver


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com/v1",
        "http://localhost:11434/v1",
        "http://127.0.0.1:8000",
        "http://127.9.9.9/",
        "http://[::1]:8000/",
        "http://memory.localhost/",
        "https://10.0.0.7/",
    ],
)
def test_ordinary_addresses_are_open(url: str) -> None:
    assert check_url(url) == URL(url)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("file:///etc/passwd", "no such address is opened"),
        ("ftp://example.com/", "no such address is opened"),
        ("example.com/v1", "no such address is opened"),
        ("", "no such address is opened"),
        ("https:///path", "no such address is opened"),
        ("https://[::1", "can not be read"),
        ("http://api.example.com/", "plain http"),
        ("http://10.0.0.7/", "plain http"),
        ("http://localhost.example.com/", "plain http"),
        ("https://me:secret@example.com/", "credentials"),
        ("http://169.254.169.254/latest/meta-data", "metadata"),
        ("https://169.254.1.1/", "metadata"),
        ("https://[fe80::1]/", "metadata"),
        ("https://[::ffff:169.254.169.254]/", "metadata"),
        ("https://[64:ff9b::a9fe:a9fe]/", "metadata"),
        ("https://[2002:a9fe:a9fe::]/", "metadata"),
        ("https://[fd00:ec2::254]/", "metadata"),
        ("https://metadata.google.internal/", "metadata"),
        ("https://METADATA.google.internal./", "metadata"),
        ("https://2852039166/", "canonical"),
        ("https://169.254.43518/", "canonical"),
    ],
)
def test_dangerous_addresses_are_refused(url: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as refused:
        check_url(url)
    assert "secret" not in str(refused.value)


def test_plain_http_to_another_host_can_be_allowed() -> None:
    assert check_url("http://10.0.0.7/", insecure=True).host == "10.0.0.7"
    with pytest.raises(BadInput, match="metadata"):
        check_url("http://169.254.169.254/", insecure=True)


def test_a_name_that_leads_to_a_metadata_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def to_metadata(_: object, host: str, port: int = 0, __: int = 0) -> list[ResolveResult]:
        found = ResolveResult(hostname=host, host="169.254.169.254", port=port, family=socket.AF_INET, proto=0, flags=0)
        return [found]

    async def resolve() -> None:
        resolver = GuardedResolver()
        await resolver.resolve("innocent.example.com", 443)

    monkeypatch.setattr("aiohttp.ThreadedResolver.resolve", to_metadata)
    with pytest.raises(BadInput, match=r"innocent\.example\.com: 169\.254\.169\.254 is a link-local"):
        asyncio.run(resolve())
