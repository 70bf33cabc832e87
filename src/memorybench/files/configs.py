"""Reads config files whose values may contain environment variables, and merges configs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from memorybench.core.records import Record

from .environment import expand_environment
from .located import Document
from .validation import validated

STAND_IN = "set-by-the-environment"
"""Replaces `${VAR}` while a config is checked without an environment. The returned config still has `${VAR}`."""
_REFERENCE_WITHOUT_DEFAULT = re.compile(r"(?<!\$)\$\{([A-Z][A-Z0-9_]*)\}")

T = TypeVar("T", bound=Record)


def read_config(
    document: Document,
    record: type[T],
    check: Callable[[T, Document], None],
    environment: Mapping[str, str] | None = None,
) -> T:
    """Validate `document` as `record` and run `check` on it.

    Without an environment, `${VAR}` is left unchanged. With one, a missing variable is an error.
    """
    if environment is not None:
        filled = document = expand_environment(document, environment)
    else:
        filled = expand_environment(document, dict.fromkeys(references(document.value), STAND_IN))
    config = validated(document, record)
    check(config if filled.value == document.value else validated(filled, record), filled)
    return config


def references(value: object) -> list[str]:
    """Return the names of the environment variables that a value uses without a default, as in `${VAR}`."""
    return _REFERENCE_WITHOUT_DEFAULT.findall(json.dumps(value))


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `changes` into `base`, recursively; where both have a value, that of `changes` wins."""
    merged = {**base, **changes}
    for key in base.keys() & changes.keys():
        if isinstance(base[key], Mapping) and isinstance(changes[key], Mapping):
            merged[key] = merge(base[key], changes[key])
    return merged
