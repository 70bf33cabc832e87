"""What a server said, and what an unhappy status means."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn

from yarl import URL

from memorybench.core.errors import Denied, Malformed, ServiceError, Transient
from memorybench.secrets.redaction import Redactor
from memorybench.text.sanitize import EXCERPT, printable

from .retry_after import parse_retry_after

DENIED = frozenset({401, 402, 403})
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
UNCERTAIN = frozenset({504, 524})
"""A gateway gave up waiting; whoever stands behind it may have done the work."""


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = field(repr=False)
    method: str
    url: URL = field(repr=False)
    redactor: Redactor = field(repr=False)

    @property
    def where(self) -> str:
        return describe(self.method, self.url, self.redactor)

    def json(self) -> Any:
        """The body as JSON, whatever content type it claims; Malformed where it is none."""
        try:
            return _DECODER.decode(self.body.removeprefix(BOM_UTF8).decode())
        except (ValueError, RecursionError):  # bad UTF-8, bad JSON, NaN, 5,000 digits; 200,000 brackets
            raise self.malformed("the reply is no JSON") from None

    def malformed(self, problem: str) -> Malformed:
        """The error to raise when this reply is not what the API promises. `problem` must hold nothing secret."""
        return Malformed(f"{self.where}: {problem}{self._excerpt()}")

    def failure(self, status: int) -> ServiceError:
        """The error that a status means. Some gateways send status 200 and hide the real one in the body."""
        said = f"{self.where}: HTTP {status}{self._excerpt()}"
        if status in DENIED:
            return Denied(said)
        if status in TRANSIENT:
            asked = parse_retry_after(
                self.headers.get("retry-after"), date=self.headers.get("date"), now=datetime.now(UTC)
            )
            return Transient(said, retry_after=asked, uncertain=status in UNCERTAIN)
        return ServiceError(said)

    def _excerpt(self) -> str:
        # Redacted before it is cut: half a key would not be recognised.
        text = printable(self.redactor.clean(self.body.decode("utf-8", "replace")))
        return f": {text[:EXCERPT]}{'…' if len(text) > EXCERPT else ''}" if text else ""


def describe(method: str, url: URL, redactor: Redactor) -> str:
    """Names a request in an error: without its query, which is long and may hold what is nobody's business."""
    return printable(redactor.clean(f"{method} {url.with_query(None)}"))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
