"""Replies of a server, and the error for each HTTP status."""

from __future__ import annotations

import math
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from msgspec import Struct
from yarl import URL

from memorybench.core.errors import Denied, Malformed, ServiceError, Transient
from memorybench.files.json_text import STRICT_DECODER, DuplicateKey
from memorybench.secrets.redaction import Redactor
from memorybench.text.sanitize import EXCERPT, printable

DENIED = frozenset({401, 402, 403})
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
UNCERTAIN = frozenset({504, 524})
"""HTTP statuses after which the request may have been performed: a gateway timed out, not the server behind it."""


class EventStream(Struct, frozen=True):
    """A reply whose body arrives in pieces over time."""

    status: int
    headers: Mapping[str, str]
    pieces: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    status: int
    headers: Mapping[str, str]
    """Names are case-insensitive."""
    body: bytes = field(repr=False)
    method: str
    url: URL = field(repr=False)
    redactor: Redactor = field(repr=False)

    @property
    def where(self) -> str:
        return describe(self.method, self.url, self.redactor)

    def json(self) -> Any:
        """Parse the body as JSON, whatever its content type; raise Malformed if it is invalid or repeats a key."""
        try:
            return STRICT_DECODER.decode(self.body.removeprefix(BOM_UTF8).decode())
        except DuplicateKey:
            raise self.malformed("a key occurs twice in an object of the reply, so its value is ambiguous") from None
        except (ValueError, RecursionError):  # bad UTF-8, bad JSON, NaN, 5,000 digits; 200,000 brackets
            raise self.malformed("the reply is invalid JSON") from None

    def malformed(self, problem: str) -> Malformed:
        """Return the error for a reply that does not match the API. `problem` must not contain secrets."""
        return Malformed(f"{self.where}: {problem}{self._excerpt()}", status=self.status)

    def failure(self, status: int) -> ServiceError:
        """Return the error for an HTTP status.

        `status` may differ from that of the reply: some gateways send 200 and put the real status into the body.
        """
        message = f"{self.where}: HTTP {status}{self._excerpt()}"
        if status in DENIED:
            return Denied(message, status=status)
        if status in TRANSIENT:
            return Transient(message, status=status, retry_after=self._retry_after(), uncertain=status in UNCERTAIN)
        return ServiceError(message, status=status)

    def reported_failure(self, problem: str, message: str | None) -> Transient:
        """Return the error for a reply whose HTTP status means success but whose body reports a failure.

        `problem` must not contain secrets. `message` is the error message of the service; None: the beginning of the
        body is shown.
        """
        text = f"{self.where}: HTTP {self.status}, but {problem}{self._excerpt(message)}"
        error = Transient(text, status=self.status, retry_after=self._retry_after())
        error.may_leave_data = True
        return error

    def _retry_after(self) -> float | None:
        return parse_retry_after(self.headers.get("retry-after"), date=self.headers.get("date"), now=datetime.now(UTC))

    def _excerpt(self, text: str | None = None) -> str:
        # Redacted before it is shortened, because half a key would not be recognised.
        text = printable(self.redactor.clean(self.body.decode("utf-8", "replace") if text is None else text))
        return f": {text[:EXCERPT]}{'…' if len(text) > EXCERPT else ''}" if text else ""


def describe(method: str, url: URL, redactor: Redactor) -> str:
    """Return the method and URL of a request for error messages, without user and query, which may be private."""
    return printable(redactor.clean(f"{method} {url.with_user(None).with_query(None)}"))


def parse_retry_after(value: str | None, *, date: str | None, now: datetime) -> float | None:
    """Return the seconds to wait according to a Retry-After header (RFC 9110, 10.2.3); None if missing or invalid.

    If the header is a date, the seconds are counted from the reply's Date header if there is one, because the clocks
    may differ. The result is never negative and has no upper limit.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        until = _parse_date(value)
        if until is None:
            return None
        seconds = (until - (_parse_date(date) or now)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _parse_date(text: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(text or "")
    except (ValueError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
