"""What `memorybench show` shows of one extraction: both memories, and each gold fact with what became of it."""

from __future__ import annotations

import re
from typing import Any

from memorybench.core.errors import Malformed
from memorybench.core.report_sections import Row, Section, State, Table, Text, text_column
from memorybench.suites.case_sections import as_text, prompt_sections
from memorybench.suites.case_view import CaseTrial

from .cases import ExtractionCase
from .findings import match_output
from .transcripts import transcript

_PROBLEMS = {"add": "missed", "keep": "lost", "remove": "stale"}
"""By what should be done with a gold fact: the remark if it was not done."""


def case_sections(trial: CaseTrial) -> list[Section] | None:
    """Memory before, conversation, gold facts, memory after; None for a recorded trace, which has no gold."""
    if not trial.case:
        return None
    case, shown = ExtractionCase.model_validate(trial.case), trial.outcome.shown
    sections: list[Section] = [
        trial.text("Memory before", as_text(case.existing_memory) if case.existing_memory else "(empty)"),
        trial.text("Conversation", transcript(case.conversation)),
        trial.text("Expected memory after", as_text(case.expected_output)),
    ]
    if case.must_not_store:
        sections.append(trial.text("Must not be stored", "\n".join(case.must_not_store)))
    for step in trial.named("extract"):
        memory = step.result["memory"]
        sections += [trial.text("Memory after", as_text(memory)), *_fact_table(case, memory, shown.reason)]
    sections += prompt_sections(trial)
    return [*sections, *([Text("Remarks", shown.reason.replace("; ", "\n"))] if shown.reason else [])]


def _fact_table(case: ExtractionCase, memory: Any, remarks: str) -> list[Table]:
    """Each gold fact with the written fact that matches it, as the recorded remarks say."""
    try:
        matching = match_output(case, memory)
    except Malformed:
        return []
    gold = case.gold
    kinds = ["keep"] * len(gold.kept) + ["add"] * len(gold.added) + ["remove"] * len(gold.removed)
    rows: list[Row] = []
    for place, (kind, fact) in enumerate(zip(kinds, gold.targets, strict=True)):
        found = matching.pairs.get(place, matching.undecided.get(place))
        written = None if found is None else str(matching.grid.found[found])
        rows.append((kind, str(fact), written, (_state(kind, str(fact), remarks),)))
    columns = (
        text_column("to do"),
        text_column("fact", wrap=True),
        text_column("written as", wrap=True),
        text_column("result"),
    )
    return [Table("Gold facts", columns, tuple(rows))] if rows else []


def _state(kind: str, fact: str, remarks: str) -> State:
    if re.search(rf"{_PROBLEMS[kind]}: {re.escape(fact)}(?:;|$)", remarks):
        return State(_PROBLEMS[kind], False)
    if re.search(rf"undecided: .*\({re.escape(fact)}\)(?:;|$)", remarks):
        return State("undecided", None)
    return State("done", True)
