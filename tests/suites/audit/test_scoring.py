"""Code reads a reply correctly or returns None: compared with replies that people have labelled.

`labelled_replies.json` groups replies by the question. A label is the option that is taken (`order`), whether the reply
refuses (`refusal`), or whether it is right (all other kinds); null: a person can not tell either.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from memorybench.core.errors import Unreadable
from memorybench.core.plans import Steps
from memorybench.datasets.audit import load_audit
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.judgement import Judgement, chosen_option, is_answered, judge_answer, mentions, refuses
from memorybench.suites.audit.probes import PROBE_TYPES, Policy, Probe, ProbeType
from memorybench.suites.audit.refusals import ADMISSIONS, DENIALS, Admission

Group = Mapping[str, Any]
GROUPS: list[Group] = json.loads((Path(__file__).parent / "labelled_replies.json").read_text())
TYPES: Mapping[str, ProbeType] = {"recall": "recall", "latest": "conflict", "flag": "conflict"}
MOST_UNDECIDED = 0.2
"""Of the replies of a kind that a person can read."""


def probe_of(group: Group, **more: Any) -> Probe:
    fields = {
        "id": "c/p", "type": TYPES.get(group["kind"], "temporal"), "kind": group["kind"], "conversation": "c",
        "question": group["question"], "expected_answer": group.get("expected", ""),
        "current": group.get("current", ""), "stale": tuple(group.get("stale", ())), "flags": group["kind"] == "flag",
        "options": tuple(group.get("options", ())), "origin": "structured",
    }  # fmt: skip
    return Probe(**{**fields, **more})


def judged_by_code(probe: Probe, text: str) -> bool | None:
    try:
        return asyncio.run(judge_answer(cast(Steps, None), None, probe, text)).correct
    except Unreadable:
        return None


def read(group: Group, text: str) -> str | bool | None:
    if group["kind"] == "order":
        choice = chosen_option(text, group["options"])
        return None if choice is None else "AB"[choice]
    if group["kind"] == "refusal":
        return refuses(text, group["question"])
    return judged_by_code(probe_of(group), text)


LABELLED = [
    pytest.param(group, text, label, id=f"{group['kind']}: {text}")
    for group in GROUPS
    for text, label in group["replies"]
]


@pytest.mark.parametrize(("group", "text", "label"), LABELLED)
def test_a_reply_is_read_as_labelled_or_not_at_all(group: Group, text: str, label: str | bool | None) -> None:
    assert read(group, text) in (label, None)


@pytest.mark.parametrize("kind", sorted({group["kind"] for group in GROUPS}))
def test_most_replies_are_read(kind: str) -> None:
    found = Counter(
        read(group, text) is None
        for group in GROUPS
        if group["kind"] == kind
        for text, label in group["replies"]
        if label is not None
    )
    assert found[True] <= MOST_UNDECIDED * found.total()


@pytest.mark.parametrize("admission", [*ADMISSIONS, *DENIALS], ids=lambda one: one.example)
def test_every_way_to_admit_is_one(admission: Admission) -> None:
    assert admission.pattern.search(admission.example)
    assert refuses(admission.example, "Which surgeon?")


SAMPLE = Path(__file__).parents[3] / "data/sample-dataset.json"


@pytest.mark.parametrize("policy", ["latest", "flag"])
def test_expected_answers_are_right_and_outdated_ones_wrong(policy: Policy) -> None:
    for probe in generate(load_audit(SAMPLE), PROBE_TYPES, policy=policy).probes:
        right = "I don't know." if probe.abstain else probe.expected_answer
        assert judged_by_code(probe, right) is True, probe.question
        assert not [value for value in probe.stale if judged_by_code(probe, value) is not False], probe.question


ABSENT = {"kind": "complement", "question": "Which gym is the user a member of?", "expected": "It does not tell."}


@pytest.mark.parametrize(
    ("text", "right"),
    [("I don't know.", True), ("FitHub.", False), ("", True), ("It depends.", None)],
)
def test_an_unclear_answer_about_an_absent_fact_is_unscored(text: str, right: bool | None) -> None:
    assert judged_by_code(probe_of(ABSENT, type="hallucination", abstain=True), text) is right


RECALL = {"kind": "recall", "question": "What is the user's diet?", "expected": "does not eat pork"}


@pytest.mark.parametrize(
    ("text", "correct", "said"),
    [
        ("I don't know whether you eat pork, you do not.", True, True),
        ("I don't know.", False, False),
        ("Only fish.", False, None),
        ("Vegan.", False, True),
        ("", False, False),
    ],
)
def test_a_correct_answer_always_counts_as_answered(text: str, correct: bool, said: bool | None) -> None:
    assert is_answered(probe_of(RECALL), text, Judgement(correct=correct)) is said


def test_a_declined_order_is_wrong_and_an_unclear_one_is_unscored() -> None:
    order = probe_of(GROUPS[0])
    assert judged_by_code(order, "I don't know.") is False
    assert judged_by_code(order, "Either A or B.") is None


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("The user lives in Rome.", "Rome", True),
        ("Nursing.", "nurse", True),
        ("They get up at 7 am", "7:00 am", True),
        ("Dr. Okafor is the dentist.", "Dr Okafor", True),
        ("A blue bike. The car is red.", "red bike", None),
        ("", "Rome", False),
    ],
)
def test_values_are_compared_by_stem_and_number(text: str, value: str, found: bool | None) -> None:
    assert mentions(text, value) is found
