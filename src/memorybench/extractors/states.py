"""What an extractor is handed, and what counts as a memory when it comes back."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, Malformed
from memorybench.core.extraction import MemoryState
from memorybench.files.json_text import decode
from memorybench.text.sanitize import preview

Redact = Callable[[str], str]
"""Takes secrets out of a text that leaves the process."""


def messages(conversation: Sequence[Turn]) -> list[dict[str, str]]:
    return [{"role": turn.role, "content": turn.content} for turn in conversation]


def dialogue(conversation: Sequence[Turn]) -> str:
    """The conversation as lines of `User: …`, by name where a speaker has one."""
    return "\n".join(f"{turn.speaker or turn.role.capitalize()}: {turn.content}" for turn in conversation)


def handed(existing: MemoryState, conversation: Sequence[Turn]) -> dict[str, Any]:
    """The one shape in which programs and endpoints are asked, unless a config says otherwise."""
    return {"existing_memory": existing, "conversation": messages(conversation)}


def leaves(memory: MemoryState, category: str = "") -> Iterator[tuple[str, str]]:
    """What a memory says: each text with the name of the innermost block that holds it."""
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
    """The memory that one JSON document holds; Malformed where it is none. `where` begins the message."""
    if not text.strip():
        raise Malformed(f"{where}: said nothing; wanted a memory as JSON")
    try:
        value = decode(text, where)
    except BadInput as bad:
        raise Malformed(f"{where}: {bad.problem}; wanted one JSON document") from None
    return _memory(value, where)


def as_memory(value: Any, where: str) -> MemoryState:
    """`value` as JSON would carry it; Malformed where JSON can not, or where it is no memory."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:  # no JSON type; NaN or a circle; nested too deeply
        raise Malformed(f"{where}: what it gave back is no JSON: {error}") from None
    return read_memory(text, where)


def own_copy(memory: MemoryState) -> MemoryState:
    """For code that may change what it is handed: the case must stay as it is."""
    return copy.deepcopy(memory)


def redacted(memory: MemoryState, redact: Redact) -> MemoryState:
    """The memory on its way to the journal: a service may give back the very key it was called with."""
    match memory:
        case dict():
            return {redact(name): redacted(block, redact) for name, block in memory.items()}
        case list():
            return [redacted(item, redact) for item in memory]
        case str():
            return redact(memory)
    return memory


def _memory(value: Any, where: str) -> MemoryState:
    if not isinstance(value, dict | list | str):
        raise Malformed(f"{where}: gave back {preview(value)}; wanted a memory: blocks, a list or text")
    return value
