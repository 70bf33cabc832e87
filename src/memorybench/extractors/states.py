"""The input of an extractor, and the memory that it returns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, Malformed
from memorybench.core.extraction import MemoryInText, MemoryState
from memorybench.files.json_text import decode, find_only_json
from memorybench.text.sanitize import preview

Redact = Callable[[str], str]
"""Removes secrets from a text."""


def messages(conversation: Sequence[Turn]) -> list[dict[str, str]]:
    return [{"role": turn.role, "content": turn.content} for turn in conversation]


def dialogue(conversation: Sequence[Turn]) -> str:
    """Return the conversation as lines that begin with the speaker's name, or the role if it is unknown: `User: …`."""
    return "\n".join(f"{turn.speaker or turn.role.capitalize()}: {turn.content}" for turn in conversation)


def leaves(memory: MemoryState, category: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text in a memory, after the name of the innermost block that contains it."""
    match memory:
        case dict():
            for name, block in memory.items():
                yield from leaves(block, name)
        case list():
            for item in memory:
                yield from leaves(item, category)
        case str() if memory.strip():
            yield category, memory


def read_memory(text: str, where: str) -> MemoryState:
    """Parse a memory from JSON. Raise Malformed, with a message that begins with `where`, if it is invalid."""
    if not text.strip():
        raise Malformed(f"{where}: the output is empty; expected a memory as JSON")
    try:
        value = decode(text, where)
    except BadInput as bad:
        raise Malformed(f"{where}: {bad.problem}; expected one JSON document") from None
    if not isinstance(value, dict | list | str):
        raise Malformed(
            f"{where}: invalid memory {preview(value)}; expected a text, a list or an object of memory blocks"
        )
    return value


def find_memory(text: str, where: str) -> MemoryState | MemoryInText:
    """Parse a memory from JSON. If it is the only JSON in a longer text, return it as MemoryInText.

    Raise Malformed, with a message that begins with `where`, if there is no JSON, or more than one.
    """
    try:
        return read_memory(text, where)
    except Malformed:
        found = find_only_json(text)
        if found is None:
            raise
        with suppress(Malformed):
            return MemoryInText(read_memory(found, where))
        raise


def as_memory(value: Any, where: str) -> MemoryState:
    """Return `value` converted to JSON and back. Raise Malformed if it cannot be converted or is not a memory."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:  # not a JSON type; NaN or a cycle; nested too deeply
        raise Malformed(f"{where}: the returned value is not JSON: {error}") from None
    return read_memory(text, where)
