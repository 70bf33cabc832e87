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
    """Two items or questions have the same id, so that `data.where` cannot leave out only one of them by its id."""


def unique_id(id: str, where: Callable[[], str], known: set[str], key: str) -> str:
    """Add the id to `known` and return it; raise DuplicateId if it is there already.

    `key` is the config key of the path to ids, for the error; empty if ids are made from the item's id.
    """
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
    """Return the error for a field of a question or item that is missing or empty. `key` is its config key."""
    fields = list(part.value) if isinstance(part.value, dict) else []
    expected = "a text or a number" if what == "id" else "a text"
    if path.text in fields:
        return BadInput(locate(path, part)(), f"the {what} is empty", expected=expected, remedy="fill it in")
    close = suggestion(path.text, fields)
    return BadInput(
        locate(path, part)(),
        f"the {what} is missing",
        expected=expected,
        remedy=f"{close} correct {key}" if close else f"add it to the data, or correct {key}",
    )


def locate(path: Path, part: Document) -> Callable[[], str]:
    """Return a function that returns where the path leads to in the data, as text for an error message."""
    return lambda: part.where(*(place_of(path, part.value) or ()))
