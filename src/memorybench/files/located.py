"""Where a value stands in the file it came from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memorybench.text.spelling import as_written

Step = str | int
Place = tuple[Step, ...]

DEEPEST = 100
"""Levels of nesting that any document may have: what is read by loops here is walked by recursion elsewhere."""

_PLAIN_KEY = re.compile(r"[\w-]+")


def no_lines(_: Place) -> int | None:
    """The lines of a value that came from no file."""
    return None


@dataclass(frozen=True, slots=True)
class Document:
    """A value as plain Python data, and the file and line of every place in it.

    Places may be named in snake_case where the file has camelCase; answers spell them as the file does.
    """

    path: str
    value: Any
    line_of: Callable[[Place], int | None] = no_lines
    """The line of a place counted from the whole file's root; None: not known."""
    within: Place = ()
    """Where in the file `value` stands."""

    def at(self, *place: Step) -> Document:
        """The part of this document at `place`, which must exist; it still knows its file and lines."""
        value, written = self.value, self._written(place)
        for step in written:
            value = value[step]
        return Document(self.path, value, self.line_of, self.within + written)

    def line(self, *place: Step) -> int | None:
        """The line of `place`, or of the innermost part that exists on the way to it."""
        full = self.within + self._written(place)
        lines = (self.line_of(full[:depth]) for depth in range(len(full), -1, -1))
        return next((line for line in lines if line is not None), None)

    def where(self, *place: Step) -> str:
        """`providers/mem0.yaml:12: endpoints.add.path`, as messages begin."""
        line = self.line(*place)
        file = self.path if line is None else f"{self.path}:{line}"
        spelled = spell(self.within + self._written(place))
        return f"{file}: {spelled}" if spelled else file

    def _written(self, place: Place) -> Place:
        value, written = self.value, []
        for step in place:
            if isinstance(value, dict) and isinstance(step, str):
                step = as_written(value, step) or step
            written.append(step)
            value = _child(value, step)
        return tuple(written)


def spell(place: Place) -> str:
    """`endpoints.add.path`, `[3].question`, `headers["X Y"]`; always one printable line."""
    return "".join(_spell_step(step) for step in place).removeprefix(".")


def _spell_step(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN_KEY.fullmatch(step):
        return f".{step}"
    return f"[{json.dumps(step, ensure_ascii=not step.isprintable())}]"


def _child(value: Any, step: Step) -> Any:
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):
        return None
