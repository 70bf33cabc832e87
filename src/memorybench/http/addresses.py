"""Where requests may go: http and https, plain http only at home, and never to a machine's own metadata."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from yarl import URL

from memorybench.core.errors import BadInput

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

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@lru_cache(maxsize=1024)  # a run asks the same few addresses, thousands of times
def check_url(url: str, insecure: bool = False) -> URL:
    """The parsed URL, if a request may go there; BadInput otherwise. Names are checked again when resolved."""
    try:
        parsed = URL(url)
        host = parsed.host
    except ValueError:
        raise BadInput("URL", "can not be read", expected="http://… or https://…") from None
    where = f"{parsed.scheme}://{host or ''}"
    if parsed.scheme not in ("http", "https") or not host:
        raise BadInput(where, "no such address is opened", expected="http://… or https://…")
    if parsed.raw_user is not None or parsed.raw_password is not None:
        raise BadInput(where, "the URL holds credentials", remedy="send them in a header, from an environment variable")
    refuse_forbidden(host)
    if parsed.scheme == "http" and not insecure and not _is_loopback(host):
        raise BadInput(
            where, "plain http would show keys and data to the network", remedy="use https or allow insecure"
        )
    return parsed


def refuse_forbidden(host: str, named: str | None = None) -> None:
    """Raises BadInput where `host` (what the name `named` resolved to) must not be asked."""
    address = _address(host)
    if host.lower().rstrip(".") in FORBIDDEN_NAMES or (address and any(address in net for net in FORBIDDEN_NETWORKS)):
        raise BadInput(named or host, f"{host} is a link-local or metadata address", expected="a public or own service")


def _address(host: str) -> Address | None:
    """The address that a host is written as, seen through IPv6 wrappings of IPv4; None: it is a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if host.replace(".", "").isdigit():  # 2852039166 and 0251.0376.1 reach what 169.254.169.254 reaches
            raise BadInput(host, "is no canonical IP address", expected="four numbers of 0 to 255") from None
        return None
    if isinstance(address, ipaddress.IPv6Address):
        within = address.ipv4_mapped or address.sixtofour
        if address in NAT64:
            within = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return within or address
    return address


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return address.is_loopback if address else host.lower() == "localhost" or host.lower().endswith(".localhost")
