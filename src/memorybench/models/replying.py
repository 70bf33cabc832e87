"""Reading JSON that a server promised, but may not have kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MOST = 10**12


def members(value: Any) -> Mapping[str, Any]:
    """Those of an object; of anything else none, so that what is missing further in reads as missing."""
    return value if isinstance(value, dict) else {}


def count(value: Any) -> int | None:
    """A number of things; None: it is no such number, or one that nobody can mean."""
    counted = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST
    return value if counted else None
