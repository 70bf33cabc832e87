"""Reads the answer, tokens and tool calls from what a program printed, at the places that its config names."""

from __future__ import annotations

import re
from typing import Any

from memorybench.core.errors import BadInput, Malformed
from memorybench.core.spending import Spending
from memorybench.files.json_text import decode
from memorybench.files.jsonpaths import Path
from memorybench.text.sanitize import preview

from .config import Output


class AgentOutput:
    """Reads the printed output of an agent at the places that its config names."""

    def __init__(self, config: Output, printed: str, where: str) -> None:
        self._config = config
        self._printed = printed
        self._where = where
        self._value = None if config.format == "text" else self._decode()

    @property
    def text(self) -> str:
        if self._config.text is None:
            return self._printed.strip()
        texts = [match for match in self._find(self._config.text) if isinstance(match, str)]
        return texts[-1].strip() if texts else ""

    @property
    def spent(self) -> Spending:
        """The numbers of tokens and the cost that the agent reports. Without a reported cost, `cost` is None."""
        return Spending(
            calls=1,
            input_tokens=round(self._sum(self._config.input_tokens) or 0),
            output_tokens=round(self._sum(self._config.output_tokens) or 0),
            cost=self._sum(self._config.cost),
        )

    @property
    def tool_calls(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self._find(self._config.tool_calls))

    @property
    def memory_writes(self) -> tuple[Any, ...]:
        return tuple(self._find(self._config.memory_writes))

    @property
    def is_out_of_turns(self) -> bool:
        return _any_value(self._find(self._config.max_turns))

    @property
    def failure(self) -> str:
        """The reason of the failure that the agent reports; "" if it reports no failure."""
        matches = self._find(self._config.failure)
        return preview(matches[-1], 300) if _any_value(matches) else ""

    def _sum(self, place: str | None) -> float | None:
        numbers = [number for match in self._find(place) if (number := _parse_number(match)) is not None]
        return sum(numbers) if numbers else None

    def _find(self, place: str | None) -> list[Any]:
        """Return the matches of `place`, a regular expression (for text) or a JSONPath, in the output; [] for None."""
        if place is None:
            return []
        if self._config.format == "text":
            return [(match[1] if match.re.groups else match[0]) or "" for match in re.finditer(place, self._printed)]
        return Path.parse(place, self._where).all(self._value)

    def _decode(self) -> Any:
        try:
            if self._config.format == "json":
                return decode(self._printed, self._where)
            # some programs print warnings between their JSON lines
            lines = [line for line in self._printed.splitlines() if line.lstrip().startswith(("{", "["))]
            return [decode(line, self._where) for line in lines]
        except BadInput as error:
            raise Malformed(f"{self._where}: {error.problem}: {preview(self._printed)}") from None


def _any_value(matches: list[Any]) -> bool:
    return any(match not in (None, False, "") for match in matches)


def _parse_number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(str(value).replace(",", ""))
    except ValueError:
        return None
