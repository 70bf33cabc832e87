"""Wrong outputs made from the gold one. A case that some of them fail can tell good from bad; one that all of them pass
is a hole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from memorybench.core.records import Record
from memorybench.judging.facts import MemoryFact
from memorybench.judging.facts_reading import turned

from .cases import ExtractionCase
from .findings import compared, findings_of

INVENTED = "Keeps a lighthouse with nineteen parrots"
_NUMBER = re.compile(r"\d+")
_AMOUNT = re.compile(
    r"(?<!\S)(?=\d[\d,.]*(?:\s|$))(?!\d+\s(?:January|February|March|April|May|June|July|August|September"
    r"|October|November|December))"
)
"""The place before a number that stands by itself and is no day of a month."""
_PAST_OF = {"is": "was", "are": "were", "has": "had", "lives": "lived", "works": "worked", "wants": "wanted"}
_PRESENT = re.compile(rf"\b(?:{'|'.join(_PAST_OF)})\b", re.IGNORECASE)


class Mutant(Record):
    kind: str
    """drop, negate, renumber, sign, doubt, tense, used to, third party, invent, stale, forbid or amnesia."""
    output: Any


class Killing(Record):
    """What the mutants of one case came to."""

    case: str
    killed: tuple[str, ...]
    undecided: tuple[str, ...] = ()
    """Told from the gold by code, but whether they are wrong is left to a judge."""
    survived: tuple[str, ...]


def mutants_of(case: ExtractionCase) -> Iterator[Mutant]:
    """Every fact that is new, or where none is, every fact that is kept, is dropped, and put down wrongly in every way
    (`_altered`); one is invented; what was superseded and what must not be stored is put in."""
    gold = case.gold
    whole = (*gold.kept, *gold.added)
    for fact in gold.added or gold.kept:
        others = [other for other in whole if other is not fact]
        yield Mutant(kind="drop", output=_memory(others))
        for kind, text in _altered(fact.text):
            yield Mutant(kind=kind, output=_memory([*others, _said(fact, text)]))
    filed = next((fact.categories for fact in whole), ())
    yield Mutant(kind="invent", output=_memory([*whole, MemoryFact(text=INVENTED, categories=filed)]))
    for fact in gold.removed:
        yield Mutant(kind="stale", output=_memory([*whole, fact]))
    for text in case.must_not_store:
        yield Mutant(kind="forbid", output=_memory([*whole, MemoryFact(text=text, categories=filed)]))
    if gold.added or gold.removed:
        yield Mutant(kind="amnesia", output=case.existing_memory)


def killing_of(case: ExtractionCase) -> Killing:
    """Decided by code alone: a mutant that only a judge could call wrong is undecided, not killed."""
    killed: list[str] = []
    undecided: list[str] = []
    survived: list[str] = []
    for mutant in mutants_of(case):
        found = findings_of(case, compared(case, mutant.output))
        fate = killed if not found.flawless else undecided if found.undecided else survived
        fate.append(mutant.kind)
    return Killing(case=case.id, killed=tuple(killed), undecided=tuple(undecided), survived=tuple(survived))


def report_of(killings: Sequence[Killing]) -> str:
    """`mutation score 80 of 80 cases (100%); 412 of 435 mutants killed, 20 undecided; survived: test_004 negate`."""
    able = sum(bool(killing.killed) for killing in killings)
    dead, left, alive = (
        sum(len(getattr(killing, name)) for killing in killings) for name in ("killed", "undecided", "survived")
    )
    survivors = [f"{killing.case} {kind}" for killing in killings for kind in killing.survived]
    rest = f"; survived: {', '.join(survivors)}" if survivors else ""
    share = able / len(killings) if killings else 0.0
    return (
        f"mutation score {able} of {len(killings)} cases ({share:.0%}); "
        f"{dead} of {dead + left + alive} mutants killed, {left} undecided{rest}"
    )


def _altered(text: str) -> Iterator[tuple[str, str]]:
    """What a careless reader could make of a fact: denied, in doubt, of the past, of somebody else, miscounted."""
    yield "negate", turned(text)
    spoken = text[:1].lower() + text[1:]
    yield "doubt", f"Maybe {spoken}"
    yield "used to", f"Used to: {spoken}"
    yield "third party", f"The sister: {spoken}"
    if (past := _PRESENT.sub(lambda verb: _PAST_OF[verb[0].lower()], text, count=1)) != text:
        yield "tense", past
    if _NUMBER.search(text):
        yield "renumber", _NUMBER.sub(lambda number: str(int(number[0]) + 1), text, count=1)
    if (negative := _AMOUNT.sub("-", text, count=1)) != text:
        yield "sign", negative


def _said(fact: MemoryFact, text: str) -> MemoryFact:
    return MemoryFact(text, fact.categories)


def _memory(facts: Sequence[MemoryFact]) -> list[dict[str, str]]:
    return [{"category": fact.category, "content": fact.text} for fact in facts]
