"""What `data preview` shows of each sample, and where it finds the data."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.cli.command import Command

ITEMS = [
    {
        "id": "i1",
        "talk": [{"nr": "t1", "says": "The first sprint ends on 29 March."}],
        "quiz": [
            {"ask": "When?", "points": ["states 29 March", "names the sprint"], "kind": "update", "proof": ["t1"]},
            {"ask": "What?", "points": ["names the sprint"], "kind": "fact", "proof": ["t1"], "level": "easy"},
        ],
    }
]
QUESTIONS = {
    "field": "quiz",
    "questionField": "ask",
    "rubricField": "points",
    "evidenceField": "proof",
    "categoryField": "kind",
    "labels": {"level": "level"},
}
CHOICES = {"field": "quiz", "questionField": "ask", "answerField": "right", "choicesField": "options"}


def write(command: Command, items: Any, questions: dict[str, Any], **schema: Any) -> None:
    (command.folder / "benchmarks/configs").mkdir(parents=True, exist_ok=True)
    config = {
        "name": "sprints",
        "data": {"type": "local", "path": "./elsewhere.json"},
        "schema": {
            "itemId": "id",
            "questions": questions,
            "context": {"field": "talk", "itemSchema": {"text": "says", "dialogId": "nr"}},
        }
        | schema,
        "evaluation": {"method": "llm-judge"},
    }
    (command.folder / "benchmarks/configs/sprints.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    (command.folder / "mine.json").write_text(json.dumps(items), encoding="utf-8")


@pytest.mark.parametrize("name", ["sprints", "benchmarks/configs/sprints.yaml"])
def test_data_in_another_place_is_previewed(command: Command, name: str) -> None:
    write(command, ITEMS, QUESTIONS, evidenceLevel="turn")
    assert command("data", "preview", name).code == 2
    done = command("data", "preview", name, "--data-file", "sprints=mine.json", "--json")
    assert done.code == 0, done.err
    assert done.json["counts"]["questions"] == 2


@pytest.mark.parametrize("given", ["other=mine.json", "mine.json", "sprints=none.json"])
def test_a_wrong_data_file_is_refused(command: Command, given: str) -> None:
    write(command, ITEMS, QUESTIONS, evidenceLevel="turn")
    done = command("data", "preview", "sprints", "--data-file", given)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert given.partition("=")[0] in done.err or "none.json" in done.err


def test_a_sample_shows_rubric_type_labels_and_evidence(command: Command) -> None:
    write(command, ITEMS, QUESTIONS, evidenceLevel="turn")
    arguments = ("data", "preview", "sprints", "--data-file", "sprints=mine.json")
    read = command(*arguments, "--json").json
    assert read["counts"]["rubric_items"] == 3
    first, second = read["samples"]
    assert (first["type"], first["rubric"], first["evidence"]) == ("update", ITEMS[0]["quiz"][0]["points"], ["t1"])
    assert (second["type"], second["labels"]) == ("fact", {"level": "easy"})
    text = command(*arguments).out
    assert "3 rubric items" in text
    assert '["states 29 March", "names the sprint"]' in text


def test_gold_answers_of_multiple_choice_are_right_choices(command: Command) -> None:
    quiz = [{"ask": "Which?", "options": ["red", "green"], "right": "green"}]
    write(command, [ITEMS[0] | {"quiz": quiz * 2}], CHOICES)
    read = command("data", "preview", "sprints", "--data-file", "sprints=mine.json", "--json").json
    assert read["counts"]["gold_answers"] == 2
    assert [sample["answers"] for sample in read["samples"]] == [["(b) green"]] * 2


def test_a_preview_without_samples_has_counts(command: Command) -> None:
    write(command, ITEMS, QUESTIONS, evidenceLevel="turn")
    read = command("data", "preview", "sprints", "--data-file", "sprints=mine.json", "--samples", "0", "--json").json
    assert read["counts"]["questions"] == 2
    assert read["samples"] == []


SESSIONS = [
    {
        "id": "i1",
        "log": [
            {"nr": "s1", "day": "2024-03-01", "mood": "calm", "lines": [{"says": "Mia has a cat."}], "ask": [
                {"q": "What has Mia?", "a": "a cat", "kind": 1}, {"q": "What has Leo?", "a": "a dog", "kind": 2}]},
            {"nr": "s2", "day": "2024-03-02", "place": "home", "lines": [{"says": "Leo has a dog."}], "ask": []},
        ],
    }
]  # fmt: skip
SESSION_QUESTIONS = {"field": "log[*].ask[*]", "questionField": "q", "answerField": "a", "categoryField": "kind"}
SESSION_CONTEXT = {"field": "log", "turnsField": "lines", "itemSchema": {"text": "says"}}


def left_out(command: Command, questions: dict[str, Any], **schema: Any) -> list[str]:
    """Return the notes of a preview, which `validate` has, too."""
    write(command, SESSIONS, questions, **schema)
    done = command("data", "preview", "sprints", "--data-file", "sprints=mine.json", "--json")
    assert done.code == 0, done.err
    (command.folder / "mine.json").rename(command.folder / "benchmarks/configs/elsewhere.json")
    shown = command("validate", "benchmarks/configs/sprints.yaml").out
    notes: list[str] = done.json["left_out"]
    assert all(note in shown for note in notes)
    return notes


@pytest.mark.parametrize(
    ("session_paths", "unread"),
    [
        ({}, {"nr", "day", "mood", "place"}),
        ({"sessionSchema": {"id": "nr", "date": "day"}}, {"mood", "place"}),
        ({"idField": "$.log[*].nr", "dateField": "log[*]['day']"}, {"mood", "place"}),
        ({"idField": "$..nr", "field": "log[?@.mood || @.place]"}, {"day"}),
    ],
)
def test_fields_of_sessions_that_no_path_reads_are_listed(
    command: Command, session_paths: dict[str, Any], unread: set[str]
) -> None:
    notes = left_out(command, SESSION_QUESTIONS, context=SESSION_CONTEXT | session_paths)
    [note] = [note for note in notes if "fields of sessions" in note]
    assert {name for name in SESSIONS[0]["log"][0] | SESSIONS[0]["log"][1] if f'"{name}"' in note} == unread


def test_fields_of_sessions_that_questions_read_are_not_listed(command: Command) -> None:
    labels = {"labels": {"mood": "@parent.mood", "place": "@parent['place']"}}
    session_schema = {"sessionSchema": {"id": "nr", "date": "day"}}
    notes = left_out(command, SESSION_QUESTIONS | labels, context=SESSION_CONTEXT | session_schema)
    assert not any("fields of sessions" in note for note in notes)


@pytest.mark.parametrize(("pattern", "matches"), [("*:q1", True), ("*_abs", False)])
def test_a_pattern_of_abstention_that_no_id_matches_is_noted(command: Command, pattern: str, matches: bool) -> None:
    notes = left_out(command, SESSION_QUESTIONS, context=SESSION_CONTEXT, abstention={"idPattern": pattern})
    assert any("schema.abstention.idPattern" in note for note in notes) != matches


def test_categories_that_no_question_has_are_noted(command: Command) -> None:
    write(command, SESSIONS, SESSION_QUESTIONS, context=SESSION_CONTEXT)
    file = command.folder / "benchmarks/configs/sprints.yaml"
    file.write_text(file.read_text() + "categories: {1: facts, 2: dogs, 3: birds, 4: fish}\n")
    read = command("data", "preview", "sprints", "--data-file", "sprints=mine.json", "--json").json
    [note] = [note for note in read["left_out"] if "(categories)" in note]
    assert [name in note for name in ('"1"', '"2"', '"3"', '"4"')] == [False, False, True, True]
