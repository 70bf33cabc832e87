"""A memory of any shape, taken apart into atomic facts: what it says, and under which category."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from pydantic import ConfigDict

from memorybench.core.errors import Malformed
from memorybench.files.located import DEEPEST

MOST_FACTS = 2_000
"""Every fact is compared with every other one: a memory beyond this is not compared but refused."""

LONGEST_FACT = 20_000
"""Characters."""

_TEXT_KEYS = ("content", "fact", "text", "memory", "statement", "value")
_CATEGORY_KEYS = ("category", "block", "label", "type", "topic", "key")
_PARTICULARS = """
    id name user_id agent_id run_id created_at updated_at at date timestamp score confidence source sources metadata
    tags hash limit description
"""
_BESIDE_TEXT = frozenset((*_CATEGORY_KEYS, *_PARTICULARS.split()))
_WRAPPERS = frozenset(("memory", "memories", "result", "fact", "item", "data", "block", "entry", "existing_memory"))
"""Keys that say nothing about what is inside, in the normal spelling of categories."""

_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,3}[.)])\s+")
_HEADING = re.compile(r"^#{1,6}\s+(?P<name>.+?)\s*:?\s*$")
_CATEGORISED = re.compile(r"^(?P<name>[A-Za-z][\w /&-]{0,39}?)\s*:(?=\s|$)\s*(?P<rest>.*)$")
_SENTENCE_ENDS = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bapprox\.)(?<!\b[A-Z]\.)(?<!\bDr\.)\s+(?=[A-Z0-9])"
)
_MAY_END = re.compile(r"[.!?]\s")
_WORD = re.compile(r"\w+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MOST_WORDS_IN_CATEGORY = 4
_CONTAINERS = (dict, list)


@dataclass(frozen=True, slots=True)
class MemoryFact:
    """One thing that a memory says. No Record: a dozen are made for every trace, each of parts that code made."""

    text: str
    categories: tuple[str, ...] = ()
    """The keys on the way to it in their normal spelling, innermost last; none: the memory has no categories."""

    # journals of earlier versions also tell the path of each fact, which nobody asked for
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    @property
    def category(self) -> str:
        return self.categories[-1] if self.categories else ""

    def __str__(self) -> str:
        return f"{self.categories[-1]}: {self.text}" if self.category else self.text


def facts_of(state: Any) -> tuple[MemoryFact, ...]:
    """Every fact of a memory, in its order. Raises Malformed for one that is too deep or too large to compare.

    A text is taken apart by lines and sentences, wherever it stands; `"budget": 5000` is the fact "budget: 5000" in
    the category budget; an object with a text (`content`, `fact`, `memory` …) and nothing but particulars beside it
    is that text. Keys such as `memories` or `results` are no categories.
    """
    facts: list[MemoryFact] = []
    _gather(facts, state, (), 0)
    return tuple(facts)


def fact_from(line: str) -> MemoryFact | None:
    """The fact of a line `category: fact`; None where it is no such line."""
    name, _, text = line.partition(":")
    category, said = normal_category(name), text.strip()
    return MemoryFact(said, (category,)) if category and said else None


def categories_of(state: Any, facts: Iterable[MemoryFact] | None = None) -> frozenset[str]:
    """Every category of a memory, also those that hold nothing yet. `facts`: its own, where they are known already."""
    filled = {category for fact in (facts_of(state) if facts is None else facts) for category in fact.categories}
    return frozenset(filled.union(_keys(state)))


@lru_cache(maxsize=1_000)
def normal_category(name: str) -> str:
    """`Customer Segments`, `customer-segment` and `customerSegments` are one category: `customer_segment`."""
    words = _WORD.findall(_HUMPS.sub(" ", name).replace("_", " ").casefold())
    return "_".join(_singular(word) for word in words)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _gather(facts: list[MemoryFact], value: Any, categories: tuple[str, ...], depth: int, spoken: str = "") -> None:
    """`spoken`: what the key of a bare value says."""
    if depth > DEEPEST:
        raise Malformed(f"the memory is nested deeper than {DEEPEST} levels")
    if isinstance(value, str):
        for said, own in _sentences(value, categories):
            _add(facts, f"{spoken}: {said}" if spoken else said, own)
    elif isinstance(value, dict):
        _gather_mapping(facts, value, categories, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _gather(facts, item, categories, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _add(facts, f"{spoken}: {value}" if spoken else str(value), categories)


def _gather_mapping(facts: list[MemoryFact], value: dict[str, Any], categories: tuple[str, ...], depth: int) -> None:
    key = _text_key(value)
    if key is not None:
        named = next((value[name] for name in _CATEGORY_KEYS if isinstance(value.get(name), str)), None)
        _gather(facts, value[key], _within(categories, named), depth)
        return
    for name, member in value.items():
        inner = _within(categories, str(name))
        if isinstance(member, bool):
            _add(facts, _spoken(str(name), member), categories)
        elif isinstance(member, str | int | float) and inner != categories:
            # a value alone ("5000") says little: the key is part of what is said
            _gather(facts, member, inner, depth, _spoken(str(name), True))
        else:
            _gather(facts, member, inner, depth)


def _add(facts: list[MemoryFact], text: str, categories: tuple[str, ...]) -> None:
    if len(text) > LONGEST_FACT:
        raise Malformed(f"the memory has a fact of more than {LONGEST_FACT} characters; expected atomic facts")
    if len(facts) == MOST_FACTS:
        raise Malformed(f"the memory holds more than {MOST_FACTS} facts; expected a memory to compare")
    facts.append(MemoryFact(text, categories))


def _text_key(value: dict[str, Any]) -> str | None:
    """Which key of an object holds its text; None: it is no such object but a mapping of categories."""
    for key in _TEXT_KEYS:
        if not isinstance(value.get(key), str):
            continue
        others = value.keys() - {key}
        if others <= _BESIDE_TEXT and (others or key not in ("memory", "value")):
            return key
    return None


def _spoken(name: str, claim: bool) -> str:
    words = _HUMPS.sub(" ", name).replace("_", " ")
    return words if claim else f"not {words}"


def _within(categories: tuple[str, ...], name: str | None) -> tuple[str, ...]:
    category = normal_category(name or "")
    return categories if not category or category in _WRAPPERS or category in categories else (*categories, category)


def _sentences(text: str, categories: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """By lines and sentences, each with its categories. In a memory that is all text, `# heading`, `category:` and
    `category: fact` file them."""
    free = not categories
    for line in filter(str.strip, text.splitlines()):
        heading = _HEADING.match(line) if line[0] == "#" else None
        if heading:
            categories = (normal_category(heading["name"]),) if free else categories
            continue
        bullet = _BULLET.match(line)
        said = (line[bullet.end() :] if bullet else line).strip()
        named = _CATEGORISED.match(said) if free else None
        own = categories
        if named and len(named["name"].split()) <= _MOST_WORDS_IN_CATEGORY:
            own, said = (normal_category(named["name"]),), named["rest"].strip()
            if not said:
                categories = own
        for sentence in _SENTENCE_ENDS.split(said) if _MAY_END.search(said) else (said,):
            if sentence.strip():
                yield sentence.strip(), own


def _keys(value: Any) -> Iterator[str]:
    """The keys of everything that could hold facts. `facts_of` has seen to it that recursion comes to an end."""
    if isinstance(value, dict):
        for name, member in value.items():
            if isinstance(member, _CONTAINERS):
                yield normal_category(str(name))
                yield from _keys(member)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, _CONTAINERS):
                yield from _keys(item)
