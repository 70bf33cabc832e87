"""Small cases and extractors whose scores can be computed by hand."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memorybench.judging.facts import facts_of
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.suites.extraction.cases import ExtractionCase, load_cases
from memorybench.suites.extraction.findings import Findings, examine, findings_of, match_output
from memorybench.suites.unrecorded_steps import UnrecordedSteps
from tests.doubles.scripted_model import ScriptedModel
from tests.judging.test_matching_judge import notes

BUNDLED = Path(__file__).parents[3] / "src/memorybench/catalog/data/memory_test_cases.json"

ADDING = {
    "id": "adding",
    "scenario": "multiple_blocks",
    "existing_memory": {"customers": ["Gift shops"], "costs": []},
    "conversation": "User: We sell handmade candles in Lyon. The stall costs 40 EUR a day.",
    "expected_output": {
        "customers": ["Gift shops"],
        "products": ["Sells handmade candles in Lyon"],
        "costs": ["Stall costs 40 EUR a day"],
    },
    "expected_facts": ["products: Sells handmade candles in Lyon", "costs: Stall costs 40 EUR a day"],
}
CHANGING = {
    "id": "changing",
    "scenario": "conflict_resolution",
    "existing_memory": {"home": ["Lives in Bristol"], "pets": ["Has a dog"]},
    "conversation": [
        {"role": "user", "content": "Actually, I live in Cardiff now."},
        {"role": "assistant", "content": "Noted."},
    ],
    "expected_output": {"home": ["Lives in Cardiff"], "pets": ["Has a dog"]},
    "expected_facts": ["home: Lives in Cardiff"],
    "superseded": ["home: Lives in Bristol"],
}
CHATTING = {
    "id": "chatting",
    "scenario": "no_extraction",
    "existing_memory": {"diet": ["Does not eat meat"]},
    "conversation": "User: What a day! The tram was late.\nAssistant: Oh dear.\nUser: My PIN is 4711, by the way.",
    "expected_output": {"diet": ["Does not eat meat"]},
    "expected_facts": [],
    "must_not_store": ["My PIN is 4711, by the way"],
}
DENYING = {
    "id": "denying",
    "scenario": "constraint_extraction",
    "existing_memory": {"constraints": []},
    "conversation": "User: We don't want a subscription model.",
    "expected_output": {"constraints": ["No subscription model"]},
    "expected_facts": ["constraints: No subscription model"],
}

Extract = Callable[[ExtractionCase], Any]


def case(values: Mapping[str, Any], folder: Path) -> ExtractionCase:
    file = folder / f"{values['id']}.json"
    file.write_text(json.dumps([values]))
    return load_cases(file)[0]


def compare_output(case: ExtractionCase, output: Any) -> Findings:
    """Compares an output with a case by code, without a judge."""
    return findings_of(case.gold, match_output(case, output), must_not_store=case.must_not_store)


def judge_output(case: ExtractionCase, output: Any, says: Callable[[str, str], bool]) -> Findings:
    """Compares an output with a case; `says` tells whether the first note says all that the second says."""
    judge = EntailmentJudge(Judge(ScriptedModel(lambda turns: "yes" if says(*notes(turns)) else "no")))
    return asyncio.run(examine(UnrecordedSteps(), case, output, judge))


def perfect(case: ExtractionCase) -> Any:
    return case.expected_output


def amnesiac(case: ExtractionCase) -> Any:
    return case.existing_memory


def hoarder(case: ExtractionCase) -> Any:
    """Keeps the old memory and adds every sentence of the user."""
    user_text = " ".join(turn.content for turn in case.conversation if turn.role == "user")
    return [
        *filed(case.existing_memory),
        *({"content": sentence} for sentence in re.split(r"(?<=[.!?])\s+", user_text)),
    ]


def stale(case: ExtractionCase) -> Any:
    """Adds the new value and keeps the old one."""
    before = {fact["content"] for fact in filed(case.existing_memory)}
    new = [fact for fact in filed(case.expected_output) if fact["content"] not in before]
    return [*filed(case.existing_memory), *new]


def filed(memory: Any) -> list[dict[str, str]]:
    return [{"category": fact.category, "content": fact.text} for fact in facts_of(memory)]
