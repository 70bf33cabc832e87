"""Reads extraction cases. A contradictory gold is an error, because it would score every extractor wrongly."""

from __future__ import annotations

from collections.abc import Sequence
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
from memorybench.judging.facts import MemoryFact, fact_from, facts_of
from memorybench.judging.matching import is_same, refers_to, repeats
from memorybench.text.sanitize import preview
from memorybench.text.spelling import suggestion

from .gold import Gold, find_stored, gold_of, identical_pairs
from .transcripts import turns_of


class ExtractionCase(Case):
    """A memory, a conversation, and the memory expected after it. Scenario and domain, if given, are labels."""

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


class _TurnInFile(Record):
    role: Literal["user", "assistant", "system"]
    content: str


class _CaseInFile(Record):
    id: str
    description: str = ""
    scenario: str | None = None
    domain: str | None = None
    existing_memory: Any
    conversation: str | tuple[_TurnInFile, ...]
    expected_output: Any
    expected_facts: tuple[str, ...]
    must_not_store: tuple[str, ...] = ()
    superseded: tuple[str, ...] | None = None
    """The old facts that expected_output no longer has, as the file lists them; then the list must be complete.

    None if the file has no such list.
    """


class _CasesFile(Record):
    cases: Any


def load_cases(path: Path | str) -> tuple[ExtractionCase, ...]:
    """Read cases from a JSON list, `{"cases": […]}`, JSONL or YAML. Raise BadInput at the first invalid case."""
    cases: list[ExtractionCase] = []
    lines: dict[str, int | None] = {}
    for row in _rows(load(path)):
        case = _case(row)
        if case.id in lines:
            raise BadInput(
                row.where("id"),
                f"the id {preview(case.id)} is already used on line {lines[case.id]}",
                expected="a different id for each case",
                remedy="change one of the two",
            )
        lines[case.id] = row.line("id")
        cases.append(case)
    return tuple(cases)


def _rows(document: Document) -> list[Document]:
    if isinstance(document.value, dict):
        validated(document, _CasesFile)
        document = document.at("cases")
    if not isinstance(document.value, list):
        raise BadInput(
            document.where(),
            f"invalid cases {preview(document.value)}",
            expected='a list of cases, or {"cases": [...]}',
        )
    if not document.value:
        raise BadInput(document.where(), "the list of cases is empty", expected="at least one", remedy="add a case")
    return [document.at(index) for index in range(len(document.value))]


def _case(row: Document) -> ExtractionCase:
    written = validated(row, _CaseInFile, spell=str)
    for name in ("id", "scenario", "domain"):
        value = getattr(written, name)
        if value is not None and not value.strip():
            remedy = "fill it in" if name == "id" else "fill it in, or remove the key"
            raise BadInput(row.where(name), "the value is empty", expected="a text", remedy=remedy)
    conversation = _conversation(row, written)
    for name in ("existing_memory", "expected_output"):
        _check_memory(row, name, getattr(written, name))
    gold = gold_of(written.existing_memory, written.expected_output)
    _check_facts(row, written, gold)
    _check_superseded(row, written, gold)
    _check_must_not_store(row, written)
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


def _conversation(row: Document, written: _CaseInFile) -> tuple[Turn, ...]:
    where = row.where("conversation")
    if isinstance(written.conversation, str):
        turns = turns_of(written.conversation)
        if written.conversation.strip() and not turns:
            raise BadInput(
                where,
                "the first line of the conversation names no speaker",
                expected='lines such as "User: …" and "Assistant: …"',
                remedy="begin lines with the speaker, or write a list of objects with role and content",
            )
    else:
        turns = tuple(Turn(role=turn.role, content=turn.content) for turn in written.conversation)
    if not any(turn.role == "user" and turn.content.strip() for turn in turns):
        raise BadInput(
            where,
            "the user says nothing in the conversation" if turns else "the conversation is empty",
            expected="at least one turn with the role user and a text",
            remedy="add one",
        )
    return turns


def _check_memory(row: Document, name: str, memory: Any) -> None:
    where = row.where(name)
    if isinstance(memory, int | float | bool):
        raise BadInput(
            where,
            f"invalid memory {preview(memory)}",
            expected="a text, a list of texts, or an object of memory blocks",
        )
    try:
        facts = facts_of(memory)
    except Malformed as error:
        raise BadInput(where, str(error)) from None
    for index, fact in enumerate(facts):
        if any(repeats(other, fact) for other in facts[:index]):
            raise BadInput(
                where,
                f"duplicate fact {preview(fact.text)}",
                expected="each fact once, or an extractor would be rewarded for duplicates",
                remedy="remove one of the two",
            )


def _check_facts(row: Document, written: _CaseInFile, gold: Gold) -> None:
    """Raise BadInput unless expected_facts lists exactly the new facts of expected_output."""
    listed = _parse_facts(row, "expected_facts", written.expected_facts)
    facts = [fact for _, fact in listed]
    pairs = identical_pairs(facts, gold.added)
    for index, (where, fact) in enumerate(listed):
        if index in pairs:
            continue  # also if the same fact of another owner is listed, or is in existing_memory
        if any(is_same(fact, other) for other in facts[:index]):
            raise BadInput(
                where,
                f"expected_facts already lists {preview(fact.text)}",
                expected="each fact once",
                remedy="remove one of the two",
            )
        if any(refers_to(fact, other) for other in facts_of(written.existing_memory)):
            raise BadInput(
                where,
                f"{preview(str(fact))} is already in existing_memory",
                expected="facts that the conversation adds",
                remedy="remove it from expected_facts, or from existing_memory",
            )
        raise BadInput(
            where,
            f"{preview(str(fact))} is not among the new facts of expected_output",
            expected="the same words and category in expected_facts and expected_output",
            remedy=_suggest(fact, gold.added) or "add it to expected_output",
        )
    for index, fact in enumerate(gold.added):
        if index not in pairs.values():
            raise BadInput(
                row.where("expected_output"),
                f"the new fact {preview(str(fact))} is missing from expected_facts",
                expected="every new fact in expected_output and in expected_facts",
                remedy="add it to expected_facts, or write it as in existing_memory if it is kept",
            )


def _check_superseded(row: Document, written: _CaseInFile, gold: Gold) -> None:
    """Raise BadInput unless superseded lists exactly the old facts that expected_output lacks."""
    if written.superseded is None:
        # An author who writes only the new facts would make every old fact one to delete.
        if not gold.kept and len(gold.removed) > 1:
            raise BadInput(
                row.where("expected_output"),
                f"none of the {len(gold.removed)} facts of existing_memory are in it, and superseded is missing",
                expected="the whole memory after the conversation, not only the new facts",
                remedy="add the old facts to expected_output, or list in superseded those that must be removed",
            )
        return
    listed = _parse_facts(row, "superseded", written.superseded)
    before = facts_of(written.existing_memory)
    for where, fact in listed:
        if not any(refers_to(fact, other) for other in before):
            raise BadInput(
                where,
                f"{preview(str(fact))} is not in existing_memory",
                expected="a fact of existing_memory, in the same words and category",
                remedy=_suggest(fact, before) or "write it as in existing_memory, or remove it",
            )
        if not any(refers_to(fact, other) for other in gold.removed):
            raise BadInput(
                where,
                f"{preview(str(fact))} is still in expected_output",
                expected="only facts that the conversation makes invalid",
                remedy="remove it from superseded, or from expected_output",
            )
    pairs = identical_pairs([fact for _, fact in listed], gold.removed)
    for index, fact in enumerate(gold.removed):
        if index not in pairs.values():
            raise BadInput(
                row.where("expected_output"),
                f"{preview(str(fact))} of existing_memory is neither in expected_output nor in superseded",
                expected="every fact of existing_memory in one of the two",
                remedy="add it to expected_output if it stays valid, else to superseded",
            )


def _check_must_not_store(row: Document, written: _CaseInFile) -> None:
    for index, text in enumerate(written.must_not_store):
        where = row.where("must_not_store", index)
        if not text.strip():
            raise BadInput(where, "the text is empty", expected="a text that must not be stored", remedy="remove it")
        fact = find_stored(text, facts_of(written.expected_output))
        if fact is not None:
            raise BadInput(
                where,
                f"expected_output contains {preview(str(fact))}, which must not be stored",
                remedy="remove it from must_not_store, or from expected_output",
            )


def _parse_facts(row: Document, name: str, lines: Sequence[str]) -> list[tuple[str, MemoryFact]]:
    """Parse "category: fact" lines. Return each fact with its place in the file, for error messages."""
    parsed: list[tuple[str, MemoryFact]] = []
    for index, line in enumerate(lines):
        fact, where = fact_from(line), row.where(name, index)
        if fact is None:
            raise BadInput(
                where,
                f"invalid fact {preview(line)}",
                expected='"category: fact"',
                remedy="begin it with a category and a colon",
            )
        parsed += ((where, part) for part in facts_of({fact.category: [fact.text]}))
    return parsed


def _suggest(fact: MemoryFact, others: Sequence[MemoryFact]) -> str:
    return suggestion(str(fact), [str(other) for other in others])
