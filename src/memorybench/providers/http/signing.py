"""Signs requests with the user's function that `connection.sign` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memorybench.core.errors import ServiceError
from memorybench.http.client import Signer


@dataclass(frozen=True, slots=True)
class RequestToSign:
    """A request that is about to be sent, as the user's function gets it."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    """The bytes that are sent."""
    key: str | None = field(repr=False)
    """The value of `auth.envVar`; None if there is none."""


def make_signer(sign: Callable[[RequestToSign], Any], key: str | None, where: str) -> Signer:
    """Return a function for the HTTP client that calls `sign` and returns its headers.

    It raises ServiceError, with a message that begins with `where`, if `sign` fails or returns no dict of texts.
    """

    def signer(method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        try:
            added = sign(RequestToSign(method, url, headers, body, key))
        except Exception as error:
            # without the message, which may contain the key
            raise ServiceError(f"{where}: the function that signs requests raised {type(error).__name__}") from None
        if not isinstance(added, Mapping) or not all(
            isinstance(text, str) for header in added.items() for text in header
        ):
            raise ServiceError(
                f"{where}: the function that signs requests returned {type(added).__name__}; expected a dict of headers"
            )
        return added

    return signer
