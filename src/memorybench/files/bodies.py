"""Templates of request bodies: nested data whose placeholders keep the type of their value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names

from .jsonpaths import Path
from .located import Document
from .templates import Placeholder, Template, check_known, value_of

_PATH_STARTS = ("$.", "$[")


class BodyTemplate(Struct, frozen=True):
    """A parsed request body.

    A string that is exactly `$.content` or `${content}` is replaced by the value with its type. Other strings with
    placeholders are rendered as text; everything else is unchanged.
    """

    root: Any
    """The body, with a Template or Path instead of each string that uses variables."""

    @classmethod
    def parse(cls, body: Document, known: Collection[str]) -> BodyTemplate:
        """Parse a body. Raise BadInput, which names the line, for a variable that is not in `known`."""
        return cls(_parse(body, known))

    def render(self, values: Mapping[str, Any]) -> Any:
        return _render(self.root, values)


def variables_in(node: Any) -> Iterator[tuple[str, str]]:
    """Yield the name of each variable of a parsed template, and the text that says where it is used."""
    match node:
        case Template():
            yield from ((name, node.where) for name in sorted(node.names))
        case Path():
            yield from ((str(route.steps[0]), node.where) for route in node.routes)
        case dict():
            for inner in node.values():
                yield from variables_in(inner)
        case list():
            for inner in node:
                yield from variables_in(inner)


def names_in(node: Any) -> frozenset[str]:
    """Return the names of the variables of a parsed template."""
    return frozenset(name for name, _ in variables_in(node))


def _parse(body: Document, known: Collection[str]) -> Any:
    match body.value:
        case str():
            return _parse_text(body.value, known, body.where())
        case dict():
            _check_keys(body)
            return {key: _parse(body.at(key), known) for key in body.value}
        case list():
            return [_parse(body.at(index), known) for index in range(len(body.value))]
    return body.value


def _parse_text(text: str, known: Collection[str], where: str) -> Any:
    if text == "$" or text.startswith(_PATH_STARTS):
        return _known_path(text, known, where)
    template = Template.parse(text, known, where)
    return template if template.names else "".join(map(str, template.parts))


def _known_path(text: str, known: Collection[str], where: str) -> Path:
    path = Path.parse(text, where)
    for route in path.routes:
        if not route.steps or not isinstance(route.steps[0], str):
            raise BadInput(
                where, f"{preview(text)} does not name a variable", expected=f"$.NAME with one of {join_names(known)}"
            )
        check_known(route.steps[0], known, where)
    return path


def _check_keys(body: Document) -> None:
    for key in body.value:
        if "${" in key:
            raise BadInput(
                body.where(key),
                "a key contains a placeholder, which is not supported",
                remedy="use placeholders in values only",
            )


def _render(node: Any, values: Mapping[str, Any]) -> Any:
    match node:
        case Template(parts=(Placeholder(name=name),)):
            return value_of(name, values, node.where)
        case Template():
            return node.render(values)
        case Path():
            return _select(node, values)
        case dict():
            return {key: _render(inner, values) for key, inner in node.items()}
        case list():
            return [_render(inner, values) for inner in node]
    return node


def _select(path: Path, values: Mapping[str, Any]) -> Any:
    matches = path.all(values)
    if not path.singular:
        return matches
    if not matches:
        raise BadInput(
            path.where, f"{preview(path.text)} has no value in this request", expected=f"one of {join_names(values)}"
        )
    return matches[0]
