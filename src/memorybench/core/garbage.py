"""Garbage collection while many objects are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLD = 10_000
"""Python's own is 700, with which a run spends a tenth of its CPU time on collections that find almost nothing."""


@contextmanager
def garbage_collected_rarely() -> Iterator[None]:
    """Collect garbage rarely while the context is open, and leave out objects that exist now: most stay in use."""
    threshold = gc.get_threshold()[0]
    if 0 < threshold < _THRESHOLD:  # 0: the program has turned collections off
        gc.set_threshold(_THRESHOLD)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(threshold)
