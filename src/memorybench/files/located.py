"""Values with the file and line of each of their parts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from memorybench.text.spelling import as_written

Step = str | int
Place = tuple[Step, ...]

DEEPEST = 100
"""Maximum nesting of a document. Other modules walk documents by recursion."""

_PLAIN_KEY = re.compile(r"[\w-]+")


class Document(Struct, frozen=True):
    """A value as plain Python data, with the file and line of every place in it.

    A place may be given in snake_case where the file uses camelCase; results use the file's spelling.
    """

    path: str
    value: Any
    line_of: Callable[[Place], int | None] = lambda _: None
    """Returns the line of a place, which is a path from the root of the file; None if it is unknown, or the value did
    not come from a file."""
    within: Place = ()
    """The place of `value` in the file."""
    are_rows: bool = False
    """Whether the file is a list of rows on lines of their own. Messages then leave out the index of a row."""

    def at(self, *place: Step) -> Document:
        """Return the part at `place`, which must exist, as a Document."""
        value, written = self.value, self._written(place)
        for step in written:
            value = value[step]
        return Document(self.path, value, self.line_of, self.within + written, self.are_rows)

    def line(self, *place: Step) -> int | None:
        """Return the line of `place`, or of its innermost existing parent."""
        full = self.within + self._written(place)
        lines = (self.line_of(full[:depth]) for depth in range(len(full), -1, -1))
        return next((line for line in lines if line is not None), None)

    def where(self, *place: Step) -> str:
        """Return file, line and place to begin an error message with: `providers/mem0.yaml:12: endpoints.add.path`."""
        line = self.line(*place)
        file = self.path if line is None else f"{self.path}:{line}"
        full = self.within + self._written(place)
        formatted = format_place(full[1:] if self.are_rows and line is not None else full)
        return f"{file}: {formatted}" if formatted else file

    def _written(self, place: Place) -> Place:
        value, written = self.value, []
        for step in place:
            if isinstance(value, dict) and isinstance(step, str):
                step = as_written(value, step) or step
            written.append(step)
            value = _child(value, step)
        return tuple(written)


def format_place(place: Place) -> str:
    """Return a place as one printable line, such as `endpoints.add.path`, `[3].question` or `headers["X Y"]`."""
    return "".join(_format_step(step) for step in place).removeprefix(".")


def _format_step(step: Step) -> str:
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
