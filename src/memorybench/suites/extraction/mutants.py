"""Wrong outputs made from the gold one. A case that some of them fail can tell good from bad; one that all of them pass
is a hole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from memorybench.judging.facts import MemoryFact
from memorybench.judging.facts_reading import turned
from memorybench.vocabulary.records import Record

from .cases import ExtractionCase
from .findings import compared, findings_of

INVENTED = "Keeps a lighthouse with nineteen parrots"
_NUMBER = re.compile(r"\d+")


class Mutant(Record):
    kind: str
    """drop, stale, invent, negate, renumber, forbid or amnesia."""
    output: Any


class Killing(Record):
    """What the mutants of one case came to."""

    case: str
    killed: tuple[str, ...]
    survived: tuple[str, ...]


def mutants_of(case: ExtractionCase) -> Iterator[Mutant]:
    """Every fact that is new, or where none is, every fact that is kept, is dropped, denied and given another number;
    one is invented; what was superseded and what must not be stored is put in."""
    gold = case.gold
    whole = (*gold.kept, *gold.added)
    for fact in gold.added or gold.kept:
        others = [other for other in whole if other is not fact]
        yield Mutant(kind="drop", output=_memory(others))
        yield Mutant(kind="negate", output=_memory([*others, _said(fact, turned(fact.text))]))
        if _NUMBER.search(fact.text):
            other = _NUMBER.sub(lambda number: str(int(number[0]) + 1), fact.text, count=1)
            yield Mutant(kind="renumber", output=_memory([*others, _said(fact, other)]))
    filed = next((fact.categories for fact in whole), ())
    yield Mutant(kind="invent", output=_memory([*whole, MemoryFact(text=INVENTED, categories=filed)]))
    for fact in gold.removed:
        yield Mutant(kind="stale", output=_memory([*whole, fact]))
    for text in case.must_not_store:
        yield Mutant(kind="forbid", output=_memory([*whole, MemoryFact(text=text, categories=filed)]))
    if gold.added or gold.removed:
        yield Mutant(kind="amnesia", output=case.existing_memory)


def killing_of(case: ExtractionCase) -> Killing:
    """Decided by code alone: a mutant that only a judge could tell from the gold survives."""
    killed: list[str] = []
    survived: list[str] = []
    for mutant in mutants_of(case):
        found = findings_of(case, compared(case, mutant.output))
        (survived if found.flawless else killed).append(mutant.kind)
    return Killing(case=case.id, killed=tuple(killed), survived=tuple(survived))


def report_of(killings: Sequence[Killing]) -> str:
    """`mutation score 80 of 80 cases (100 %); 412 of 415 mutants killed; survived: test_004 negate`."""
    able = sum(bool(killing.killed) for killing in killings)
    dead, alive = (sum(len(getattr(killing, name)) for killing in killings) for name in ("killed", "survived"))
    survivors = [f"{killing.case} {kind}" for killing in killings for kind in killing.survived]
    rest = f"; survived: {', '.join(survivors)}" if survivors else ""
    share = able / len(killings) if killings else 0.0
    return (
        f"mutation score {able} of {len(killings)} cases ({share:.0%}); {dead} of {dead + alive} mutants killed{rest}"
    )


def _said(fact: MemoryFact, text: str) -> MemoryFact:
    return fact.model_copy(update={"text": text})


def _memory(facts: Sequence[MemoryFact]) -> list[dict[str, str]]:
    return [{"category": fact.category, "content": fact.text} for fact in facts]
