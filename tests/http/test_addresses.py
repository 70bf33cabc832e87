from __future__ import annotations

import pytest
from yarl import URL

from memorybench.core.errors import BadInput
from memorybench.http.addresses import check_url


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
        ("file:///etc/passwd", "not supported"),
        ("ftp://example.com/", "not supported"),
        ("example.com/v1", "not supported"),
        ("", "not supported"),
        ("https:///path", "not supported"),
        ("https://[::1", "invalid"),
        ("http://api.example.com/", "exposes keys"),
        ("http://10.0.0.7/", "exposes keys"),
        ("http://localhost.example.com/", "exposes keys"),
        ("https://me:secret@example.com/", "user name or password"),
        ("http://169.254.169.254/latest/meta-data", "metadata"),
        ("https://169.254.1.1/", "metadata"),
        ("https://[fe80::1]/", "metadata"),
        ("https://[::ffff:169.254.169.254]/", "metadata"),
        ("https://[64:ff9b::a9fe:a9fe]/", "metadata"),
        ("https://[2002:a9fe:a9fe::]/", "metadata"),
        ("https://[fd00:ec2::254]/", "metadata"),
        ("https://metadata.google.internal/", "metadata"),
        ("https://METADATA.google.internal./", "metadata"),
        ("https://2852039166/", "invalid IP address"),
        ("https://169.254.43518/", "invalid IP address"),
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
