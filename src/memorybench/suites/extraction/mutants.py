"""Makes wrong outputs, mutants, from the expected one. A useful case scores at least one of them as wrong."""

from __future__ import annotations

import calendar
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from memorybench.judging.facts import MemoryFact

from .cases import ExtractionCase
from .findings import findings_of, match_output

INVENTED = "Keeps a lighthouse with nineteen parrots"
_NUMBER = re.compile(r"\d+")
_AMOUNT = re.compile(
    r"(?<!\S)(?=\d[\d,.]*(?:\s|$))(?!\d+\s(?:January|February|March|April|May|June|July|August|September"
    r"|October|November|December))"
)
"""Matches the position before a number that is a word on its own and not a day of a month."""
_NEGATION = re.compile(r"\b(?:not|no|never|without)\s+|n't\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]\w*")
"""Matches a capitalised word that does not begin a sentence."""
_CALENDAR = (*calendar.month_name[1:], *calendar.day_name)
_SYMMETRIC = re.compile(
    r"\b(?:married|engaged|friends?|siblings?|twins?|cousins?|neighbou?rs?|colleagues?|partners?)\b"
)
"""Matches relations that hold in both directions, so that exchanging the names changes nothing."""
_PAST_OF = {"is": "was", "are": "were", "has": "had", "lives": "lived", "works": "worked", "wants": "wanted"}
_PRESENT = re.compile(rf"\b(?:{'|'.join(_PAST_OF)})\b", re.IGNORECASE)


def mutants_of(case: ExtractionCase) -> Iterator[tuple[str, Any]]:
    """Yield every mutant of a case: how it was made wrong, such as `drop`, and the output.

    Each new fact (each kept fact, if none is new) is dropped and altered in every way. An invented fact, each removed
    fact and each forbidden text is added. If a change is expected, one mutant leaves the memory unchanged.
    """
    gold = case.gold
    whole = (*gold.kept, *gold.added)
    texts = [*(turn.content for turn in case.conversation), *(fact.text for fact in whole)]
    names = {name for text in texts for name in _NAME.findall(text) if not name.startswith(_CALENDAR)}
    for fact in gold.added or gold.kept:
        others = [other for other in whole if other is not fact]
        yield "drop", _memory(others)
        for kind, text in _alterations(fact.text, names):
            yield kind, _memory([*others, MemoryFact(text, fact.categories, attributes=fact.attributes)])
    categories = next((fact.categories for fact in whole), ())
    yield "invent", _memory([*whole, MemoryFact(INVENTED, categories)])
    for fact in gold.removed:
        yield "stale", _memory([*whole, fact])
    for text in case.must_not_store:
        yield "forbid", _memory([*whole, MemoryFact(text, categories)])
    if gold.added or gold.removed:
        yield "amnesia", case.existing_memory


def run_mutants(case: ExtractionCase) -> dict[str, list[str]]:
    """Score every mutant of a case by code alone; return their kinds, by result: killed, undecided or survived.

    A mutant that needs a judge is undecided, not killed.
    """
    kinds: dict[str, list[str]] = {"killed": [], "undecided": [], "survived": []}
    for kind, output in mutants_of(case):
        findings = findings_of(case.gold, match_output(case, output), must_not_store=case.must_not_store)
        result = "killed" if not findings.flawless else "undecided" if findings.undecided else "survived"
        kinds[result].append(kind)
    return kinds


def mutation_summary(results: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """Return a line such as `mutation score 80 of 80 cases (100%); 412 of 435 mutants killed, 20 undecided`.

    `results` are those of `run_mutants`, by id of the case.
    """
    useful = sum(bool(result["killed"]) for result in results.values())
    killed, undecided = (sum(len(result[name]) for result in results.values()) for name in ("killed", "undecided"))
    survivors = [f"{case} {kind}" for case, result in results.items() for kind in result["survived"]]
    return (
        f"mutation score {useful} of {len(results)} cases ({useful / len(results) if results else 0.0:.0%}); "
        f"{killed} of {killed + undecided + len(survivors)} mutants killed, {undecided} undecided"
        + (f"; survived: {', '.join(survivors)}" if survivors else "")
    )


def _alterations(text: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield wrong versions of a fact, such as negated, and their kinds. `names` tell subject and object apart."""
    lowered = text[:1].lower() + text[1:]
    affirmed = _NEGATION.sub("", text)
    yield "negate", affirmed if affirmed != text else f"It is not true that {lowered}"
    if swapped := _swap_roles(text, names):
        yield "swap", swapped
    first, *middle, last = text.split() if len(text.split()) > 1 else ("", "")
    if middle:
        yield "word order", " ".join((last, *middle, first))
    yield "doubt", f"Maybe {lowered}"
    yield "used to", f"Used to: {lowered}"
    yield "third party", f"The sister: {lowered}"
    if (past := _PRESENT.sub(lambda verb: _PAST_OF[verb[0].lower()], text, count=1)) != text:
        yield "tense", past
    if _NUMBER.search(text):
        yield "renumber", _NUMBER.sub(lambda number: str(int(number[0]) + 1), text, count=1)
    if (negative := _AMOUNT.sub("-", text, count=1)) != text:
        yield "sign", negative


def _swap_roles(text: str, names: Collection[str]) -> str | None:
    """Exchange subject and object; None if no name shows which words they are, or if the relation is symmetric.

    A fact that does not begin with a name is about the user.
    """
    found = [word for word in re.finditer(r"\w+", text) if word[0] in names]
    if not found or _SYMMETRIC.search(text.lower()):
        return None
    if found[0].start() > 0:
        [name, *_] = found
        rest = text[: name.start()] + "the user" + text[name.end() :]
        return f"{name[0]} {rest[:1].lower()}{rest[1:]}"
    if len(found) == 1:
        return None
    subject, object_, *_ = found
    return object_[0] + text[subject.end() : object_.start()] + subject[0] + text[object_.end() :]


def _memory(facts: Sequence[MemoryFact]) -> list[Any]:
    """Return a memory: the texts of the facts with their attributes, each nested in its categories."""
    memory: list[Any] = []
    for fact in facts:
        attributes = dict(attribute.split("=", 1) for attribute in fact.attributes)
        item: Any = {"content": fact.text, "metadata": attributes} if attributes else fact.text
        for category in reversed(fact.categories):
            item = {category: [item]}
        memory.append(item)
    return memory
