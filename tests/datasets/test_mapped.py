"""Every key of a mapping has its effect."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.conversation import Session
from memorybench.core.questions import Question
from tests.datasets.described import SCHEMA, item, opened

TALK = [{"role": "user", "text": "One."}, {"role": "assistant", "text": "Two."}]


def only(questions: tuple[Question, ...]) -> Question:
    (question,) = questions
    return question


def sessions(folder: Path, one: dict[str, Any], **context: Any) -> tuple[Session, ...]:
    made = opened(folder, [one], {"context": SCHEMA["context"] | context})
    return made.haystack(only(made.questions).haystack).sessions


def said(found: tuple[Session, ...]) -> list[list[str]]:
    return [[turn.content for turn in session.turns] for session in found]


def test_an_item_is_a_question_and_a_history(tmp_path: Path) -> None:
    made = opened(tmp_path, [item()])
    question = only(made.questions)
    assert (question.id, question.question, question.answers) == ("q1", "Which colour?", ("green",))
    (session,) = made.haystack(question.haystack).sessions
    assert session.id == "s1"
    assert session.turns[0].id == "s1:1"
    assert (session.turns[0].role, session.turns[0].content) == ("user", "The fence is green.")


@pytest.mark.parametrize(
    ("sessions_", "context", "expected"),
    [
        ([TALK, TALK[:1]], {}, [["One.", "Two."], ["One."]]),
        (TALK, {}, [["One.", "Two."]]),
        (TALK, {"idField": "$.sessions[*].role"}, [["One."], ["Two."]]),
        (["One.", "Two."], {}, [["One."], ["Two."]]),
        ([{"lines": TALK}, {"lines": TALK}], {"turnsField": "lines"}, [["One.", "Two."]] * 2),
        ([{"lines": TALK}], {"field": "$.sessions[*].lines"}, [["One.", "Two."]]),
        ({"s_2": TALK[1:], "s_1": TALK[:1], "s_1_date": "x"}, {"type": "object", "sessionPattern": "s_*"},
         [["One."], ["Two."]]),
        ("One.\n\nTwo.", {"type": "string"}, [["One.", "Two."]]),
    ],
)  # fmt: skip
def test_shapes_of_a_context(tmp_path: Path, sessions_: Any, context: dict[str, Any], expected: Any) -> None:
    assert said(sessions(tmp_path, item(sessions=sessions_), **context)) == expected


def test_sessions_of_an_object_keep_their_keys_and_find_their_dates(tmp_path: Path) -> None:
    context = {"type": "object", "sessionPattern": "s_*", "datePattern": "s_*_on"}
    talk = {"s_10": TALK, "s_2": TALK, "s_2_on": "2024-05-01", "s_10_on": "2024-05-02", "s_99_on": "2024-05-03"}
    found = sessions(tmp_path, item(sessions=talk), **context)
    assert [(session.id, session.at) for session in found] == [
        ("s_2", datetime(2024, 5, 1)),
        ("s_10", datetime(2024, 5, 2)),
    ]


def test_dates_and_ids_may_be_in_separate_lists_or_in_the_sessions(tmp_path: Path) -> None:
    beside = item(sessions=[TALK, TALK], days=["2024-05-01", "2024-05-02"])
    within = item(sessions=[{"lines": TALK, "day": "2024-05-01"}, {"lines": TALK, "day": "2024-05-02"}])
    for one, context in (
        (beside, {"dateField": "days"}),
        (within, {"dateField": "$.sessions[*].day", "turnsField": "lines"}),
    ):
        assert [session.at for session in sessions(tmp_path, one, **context)] == [
            datetime(2024, 5, 1),
            datetime(2024, 5, 2),
        ]


def test_a_turn_has_speaker_date_id_and_caption(tmp_path: Path) -> None:
    turn = {"n": 7, "who": "Ana", "text": "Look!", "picture": "a green fence", "t": 1_700_000_000}
    schema = {"content": "text", "speaker": "who", "dialogId": "n", "caption": "picture", "date": "t"}
    (session,) = sessions(tmp_path, item(sessions=[[turn]]), itemSchema=schema)
    (read,) = session.turns
    assert (read.id, read.speaker, read.role) == ("7", "Ana", "user")
    assert read.content == "Look! [shares a photo: a green fence]"
    assert read.at == datetime.fromtimestamp(1_700_000_000, UTC)


def test_gold_never_reaches_a_provider(tmp_path: Path) -> None:
    marked = [{"role": "user", "text": "The fence is green.", "has_answer": True}]
    other = [{"role": "user", "text": "Hello.", "has_answer": False}]
    made = opened(
        tmp_path,
        [item(id="q1_abs", sessions=[other, marked], ids=["5", "answer_7"], gold=["answer_7"])],
        {
            "evidence": "gold",
            "abstention": {"idPattern": "*_abs*"},
            "context": {
                "field": "sessions",
                "idField": "ids",
                "itemSchema": {"content": "text", "role": "role", "evidence": "has_answer"},
            },
        },
        ingestion={"preprocessing": {"formatTemplate": "${sessionId} ${session}"}},
    )
    question = only(made.questions)
    assert question.abstain
    assert (question.gold_sessions, question.gold_turns) == (("s2",), ("s2:1",))
    seen = json.dumps(made.haystack(question.haystack).plain())
    assert not any(mark in seen for mark in ("answer_7", "has_answer", "_abs"))


def test_gold_marks_are_evidence_without_ids(tmp_path: Path) -> None:
    marked = [{"role": "user", "text": "Hello."}, {"role": "user", "text": "It is green.", "gold": True}]
    context = SCHEMA["context"] | {"itemSchema": {"content": "text", "evidence": "gold"}}
    question = only(opened(tmp_path, [item(sessions=[marked])], {"context": context}).questions)
    assert (question.gold_sessions, question.gold_turns) == (("s1",), ("s1:2",))


def test_both_copies_of_a_repeated_gold_session_are_gold(tmp_path: Path) -> None:
    twice = item(sessions=[TALK, TALK, TALK], ids=["a", "b", "a"], gold=["a"])
    made = opened(tmp_path, [twice], {"evidence": "gold", "context": SCHEMA["context"] | {"idField": "ids"}})
    assert only(made.questions).gold_sessions == ("s1", "s3")
    assert made.notes == ("histories that repeat a session id: 1", "sessions without a date: 3")


def test_many_questions_on_one_history(tmp_path: Path) -> None:
    quiz = [{"q": "A?", "a": "one", "c": 1}, {"q": "B?", "a": [1, True], "c": "2", "day": "2024-05-01", "name": "b"}]
    schema = {
        "question": None,
        "answer": None,
        "questions": {
            "field": "quiz",
            "questionField": "q",
            "answerField": "a",
            "categoryField": "c",
            "dateField": "day",
        },
    }
    made = opened(tmp_path, [item(quiz=quiz, lang="en")], schema | {"metadata": {"language": "lang"}},
                  categories={"1": "easy"})  # fmt: skip
    first, second = made.questions
    assert (first.id, second.id, first.haystack, second.haystack) == ("q1:q0", "q1:q1", "q1", "q1")
    assert (first.labels, second.kind) == ({"question_type": "easy", "language": "en"}, "2")
    assert second.answers == ("1", "yes")
    assert second.asked_at == datetime(2024, 5, 1)
    assert "questions of a category without a name: 1" in made.notes
    schema["questions"]["idField"] = "name"  # type: ignore[index]
    named = opened(tmp_path, [item(quiz=quiz[1:])], schema)
    assert only(named.questions).id == "b"


def test_an_unanswerable_question_needs_no_gold(tmp_path: Path) -> None:
    one = item(kind="trick", adversarial_answer="blue")
    del one["answer"]
    made = opened(tmp_path, [one], {"abstention": {"categories": ["trick"]}, "metadata": {"questionType": "kind"}})
    question = only(made.questions)
    assert question.abstain
    assert question.answers == ()


@pytest.mark.parametrize(
    ("choices", "answer"),
    [
        (["red", "green"], "green"),
        (["red", "green"], "B"),
        (["red", "green"], "(b)"),
        ({"a": "red", "b": "green"}, "b"),
        (["(a) red", "(b) green"], "(b)"),
    ],
)
def test_multiple_choice(tmp_path: Path, choices: Any, answer: Any) -> None:
    made = opened(tmp_path, [item(options=choices, answer=answer)], {"choices": "options"})
    question = only(made.questions)
    assert question.question == "Which colour?\n(a) red\n(b) green"
    assert question.answers == ("(b) green", "green", "(b)")


def test_a_question_without_choices_is_open(tmp_path: Path) -> None:
    assert only(opened(tmp_path, [item()], {"choices": "options"}).questions).question == "Which colour?"


def test_a_format_template_renders_a_session_as_text(tmp_path: Path) -> None:
    turns = [{"who": "Ana", "text": "a < b & c", "url": "x"}, {"who": "Ben", "text": ""}]
    made = opened(
        tmp_path,
        [item(sessions=[turns], days=["2024-05-01"])],
        {"context": {"field": "sessions", "dateField": "days", "itemSchema": {"content": "text", "speaker": "who"}}},
        ingestion={
            "preprocessing": {
                "escapeHtml": True,
                "removeFields": ["url"],
                "formatTemplate": "${date}|${sessionDate}|${sessionId}|${speakers}|${dialogue}|${session}",
            }
        },
    )
    (session,) = made.haystack("q1").sessions
    date, again, id, speakers, dialogue, raw = (session.text or "").split("|")
    assert date == again == "2024-05-01T00:00:00"
    assert (id, speakers, dialogue) == ("s1", "Ana", "Ana: a &lt; b &amp; c")
    assert json.loads(raw) == [{"who": "Ana", "text": "a &lt; b &amp; c"}]
    assert session.turns[0].content == "a &lt; b &amp; c"
    assert made.notes == (
        "empty turns, skipped: 1",
        "questions without evidence, which have no retrieval figures: 1",
    )


def test_a_removed_field_is_not_read(tmp_path: Path) -> None:
    turns = [{"who": "Ana", "text": "Hi."}]
    context = SCHEMA["context"] | {"itemSchema": {"content": "text", "speaker": "who"}}
    hidden = {"preprocessing": {"removeFields": ["who"]}}
    made = opened(tmp_path, [item(sessions=[turns])], {"context": context}, ingestion=hidden)
    assert made.haystack("q1").sessions[0].turns[0].speaker is None


def test_unknown_evidence_ids_are_dropped_and_counted(tmp_path: Path) -> None:
    talk = [{"text": "One.", "n": "D1:1"}, {"text": "Two.", "n": "D1:2"}]
    schema = {
        "evidence": "proof",
        "evidenceLevel": "turn",
        "evidenceFormat": "dialog-ids",
        "context": {"field": "sessions", "itemSchema": {"content": "text", "dialogId": "n"}},
    }
    made = opened(tmp_path, [item(sessions=[talk], proof=["D1:1; D:1:02", "D1:9", "D"])], schema)
    question = only(made.questions)
    assert question.gold_turns == ("D1:1", "D1:2")
    assert question.gold_sessions == ("s1",)
    assert {"evidence ids with another spelling, repaired: 1", "unknown evidence ids, dropped: 2"} <= set(made.notes)


def test_a_label_selects_the_questions_of_the_official_average(tmp_path: Path) -> None:
    def one(id: str, role: str) -> dict[str, Any]:
        return item(id=id, sessions=[[{"role": role, "text": "It is green.", "gold": True}]])

    made = opened(
        tmp_path,
        [one("a", "user"), one("b", "assistant"), one("c_abs", "user")],
        {
            "abstention": {"idPattern": "*_abs"},
            "officialRetrieval": {"goldTurnRole": "user"},
            "context": {"field": "sessions", "itemSchema": {"content": "text", "role": "role", "evidence": "gold"}},
        },
    )
    counted = [question.labels["official_retrieval"] for question in made.questions]
    assert counted == ["counted by the authors", "left out by the authors", "left out by the authors"]


def test_a_new_key_does_not_change_the_fingerprints_of_configs_without_it(tmp_path: Path) -> None:
    """Otherwise, no earlier run could be resumed. A key that is new belongs to `_LATER_KEYS`."""
    assert opened(tmp_path, [item()]).fingerprint == "f0c4e311a9eea329fc27072ed8559a40"
    questions = {"field": "quiz", "questionField": "q", "answerField": "a"}
    schema = {"question": None, "answer": None, "questions": questions}
    many = item(quiz=[{"q": "Which colour?", "a": "green"}])
    assert opened(tmp_path, [many], schema).fingerprint == "2c3e1c9c33cc9410c647bb8f181a92fe"


def test_the_fingerprint_depends_on_the_data_and_the_mapping(tmp_path: Path) -> None:
    first = opened(tmp_path, [item()])
    assert first.fingerprint == opened(tmp_path, [item()]).fingerprint
    assert first.fingerprint != opened(tmp_path, [item()], {"answer": "$.answer"}).fingerprint
    escaped = {"preprocessing": {"escapeHtml": True}}
    assert first.fingerprint != opened(tmp_path, [item()], ingestion=escaped).fingerprint


@pytest.mark.parametrize("path", ["@stem", "place | @stem", "place|@stem"])
def test_the_name_of_the_file_may_be_a_fallback(tmp_path: Path, path: str) -> None:
    dataset = opened(tmp_path, [item()], {"metadata": {"place": path}})
    assert dataset.questions[0].labels["place"] == "sample"
