"""Checks the addresses of requests. Forbidden: metadata services of clouds, and plain http to other machines."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING

from memorybench.core.errors import BadInput

if TYPE_CHECKING:
    from yarl import URL

FORBIDDEN_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})
FORBIDDEN_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "169.254.0.0/16",  # link-local, and the metadata service of most clouds
        "fe80::/10",
        "fd00:ec2::254/128",  # Amazon
        "fd20:ce::254/128",  # Google
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure
        "192.0.0.192/32",  # Oracle
    )
)
NAT64 = ipaddress.ip_network("64:ff9b::/96")


@lru_cache(maxsize=1024)  # a run requests the same few URLs thousands of times
def check_url(url: str, insecure: bool = False) -> URL:
    """Parse a URL and raise BadInput if requests to it are not allowed.

    `insecure` allows plain http to other machines. A host name is checked again when it is resolved.
    """
    from yarl import URL

    try:
        parsed = URL(url)
        host = parsed.host
    except ValueError:
        raise BadInput("URL", "the URL is invalid", expected="http://… or https://…") from None
    where = f"{parsed.scheme}://{host or ''}"
    if parsed.scheme not in ("http", "https") or not host:
        raise BadInput(where, "the URL has no host, or its scheme is not supported", expected="http://… or https://…")
    if parsed.raw_user is not None or parsed.raw_password is not None:
        raise BadInput(
            where,
            "the URL contains a user name or password",
            remedy="remove it; a key belongs in a header, from an environment variable",
        )
    check_host(host)
    if parsed.scheme == "http" and not insecure and not is_loopback(host):
        raise BadInput(
            where,
            "http without TLS exposes keys and data to the network",
            remedy="use https, or allow insecure connections",
        )
    return parsed


def check_host(host: str, name: str | None = None) -> None:
    """Raise BadInput if `host` is a link-local or metadata address; `name` is the host name that resolved to it."""
    address = _parse_address(host)
    if host.lower().rstrip(".") in FORBIDDEN_NAMES or (address and any(address in net for net in FORBIDDEN_NETWORKS)):
        raise BadInput(
            name or host, f"{host} is a link-local address or a cloud metadata service, which is never contacted"
        )


def is_loopback(host: str) -> bool:
    address = _parse_address(host)
    return address.is_loopback if address else host.lower() == "localhost" or host.lower().endswith(".localhost")


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address of `host`, as IPv4 if it is an IPv4 address written as IPv6; None if it is a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if host.replace(".", "").isdigit():  # 2852039166 and 0251.0376.1 reach 169.254.169.254, too
            raise BadInput(host, "invalid IP address", expected="four numbers from 0 to 255") from None
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address in NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address
