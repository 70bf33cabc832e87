"""What the tests against vendors' own clients share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def leftovers_collected() -> Iterator[None]:
    """Sockets that a client never closes are given up within its own test, where warnings of it are its vendor's
    affair, and not at some later moment, where they would end the whole run."""
    yield
    gc.collect()
