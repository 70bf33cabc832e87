"""The ids of items and questions, and errors for fields that they lack."""

from __future__ import annotations

from collections.abc import Callable

from memorybench.core.errors import BadInput
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.text.sanitize import preview
from memorybench.text.spelling import suggestion

from .paths import only, place_of


class DuplicateId(BadInput):
    """Two items or questions have one id. No condition on one of them helps."""


def unique_id(id: str, where: Callable[[], str], known: set[str], key: str) -> str:
    """Return the id; raise BadInput if it is known. `key` is that of the config that leads to ids."""
    if id in known:
        default = "items are then numbered"
        if key.startswith("schema.questions"):
            default = "ids are then made of the item's id and the question's index"
        remedy = f"remove {key}: {default}" if key else "make ids unique"
        raise DuplicateId(where(), f"duplicate id {preview(id)}", remedy=remedy)
    known.add(id)
    return id


def id_text(path: Path, part: Document, key: str) -> str:
    id = only(path, part.value, part.where)
    if id is None or isinstance(id, dict | list | bool) or not str(id).strip():
        raise missing_field("id", path, part, key)
    return str(id)


def missing_field(what: str, path: Path, part: Document, key: str) -> BadInput:
    """Return the error for a field that a question or an item does not have, or that is empty."""
    fields = list(part.value) if isinstance(part.value, dict) else []
    expected = "a text or a number" if what == "id" else "a text"
    if path.text in fields:
        return BadInput(locate(path, part)(), f"the {what} is empty", expected=expected, remedy="write it")
    close = suggestion(path.text, fields)
    remedy = f"{close} correct {key}" if close else f"write it, or correct {key}"
    return BadInput(locate(path, part)(), f"no {what} here", expected=expected, remedy=remedy)


def locate(path: Path, part: Document) -> Callable[[], str]:
    """Return a function that locates the path for an error message."""
    return lambda: part.where(*(place_of(path, part.value) or ()))
