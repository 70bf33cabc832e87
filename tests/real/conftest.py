"""Fixtures for tests with vendor clients, and a table of the memory systems at the end."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

_ROWS = pytest.StashKey[dict[str, dict[str, Any]]]()


@pytest.fixture
def leftovers_collected() -> Iterator[None]:
    """Collect sockets that a client never closes within its own test, so that their warnings fail no later test."""
    yield
    gc.collect()


@pytest.fixture
def add_row(request: pytest.FixtureRequest) -> Callable[[str, dict[str, Any]], None]:
    """Return a function that adds a row to the table, under the name of a system."""
    rows = request.config.stash.setdefault(_ROWS, {})
    return rows.__setitem__


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(_ROWS, {})
    if not rows:
        return
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = [["memory", *columns]]
    lines += [[system, *(_cell(row.get(name, "")) for name in columns)] for system, row in rows.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    terminalreporter.section("memories on this machine")
    for line in lines:
        terminalreporter.write_line("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "?"  # an unknown cost is not 0
    return f"{value:.3g}" if isinstance(value, float) else str(value)
