"""Benchmark configs and data that can be read in two ways: refused, counted, or read as the documentation says."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.cli.command import Command, Said

SCHEMA: dict[str, Any] = {"itemId": "id", "question": "q", "answer": "gold", "context": {"field": "log"}}
SESSIONS = {"field": "log", "sessionSchema": {"id": "n"}, "itemSchema": {"text": "t"}}
EVALUATION = {"method": "exact-match"}


def row(**changed: Any) -> dict[str, Any]:
    return {"id": "i1", "q": "Who?", "gold": "Ann", "log": ["Ann came."]} | changed


def preview(
    command: Command, rows: Any, schema: dict[str, Any] | None = None, *, file: str = "d.json", **sections: Any
) -> Said:
    """Return what `data preview` says about rows and a config of a few lines."""
    config = {"name": "sample", "data": {"type": "local", "path": f"./{file}"}, "schema": SCHEMA | (schema or {})}
    config |= {"evaluation": EVALUATION} | sections
    (command.folder / "sample.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    (command.folder / file).write_text(rows if isinstance(rows, str) else json.dumps(rows), encoding="utf-8")
    return command("data", "preview", "sample.yaml", "--json", "--samples", "20")


def refusal(said: Said, *parts: str) -> None:
    """Check that a config or file was refused, in a message with these parts."""
    assert said.code == 2, said.out
    for part in parts:
        assert part in said.err, said.err


def test_memories_of_other_items_of_a_file_are_not_reused(command: Command) -> None:
    def rows(place: str) -> list[dict[str, Any]]:
        return [row(id=n, q=f"Where is pot {n}?", log=[f"Pot {n} is at {place} {n}."]) for n in range(3)]

    def stages(items: str, *arguments: str) -> dict[str, int]:
        data = {"type": "local", "path": "./d.json", "items": items}
        assert preview(command, {"train": rows("Porto"), "test": rows("Faro")}, data=data).code == 0
        said = command(
            "eval", "--benchmarks", "sample", "--config-dir", ".", "--providers", "bm25", "--json", *arguments
        )
        assert said.code == 0, said.err
        return {stage["name"]: stage["reused"] for stage in said.json["circumstances"]["stages"]}

    stages("train", "--run-id", "a")
    assert all(stages("train", "--run-id", "b", "--reuse", "a").values())
    assert not any(stages("test", "--run-id", "c", "--reuse", "a").values())


@pytest.mark.parametrize("key", ["evidence", "choices", "rubric", "forbidden"])
def test_keys_of_one_question_are_refused_beside_a_list_of_questions(command: Command, key: str) -> None:
    questions = {"field": "qa", "questionField": "q", "answerField": "gold"}
    rows = [row(qa=[{"q": "Who?", "gold": "x"}], more=["x", "y"])]
    schema = {"question": None, "answer": None, "questions": questions, key: "more"}
    refusal(preview(command, rows, schema), f"schema.{key}", f"questions.{key}Field")


@pytest.mark.parametrize(
    ("kind", "key"),
    [("object", "dateField"), ("object", "idField"), *(("string", f"{key}Field") for key in ("date", "id", "turns"))],
)
def test_fields_of_sessions_are_refused_where_the_type_does_not_read_them(
    command: Command, kind: str, key: str
) -> None:
    context = {"field": "log", "type": kind, key: "more"} | ({"sessionPattern": "s_*"} if kind == "object" else {})
    rows = [row(log={"s_1": ["Ann came."]} if kind == "object" else "Ann came.", more=["2024-01-01"])]
    refusal(preview(command, rows, {"context": context}), f"context.{key}", f"type: {kind}")


def gold_of(said: Said) -> list[list[str]]:
    assert said.code == 0, said.err
    return [sample["answers"] for sample in said.json["samples"]]


def notes_of(said: Said) -> str:
    assert said.code == 0, said.err
    return "\n".join(said.json["left_out"])


def test_a_gold_label_that_is_the_text_of_another_choice_is_the_label(command: Command) -> None:
    rows = [
        row(id=1, gold="1", opt={"1": "2", "2": "1", "3": "0"}),
        row(id=2, gold="A", opt=["A. B", "B. A"]),
        row(id=3, gold="A", opt=["C", "B", "A"]),
    ]
    said = preview(command, rows, {"choices": "opt"})
    assert gold_of(said) == [["(1) 2"], ["(A) B"], ["(c) A"]]
    assert "read as the label: 2" in notes_of(said)


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("opt[*].text", [{"label": "B", "text": "blue"}, {"label": "A", "text": "red"}]),
        ("opt.*", {"B": "blue", "A": "red"}),
    ],
)
def test_a_gold_label_is_refused_if_the_path_leaves_labels_in_another_order_out(
    command: Command, path: str, options: Any
) -> None:
    refusal(preview(command, [row(gold="A", opt=options)], {"choices": path}), "[0].gold", "label")
    assert gold_of(preview(command, [row(gold="red", opt=options)], {"choices": path})) == [["(b) red"]]
    chosen = {"choices": "opt[*].text", "answer": "opt[?@.label == $.gold].text"}
    if isinstance(options, list):
        assert gold_of(preview(command, [row(gold="A", opt=options)], chosen)) == [["(b) red"]]


def test_labels_in_order_beside_the_texts_of_choices_are_those_shown(command: Command) -> None:
    options = [{"label": "A", "text": "blue"}, {"label": "B", "text": "red"}]
    assert gold_of(preview(command, [row(gold="B", opt=options)], {"choices": "opt[*].text"})) == [["(b) red"]]


NUMBERED = {"evidence": "ev", "evidenceLevel": "session"}


def test_numbers_of_sessions_need_a_format(command: Command) -> None:
    rows = [row(ev=[1], log=[["Ann came."], ["Bob came."]])]
    refusal(preview(command, rows, NUMBERED), "[0].ev", "schema.evidenceFormat: numbers-from-0 or numbers-from-1")
    for first, session in ((0, "s2"), (1, "s1")):
        said = preview(command, rows, NUMBERED | {"evidenceFormat": f"numbers-from-{first}"})
        assert said.json["samples"][0]["evidence"] == [session]


@pytest.mark.parametrize(
    ("keys", "first", "session"),
    [((2, 3, 4), 1, "session_2"), ((1, 2), 1, "session_2"), ((0, 1, 2), 0, "session_2"), ((1, 2), 0, None),
     ((0, 2), 1, None)],
)  # fmt: skip
def test_sessions_in_an_object_have_the_numbers_of_their_keys(
    command: Command, keys: tuple[int, ...], first: int, session: str | None
) -> None:
    context = {"field": "log", "type": "object", "sessionPattern": "session_*"}
    rows = [row(ev=[2], log={f"session_{key}": [f"Turn {key}."] for key in keys})]
    said = preview(command, rows, NUMBERED | {"context": context, "evidenceFormat": f"numbers-from-{first}"})
    if session is None:
        refusal(said, "d.json", f"schema.evidenceFormat: numbers-from-{1 - first}")
    else:
        assert said.json["samples"][0]["evidence"] == [session]


@pytest.mark.parametrize("gold", ["['Porto' 'Lisbon']", "['a cat'\n 'a dog']", "[('Porto', 'x''y')]"])
def test_texts_without_a_comma_are_not_joined(command: Command, gold: str) -> None:
    refusal(preview(command, [row(gold=gold)], {"parse": {"gold": "python"}}), "[0].gold", "comma")


@pytest.mark.parametrize("gold", ["['Porto', 'it''s']", "['', '', 'it\\'s']", "[\"'a' 'b'\"]", "['''a''', r'b']"])
def test_quotes_within_a_text_are_not_two_texts(command: Command, gold: str) -> None:
    said = preview(command, [row(gold=gold)], {"parse": {"gold": "python"}})
    assert said.code == (2 if "it''s" in gold else 0), said.err


@pytest.mark.parametrize("format", ["csv", "json", "python"])
def test_duplicate_keys_within_a_text_are_refused(command: Command, format: str) -> None:
    history = '{"s_1": ["Bob came."], "s_1": ["Ann came."]}'
    schema: dict[str, Any] = {"context": {"field": "log", "type": "object", "sessionPattern": "s_*"}}
    if format == "csv":
        rows = 'id,q,gold,log\n1,Who?,Ann,"' + history.replace('"', '""') + '"\n'
        refusal(preview(command, rows, schema, file="d.csv"), "d.csv:2", "log", 'duplicate key "s_1"')
        return
    schema["parse"] = {"log": format}
    refusal(preview(command, [row(log=history)], schema), "[0].log", 'duplicate key "s_1"')


@pytest.mark.parametrize(
    ("key", "path"), [("text", "$['criterion','detail']"), ("weight", "points[*]"), ("text", "$..detail")]
)
def test_several_matches_in_an_item_of_a_rubric_are_refused(command: Command, key: str, path: str) -> None:
    item = {"criterion": "names Ann", "detail": "the nurse", "points": [2, 5], "more": {"detail": "lost"}}
    schema = {"answer": None, "rubric": "rubric", "rubricItem": {"text": "criterion", key: path}}
    said = preview(command, [row(rubric=[item])], schema, evaluation={"method": "llm-judge"})
    refusal(said, "[0].rubric", f"schema.rubricItem.{key}", "matches 2 values")


def test_data_files_in_subfolders_are_read_or_listed(command: Command) -> None:
    (command.folder / "data/sub/deep").mkdir(parents=True)
    for name in ("data/a.json", "data/sub/b.json", "data/sub/deep/c.json"):
        (command.folder / name).write_text(json.dumps([row(id=name)]))
    said = preview(command, [], data={"type": "local", "path": "./data"})
    assert said.json["counts"]["items"] == 1
    assert "sub/b.json" in notes_of(said)
    assert "sub/deep/c.json" in notes_of(said)
    said = preview(command, [], data={"type": "local", "path": "./data", "files": ["**/*.json"]})
    assert said.json["counts"]["items"] == 3
    assert "sub/b.json" not in notes_of(said)


@pytest.mark.parametrize("empty", ["", " ", [], None])
def test_an_empty_value_falls_back_to_the_next_path(command: Command, empty: Any) -> None:
    schema = {
        "answer": "gold | alt",
        "evidence": "ev | ev2",
        "context": {"field": "log", "sessionSchema": {"id": "n"}, "itemSchema": {"content": "t | u"}},
    }
    log = [{"n": "x", "t": "Bob came."}, {"n": "y", "t": empty, "u": "Ann came."}]
    said = preview(command, [row(gold=empty, alt="Ann", ev=empty, ev2=["y"], log=log)], schema)
    assert gold_of(said) == [["Ann"]]
    (sample,) = said.json["samples"]
    assert (sample["evidence"], sample["last_turn"]) == (["s2"], "Ann came.")
    said = preview(command, [row(gold=0, alt="Ann", ev="x", ev2=["y"], log=log)], schema)
    assert gold_of(said) == [["0"]]
    assert said.json["samples"][0]["evidence"] == ["s1"]


TURNS = {"field": "log", "sessionSchema": {"id": "n"}, "itemSchema": {"text": "t"}}


@pytest.mark.parametrize(
    ("schema", "sections", "noted", "name"),
    [
        ({"abstention": {"categories": ["nope"]}}, {}, "schema.abstention.categories", "fact"),
        ({}, {"questionTypes": [{"name": "nope"}]}, "questionTypes", "fact"),
        (
            {},
            {"evaluation": EVALUATION | {"answerPrompt": {"byQuestionType": {"nope": "${question}"}}}},
            "byQuestionType",
            "fact",
        ),
        ({}, {"ingestion": {"preprocessing": {"removeFields": ["nope"]}}}, "removeFields", "secret"),
        ({"context": TURNS | {"sessionSchema": {"id": "nope"}}}, {}, "schema.context.sessionSchema.id", "n"),
        ({}, {"data": {"type": "local", "path": "./d.json", "where": "@.nope != 'x'"}}, "data.where", "id"),
    ],
)
def test_names_that_the_data_does_not_have_are_noted(
    command: Command, schema: dict[str, Any], sections: dict[str, Any], noted: str, name: str
) -> None:
    rows = [row(type="fact", log=[{"n": "x", "t": "Ann came.", "secret": 1}])]
    schema = {"context": TURNS, "metadata": {"questionType": "type"}} | schema
    (note,) = [one for one in notes_of(preview(command, rows, schema, **sections)).splitlines() if "nope" in one]
    assert noted in note
    known = json.loads(json.dumps({"schema": schema} | sections).replace("nope", name))
    assert noted not in notes_of(preview(command, rows, known.pop("schema"), **known))


@pytest.mark.parametrize(
    ("schema", "evaluation", "key"),
    [
        ({"rubricItem": {"text": "t"}}, {}, "schema.rubricItem"),
        ({}, {"partialCredit": False}, "evaluation.partialCredit"),
        ({}, {"method": "contains", "f1Rule": "locomo"}, "evaluation.f1Rule"),
    ],
)
def test_keys_without_effect_are_refused(
    command: Command, schema: dict[str, Any], evaluation: dict[str, Any], key: str
) -> None:
    refusal(preview(command, [row()], schema, evaluation=EVALUATION | evaluation), "sample.yaml:", key)
