"""Parses texts that contain lists: JSON, Python literals, lines and separated values."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from memorybench.core.errors import BadInput
from memorybench.files.json_text import DuplicateKey, unique_object
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.text.sanitize import preview
from memorybench.text.spelling import suggestion

from .paths import parse_path

_LONGEST_LITERAL = 2**20
"""Maximum number of characters of a Python literal: parsing takes about a hundred times its size in memory."""

_NEAR_QUOTES = re.compile(r"""['"]\s*\w{0,2}['"]""")


class TextParser:
    """Replaces texts in items and questions by the lists that they contain, as `schema.parse` says."""

    def __init__(self, formats: Mapping[str, str], where: str) -> None:
        self._formats = [(parse_path(path, f"{where}.{path}"), format) for path, format in formats.items()]
        self._unused: dict[str, Path] = {path.text: path for path, _ in self._formats}
        self._fields: dict[str, None] = {}

    def parse(self, document: Document) -> Document:
        for path, format in self._formats:
            for place, text in path.located(document.value):
                self._unused.pop(path.text, None)
                if isinstance(text, str) and place:
                    parsed = _parse(text, format, document, place, path)
                    document = replace(document, value=_replaced(document.value, place, parsed))
        if self._unused and isinstance(document.value, dict):
            self._fields |= dict.fromkeys(document.value)
        return document

    def raise_if_unused(self, file: str) -> None:
        """Raise BadInput if a path matched nothing in the whole data."""
        for text in self._unused:
            raise BadInput(
                file,
                f"schema.parse names {text}, but no item has a value there",
                remedy=suggestion(text, self._fields) or "correct schema.parse",
            )


def _parse(text: str, format: str, document: Document, place: Place, path: Path) -> Any:
    if not text.strip():
        return []
    if format == "lines":
        return [line.strip() for line in text.splitlines() if line.strip()]
    if format not in ("json", "python"):
        parts = [part.strip() for part in text.split(format)]
        return parts if parts[-1] else parts[:-1]  # inner empty parts stay, so that the others keep their index
    try:
        if format == "json":
            return json.loads(text, object_pairs_hook=unique_object)
        if len(text) > _LONGEST_LITERAL:
            raise ValueError
        tree = ast.parse(text.strip(), mode="eval")
        literal = _plain(ast.literal_eval(tree))
        key = _duplicate_key(tree)
        if key is not None:
            raise DuplicateKey(key)
        if _has_adjacent_texts(text.strip()):
            raise BadInput(
                document.where(*place),
                f"a comma is missing between two texts in {preview(text)}",
                expected="a Python list, not the text of a numpy array",
                remedy=f"add the commas, or correct schema.parse.{path.text}",
            )
        return literal
    except DuplicateKey as error:
        raise BadInput(
            document.where(*place),
            f"duplicate key {preview(str(error))} in {preview(text)}",
            expected="each key once",
            remedy="remove one of the two",
        ) from None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        kind = "JSON" if format == "json" else "a Python literal"
        raise BadInput(
            document.where(*place),
            f"{preview(text)} is not {kind}",
            remedy=f"correct the text, or schema.parse.{path.text}",
        ) from None


def _has_adjacent_texts(text: str) -> bool:
    """Return whether a comma between two texts is missing, as in `['Porto' 'Lisbon']`: Python would join them."""
    if not _NEAR_QUOTES.search(text):
        return False
    tokens = (token.type for token in tokenize.generate_tokens(io.StringIO(text).readline))
    kinds = [kind for kind in tokens if kind not in (tokenize.NL, tokenize.COMMENT)]
    return any(kind == following == tokenize.STRING for kind, following in pairwise(kinds))


def _duplicate_key(tree: ast.AST) -> str | None:
    """Return a key that occurs twice in a dictionary of the literal; None if there is none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            counts = Counter(str(key.value) for key in node.keys if isinstance(key, ast.Constant))
            if counts.total() > len(counts):
                return next(key for key in counts if counts[key] > 1)
    return None


def _plain(value: Any) -> Any:
    """Return the value of a Python literal as JSON data: tuples and sets become lists."""
    match value:
        case dict():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case set():
            return sorted(map(_plain, value), key=str)
        case str() | bool() | int() | float() | None:
            return value
    raise ValueError


def _replaced(value: Any, place: Place, new: Any) -> Any:
    """Return a copy of the value with `new` at a place. The original does not change; unchanged parts are shared."""
    if not place:
        return new
    step, *rest = place
    copy = value.copy()
    copy[step] = _replaced(value[step], tuple(rest), new)
    return copy
