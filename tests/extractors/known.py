"""Extractors that know the gold of the bundled cases and make known errors.

Each is a function of existing memory and messages, to be named on the command line:
`memorybench extraction run --allow-code --extractor tests.extractors.known:perfect`.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import memorybench

Messages = Sequence[Mapping[str, str]]

CASES = Path(memorybench.__file__).parent / "catalog" / "data" / "memory_test_cases.json"
_PARAPHRASES = Path(__file__).with_name("paraphrases.json")
_PIECES = 4

_LINE = re.compile(r"^(?:User|Assistant): ", re.MULTILINE)
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+")
_NEGATIONS = (
    (re.compile(r"\bdoes not (like|have|fly)\b", re.IGNORECASE), r"\1s"),
    (re.compile(r"\bhas no\b", re.IGNORECASE), "has a"),
    (re.compile(r"\bcan't\b", re.IGNORECASE), "can"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will"),
    (re.compile(r"\bnothing\b", re.IGNORECASE), "everything"),
    (re.compile(r"\b(?:no more than|no|not|never)\s+", re.IGNORECASE), ""),
)


@cache
def cases() -> list[dict[str, Any]]:
    matches: list[dict[str, Any]] = json.loads(CASES.read_text(encoding="utf-8"))["cases"]
    return matches


def leaves(memory: Any, category: str = "") -> Iterator[tuple[str, str]]:
    """Return each text of a memory with the name of the innermost block that contains it."""
    if isinstance(memory, dict):
        for name, block in memory.items():
            yield from leaves(block, name)
    elif isinstance(memory, list):
        for item in memory:
            yield from leaves(item, category)
    else:
        yield category, memory


def contents(conversation: str | Messages) -> tuple[str, ...]:
    """Return the contents of the turns, for both forms of a conversation."""
    if isinstance(conversation, str):
        return tuple(turn.strip() for turn in _LINE.split(conversation)[1:])
    return tuple(message["content"].strip() for message in conversation)


def without_negation(fact: str) -> str:
    """Return the opposite of a negative fact; other facts are returned unchanged."""
    for negation, replacement in _NEGATIONS:
        positive = negation.sub(replacement, fact)
        if positive != fact:
            return positive[0].upper() + positive[1:]
    return fact


def pieces(fact: str) -> list[str]:
    """Split `fact` between words into four pieces, or one per word if it is shorter."""
    words = fact.split()
    count = min(_PIECES, len(words))
    return [" ".join(words[len(words) * i // count : len(words) * (i + 1) // count]) for i in range(count)]


def perfect(existing_memory: Any, conversation: Messages) -> Any:
    return copy.deepcopy(_case(conversation)["expected_output"])


def amnesiac(existing_memory: Any, conversation: Messages) -> Any:
    """Return the memory unchanged."""
    return existing_memory


def stale(existing_memory: Any, conversation: Messages) -> Any:
    """Store all new facts, and keep superseded ones."""
    return _united(existing_memory, _case(conversation)["expected_output"])


def hoarder(existing_memory: Any, conversation: Messages) -> Any:
    """Like `stale`, and store every sentence of both sides in another block."""
    sentences = [sentence for turn in contents(conversation) for sentence in _SENTENCE_ENDS.split(turn)]
    return {**stale(existing_memory, conversation), "notes": sentences}


def splitter(existing_memory: Any, conversation: Messages) -> Any:
    """Store each new fact in four pieces."""
    return _retold(existing_memory, conversation, pieces)


def paraphraser(existing_memory: Any, conversation: Messages) -> Any:
    """Tells each new fact truly, in other words."""
    words = _paraphrases()
    return _retold(existing_memory, conversation, lambda fact: [words[fact]])


def negation_dropper(existing_memory: Any, conversation: Messages) -> Any:
    """Overhears every "no" and "not"."""
    return _retold(existing_memory, conversation, lambda fact: [without_negation(fact)])


@cache
def _by_conversation() -> dict[tuple[str, ...], dict[str, Any]]:
    return {contents(case["conversation"]): case for case in cases()}


@cache
def _paraphrases() -> dict[str, str]:
    matches: dict[str, str] = json.loads(_PARAPHRASES.read_text(encoding="utf-8"))
    return matches


def _case(conversation: Messages) -> dict[str, Any]:
    return _by_conversation()[contents(conversation)]


def _retold(existing_memory: Any, conversation: Messages, tell: Callable[[str], list[str]]) -> Any:
    """Return the gold, with each new fact rewritten by `tell`."""
    known = set(leaves(existing_memory))

    def retell(memory: Any, category: str) -> Any:
        match memory:
            case dict():
                return {name: retell(block, name) for name, block in memory.items()}
            case list():
                reworded = ([fact] if (category, fact) in known else tell(fact) for fact in memory)
                return [fact for facts in reworded for fact in facts]
        return memory if (category, memory) in known else "; ".join(tell(memory))

    return retell(_case(conversation)["expected_output"], "")


def _united(old: Any, new: Any) -> Any:
    match old, new:
        case dict(), dict():
            return {
                name: _united(old.get(name, new.get(name)), new.get(name, old.get(name))) for name in {**old, **new}
            }
        case list(), list():
            return [*new, *(fact for fact in old if fact not in new)]
    return new if old == new else [new, old]
