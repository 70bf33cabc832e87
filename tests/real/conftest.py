"""Fixtures for tests with vendor clients."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def leftovers_collected() -> Iterator[None]:
    """Collect sockets that a client never closes within its own test, so that their warnings fail no later test."""
    yield
    gc.collect()
