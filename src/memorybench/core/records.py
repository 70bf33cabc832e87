"""The base class of stored values, their canonical JSON and its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """The base class of immutable pydantic models that reject unknown fields.

    Pydantic builds the schema of each class at its first use, because a run uses only a few of the classes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    def plain(self) -> Any:
        """Return JSON-compatible data."""
        return self.model_dump(mode="json")


def iso_date(at: datetime | None) -> str | None:
    """Return a date and time in the format that Records use in JSON; None for None."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def canonical(value: Any) -> str:
    """Return the canonical JSON of a value: sorted keys, no spaces, only ASCII.

    Raise ValueError for NaN and infinities.
    """
    return _ENCODER.encode(value)


def digest(value: Any) -> str:
    """Return 32 hex digits (128 bits of SHA-256) of the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:32]


class JsonTextHasher:
    """Computes `digest(text)` for a text that arrives in parts, without joining them."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256(b'"')

    def add(self, part: str) -> None:
        self._hash.update(canonical(part)[1:-1].encode())

    def digest(self) -> str:
        whole = self._hash.copy()
        whole.update(b'"')
        return whole.hexdigest()[:32]


def array_parts(values: Iterable[Any]) -> Iterator[str]:
    """Yield the canonical JSON of a list in pieces, one value at a time. Joined, the pieces are the whole JSON text."""
    yield "["
    for place, value in enumerate(values):
        yield f",{canonical(value)}" if place else canonical(value)
    yield "]"


def _plain(value: Any) -> Any:
    if hasattr(value, "plain"):  # a Record, or a dataclass of conversation.py
        return value.plain()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no canonical JSON")


_ENCODER = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=True,  # lone surrogates become escapes instead of encoding errors
    allow_nan=False,
    default=_plain,
)
