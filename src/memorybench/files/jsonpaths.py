"""JSONPath (RFC 9535) with fallbacks, bare names, and errors that name the column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from typing import Any

from jsonpath import JSONPath, JSONPathEnvironment, JSONPathError
from jsonpath.filter import StringLiteral
from jsonpath.function_extensions import Match, Search
from jsonpath.segments import JSONPathChildSegment
from jsonpath.selectors import Filter, IndexSelector, NameSelector
from jsonpath.token import Token
from msgspec import Struct

from memorybench.core.errors import BadInput, Unreadable
from memorybench.text.patterns import Pattern
from memorybench.text.sanitize import preview

from .located import DEEPEST, Place, Step

_BARE_NAME = re.compile(r"[^$@.\[\]()*?'\"|]+")
_QUOTED_OR_MARK = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\[\]]|\|""", re.DOTALL)

_MAPPINGS = (dict, Mapping)  # isinstance is fast for dict and slow for Mapping


@lru_cache(maxsize=256)
def _pattern(text: str) -> Pattern | None:
    try:
        return Pattern(text)
    except ValueError:
        return None  # RFC 9535: a pattern from the data that is invalid does not match


class _Match(Match):
    def check_cache(self, pattern: str) -> Pattern | None:
        return _pattern(pattern)


class _Search(Search):
    def check_cache(self, pattern: str) -> Pattern | None:
        return _pattern(pattern)


class _Strict(JSONPathEnvironment):
    # of the descendant segment
    max_recursion_depth = DEEPEST + 1

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        self.function_extensions |= {"match": _Match(), "search": _Search()}

    def validate_function_extension_signature(self, token: Token, args: list[Any]) -> list[Any]:
        checked = super().validate_function_extension_signature(token, args)
        if token.value in ("match", "search") and isinstance(checked[1], StringLiteral):
            try:
                Pattern(checked[1].value)
            except ValueError as error:
                raise JSONPathError(str(error), token=token) from None
        return checked


_ENVIRONMENT = _Strict(strict=True)


class Route(Struct, frozen=True):
    """One of the alternatives of a path that are separated by `|`."""

    compiled: JSONPath
    steps: Place
    """The names and indexes with which the path begins, up to the first other part such as `[*]`."""
    singular: bool
    """Whether the path has only names and indexes, and so at most one match."""

    def located(self, value: Any) -> list[tuple[Place, Any]]:
        if self.singular:  # much faster, and most paths are singular
            return [(self.steps, match) for match in _follow(self.steps, value)]
        if isinstance(value, str):  # the library would parse it as JSON text
            return []
        return [(match.parts, match.obj) for match in self.compiled.finditer(value)]


class Path(Struct, frozen=True):
    text: str
    routes: tuple[Route, ...]
    where: str
    name: str | None = None
    """The name, if the path is a single name; otherwise None. Such paths are the most common, and are read faster."""
    skips_empty: bool = False
    """Whether the next alternative is used if a match is an empty text, list or object, as it is for null."""

    @classmethod
    def parse(cls, text: str, where: str) -> Path:
        """Parse `$.results[*]`, `$.memory | $.chunk` (the first with a match) or `question_id` (`$.question_id`).

        Raise BadInput, which begins with `where`, if the path is invalid.
        """
        routes = tuple(_route(part, column, where) for part, column in _alternatives(text))
        match routes:
            case (Route(steps=(str(name),), singular=True),):
                return cls(text, routes, where, name)
        return cls(text, routes, where)

    @property
    def singular(self) -> bool:
        """Whether the path can have at most one match."""
        return all(route.singular for route in self.routes)

    def all(self, value: Any) -> list[Any]:
        """Return the matches of `located` without their places."""
        return [match for _, match in self.located(value)]

    def located(self, value: Any) -> list[tuple[Place, Any]]:
        """Return the matches of the first alternative that has a match other than null, each with its place.

        With `skips_empty`, a match must also not be empty. If no alternative has such a match, return the matches of
        the first alternative that has any.
        """
        found: list[tuple[Place, Any]] = []
        for route in self.routes:
            matches = self._apply(route.located, value)
            if any(self._is_value(match) for _, match in matches):
                return matches
            found = found or matches
        return found

    def left_out(self, value: Any) -> int:
        """Return how many values the filters (`[?…]`) of the path leave out."""
        if "?" not in self.text:
            return 0
        whole = next(
            (whole for route in self.routes if (whole := _without_filters(route)) and whole.located(value)), None
        )
        if whole is None:
            return 0
        found, kept = (dict(self._apply(path.located, value)) for path in (whole, self))
        if "..[*]" not in str(whole.compiled):
            return max(0, len(found) - len(kept))
        # a filter of all descendants: objects around or within the matches are not left out
        around = {place[:end] for place in kept for end in range(len(place))}
        others = [place for place, match in found.items() if isinstance(match, dict) and not _is_within(place, kept)]
        others = [place for place in others if place not in around]
        outer = {place[:end] for place in others for end in range(len(place))}
        return sum(place not in outer for place in others)

    def segments(self) -> list[str]:
        """Return the segments of the path before the first `..`; each of them is one step of a place.

        The list is empty if the path has alternatives.
        """
        texts = [str(segment) for segment in self.routes[0].compiled.segments] if len(self.routes) == 1 else []
        return list(takewhile(lambda text: not text.startswith(".."), texts))

    def first(self, value: Any) -> Any:
        """Return the first match, or None if there is none."""
        if self.name is not None and type(value) is dict:
            return value.get(self.name)
        return next(iter(self.all(value)), None)

    def _is_value(self, match: Any) -> bool:
        if match is None or not self.skips_empty:
            return match is not None
        return bool(match.strip()) if isinstance(match, str) else bool(match) or not isinstance(match, dict | list)

    def _apply(self, find: Callable[[Any], list[Any]], value: Any) -> list[Any]:
        try:
            return find(value)
        except JSONPathError as error:
            raise BadInput(
                self.where,
                f"the path {preview(self.text)} cannot be applied to the data: {error.message}",
                remedy="correct the path",
            ) from None
        except Unreadable as error:  # a slow regular expression
            raise BadInput(
                self.where,
                f"the path {preview(self.text)} cannot be applied to the data: {error}",
                remedy="simplify the path",
            ) from None


def _alternatives(text: str) -> Iterator[tuple[str, int]]:
    """Yield the parts between `|` outside quotes and brackets, each with its column."""
    depth = start = 0
    for mark in _QUOTED_OR_MARK.finditer(text):
        depth += {"[": 1, "]": -1}.get(mark[0], 0)
        if mark[0] == "|" and depth <= 0:
            yield text[start : mark.start()], start
            start = mark.end()
    yield text[start:], start


def _route(part: str, column: int, where: str) -> Route:
    column += len(part) - len(part.lstrip())
    part = written = part.strip()
    if _BARE_NAME.fullmatch(part):
        part = f"$[{json.dumps(part)}]"
    elif not part.startswith("$"):
        part, column = f"$.{part}", column - len("$.")
    try:
        compiled = _ENVIRONMENT.compile(part)
    except JSONPathError as error:
        at = len(part) if error.token is None or error.token.index < 0 else error.token.index
        detail = str(error.message).replace("TOKEN_", "")
        raise BadInput(
            where,
            f"{preview(written)} is not a valid JSONPath: {detail} at column {column + at + 1}",
            expected="a path such as $.results[0].text",
        ) from None
    assert isinstance(compiled, JSONPath)  # compound paths are not in the RFC
    steps = tuple(_plain_steps(compiled))
    return Route(compiled, steps, singular=len(steps) == len(compiled.segments))


def _without_filters(route: Route) -> Route | None:
    """Return the route with its filters replaced by [*]; None if it has no filters."""
    segments = route.compiled.segments
    is_filter = [any(isinstance(selector, Filter) for selector in segment.selectors) for segment in segments]
    if not any(is_filter):
        return None
    everything = ("[*]" if isinstance(segment, JSONPathChildSegment) else "..[*]" for segment in segments)
    parts = zip(segments, is_filter, everything, strict=True)
    return _route("$" + "".join(whole if filters else str(segment) for segment, filters, whole in parts), 0, "")


def _is_within(place: Place, others: Mapping[Place, Any]) -> bool:
    return any(place[:end] in others for end in range(len(place) + 1))


def _plain_steps(path: JSONPath) -> Iterator[Step]:
    for segment in path.segments:
        selectors = segment.selectors if isinstance(segment, JSONPathChildSegment) else ()
        match selectors:
            case (NameSelector(name=step),) | (IndexSelector(index=step),):
                yield step
            case _:
                return


def _follow(steps: Place, value: Any) -> list[Any]:
    for step in steps:
        if isinstance(step, str):
            if not isinstance(value, _MAPPINGS) or step not in value:
                return []
        elif not isinstance(value, list | tuple) or not -len(value) <= step < len(value):
            return []
        value = value[step]
    return [value]
