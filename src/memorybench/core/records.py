"""The base of every value that is stored or passed on, and the one digest that names things."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Plain data: frozen, and without room for fields nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def plain(self) -> Any:
        """As JSON knows it."""
        return self.model_dump(mode="json")


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spare blanks, NaN refused."""
    return _ENCODER.encode(value)


def digest(value: Any) -> str:
    """32 hex digits (128 bits of SHA-256) over the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:32]


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
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
