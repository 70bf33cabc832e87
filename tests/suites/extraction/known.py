"""Hand-made cases and extractors whose scores can be worked out on paper."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memorybench.judging.facts import facts_of
from memorybench.suites.extraction.cases import ExtractionCase, load_cases
from memorybench.suites.extraction.findings import Findings, compared, findings_of

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
    "must_not_store": ["PIN is 4711"],
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


def case(written: Mapping[str, Any], folder: Path) -> ExtractionCase:
    file = folder / f"{written['id']}.json"
    file.write_text(json.dumps([written]))
    return load_cases(file)[0]


def found(case: ExtractionCase, output: Any) -> Findings:
    """As code decides, without a judge."""
    return findings_of(case, compared(case, output))


def perfect(case: ExtractionCase) -> Any:
    return case.expected_output


def amnesiac(case: ExtractionCase) -> Any:
    return case.existing_memory


def hoarder(case: ExtractionCase) -> Any:
    """Keeps what it had, and every sentence of the user."""
    said = " ".join(turn.content for turn in case.conversation if turn.role == "user")
    return [*_filed(case.existing_memory), *({"content": one} for one in re.split(r"(?<=[.!?])\s+", said))]


def stale(case: ExtractionCase) -> Any:
    """Writes down the new value beside the old one."""
    before = {fact["content"] for fact in _filed(case.existing_memory)}
    new = [fact for fact in _filed(case.expected_output) if fact["content"] not in before]
    return [*_filed(case.existing_memory), *new]


def _filed(state: Any) -> list[dict[str, str]]:
    return [{"category": fact.category, "content": fact.text} for fact in facts_of(state)]
