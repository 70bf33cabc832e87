"""Conversations and memories in the form in which extractors get and return them."""

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
"""A function that returns a text without the secrets in it."""


def messages(conversation: Sequence[Turn]) -> list[dict[str, str]]:
    return [{"role": turn.role, "content": turn.content} for turn in conversation]


def dialogue(conversation: Sequence[Turn]) -> str:
    """Return the conversation as lines that begin with the speaker's name or, if it is unknown, the role: `User: …`."""
    return "\n".join(f"{turn.speaker or turn.role.capitalize()}: {turn.content}" for turn in conversation)


def leaves(memory: MemoryState, category: str = "") -> Iterator[tuple[str, str]]:
    """Yield the pair (name, text) for each text in a memory, with the name of the innermost block that contains it.

    Outside of any block, the name is `category`.
    """
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
    """Parse a memory from a text of JSON. If it is invalid, raise Malformed with a message that begins with `where`."""
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
    """Parse the memory in a text that is JSON, or that contains exactly one JSON document among other text.

    In the second case, return it as MemoryInText. If there is no JSON document in the text, or several, raise Malformed
    with a message that begins with `where`.
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
    """Return a value converted to JSON and back. Raise Malformed if it cannot be converted or is not a memory."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:  # not a JSON type; NaN or a cycle; nested too deeply
        raise Malformed(f"{where}: the returned value is not JSON: {error}") from None
    return read_memory(text, where)
