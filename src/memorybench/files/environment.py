"""Expands environment variables in config values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from memorybench.core.errors import BadInput

from .located import Document, Place

# $${ is a template's escape for ${; lower-case names are template variables
REFERENCE = re.compile(
    r"(?P<literal>\$\$\{)|\$\{(?P<name>[A-Z][A-Z0-9_]*)(?:(?P<operator>:?[-=?+])(?P<default>[^}]*))?\}"
)


def expand_environment(document: Document, environment: Mapping[str, str]) -> Document:
    """Return `document` with `${VAR}` and `${VAR:-default}` replaced in its values, not its keys.

    Only upper-case names are environment variables. As in a shell, an empty variable counts as missing.
    """
    return replace(document, value=_expand(document, (), document.value, environment))


def _expand(document: Document, place: Place, value: Any, environment: Mapping[str, str]) -> Any:
    match value:
        case str():
            return REFERENCE.sub(partial(_replacement, document, place, environment), value)
        case dict():
            return {key: _expand(document, (*place, key), inner, environment) for key, inner in value.items()}
        case list():
            return [_expand(document, (*place, i), inner, environment) for i, inner in enumerate(value)]
    return value


def _replacement(document: Document, place: Place, environment: Mapping[str, str], reference: re.Match[str]) -> str:
    name, operator = reference["name"], reference["operator"]
    if reference["literal"]:
        return reference[0]
    if operator not in (None, ":-"):
        raise BadInput(
            document.where(*place),
            f"${{{name}{operator}…}} is not supported",
            expected=f"${{{name}}} or ${{{name}:-default}}",
        )
    value = environment.get(name) or reference["default"]
    if value is None:
        raise BadInput(
            document.where(*place),
            f"the environment variable {name} is not set",
            remedy=f"set the variable, or write ${{{name}:-default}}",
        )
    if "${" in value:
        # a template would read it as a placeholder; the value may be secret and is not shown
        raise BadInput(
            document.where(*place),
            f"the value of the environment variable {name} contains ${{",
            remedy="change the value of the variable",
        )
    return value
