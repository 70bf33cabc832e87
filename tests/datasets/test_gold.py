"""What a right answer is: any answer, all answers, a rubric, or texts that it must or must not contain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import BadInput
from memorybench.core.questions import RubricItem
from memorybench.metrics.answers import contains
from tests.datasets.described import config, item, opened

RUBRIC = {"answer": None, "rubric": "rubric"}


def test_answers_are_alternatives_unless_the_config_says_otherwise(tmp_path: Path) -> None:
    answers = [item(answer=["Porto", "Oporto"])]
    by_default = opened(tmp_path, answers)
    assert by_default.questions[0].answer_mode == "any"
    assert any("answerMode" in note and note.endswith(": 1") for note in by_default.notes)
    written = opened(tmp_path, answers, {"answerMode": "any"})
    assert written.questions[0].answer_mode == "any"
    assert not any("answerMode" in note for note in written.notes)
    assert opened(tmp_path, answers, {"answerMode": "all"}).questions[0].answer_mode == "all"


def test_rubric_is_neither_any_nor_all_of_its_items(tmp_path: Path) -> None:
    rubric = [item(rubric=["names Porto", "names the train"])]
    question = opened(tmp_path, rubric, RUBRIC).questions[0]
    assert question.rubric == (RubricItem("names Porto"), RubricItem("names the train"))
    assert question.answers == ()
    as_answers = [item(answer=["names Porto", "names the train"])]
    assert opened(tmp_path, as_answers, {"answerMode": "rubric"}).questions[0].rubric == question.rubric


def test_rubric_items_have_weights(tmp_path: Path) -> None:
    items = [item(rubric=[{"criterion": "names Porto", "points": 3}, {"criterion": "is short", "points": 0.5}])]
    schema = RUBRIC | {"rubricItem": {"text": "criterion", "weight": "points"}}
    assert opened(tmp_path, items, schema).questions[0].rubric == (
        RubricItem("names Porto", 3.0),
        RubricItem("is short", 0.5),
    )


def test_questions_of_an_item_have_rubrics_and_excluded_texts(tmp_path: Path) -> None:
    questions = [{"q": "Where?", "points": ["names Porto"], "yes": "Porto", "no": ["Lisbon", "Faro"]}]
    schema = {
        "question": None,
        "answer": None,
        "questions": {
            "field": "quiz",
            "questionField": "q",
            "rubricField": "points",
            "mustContainField": "yes",
            "mustNotContainField": "no",
        },
    }
    question = opened(tmp_path, [item(quiz=questions)], schema).questions[0]
    assert question.rubric == (RubricItem("names Porto"),)
    assert question.must_contain == ("Porto",)
    assert question.must_not_contain == ("Lisbon", "Faro")


def test_a_required_number_is_found_as_people_write_it(tmp_path: Path) -> None:
    """A number such as 10.0, as in Parquet files, was not found in the answer "10 euros"."""
    question = opened(tmp_path, [item(answer=10.0, yes=[10.0, 2.5])], {"mustContain": "yes"}).questions[0]
    assert (question.must_contain, question.answers) == (("10", "2.5"), ("10",))
    assert contains("10 euros", question.must_contain[0])


def test_forbidden_ids_are_resolved_like_evidence(tmp_path: Path) -> None:
    sessions = [{"id": "a", "turns": [{"text": "one"}]}, {"id": "b", "turns": [{"text": "two"}]}]
    context = {
        "field": "sessions",
        "turnsField": "turns",
        "idField": "$.sessions[*].id",
        "itemSchema": {"content": "text"},
    }
    dataset = opened(tmp_path, [item(sessions=sessions, never=["b", "z"])], {"context": context, "forbidden": "never"})
    question = dataset.questions[0]
    assert question.forbidden == (dataset.haystack(question.haystack).sessions[1].id,)
    assert any("must not be retrieved" in note and note.endswith(": 1") for note in dataset.notes)


@pytest.mark.parametrize(
    ("schema", "key"),
    [
        ({"answer": None}, '"answer"'),
        ({"rubric": "rubric", "answerMode": "any"}, "answerMode"),
        ({"rubric": "rubric", "answerMode": "all"}, "answerMode"),
        ({"answer": None, "mustContain": "yes", "answerMode": "all"}, "answerMode"),
        ({"choices": "options", "answerMode": "all"}, "answerMode"),
        ({"rubric": "$["}, "rubric"),
        (
            {"question": None, "answer": None, "rubric": "r", "questions": {"field": "quiz", "questionField": "q"}},
            "questions.rubricField",
        ),
        ({"question": None, "answer": None, "questions": {"field": "quiz", "questionField": "q"}}, '"answerField"'),
    ],
)
def test_contradicting_keys_are_errors(schema: dict[str, Any], key: str) -> None:
    with pytest.raises(BadInput) as raised:
        config(schema)
    assert key in str(raised.value)


@pytest.mark.parametrize(
    ("rubric", "rubric_item"),
    [
        ([], {}),
        (None, {}),
        ([["nested"]], {}),
        ([{"criterion": "x"}], {}),
        ([{"criterion": "x", "points": 0}], {"text": "criterion", "weight": "points"}),
        ([{"criterion": "x", "points": -1}], {"text": "criterion", "weight": "points"}),
        ([{"criterion": "x", "points": "1"}], {"text": "criterion", "weight": "points"}),
        ([{"criterion": "x"}], {"text": "criterion", "weight": "points"}),
    ],
)
def test_bad_rubrics_are_located(tmp_path: Path, rubric: Any, rubric_item: dict[str, str]) -> None:
    with pytest.raises(BadInput) as raised:
        opened(tmp_path, [item(rubric=rubric)], RUBRIC | {"rubricItem": rubric_item})
    assert "sample.json:" in str(raised.value)
