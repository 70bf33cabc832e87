"""Descriptions of the fields of pydantic models: the docstring below each field."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel

RecordT = TypeVar("RecordT", bound=BaseModel)


@cache
def documented(record: type[RecordT]) -> type[RecordT]:
    """Set the descriptions of a model's fields, and of the models in it, to the fields' docstrings; return the model.

    pydantic's own option `use_attribute_docstrings` is not used, because it reads the source of every model at
    start-up, although only the schema and the documentation need the descriptions.
    """
    docs: dict[str, str] = {}
    for base in reversed(record.__mro__):
        if base is not BaseModel and issubclass(base, BaseModel):
            docs |= _field_docstrings(base)
    for name, field in record.model_fields.items():
        for inner, _ in models_in(field.annotation):
            documented(inner)
        field.description = field.description or docs.get(name)
    record.model_rebuild(force=True)
    return record


def models_in(annotation: Any, is_repeated: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    """Yield each pydantic model in a type annotation, and whether it is in a tuple, which a file writes as a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, is_repeated
    for inner in get_args(annotation):
        yield from models_in(inner, is_repeated or get_origin(annotation) is tuple)


def _field_docstrings(record: type[BaseModel]) -> dict[str, str]:
    try:
        [definition] = ast.parse(textwrap.dedent(inspect.getsource(record))).body
    except (OSError, ValueError):
        return {}  # made without a source file
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in zip(definition.body, definition.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
