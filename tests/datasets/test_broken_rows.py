"""Rows of published data that cannot be read: what the error says, and how they are left out and counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command import Command

BROKEN = 3


def row(number: int, **changed: Any) -> dict[str, Any]:
    return {
        "id": f"r{number}",
        "ask": "Which colour?",
        "options": ["red", "green"],
        "right": "green",
        "talk": ["It is green."],
    } | changed


ROWS = [row(n) if n != BROKEN else row(n, options="[ERRORC]", right="[ERRORA]") for n in range(1, 6)]


def write(folder: Path, rows: Sequence[Any], name: str = "rows.json", **changed: Any) -> Path:
    """Write data and a config, and return the config."""
    lines = "\n".join(json.dumps(one) for one in rows)
    (folder / name).write_text(lines if name.endswith("l") else json.dumps(rows, indent=1), encoding="utf-8")
    config: dict[str, Any] = {
        "name": "rows",
        "data": {"type": "local", "path": f"./{name}"} | changed.pop("data", {}),
        "schema": {
            "itemId": "id",
            "question": "ask",
            "answer": "right",
            "choices": "options",
            "context": {"field": "talk"},
        }
        | changed,
        "evaluation": {"method": "exact-match"},
    }
    file = folder / "rows.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
def test_a_broken_row_is_named_and_the_error_says_how_to_leave_it_out(command: Command, name: str) -> None:
    file = write(command.folder, ROWS, name)
    done = command("data", "preview", str(file))
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert f"{name}:" in done.err
    assert '"[ERRORC]"' in done.err
    condition = "@.id != 'r3'"
    assert f'data.where: "{condition}"' in done.err
    read = command("data", "preview", str(write(command.folder, ROWS, name, data={"where": condition})), "--json").json
    assert read["counts"]["items"] == len(ROWS) - 1
    assert read["left_out"][0].endswith(": 1")
    assert "data.where" in command("validate", str(file)).out


def test_other_broken_rows_are_counted(command: Command) -> None:
    rows = [*ROWS, row(6, right=""), row(7), row(8, talk=[])]
    done = command("data", "preview", str(write(command.folder, rows)))
    assert done.code == 2
    assert '"[ERRORC]"' in done.err
    assert "2 other items" in done.err


@pytest.mark.parametrize("broken", [{"choices": "optoins", "answer": "rihgt"}, {"question": "aks"}])
def test_a_wrong_config_is_not_blamed_on_a_row(command: Command, broken: dict[str, Any]) -> None:
    done = command("data", "preview", str(write(command.folder, ROWS, **broken)))
    assert done.code == 2
    assert "data.where" not in done.err


def test_an_item_without_an_id_of_its_own_gets_the_form_of_a_condition(command: Command) -> None:
    done = command("data", "preview", str(write(command.folder, ROWS, itemId="@index")))
    assert done.code == 2
    assert "data.where" in done.err


@pytest.mark.parametrize(
    ("data", "questions", "left_out"),
    [
        ({"items": "$[?@.right != '[ERRORA]']"}, 4, "data.items: 1"),
        ({"items": "$[?@.right != '[ERRORA]' && @.id != 'r1']"}, 3, "data.items: 2"),
        ({"items": "$[?@.right != '[ERRORA]']", "where": "@.id != 'r1'"}, 3, "data.items: 1"),
    ],
)
def test_items_that_a_path_filters_out_are_counted(
    command: Command, data: dict[str, str], questions: int, left_out: str
) -> None:
    file = str(write(command.folder, ROWS, data=data))
    read = command("data", "preview", file, "--json").json
    assert read["counts"]["questions"] == questions
    assert any(note.endswith(left_out) for note in read["left_out"])
    assert left_out in command("validate", file).out


def test_questions_that_a_path_filters_out_are_counted(command: Command) -> None:
    items = [{"id": "i", "talk": ["It is green."], "quiz": ROWS}]
    questions = {
        "field": "$.quiz[?@.right != '[ERRORA]']",
        "questionField": "ask",
        "answerField": "right",
        "choicesField": "options",
    }
    file = write(command.folder, items, question=None, answer=None, choices=None, questions=questions)
    read = command("data", "preview", str(file), "--json").json
    assert read["counts"]["questions"] == len(ROWS) - 1
    assert any(note.endswith("schema.questions.field: 1") for note in read["left_out"])


@pytest.mark.parametrize("data", [{"items": "$[?@.right == 'blue']"}, {"where": "@.right == 'blue'"}])
def test_a_filter_that_leaves_nothing_is_an_error(command: Command, data: dict[str, str]) -> None:
    done = command("data", "preview", str(write(command.folder, ROWS, data=data)))
    assert done.code == 2
    assert f"data.{next(iter(data))}" in done.err


QUIZ = {"field": "quiz", "questionField": "ask", "answerField": "right", "choicesField": "options"}


@pytest.mark.parametrize(
    ("items", "schema", "key", "ids"),
    [
        ([row(1), row(1)], {}, "schema.itemId", ["1", "2"]),
        (
            [{"id": n, "talk": ["It is green."], "quiz": [row(1), row(2)]} for n in (7, 8)],
            {"question": None, "answer": None, "choices": None, "questions": QUIZ | {"idField": "id"}},
            "schema.questions.idField",
            ["7:q0", "7:q1", "8:q0", "8:q1"],
        ),
    ],
)
def test_a_duplicate_id_names_the_key_to_remove(
    command: Command, items: list[Any], schema: dict[str, Any], key: str, ids: list[str]
) -> None:
    file = write(command.folder, items, **schema)
    done = command("data", "preview", str(file))
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert f"remove {key}" in done.err
    assert "data.where" not in done.err
    config = yaml.safe_load(file.read_text("utf-8"))
    section = config["schema"]["questions"] if "questions" in key else config["schema"]
    del section[key.rpartition(".")[2]]
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    samples = command("data", "preview", str(file), "--samples", "9", "--json").json["samples"]
    assert [sample["id"] for sample in samples] == ids


def test_a_question_may_have_the_id_of_an_item(command: Command) -> None:
    items = [{"id": 1, "talk": ["It is green."], "quiz": [row(1, id=1), row(2, id=2)]}]
    questions = QUIZ | {"idField": "id"}
    file = write(command.folder, items, question=None, answer=None, choices=None, questions=questions)
    samples = command("data", "preview", str(file), "--json").json["samples"]
    assert [sample["id"] for sample in samples] == ["1", "2"]
