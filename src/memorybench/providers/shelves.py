"""Indexes that are kept open for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

_OPEN = 16
"""A scope is searched many times in a row, then never again; each index weighs a few megabytes."""


class Closable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=Closable)


class Shelves(Generic[T]):
    """What was built for the scopes searched last. Lives on one thread."""

    def __init__(self, build: Callable[[str], T]) -> None:
        self._build = build
        self._open: OrderedDict[str, T] = OrderedDict()

    def run_reader(self, scope: str) -> T:
        run_reader = self._open.pop(scope, None)
        if run_reader is None:
            run_reader = self._build(scope)
        self._open[scope] = run_reader
        if len(self._open) > _OPEN:
            self.drop(next(iter(self._open)))
        return run_reader

    def drop(self, scope: str) -> None:
        """Its content has changed: it is built anew when it is searched again."""
        run_reader = self._open.pop(scope, None)
        if run_reader is not None:
            run_reader.close()

    def close(self) -> None:
        for run_reader in self._open.values():
            run_reader.close()
