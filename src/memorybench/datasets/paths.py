"""Paths of a benchmark config: JSONPath, and names such as `@key` for what is known about an item."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Place
from memorybench.text.spelling import join_names, suggestion

ITEM_MARKS = ("@index", "@key", "@file", "@folder", "@stem", "@value")
"""Of an item: its number from 1, the key under which it is in its object, its file (also without suffix) and the file's
folder, and itself, which need not be an object."""
NEIGHBOURS = ("@next", "@previous")
"""Of a question: the members after and before it in its list."""
QUESTION_MARKS = ("@before", "@index", "@item", "@key", "@parent", "@parentIndex", "@value", *NEIGHBOURS)
"""Of a question: the number of members of the history before the one that it is or is part of, its number from 1 within
the item, the item, the last name on the way to it, the nearest object around it, and the number from 1 of that object:
in the history if it is part of it, otherwise in its list."""
OTHERS = "@others"
"""In the place of a path to forbidden ids: all that are not evidence."""
_MARK = re.compile(r"(^|(?<!\|)\|(?!\|))(\s*)(@\w*)")  # not the || of a filter


class Marked(dict[str, Any]):
    """An object with names such as `@key` that only a path that writes them finds: `$.*` and `$..id` do not."""

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
            remedy = suggestion(match[3], known)
            raise BadInput(where, f"unknown name {match[3]}", expected=join_names(known), remedy=remedy)
    return replace(Path.parse(_MARK.sub(r'\1\2$["\3"]', text), where), text=text, skips_empty=True)


def uses_marks(path: Path | None) -> bool:
    return path is not None and "@" in path.text


def place_of(path: Path, value: Any) -> Place | None:
    """Return the place in `value` that the path leads to; None if it may lead to several."""
    if not path.singular:
        return None
    return next((place for place, _ in path.located(value)), path.routes[0].steps)


def only(path: Path, value: Any, where: Callable[[], str]) -> Any:
    """Return the only match, or None; raise BadInput if there are several: one of them would be lost."""
    if path.singular:
        return path.first(value)
    matches = path.all(value)
    if len(matches) > 1:
        problem = f"{path.text} matches {len(matches)} values"
        raise BadInput(where(), problem, expected="at most one", remedy="write a path to one of them")
    return matches[0] if matches else None


def flatten(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """Yield the members of nested lists, each with its place."""
    if not isinstance(value, list):
        yield place, value
        return
    for index, member in enumerate(value):
        yield from flatten(member, (*place, index))
