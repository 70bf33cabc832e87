"""Wrong outputs made from the expected one. A useful case fails at least one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from memorybench.core.records import Record
from memorybench.judging.facts import MemoryFact

from .cases import ExtractionCase
from .findings import findings_of, match_output

INVENTED = "Keeps a lighthouse with nineteen parrots"
_NUMBER = re.compile(r"\d+")
_AMOUNT = re.compile(
    r"(?<!\S)(?=\d[\d,.]*(?:\s|$))(?!\d+\s(?:January|February|March|April|May|June|July|August|September"
    r"|October|November|December))"
)
"""The position before a number that is a word on its own and not a day of a month."""
_NEGATION = re.compile(r"\b(?:not|no|never|without)\s+|n't\b", re.IGNORECASE)
_PAST_OF = {"is": "was", "are": "were", "has": "had", "lives": "lived", "works": "worked", "wants": "wanted"}
_PRESENT = re.compile(rf"\b(?:{'|'.join(_PAST_OF)})\b", re.IGNORECASE)


class Mutant(Record):
    kind: str
    """drop, negate, swap, renumber, sign, doubt, tense, used to, third party, invent, stale, forbid or amnesia."""
    output: Any


class MutationResult(Record):
    """The kinds of the mutants of one case, by result."""

    case: str
    killed: tuple[str, ...]
    undecided: tuple[str, ...] = ()
    """Mutants that differ from the gold, but only a judge could decide that they are wrong."""
    survived: tuple[str, ...]


def mutants_of(case: ExtractionCase) -> Iterator[Mutant]:
    """Makes every mutant of a case.

    Each new fact (each kept fact, if none is new) is dropped and altered in every way. An invented fact, each removed
    fact and each forbidden text is added. The memory is left unchanged where a change is expected.
    """
    gold = case.gold
    whole = (*gold.kept, *gold.added)
    for fact in gold.added or gold.kept:
        others = [other for other in whole if other is not fact]
        yield Mutant(kind="drop", output=_memory(others))
        for kind, text in _alterations(fact.text):
            yield Mutant(kind=kind, output=_memory([*others, MemoryFact(text, fact.categories)]))
    categories = next((fact.categories for fact in whole), ())
    yield Mutant(kind="invent", output=_memory([*whole, MemoryFact(INVENTED, categories)]))
    for fact in gold.removed:
        yield Mutant(kind="stale", output=_memory([*whole, fact]))
    for text in case.must_not_store:
        yield Mutant(kind="forbid", output=_memory([*whole, MemoryFact(text, categories)]))
    if gold.added or gold.removed:
        yield Mutant(kind="amnesia", output=case.existing_memory)


def run_mutants(case: ExtractionCase) -> MutationResult:
    """Scores every mutant of a case by code alone: a mutant that needs a judge is undecided, not killed."""
    kinds: dict[str, list[str]] = {"killed": [], "undecided": [], "survived": []}
    for mutant in mutants_of(case):
        findings = findings_of(case, match_output(case, mutant.output))
        result = "killed" if not findings.flawless else "undecided" if findings.undecided else "survived"
        kinds[result].append(mutant.kind)
    return MutationResult(case=case.id, **{result: tuple(names) for result, names in kinds.items()})


def mutation_summary(results: Sequence[MutationResult]) -> str:
    """`mutation score 80 of 80 cases (100%); 412 of 435 mutants killed, 20 undecided; survived: test_004 negate`."""
    useful = sum(bool(result.killed) for result in results)
    killed, undecided = (sum(len(getattr(result, name)) for result in results) for name in ("killed", "undecided"))
    survivors = [f"{result.case} {kind}" for result in results for kind in result.survived]
    return (
        f"mutation score {useful} of {len(results)} cases ({useful / len(results) if results else 0.0:.0%}); "
        f"{killed} of {killed + undecided + len(survivors)} mutants killed, {undecided} undecided"
        + (f"; survived: {', '.join(survivors)}" if survivors else "")
    )


def _alterations(text: str) -> Iterator[tuple[str, str]]:
    """Yields wrong versions of a fact: denied, with swapped roles, doubted, past, of another person or number."""
    lowered = text[:1].lower() + text[1:]
    affirmed = _NEGATION.sub("", text)
    yield "negate", affirmed if affirmed != text else f"It is not true that {lowered}"
    first, *middle, last = text.split() if len(text.split()) > 1 else ("", "")
    if middle:
        yield "swap", " ".join((last, *middle, first))
    yield "doubt", f"Maybe {lowered}"
    yield "used to", f"Used to: {lowered}"
    yield "third party", f"The sister: {lowered}"
    if (past := _PRESENT.sub(lambda verb: _PAST_OF[verb[0].lower()], text, count=1)) != text:
        yield "tense", past
    if _NUMBER.search(text):
        yield "renumber", _NUMBER.sub(lambda number: str(int(number[0]) + 1), text, count=1)
    if (negative := _AMOUNT.sub("-", text, count=1)) != text:
        yield "sign", negative


def _memory(facts: Sequence[MemoryFact]) -> list[dict[str, str]]:
    return [{"category": fact.category, "content": fact.text} for fact in facts]
