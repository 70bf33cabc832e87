from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import BadInput
from memorybench.datasets.errata import Erratum, load_errata
from memorybench.datasets.mapped import MappedDataset
from tests.datasets.described import item, opened
from tests.doubles.refusals import refused

TALK = [{"text": "It is green.", "n": "D1:1"}, {"text": "No, blue.", "n": "D1:2"}]
QUIZ = [{"q": "Which?", "a": "green", "e": ["D1:1"]}, {"q": "Really?", "a": "yes", "e": ["D1:1"]}]


def dataset(folder: Path) -> MappedDataset:
    schema = {
        "question": None,
        "answer": None,
        "evidenceLevel": "turn",
        "questions": {"field": "quiz", "questionField": "q", "answerField": "a", "evidenceField": "e"},
        "context": {"field": "sessions", "itemSchema": {"content": "text", "dialogId": "n"}},
    }
    return opened(folder, [item(id="conv", sessions=[TALK], quiz=QUIZ)], schema)


def errata(folder: Path, told: Any, of: MappedDataset | None = None) -> dict[str, Erratum]:
    file = folder / "errata.json"
    file.write_text(json.dumps(told, indent=1), encoding="utf-8")
    return dict(load_errata(file, of or dataset(folder)))


def test_an_answer_and_its_evidence_are_corrected(tmp_path: Path) -> None:
    found = errata(tmp_path, {"conv:q0": {"answer": "blue", "evidence": ["D1:2"]}, "conv:q1": {"evidence": ["D1:2"]}})
    first, second = found["conv:q0"], found["conv:q1"]
    assert (first.wrong, first.corrected.answers, first.corrected.gold_turns) == ("answer", ("blue",), ("D1:2",))
    assert (second.wrong, second.corrected.answers, second.corrected.gold_turns) == ("evidence", ("yes",), ("D1:2",))
    assert first.corrected.question == "Which?"


def test_several_answers_may_be_right(tmp_path: Path) -> None:
    found = errata(tmp_path, {"conv:q0": {"answer": ["blue", 3]}})
    assert found["conv:q0"].corrected.answers == ("blue", "3")
    assert found["conv:q0"].corrected.gold_turns == ("D1:1",)


def test_a_corrected_number_is_written_like_a_gold_answer(tmp_path: Path) -> None:
    assert errata(tmp_path, {"conv:q0": {"answer": [10.0, True]}})["conv:q0"].corrected.answers == ("10", "yes")


@pytest.mark.parametrize("answer", ["B. Oslo", "(B) Oslo", "Oslo", "B", "b"])
def test_a_corrected_answer_is_one_of_the_choices(tmp_path: Path, answer: str) -> None:
    """Every response was wrong by the corrected key, unless it named the choice as (B) Oslo."""
    options = ["A. Rome", "B. Oslo"]
    quiz = opened(tmp_path, [item(answer="Rome", options=options)], {"choices": "options"})
    question = errata(tmp_path, {"q1": {"answer": answer}}, quiz)["q1"].corrected
    assert [choice.text for choice in question.choices if str(choice) in question.answers] == ["Oslo"]


@pytest.mark.parametrize(
    ("options", "answer"), [(["Rome", "Oslo"], "Paris"), ({"1": "2", "2": "1"}, "1"), (["b", "a"], "b")]
)
def test_a_corrected_answer_must_name_one_choice(tmp_path: Path, options: Any, answer: str) -> None:
    gold = options[0] if isinstance(options, list) else "2"
    quiz = opened(tmp_path, [item(answer=gold, options=options)], {"choices": "options"})
    assert refused(errata, tmp_path, {"q1": {"answer": answer}}, quiz).where.endswith("q1.answer")


@pytest.mark.parametrize("schema", [{"rubric": "points"}, {"mustContain": "points"}])
def test_an_answer_that_decides_nothing_cannot_be_corrected(tmp_path: Path, schema: dict[str, str]) -> None:
    quiz = opened(tmp_path, [item(points=["green"])], schema)
    assert refused(errata, tmp_path, {"q1": {"answer": "blue"}}, quiz).where.endswith("q1.answer")


def test_the_audit_counts_conversations_and_questions(tmp_path: Path) -> None:
    audit = [
        {"question_id": "locomo_0_qa0", "question": "Which?", "error_type": "HALLUCINATION", "correct_answer": "blue",
         "correct_evidence": ["D1:2"]},
        {"question_id": "locomo_0_qa1", "error_type": "WRONG_CITATION", "correct_answer": "yes (a remark)",
         "correct_evidence": ["D1:2"]},
    ]  # fmt: skip
    found = errata(tmp_path, audit)
    assert found["conv:q0"].corrected.answers == ("blue",)
    assert found["conv:q1"].corrected.answers == ("yes",)


@pytest.mark.parametrize(
    ("corrections", "where"),
    [
        ({"conv:q7": {"answer": "x"}}, "errata.json:2"),
        ({"conv:q0": {"anser": "x"}}, "errata.json:2"),
        ({"conv:q0": {"answer": ""}}, "answer"),
        ({"conv:q0": {"evidence": "D1:1"}}, "evidence"),
        ({"conv:q0": {"evidence": ["D9:9"]}}, "evidence"),
        ([{"question_id": "q0"}], "errata.json:3: [0].question_id"),
        ([{"question_id": "locomo_3_qa0"}], "[0].question_id"),
        ([{"question_id": "locomo_0_qa0", "question": "Who?"}], "[0].question"),
        ([{"question_id": "locomo_0_qa0", "correct_answer": "a"}] * 2, "[1]"),
        ({}, "errata.json:1"),
        (7, "errata.json:1"),
    ],
)
def test_invalid_errata_are_located(tmp_path: Path, corrections: Any, where: str) -> None:
    with pytest.raises(BadInput) as caught:
        errata(tmp_path, corrections)
    assert where in caught.value.where
