"""Performs steps without a journal, for work whose results are stored elsewhere or not at all."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

from memorybench.core.plans import Adding
from memorybench.core.records import digest

T = TypeVar("T")


class UnrecordedSteps:
    """Performs each step once and keeps its result while this object exists. Notes go to standard error."""

    def __init__(self) -> None:
        self._results: dict[str, Any] = {}

    async def once(
        self,
        name: str,
        inputs: Mapping[str, Any],
        work: Callable[[], Awaitable[T]],
        returns: type[T],
        *,
        after: Callable[[], Awaitable[object]] | None = None,
        **options: Any,
    ) -> T:
        key = digest([name, inputs])
        if key not in self._results:
            if after is not None:
                await after()
            self._results[key] = await work()
        return cast(T, self._results[key])

    def is_recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        return digest([name, inputs]) in self._results

    def is_inherited(self, name: str, inputs: Mapping[str, Any], *, shared: bool = False) -> bool:
        return False

    async def note(self, kind: str, text: str) -> None:
        print(f"{kind}: {text}", file=sys.stderr)

    def show_adding(self, adding: Adding) -> None:
        return None

    def check_stopping(self) -> None:
        return None
