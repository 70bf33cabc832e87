"""Makes Python collect garbage rarely while a run creates many objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLD = 10_000
"""How many new objects start a collection. With 700, the default of Python 3.11, a run spends a tenth of its CPU time
on collections that free almost nothing."""


@contextmanager
def garbage_collected_rarely() -> Iterator[None]:
    """Inside the `with` block, collect garbage rarely, and only among objects that are created in the block."""
    threshold = gc.get_threshold()[0]
    if 0 < threshold < _THRESHOLD:  # 0: the calling program has turned garbage collection off
        gc.set_threshold(_THRESHOLD)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(threshold)
