"""The keys that a pydantic model accepts, at every depth, except within mappings with any keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, cached_property
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from memorybench.text.spelling import camel

from .located import Place, Step


class Shape:
    """The keys that a value with these type annotations may have.

    Those of its members are found when they are needed.
    """

    def __init__(self, *annotations: Any) -> None:
        self._kinds = [kind for annotation in annotations for kind in _branches(annotation)]
        self._below: dict[Step, Shape] = {}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All keys that the value may have, in snake_case."""
        return tuple(name for kind in self._kinds if _is_record(kind) for name in _fields(kind))

    @cached_property
    def spellings(self) -> dict[str, str]:
        """Maps each accepted spelling of a key, in camelCase and snake_case, to the key in snake_case."""
        return {camel(name): name for name in self.names} | {name: name for name in self.names}

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """The values that the Literal types among the annotations allow."""
        return tuple(str(value) for kind in self._kinds if get_origin(kind) is Literal for value in get_args(kind))

    def below(self, step: Step) -> Shape:
        """Return the shape that the annotations give to the value at the key or index `step`."""
        slot = step if step in self.spellings else ""  # all items of a list or values of a mapping have one shape
        if slot not in self._below:
            self._below[slot] = Shape(*(inner for kind in self._kinds for inner in _members(kind, slot)))
        return self._below[slot]

    def branch(self, name: str) -> Shape:
        """Return the shape of one member type of a union, by the class name or tag that pydantic reports."""
        chosen = [kind for kind in self._kinds if _is_record(kind) and name in (kind.__name__, *_tags(kind))]
        return Shape(*chosen) if chosen else self


@cache
def shape_of(record: type[BaseModel]) -> Shape:
    return Shape(record)


def in_snake_case(value: Any, shape: Shape, place: Place, duplicates: list[Place]) -> Any:
    """Return `value` with those keys in snake_case that `shape` knows. `place` is its place in the file.

    The place of a key that occurs in both spellings is added to `duplicates`; its first value is kept.
    """
    if isinstance(value, list):
        return [in_snake_case(item, shape.below(i), (*place, i), duplicates) for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    written: dict[str, Any] = value
    renamed: dict[str, Any] = {}
    for key, member in written.items():
        name = shape.spellings.get(key, key)
        if name in renamed:
            duplicates.append((*place, key))
        else:
            renamed[name] = in_snake_case(member, shape.below(name), (*place, key), duplicates)
    return renamed


def _branches(annotation: Any) -> list[Any]:
    """Return the member types of a union, the type inside Annotated, or the type itself, as a list."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _branches(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [kind for member in get_args(annotation) for kind in _branches(member)]
    return [annotation]


def _members(kind: Any, name: Step) -> Sequence[Any]:
    """Return the annotations of the field `name` if `kind` is a model, of the items if it is a container, else ()."""
    if _is_record(kind):
        return [annotation for field, annotation in _fields(kind).items() if field == name]
    origin, inner = get_origin(kind), get_args(kind)
    if not isinstance(origin, type) or not inner:
        return ()
    if issubclass(origin, Mapping):
        return inner[1:]
    if issubclass(origin, (Sequence, AbstractSet)):
        return [item for item in inner if item is not ...]
    return ()


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and get_origin(kind) is None and issubclass(kind, BaseModel)


@cache
def _fields(record: type[BaseModel]) -> dict[str, Any]:
    """Return the annotation of each field, by its name in files: the field's alias, if it has one."""
    return {
        field.validation_alias if isinstance(field.validation_alias, str) else name: field.annotation
        for name, field in record.model_fields.items()
    }


def _tags(record: type[BaseModel]) -> set[str]:
    literals = (kind for kind in _fields(record).values() if get_origin(kind) is Literal)
    return {str(tag) for literal in literals for tag in get_args(literal)}
