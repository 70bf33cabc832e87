"""Text, tokens and calls, read from what a program has printed, as its config says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from memorybench.core.errors import BadInput, Malformed
from memorybench.core.spending import Spending
from memorybench.files.json_text import decode
from memorybench.files.jsonpaths import Path
from memorybench.text.sanitize import preview

from .config import Output


class Printed:
    """What was printed, and where to look in it. The config was checked when it was read."""

    def __init__(self, output: Output, printed: str, where: str) -> None:
        self._output = output
        self._printed = printed
        self._where = where
        self._find = self._finder()

    @property
    def text(self) -> str:
        place = self._output.text
        if place is None:
            return self._printed.strip()
        found = [one for one in self._find(place) if isinstance(one, str)]
        return found[-1].strip() if found else ""

    @property
    def spent(self) -> Spending:
        """What it says that it spent. What it does not say is unknown: the cost is then, too."""
        cost = self._sum(self._output.cost)
        return Spending(
            calls=1,
            input_tokens=round(self._sum(self._output.input_tokens) or 0),
            output_tokens=round(self._sum(self._output.output_tokens) or 0),
            cost=cost,
        )

    @property
    def tool_calls(self) -> tuple[str, ...]:
        place = self._output.tool_calls
        return () if place is None else tuple(str(name) for name in self._find(place))

    @property
    def out_of_turns(self) -> bool:
        return self._output.max_turns is not None and _any(self._find(self._output.max_turns))

    @property
    def failure(self) -> str:
        """Why it failed, in its own words; "": it does not say that it has."""
        found = [] if self._output.failure is None else self._find(self._output.failure)
        return preview(found[-1], 300) if _any(found) else ""

    def _sum(self, place: str | None) -> float | None:
        if place is None:
            return None
        numbers = [_number(one) for one in self._find(place)]
        known = [number for number in numbers if number is not None]
        return sum(known) if known else None

    def _finder(self) -> Callable[[str], list[Any]]:
        if self._output.format == "text":
            return lambda pattern: [_group(match) for match in re.finditer(pattern, self._printed)]
        value = self._value()
        return lambda path: Path.parse(path, self._where).all(value)

    def _value(self) -> Any:
        lines = [line for line in self._printed.splitlines() if line.strip()]
        try:
            if self._output.format == "json":
                return decode(self._printed, self._where)
            # some programs print a warning among their documents
            return [decode(line, self._where) for line in lines if line.lstrip().startswith(("{", "["))]
        except BadInput as bad:
            raise Malformed(f"{self._where}: {bad.problem}: {preview(self._printed)}") from None


def _any(found: list[Any]) -> bool:
    return any(one not in (None, False, "") for one in found)


def _group(match: re.Match[str]) -> str:
    return (match[1] if match.re.groups else match[0]) or ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(str(value).replace(",", ""))
    except ValueError:
        return None
