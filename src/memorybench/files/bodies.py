"""Request bodies: a nested structure whose placeholders are values, not text."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names

from .jsonpaths import Path
from .located import Document
from .templates import Placeholder, Template, check_known, value_of

_PATH_STARTS = ("$.", "$[")


@dataclass(frozen=True, slots=True)
class BodyTemplate:
    """A string that is exactly `$.content` or `${content}` keeps the type of its value: a list stays a list.

    Other strings with placeholders are text; everything else is sent as it stands.
    """

    root: Any
    """The body, with a Template or a Path in the place of each string that names variables."""

    @classmethod
    def parse(cls, body: Document, known: Collection[str]) -> BodyTemplate:
        """Refuses unknown variables, and names the line of each."""
        return cls(_compiled(body, known))

    def render(self, values: Mapping[str, Any]) -> Any:
        return _rendered(self.root, values)


def _compiled(body: Document, known: Collection[str]) -> Any:
    match body.value:
        case str():
            return _compiled_text(body.value, known, body.where())
        case dict():
            _check_keys(body)
            return {key: _compiled(body.at(key), known) for key in body.value}
        case list():
            return [_compiled(body.at(index), known) for index in range(len(body.value))]
    return body.value


def _compiled_text(text: str, known: Collection[str], where: str) -> Any:
    if text == "$" or text.startswith(_PATH_STARTS):
        return _known_path(text, known, where)
    template = Template.parse(text, known, where)
    return template if template.names else "".join(map(str, template.parts))


def _known_path(text: str, known: Collection[str], where: str) -> Path:
    path = Path.parse(text, where)
    for route in path.routes:
        if not route.steps or not isinstance(route.steps[0], str):
            raise BadInput(where, f"{preview(text)} names no variable", expected=f"$. and one of {join_names(known)}")
        check_known(route.steps[0], known, where)
    return path


def _check_keys(body: Document) -> None:
    for key in body.value:
        if "${" in key:
            raise BadInput(body.where(key), "a key is never filled in", remedy="use placeholders in values only")


def _rendered(node: Any, values: Mapping[str, Any]) -> Any:
    match node:
        case Template(parts=(Placeholder(name=name),)):
            return value_of(name, values, node.where)
        case Template():
            return node.render(values)
        case Path():
            return _picked(node, values)
        case dict():
            return {key: _rendered(inner, values) for key, inner in node.items()}
        case list():
            return [_rendered(inner, values) for inner in node]
    return node


def _picked(path: Path, values: Mapping[str, Any]) -> Any:
    matches = path.all(values)
    if not path.singular:
        return matches
    if not matches:
        raise BadInput(path.where, f"{preview(path.text)} has no value here", expected=f"one of {join_names(values)}")
    return matches[0]
