"""Paths of a benchmark config: JSONPath, and names such as `@key` for what is known about an item."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from memorybench.core.errors import BadInput
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Place
from memorybench.text.spelling import unknown_name

ITEM_MARKS = ("@index", "@key", "@file", "@folder", "@stem", "@value")
"""Names that a path within an item may begin with. @index: the item's number, from 1; @key: its key, if items are in an
object; @file, @stem: its file, with and without suffix; @folder: the file's folder; @value: the item itself."""
NEIGHBOURS = ("@next", "@previous")
"""Names for the members after and before the question in the list that contains it."""
QUESTION_MARKS = ("@before", "@index", "@item", "@key", "@parent", "@parentIndex", "@value", *NEIGHBOURS)
"""Names that a path within a question may begin with. @before: the number of sessions or turns of the history before
the one that contains the question; @index: the question's number in the item, from 1; @item: the item; @key: the last
key on the way to the question; @parent: the nearest object around it; @parentIndex: the number of that object, from 1,
in the history if it is part of it, else in its list; @value: the question itself."""
OTHERS = "@others"
"""Written instead of a path to forbidden ids: all sessions or turns that are not evidence are forbidden."""
_MARK = re.compile(r"(^|(?<!\|)\|(?!\|))(\s*)(@\w*)")  # not the || of a filter


class Marked(dict[str, Any]):
    """A dict with extra names such as `@key`, which a path must name to find them: `$.*` and `$..id` do not."""

    def __init__(self, value: Mapping[str, Any], marks: Mapping[str, Any]) -> None:
        super().__init__(value)
        self.marks = marks

    def __missing__(self, name: str) -> Any:
        return self.marks[name]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.marks

    def copy(self) -> Marked:
        return Marked(self, self.marks)


def parse_path(text: str, where: str) -> Path:
    """Parse a path that may begin with a name such as `@key`."""
    for match in _MARK.finditer(text):
        known = dict.fromkeys((*ITEM_MARKS, *QUESTION_MARKS))
        if match[3] not in known:
            raise unknown_name(where, f"unknown name {match[3]} in a path", match[3], known)
    return replace(Path.parse(_MARK.sub(r'\1\2$["\3"]', text), where), text=text, skips_empty=True)


def optional_path(text: str | None, where: str) -> Path | None:
    return None if text is None else parse_path(text, where)


def uses_marks(path: Path | None) -> bool:
    return path is not None and "@" in path.text


def place_of(path: Path, value: Any) -> Place | None:
    """Return the place in `value` that a path leads to; None if the path may match several places.

    If nothing is there, return the place where the path's first alternative would match.
    """
    if not path.singular:
        return None
    return next((place for place, _ in path.located(value)), path.routes[0].steps)


def only(path: Path, value: Any, where: Callable[[], str]) -> Any:
    """Return the only match of a path, or None if there is none; raise BadInput if there are several."""
    if path.name is not None or path.singular:
        return path.first(value)
    matches = path.all(value)
    if len(matches) > 1:
        raise BadInput(
            where(),
            f"{path.text} matches {len(matches)} values",
            expected="at most one value",
            remedy="write a path that matches one value",
        )
    return matches[0] if matches else None


def flatten(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """Yield the members of nested lists, each with its place; a value that is not a list is yielded itself."""
    if not isinstance(value, list):
        yield place, value
        return
    for index, member in enumerate(value):
        yield from flatten(member, (*place, index))
