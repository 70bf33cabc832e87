"""What an extractor is put to. Files are read strictly: a case whose gold contradicts itself would score everyone
wrongly, so it is refused, with its place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, Malformed
from memorybench.core.records import Record
from memorybench.core.trials import Case
from memorybench.files.loading import load
from memorybench.files.located import Document
from memorybench.files.validation import validated
from memorybench.judging.facts import MemoryFact, categories_of, fact_from, facts_of
from memorybench.judging.matching import compare
from memorybench.text.sanitize import preview
from memorybench.text.spelling import nearest, suggestion

from .gold import Gold, gold_of, same, stored
from .transcripts import turns_of

SCENARIOS = (
    "simple_extraction",
    "no_extraction",
    "constraint_extraction",
    "conflict_resolution",
    "multiple_blocks",
    "non_agreement",
    "preference_extraction",
    "append_behavior",
    "cost_and_revenue",
    "explicit_agreement",
)
"""Of the bundled cases; a team's own may have other names."""


class ExtractionCase(Case):
    """Its scenario and domain, where it has any, are labels."""

    description: str = ""
    existing_memory: Any
    conversation: tuple[Turn, ...]
    expected_output: Any
    expected_facts: tuple[str, ...]
    must_not_store: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()

    @cached_property
    def gold(self) -> Gold:
        return gold_of(self.existing_memory, self.expected_output)


class _WrittenTurn(Record):
    role: Literal["user", "assistant", "system"]
    content: str


class _WrittenCase(Record):
    id: str
    description: str = ""
    scenario: str | None = None
    domain: str | None = None
    existing_memory: Any
    conversation: str | tuple[_WrittenTurn, ...]
    expected_output: Any
    expected_facts: tuple[str, ...]
    must_not_store: tuple[str, ...] = ()
    superseded: tuple[str, ...] | None = None
    """None: what expected_output no longer holds, unless it holds none of several old facts. Where it is written, it
    must be all of that."""


def load_cases(path: Path | str) -> tuple[ExtractionCase, ...]:
    """The cases of a JSON list, of `{"cases": […]}`, of JSONL or YAML. Raises BadInput at the first that is wrong."""
    rows = _rows(load(path))
    cases: list[ExtractionCase] = []
    places: dict[str, int | None] = {}
    for row in rows:
        case = _case(row)
        if case.id in places:
            raise BadInput(
                row.where("id"),
                f"the id {preview(case.id)} stands on line {places[case.id]} already",
                expected="each id once",
                remedy="rename one",
            )
        places[case.id] = row.line("id")
        cases.append(case)
    return tuple(cases)


def _rows(document: Document) -> list[Document]:
    if isinstance(document.value, dict):
        others = document.value.keys() - {"cases"}
        if "cases" not in document.value:
            raise BadInput(
                document.where(),
                '"cases" is missing',
                expected='a list of cases, or {"cases": [...]}',
                remedy=_renaming(document.value) or "wrap the case in a list",
            )
        if others:
            key = min(others)
            raise BadInput(
                document.where(key), f"unknown key {preview(key)}", expected="cases alone", remedy="remove it"
            )
        document = document.at("cases")
    if not isinstance(document.value, list):
        raise BadInput(
            document.where(), f"is {preview(document.value)}", expected='a list of cases, or {"cases": [...]}'
        )
    if not document.value:
        raise BadInput(document.where(), "holds no cases", expected="at least one", remedy="add a case")
    rows = [document.at(place) for place in range(len(document.value))]
    for row in rows:
        if not isinstance(row.value, dict):
            raise BadInput(
                row.where(), f"is {preview(row.value)}", expected="a case: a mapping with id, conversation …"
            )
    return rows


def _renaming(keys: Collection[str]) -> str:
    close = nearest("cases", keys)
    return f'rename {preview(close)} to "cases"' if close else ""


def _case(row: Document) -> ExtractionCase:
    written = validated(row, _WrittenCase)
    for name in ("id", "scenario", "domain"):
        if getattr(written, name) is not None and not getattr(written, name).strip():
            raise BadInput(row.where(name), "is empty", expected="a name", remedy="name it, or leave the key out")
    conversation = _conversation(row, written)
    gold = _checked_gold(row, written)
    labels = {"scenario": written.scenario, "domain": written.domain}
    return ExtractionCase(
        id=written.id,
        labels={name: value.strip() for name, value in labels.items() if value},
        description=written.description,
        existing_memory=written.existing_memory,
        conversation=conversation,
        expected_output=written.expected_output,
        expected_facts=written.expected_facts,
        must_not_store=written.must_not_store,
        superseded=tuple(map(str, gold.removed)) if written.superseded is None else written.superseded,
    )


def _conversation(row: Document, written: _WrittenCase) -> tuple[Turn, ...]:
    where = row.where("conversation")
    if isinstance(written.conversation, str):
        turns = turns_of(written.conversation)
        if written.conversation.strip() and not turns:
            raise BadInput(
                where,
                "does not begin with who speaks",
                expected='lines such as "User: …" and "Assistant: …"',
                remedy="name the speakers, or write a list of role and content",
            )
    else:
        turns = tuple(Turn(role=turn.role, content=turn.content) for turn in written.conversation)
    if not any(turn.role == "user" and turn.content.strip() for turn in turns):
        problem = "the user says nothing" if turns else "is empty"
        raise BadInput(where, problem, expected="at least one turn of the user", remedy="add what was said")
    return turns


def _checked_gold(row: Document, written: _WrittenCase) -> Gold:
    for name in ("existing_memory", "expected_output"):
        _check_memory(row, name, getattr(written, name))
    gold = gold_of(written.existing_memory, written.expected_output)
    _check_change(row, written, gold)
    _check_facts(row, written, gold)
    _check_superseded(row, written, gold)
    for place, text in enumerate(written.must_not_store):
        where = row.where("must_not_store", place)
        if not text.strip():
            raise BadInput(where, "is empty", expected="a text that must not be stored", remedy="remove it")
        held = stored(text, facts_of(written.expected_output))
        if held is not None:
            raise BadInput(
                where,
                f"stands in expected_output as {preview(str(held))}",
                expected="a text that the memory afterwards does not hold",
                remedy="take it out of one of them",
            )
    return gold


def _check_memory(row: Document, name: str, state: Any) -> None:
    if isinstance(state, int | float | bool):
        raise BadInput(row.where(name), f"is {preview(state)}", expected="a memory: blocks, a list of texts, or a text")
    try:
        facts = facts_of(state)
    except Malformed as error:
        raise BadInput(row.where(name), str(error)) from None
    for place, fact in enumerate(facts):
        twin = next((other for other in facts[:place] if _same(other, fact)), None)
        if twin is not None:
            raise BadInput(
                row.where(name),
                f"says {preview(fact.text)} twice",
                expected="each fact once: a gold with duplicates would reward them",
                remedy="remove one",
            )


def _check_change(row: Document, written: _WrittenCase, gold: Gold) -> None:
    if written.expected_facts and not gold.added:
        raise BadInput(
            row.where("expected_output"),
            "has nothing that existing_memory has not, though expected_facts are listed",
            expected="the memory after the conversation",
            remedy="add the facts, or empty expected_facts",
        )
    if not written.expected_facts and gold.added:
        raise BadInput(
            row.where("expected_output"),
            f"has the new fact {preview(str(gold.added[0]))}, though expected_facts is empty",
            expected="no new facts",
            remedy="list it in expected_facts, or take it out",
        )


def _check_facts(row: Document, written: _WrittenCase, gold: Gold) -> None:
    listed = list(_listed(row, "expected_facts", written.expected_facts))
    facts = [fact for _, fact in listed]
    for place, (line, fact) in enumerate(listed):
        where = row.where("expected_facts", line)
        if any(_same(fact, other) and fact.category == other.category for other in facts[:place]):
            raise BadInput(where, f"lists {preview(fact.text)} twice", expected="each fact once", remedy="remove one")
        if any(_same(fact, other) for other in facts_of(written.existing_memory)):
            raise BadInput(
                where,
                "stands in existing_memory already",
                expected="facts that are new",
                remedy="take it out of one of them",
            )
    pairs = same(facts, gold.added, frozenset(fact.category for fact in facts))
    for place, (line, fact) in enumerate(listed):
        if place not in pairs:
            raise BadInput(
                row.where("expected_facts", line),
                f"{preview(str(fact))} is no new fact of expected_output",
                expected="the same words and category in both",
                remedy=_nearest(fact, gold.added) or "add it to expected_output",
            )
    for place, fact in enumerate(gold.added):
        if place not in pairs.values():
            raise BadInput(
                row.where("expected_output"),
                f"has the new fact {preview(str(fact))}, which expected_facts does not list",
                expected="every new fact in both",
                remedy="list it, or take it out",
            )


def _check_superseded(row: Document, written: _WrittenCase, gold: Gold) -> None:
    if written.superseded is None:
        _check_remainder(row, gold)
        return
    listed = list(_listed(row, "superseded", written.superseded))
    before = facts_of(written.existing_memory)
    for line, fact in listed:
        where = row.where("superseded", line)
        if not same([fact], before, frozenset((fact.category,))):
            raise BadInput(
                where,
                f"{preview(str(fact))} does not stand in existing_memory",
                expected="an old fact, in the same words and category",
                remedy=_nearest(fact, before) or "correct it",
            )
        if not same([fact], gold.removed, frozenset((fact.category,))):
            raise BadInput(
                where,
                f"{preview(str(fact))} still stands in expected_output",
                expected="a fact that is gone afterwards",
                remedy="take it out of one of them",
            )
    facts = [fact for _, fact in listed]
    left = set(range(len(gold.removed))) - set(
        same(facts, gold.removed, categories_of(written.existing_memory)).values()
    )
    for place in sorted(left):
        raise BadInput(
            row.where("expected_output"),
            f"lacks {preview(str(gold.removed[place]))} of existing_memory, which superseded does not list",
            expected="every old fact kept or superseded",
            remedy="put it back, or list it in superseded",
        )


def _check_remainder(row: Document, gold: Gold) -> None:
    """Who writes only what is new, or nothing, makes every old fact one to delete: of several, that is hardly meant."""
    if not gold.kept and len(gold.removed) > 1:
        raise BadInput(
            row.where("expected_output"),
            f"keeps none of the {len(gold.removed)} facts of existing_memory, and superseded does not list them",
            expected="the whole memory after the conversation, not only what is new",
            remedy="write the old facts, too, or list in superseded those that are to go",
        )


def _listed(row: Document, name: str, lines: Sequence[str]) -> Iterator[tuple[int, MemoryFact]]:
    """The facts of "category: fact" lines, and the place of each line."""
    for place, line in enumerate(lines):
        fact = fact_from(line)
        if fact is None:
            raise BadInput(
                row.where(name, place),
                f"is {preview(line)}",
                expected='"category: fact"',
                remedy="name the category before a colon",
            )
        yield from ((place, one) for one in facts_of({fact.category: [fact.text]}))


def _same(fact: MemoryFact, other: MemoryFact) -> bool:
    filed = not (fact.categories and other.categories) or (
        fact.category in other.categories or other.category in fact.categories
    )
    return filed and compare(fact, other).relation == "same"


def _nearest(fact: MemoryFact, others: Sequence[MemoryFact]) -> str:
    return suggestion(str(fact), [str(other) for other in others])
