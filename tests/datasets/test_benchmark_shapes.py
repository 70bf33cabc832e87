"""The examples of docs/benchmark-shapes.md, run as a reader would, and bad variants of them."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic.alias_generators import to_camel

import memorybench
from memorybench.catalog import catalog as catalogue
from memorybench.datasets import config as keys
from tests.cli.command import Command

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "benchmark-shapes.md").read_text("utf-8")
EXAMPLES = re.findall(r"^\$ memorybench (data preview (\S+).*?)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(command: Command) -> Path:
    """The working folder, with the files of the page in it."""
    for name, text in re.findall(r"^`(\S+)`\n```\w+\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        file = command.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return command.folder


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("arguments", "name", "expected"), EXAMPLES, ids=[name for _, name, _ in EXAMPLES])
def test_every_example_is_read_as_shown(command: Command, arguments: str, name: str, expected: str) -> None:
    done = command(*arguments.split())
    assert done.code == 0, done.err
    assert done.out.startswith(expected)
    assert expected.splitlines()[1] in command("validate", f"benchmarks/configs/{name}.yaml").out
    assert command("eval", "--benchmarks", name, "--providers", "bm25", "--run-id", "r").code == 0
    assert {outcome.status for outcome in memorybench.load_run("r").outcomes()} == {"scored"}


def preview(command: Command, name: str) -> Any:
    done = command("data", "preview", name, "--json")
    assert done.code == 0, done.err
    return done.json


@pytest.mark.usefixtures("folder")
def test_turns_in_lists_within_lists_are_all_read(command: Command) -> None:
    sample = preview(command, "chats")["samples"][0]
    assert (sample["turns"], sample["sessions"], sample["evidence"]) == (4, 2, ["1", "3"])
    edit(command.folder / "benchmarks/configs/chats.yaml", "turnsField: turns", "turnsField: $.turns[*][*]")
    assert preview(command, "chats")["samples"][0] == sample


def test_a_filter_gives_each_item_its_own_part_of_a_joined_history(command: Command) -> None:
    """The memory was named after the join, so that the second person got the notes of the first."""
    place = command.folder / "benchmarks/configs"
    (place / "datasets").mkdir(parents=True, exist_ok=True)
    people = [{"id": name, "q": "?", "a": "x"} for name in ("ann", "bob")]
    notes = [{"nr": f"n-{name}", "owner": name, "body": f"{name} writes"} for name in ("ann", "bob")]
    (place / "datasets/q.json").write_text(json.dumps(people))
    (place / "datasets/n.json").write_text(json.dumps(notes))
    context = {"field": "notes[?@.owner == $.id]", "sessionSchema": {"id": "nr"}, "itemSchema": {"content": "body"}}
    data = {"type": "local", "path": "./datasets", "files": ["q.json"], "join": {"notes": {"file": "n.json"}}}
    schema = {"itemId": "id", "question": "q", "answer": "a", "context": context}
    config = {"name": "filtered", "data": data, "schema": schema, "evaluation": {"method": "exact-match"}}
    (place / "filtered.yaml").write_text(json.dumps(config))
    assert [one["first_turn"] for one in preview(command, "filtered")["samples"]] == ["ann writes", "bob writes"]


@pytest.mark.usefixtures("folder")
def test_all_texts_of_a_message_are_read_and_pictures_are_counted(command: Command) -> None:
    read = preview(command, "album")
    assert read["samples"][0]["first_turn"] == "Look!\n\nA cake on the table."
    assert any("pictures" in note and note.endswith(" 2") for note in read["left_out"])


@pytest.mark.usefixtures("folder")
def test_fields_that_no_path_reads_are_listed(command: Command) -> None:
    edit(command.folder / "benchmarks/configs/chats.yaml", "    labels: {level: level}", "    #")
    notes = preview(command, "chats")["left_out"]
    assert any("of questions" in note and '"level"' in note for note in notes)
    assert any("of sessions" in note and note.endswith(': "batch"') for note in notes)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["persona", "people", "years", "coach", "desk", "shelf"])
def test_fields_of_sessions_that_are_read_are_not_listed(command: Command, name: str) -> None:
    """By `turnsField`, `sessionSchema`, `questions.field` and `@parent`."""
    assert not any("of sessions" in note for note in preview(command, name)["left_out"])


@pytest.mark.usefixtures("folder")
def test_validate_names_a_joined_file_that_is_missing(command: Command) -> None:
    """It said that the data was not found, and named no file."""
    (command.folder / "benchmarks/datasets/chats/1/chat.json").unlink()
    done = command("validate", "benchmarks/configs/chats.yaml")
    assert (done.code, "1/long_chat.json" in done.err, "data.join.chat" in done.err) == (2, True, True)
    shutil.rmtree(command.folder / "benchmarks/datasets/chats")
    done = command("validate", "benchmarks/configs/chats.yaml")
    assert (done.code, "datasets/chats" in done.out) == (0, True)


def test_all_captions_of_a_turn_are_read(command: Command) -> None:
    log = [{"c": "Look!", "photos": ["a cake", "a dog"]}, {"c": "Bye.", "photos": []}]
    context = {"field": "log", "itemSchema": {"content": "c", "caption": "photos"}}
    write_mapped(command, "photos", [{"q": "?", "a": "a dog", "log": log}], context=context)
    assert "a cake" in preview(command, "photos")["samples"][0]["first_turn"]
    assert "a dog" in preview(command, "photos")["samples"][0]["first_turn"]


def test_every_key_of_the_language_is_in_an_example() -> None:
    texts = [text for page in DOCS.glob("*.md") for text in yaml_blocks(page.stem) if "schema:" in text]
    texts += [file.read_text("utf-8") for file in (Path(catalogue.__file__).parent / "benchmarks").glob("*.yaml")]
    written = {key for text in texts for key in _keys(yaml.safe_load(text))}
    sections = (
        keys.Data,
        keys.Join,
        keys.SchemaMapping,
        keys.Questions,
        keys.Context,
        keys.SessionSchema,
        keys.ItemSchema,
        keys.RubricItemSchema,
    )
    known = {to_camel(name) for section in sections for name in section.model_fields}
    # of the data's origin, documented with `data pull`
    assert known - written <= {"localPath", "idField"}


def test_every_scoring_key_is_in_an_example_that_a_test_runs() -> None:
    examples = [
        yaml.safe_load(text) for page in ("benchmark-shapes", "adding-a-benchmark") for text in yaml_blocks(page)
    ]
    written = {key for example in examples for key in _keys(example)}
    known = {to_camel(name) for section in (keys.SchemaMapping, keys.Questions) for name in section.model_fields}
    scoring = {name for name in known if re.match("answer|rubric|must|forbidden|choices|cluster|labels", name)}
    assert scoring | {"text", "weight", "partialCredit"} <= written
    modes = {example.get("schema", {}).get("answerMode") for example in examples}
    assert modes == {None, "any", "all", "rubric"}


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_the_examples_of_right_answers_are_read_as_described(command: Command) -> None:
    cases = {}
    for name in ("cities", "addresses", "plans", "advice", "tact"):
        assert command("eval", "--benchmarks", name, "--providers", "bm25", "--run-id", name).code == 0
        for row in json.loads(command("export", name, "--format", "json").out):
            cases[row["item"]] = command("show", name, row["item"], "--json").json["case"] | {"row": row}
    assert cases["c1"]["row"]["expected"] == "Porto + Lisbon", "both are needed"
    assert (cases["a1"]["must_contain"], cases["a1"]["must_not_contain"]) == (["Bergen"], ["Oslo", "Malmö"])
    assert (cases["a1"]["row"]["gold_sessions"], cases["a1"]["forbidden"]) == (["s2"], ["s1"])
    assert cases["p1"]["row"]["rubric_weights"] == [2, 1]
    assert cases["v1:q0"]["row"]["rubric_items"] == ["offers soup", "avoids nuts"]
    assert cases["v1:q1"]["must_contain"] == ["nuts"]
    (private,) = cases["x1"]["row"]["rubric_items"]
    assert private.endswith(":\n- Mia has debts.\n- Mia likes tea.")
    assert len(cases["x2"]["row"]["rubric_items"]) == 2


def yaml_blocks(page: str) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", (DOCS / f"{page}.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)


def _keys(value: Any) -> set[str]:
    if not isinstance(value, dict):
        return set()
    return {str(key) for key in value} | {key for inner in value.values() for key in _keys(inner)}


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.usefixtures("folder")
def test_without_answers_all_that_is_not_gold_is_noise(command: Command) -> None:
    document = command("eval", "--benchmarks", "shelf", "--providers", "bm25", "--run-id", "r", "--json").json
    (overall,) = (one for one in document["results"] if not one["group"])
    drift = next(one for one in overall["measures"] if one["name"] == "drift")
    shown = [command("show", "r", id, "--json").json for id in ("q1", "q2")]
    assert [one["case"]["forbidden"] for one in shown] == [["s1", "s3"], ["s2"]]
    assert (drift["n"], document["counts"]["scored"]) == (2, 2)
    assert "accuracy" not in {one["name"] for one in overall["measures"]}
    left_out = preview(command, "shelf")["left_out"]
    assert any("data.where" in note and note.endswith(" 1") for note in left_out)
    assert (
        preview(command, "shelf")["samples"][0]["last_turn"] == "More plates\n\nThe plates for guests are in the box."
    )


@pytest.mark.usefixtures("folder")
def test_an_answering_model_is_refused_where_there_are_no_answers(command: Command) -> None:
    run = ("eval", "--providers", "bm25", "--answering-model", "scripted/silence", "--benchmarks")
    for names in (["shelf"], ["shelf", "people"]):
        done = command(*run, *names)
        assert (done.code, "--answering-model" in done.err, "shelf" in done.err) == (2, True, True)


@pytest.mark.usefixtures("folder")
def test_questions_along_the_way_see_what_was_added_by_then(command: Command) -> None:
    run = ("eval", "--benchmarks", "years", "--providers", "full-context", "bm25", "--run-id", "r", "--json")
    document = command(*run, "--answering-model", "scripted/silence").json
    assert document["counts"]["scored"] == 6
    seen = {
        id: next(trial for trial in command("show", "r", id, "--json", "--full").json["trials"] if "full" in str(trial))
        for id in ("ida:q0", "ida:q1", "ida:q2")
    }
    prompts = [
        next(one["inputs"]["prompt"] for one in trial["steps"] if one["name"] == "answer") for trial in seen.values()
    ]
    assert ["Bergen" in prompt for prompt in prompts] == [False, True, True]
    outcomes = list(memorybench.load_run("r").outcomes())
    assert len(outcomes) == 6


# formats of the same data


@pytest.mark.usefixtures("folder")
def test_a_question_that_is_a_turn_is_asked_before_its_session_is_added(command: Command) -> None:
    first, second = preview(command, "coach")["samples"]
    assert (first["answers"], first["evidence"], first["sessions"], first["turns"]) == (["On Mondays."], ["s1"], 1, 2)
    assert (second["answers"], second["evidence"], second["sessions"], second["turns"]) == (
        ["On Fridays."],
        ["s2"],
        2,
        5,
    )


@pytest.mark.usefixtures("folder")
def test_questions_with_nothing_before_them_are_left_out_and_counted(command: Command) -> None:
    edit(command.folder / "benchmarks/configs/years.yaml", "@parentIndex", "@before")
    read = preview(command, "years")
    assert read["counts"]["questions"] == 2
    assert any("before them" in note and note.endswith(" 1") for note in read["left_out"])


@pytest.mark.usefixtures("folder")
def test_questions_that_are_turns_of_their_own_history_are_counted(command: Command) -> None:
    """The reply to the question was part of the history, and nothing said so."""
    assert not any("own history" in note for note in preview(command, "coach")["left_out"])
    edit(command.folder / "benchmarks/configs/coach.yaml", "@before", "@parentIndex")
    assert any("own history" in note and note.endswith(" 2") for note in preview(command, "coach")["left_out"])


def test_a_question_in_one_list_of_turns_is_asked_after_the_turns_before_it(command: Command) -> None:
    lines = [
        {"text": "The key is under the pot."},
        {"text": "Where is the key?", "asks": True},
        {"text": "Under the pot."},
    ]
    questions = {
        "field": "log[?@.asks]", "questionField": "text", "answerField": "@next.text", "prefixField": "@before",
    }  # fmt: skip
    context = {"field": "log", "itemSchema": {"text": "text"}}
    write_mapped(command, "one-list", [{"log": lines}], questions=questions, context=context)
    sample = preview(command, "one-list")["samples"][0]
    assert (sample["last_turn"], sample["turns"], sample["answers"]) == (lines[0]["text"], 1, ["Under the pot."])


def test_questions_that_are_texts_of_their_own_history_are_counted(command: Command) -> None:
    questions = {"field": "log[?match(@, 'Q: .*')]", "questionField": "@value", "answerField": "@next"}
    context = {"field": "log", "type": "turns"}
    log = ["The key is under the pot.", "Q: Where is the key?", "Under the pot."]
    write_mapped(command, "texts", [{"log": log}], questions=questions, context=context)
    assert any("own history" in note and note.endswith(" 1") for note in preview(command, "texts")["left_out"])


@pytest.mark.usefixtures("folder")
def test_a_log_is_read_line_by_line_and_divided_by_day(command: Command) -> None:
    read = preview(command, "rides")
    assert any("linePattern" in note and note.endswith(" 1") for note in read["left_out"])
    assert any(note.startswith("speakers") and "Gus" in note and "Pia" in note for note in read["left_out"])
    assert not any("date" in note or "no path reads" in note for note in read["left_out"])
    assert read["samples"][0]["first_turn"] == "The green light is nice.\nIt reminds me of the woods."
    assert read["samples"][0]["last_turn"] == "I drive today: it is Sunday."
    edit(command.folder / "benchmarks/configs/rides.yaml", "    sessionPer: day", "    #")
    assert preview(command, "rides")["counts"] == read["counts"] | {"sessions": 1}


def test_messages_of_one_list_are_divided_by_day(command: Command) -> None:
    days = ["2024-01-05 10:00", "2024-01-05 23:59", None, "2024-01-06 00:01", "2024-01-05 09:00"]
    log = [{"id": f"m{n}", "c": f"message {n}", "at": day} for n, day in enumerate(days)]
    context = {"field": "log", "sessionPer": "day", "itemSchema": {"content": "c", "date": "at", "dialogId": "id"}}
    row = {"q": "?", "a": "x", "e": ["m3"], "log": log}
    write_mapped(command, "days", [row], evidence="e", evidenceLevel="turn", context=context)
    read = preview(command, "days")
    assert (read["counts"]["sessions"], read["counts"]["turns"], read["samples"][0]["evidence"]) == (3, 5, ["m3"])
    assert any("not in the order of their dates" in note for note in read["left_out"])


def test_a_session_without_a_date_has_that_of_its_first_turn(command: Command) -> None:
    """As in BEAM, where the first turn of each session has a date: all other turns were undated."""
    days = ["2024-01-05", None, "2024-03-01", None]
    turns = [{"c": f"message {n}", "at": day} for n, day in enumerate(days)]
    context = {"field": "log", "turnsField": "t", "itemSchema": {"content": "c", "date": "at"}}
    row = {"q": "message", "a": "x", "log": [{"t": turns[:2]}, {"t": turns[2:]}, {"t": [{"c": "message 4"}]}]}
    write_mapped(command, "dated", [row], context=context)
    assert "sessions without a date: 1" in preview(command, "dated")["left_out"]
    assert command("eval", "--benchmarks", "dated", "--providers", "bm25", "--run-id", "r").code == 0
    (trial,) = command("show", "r", "1", "--json").json["trials"]
    dates = sorted(re.findall(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "".join(one["content"] for one in trial["memories"])))
    assert dates == ["2024-01-05", "2024-01-05", "2024-03-01", "2024-03-01"]


def test_a_gold_answer_that_occurs_twice_is_counted(command: Command) -> None:
    context = {"field": "log"}
    write_mapped(command, "twice", [{"q": "?", "a": ["x", "y", "x"], "log": ["x and y"]}], context=context)
    read = preview(command, "twice")
    assert read["counts"]["gold_answers"] == 2
    assert any("repeat another" in note and note.endswith(" 1") for note in read["left_out"])


def packed(folder: Path) -> None:
    data = folder / "benchmarks/datasets"
    with zipfile.ZipFile(data / "persona.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted((data / "persona").iterdir()):
            archive.write(file, file.name)
        archive.writestr("README.md", "not data")
    edit(folder / "benchmarks/configs/persona.yaml", "./datasets/persona\n", "./datasets/persona.zip\n")
    shutil.rmtree(data / "persona")


def gzipped(folder: Path) -> None:
    file = folder / "benchmarks/datasets/persona/histories.jsonl"
    file.with_name("histories.jsonl.gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    edit(folder / "benchmarks/configs/persona.yaml", "histories.jsonl", "histories.jsonl.gz")


def in_parquet(folder: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    data = folder / "benchmarks/datasets/persona"
    rows = [
        {"id": key, "past": past, "picture": b"\x89PNG"}
        for line in (data / "histories.jsonl").read_text().splitlines()
        for key, past in json.loads(line).items()
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), data / "histories.parquet")
    config = folder / "benchmarks/configs/persona.yaml"
    edit(
        config,
        'files: [histories.jsonl], format: jsonl, items: $.*, key: "@key"',
        "files: [histories.parquet], key: id",
    )
    edit(config, "field: past", "field: past.past")


@pytest.mark.parametrize("change", [packed, gzipped, in_parquet])
def test_other_formats_of_the_same_data_are_read_alike(
    command: Command, folder: Path, change: Callable[[Path], None]
) -> None:
    before = preview(command, "persona")
    change(folder)
    after = preview(command, "persona")
    binary = [note for note in after["left_out"] if "binary" in note]
    assert after | {"left_out": [note for note in after["left_out"] if note not in binary]} == before
    assert len(binary) == (change is in_parquet)
    assert all('"picture"' in note and note.endswith(" 2") for note in binary), "one in each of two rows"


def test_binary_values_of_items_are_counted_by_column(command: Command, folder: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    past = [{"role": "user", "content": "I row.", "photo": b"x"}, {"role": "user", "content": "Daily.", "photo": None}]
    rows = [{"ask": f"{n}?", "gold": "a", "scan": b"y", "past": past} for n in range(3)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "benchmarks/datasets/scans.parquet")
    (folder / "benchmarks/configs/scans.yaml").write_text(
        "name: scans\ndata: {type: local, path: ./datasets/scans.parquet}\n"
        "schema: {question: ask, answer: gold, context: {field: past, itemSchema: {role: role, content: content}}}\n"
        "evaluation: {method: exact-match}\n"
    )
    left_out = preview(command, "scans")["left_out"]
    assert {note.rpartition(": ")[::2] for note in left_out if "binary" in note} == {
        ('binary values of the column "scan", not read', "3"),
        ('binary values of the column "past", not read', "3"),
    }


def test_each_history_is_counted_once(command: Command, folder: Path) -> None:
    """Items that go round ten histories: more than are kept in memory."""
    data = folder / "benchmarks/datasets/persona"
    past = [{"role": "user", "content": "one"}, {"role": "user", "content": ""}, {"role": "user", "content": "three"}]
    (data / "histories.jsonl").write_text("".join(json.dumps({f"h{n}": past}) + "\n" for n in range(10)))
    rows = [f"p{n},q{n}-{end},food,What?,(a),\"['(a) x', '(b) y']\",h{n},{end}" for end in (3, 2) for n in range(10)]
    header = "person,qid,topic,message,right,options,history,end"
    (data / "questions.csv").write_text("\n".join((header, *rows)) + "\n")
    read = preview(command, "persona")
    counts = {name: read["counts"][name] for name in ("questions", "histories", "sessions", "turns")}
    assert counts == {"questions": 20, "histories": 10, "sessions": 20, "turns": 20}
    assert any("empty turns" in note and note.endswith(" 10") for note in read["left_out"])


@pytest.mark.parametrize(
    "name", ["../outside.json", "/outside.json", "a/../../outside.json", "c:\\outside.json", "x\n/../../outside.json"]
)
def test_an_archive_does_not_lead_out_of_its_folder(command: Command, folder: Path, name: str) -> None:
    packed(folder)
    archive = folder / "benchmarks/datasets/persona.zip"
    with zipfile.ZipFile(archive, "a") as opened:
        info = zipfile.ZipInfo("x.json")
        info.filename = name
        opened.writestr(info, "{}")
    refused_at(command, "persona", "persona.zip")


def test_an_archive_with_an_unreadable_name_or_content_is_refused(command: Command, folder: Path) -> None:
    packed(folder)
    archive = folder / "benchmarks/datasets/persona.zip"
    whole = archive.read_bytes()
    with zipfile.ZipFile(archive, "a") as opened:
        opened.writestr("é.json", "{}")
    archive.write_bytes(archive.read_bytes().replace("é".encode(), b"\xff\xff"))
    refused_at(command, "persona", "persona.zip")
    archive.write_bytes(whole)
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_LZMA) as opened:
        opened.writestr("x.json", json.dumps(list(range(100))))
        begin = opened.getinfo("x.json").header_offset + 60
    damaged = bytearray(archive.read_bytes())
    damaged[begin : begin + 10] = b"\xff" * 10
    archive.write_bytes(damaged)
    refused_at(command, "persona", "persona.zip")


@pytest.mark.slow
def test_an_archive_with_links_or_a_bomb_is_refused(command: Command, folder: Path) -> None:
    packed(folder)
    archive = folder / "benchmarks/datasets/persona.zip"
    whole = archive.read_bytes()
    with zipfile.ZipFile(archive, "a") as opened:
        link = zipfile.ZipInfo("link.json")
        link.external_attr = 0o120777 << 16
        opened.writestr(link, "/etc/hosts")
    refused_at(command, "persona", "link")
    archive.write_bytes(whole)
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("bomb.json", b" " * (32 * 2**20))
    refused_at(command, "persona", "unpacks to")


# 40 mistakes: each is one line with the file and the key or place, and nothing is written


def refused_at(command: Command, name: str, *parts: str) -> str:
    for arguments in (("data", "preview", name), ("eval", "--benchmarks", name, "--providers", "bm25")):
        done = command(*arguments)
        assert done.code == 2, done.out
        assert len(done.err.strip().splitlines()) == 1
        for part in parts:
            assert part in done.err
    assert not (command.folder / "results").exists()
    return done.err


CHATS, PERSONA, PEOPLE, ALBUM, SHELF = "chats", "persona", "people", "album", "shelf"
MISTAKES = [
    # the config
    (CHATS, "configs/chats.yaml", "items: $ ", "items: $[ ", "chats.yaml:6: data.items"),
    (CHATS, "configs/chats.yaml", "file: long_chat.json | chat.json", "file: a.json, key: id", "data.join.chat.key"),
    (CHATS, "configs/chats.yaml", "{file: long_chat.json | chat.json}", "{}", "data.join.chat"),
    (CHATS, "configs/chats.yaml", "{file: long", "{files: [a.json], file: long", "data.join.chat"),
    (CHATS, "configs/chats.yaml", "chat: {file", "'a b': {file", "data.join"),
    (CHATS, "configs/chats.yaml", "long_chat.json | chat.json", "'${name}.json'", "data.join.chat.file"),
    (CHATS, "configs/chats.yaml", "long_chat.json |", "../../../../x.json |", "data.join"),
    (CHATS, "configs/chats.yaml", '"*/questions.json"', '"../*.json"', "data.files"),
    (CHATS, "configs/chats.yaml", '"@folder"', '"@foldr"', 'did you mean "@folder"?'),
    (CHATS, "configs/chats.yaml", "turnsField: turns", "turnsfield: turns", "schema.context"),
    (CHATS, "configs/chats.yaml", "files: [", "sha256: " + "0" * 64 + "\n  files: [", "data.sha256"),
    (PERSONA, "configs/persona.yaml", ', by: history', "", "data.join.past"),
    (PERSONA, "configs/persona.yaml", 'key: "@key", ', "", "data.join.past"),
    (PERSONA, "configs/persona.yaml", "options: python", "options: pyton", "schema.parse.options"),
    (PERSONA, "configs/persona.yaml", "    prefix: end", "    type: string\n    prefix: end", "schema.context.prefix"),
    (PERSONA, "configs/persona.yaml", "type: local", "type: url", "data."),
    (PEOPLE, "configs/people.yaml", "turnsField:", "dateField: $.log[*].day\n    turnsField:", "sessionSchema.date"),
    (PEOPLE, "configs/people.yaml", "{id: nr, date: day}", "{ident: nr}", "schema.context.sessionSchema"),
    (ALBUM, "configs/album.yaml", 'image: "content[*].image"', 'image: "content[*.image"', "itemSchema.image"),
    ("years", "configs/years.yaml", "    turnsField", "    prefix: n\n    turnsField", "schema.questions.prefixField"),
    ("years", "configs/years.yaml", '"@parentIndex"', '"@parentindex"', 'did you mean "@parentIndex"?'),
    ("ledger", "configs/ledger.yaml", "    columns:", "    field: questions\n    columns:", "schema.questions"),
    ("ledger", "configs/ledger.yaml", "ask: questions", 'ask: "questions["', "schema.questions.columns.ask"),
    ("ledger", "configs/ledger.yaml", "type: string, split", "split", "schema.context.split"),
    ("tact", "configs/tact.yaml", "friendly.", "${friendly}", "questionTypes"),
    ("tact", "configs/tact.yaml", "  answer: known", "  rubric: known", "questionTypes"),
    ("remarks", "configs/remarks.yaml", ", talks.json]", "]", "data.files"),
    ("remarks", "configs/remarks.yaml", "cues:", "needles: {}\ncues:", "needles and cues"),
    ("remarks", "configs/remarks.yaml", "cues:", "schema: {question: q, context: {field: c}}\ncues:", "schema"),
    (SHELF, "configs/shelf.yaml", '"@.right[0]"', '"@.right["', "shelf.yaml:6: data.where"),
    (SHELF, "configs/shelf.yaml", "  evidence: right\n", "", "schema"),
    (SHELF, "configs/shelf.yaml", '"@others"', '"@other"', "schema.forbidden"),
    # the data does not fit it
    (SHELF, "configs/shelf.yaml", '"@.right[0]"', '"@.wrong[0]"', "data.where"),
    ("desk", "datasets/desk/lists.json", '"v3"', '"v4"', "questions.jsonl:3"),
    ("desk", "datasets/desk/lists.json", '["v3"]', '[]', "questions.jsonl:3"),
    ("desk", "datasets/desk/visits.jsonl", '"page": "Open."', '"page": {}', "visits.jsonl:2"),
    ("desk", "configs/desk.yaml", "by: list}", "by: lists}", "data.join.visits.by"),
    ("years", "configs/years.yaml", '"@parentIndex"', '"@parent.at"', "years.jsonl:1"),
    ("rides", "configs/rides.yaml", "{speaker}", "{who}", "schema.context.linePattern"),
    ("rides", "configs/rides.yaml", ": {content}", "", "schema.context.linePattern"),
    ("rides", "configs/rides.yaml", ": {content}", "{content}", "schema.context.linePattern"),
    ("rides", "configs/rides.yaml", "[{date}] {speaker}", "{speaker}", "schema.context.sessionPer"),
    ("rides", "configs/rides.yaml", "type: string", "type: turns", "schema.context.linePattern"),
    ("rides", "configs/rides.yaml", "${number}", "${stem}", "data.join.log"),
    ("rides", "datasets/rides/logs/log_1.txt", "[2025-03-03 08:30] ", "", "log_1.txt: line 1"),
    ("rides", "datasets/rides/logs/log_1.txt", "2025-03-09", "9 March", "log_1.txt:4"),
    ("advice", "configs/advice.yaml", "questionField", 'prefixField: "@before", questionField', "advice.json:2"),
    ("coach", "datasets/coach.json", '"text": "On Fridays.", ', "", "coach.json:5"),
    ("coach", "configs/coach.yaml", '"@next.text"', '"@nxt.text"', 'did you mean "@next"?'),
    ("ledger", "datasets/ledger.jsonl", '"What does Ben have?"', '"What?", "And?"', "ledger.jsonl:1"),
    ("ledger", "datasets/ledger.jsonl", '"answers": [["the cello"]]', '"answers": "the cello"', "ledger.jsonl:2"),
    ("calls", "configs/calls.yaml", "said[*].text", "chats[*].lines[*].who", "calls.json"),
    (SHELF, "datasets/shelf/notes.json", '"tags": ["serrated"]', '"tags": [1]', "notes.json:2"),
    (CHATS, "configs/chats.yaml", "*/questions.json", "*/qestions.json", "qestions.json"),
    (CHATS, "configs/chats.yaml", "long_chat.json | chat.json", "talk.json", "talk.json"),
    (CHATS, "configs/chats.yaml", "  items: $ ", "  # items: $ ", "1/questions.json:1"),
    (CHATS, "configs/chats.yaml", "itemId: \"@folder\"", "itemId: \"@key\"", "schema.itemId"),
    (CHATS, "configs/chats.yaml", "field: $.* ", "field: update ", "2/questions.json"),
    (CHATS, "configs/chats.yaml", "field: $.* ", "field: $ ", "questions.json"),
    (CHATS, "configs/chats.yaml", "questionField: ask", "questionField: '$.*'", "questions.json:1: recall[0]"),
    (CHATS, "configs/chats.yaml", "answerField: gold | ideal", "answerField: gold", "1/questions.json:2"),
    (CHATS, "configs/chats.yaml", "field: chat\n", "field: chats\n", "schema.context"),
    (CHATS, "configs/chats.yaml", "turnsField: turns", "turnsField: turn", "schema.context"),
    (CHATS, "configs/chats.yaml", "role: role", 'role: "$.*"', "chat.json"),
    (CHATS, "configs/chats.yaml", "dialogId: id", "dialogId: role", "chat.json"),
    (CHATS, "configs/chats.yaml", "%B-%d-%Y", "%Y-%m-%d", "1/chat.json:2"),
    (CHATS, "datasets/chats/1/chat.json", '"content": "He sleeps."', '"content": {"x": 1}', "1/chat.json:2"),
    (PERSONA, "datasets/persona/questions.csv", ",h2,1", ",h3,1", "questions.csv:4"),
    (PERSONA, "datasets/persona/questions.csv", ",h2,1", ",h2,9", "questions.csv:4"),
    (PERSONA, "datasets/persona/questions.csv", ",h2,1", ",h2,one", "questions.csv:4"),
    (PERSONA, "datasets/persona/questions.csv", "'(b) rowing']", "open('x')]", "questions.csv:4"),
    (PERSONA, "datasets/persona/questions.csv", "ada,p2", "eve,p2", "schema.cluster"),
    (PERSONA, "datasets/persona/histories.jsonl", '{"h2"', '{"h1"', "histories.jsonl:2"),
    (PERSONA, "configs/persona.yaml", "parse: {options: python}", "parse: {options: python, optins: json}", "optins"),
    (PERSONA, "configs/persona.yaml", "by: history}", "by: histry}", "data.join.past.by"),
    (PEOPLE, "configs/people.yaml", "items: people.* ", "items: persons.* ", "data.items"),
    (PEOPLE, "configs/people.yaml", "people-*.json", "peple-*.json", "peple-*.json"),
    (PEOPLE, "configs/people.yaml", "question: q", 'question: "$.log[*].nr"', "people-1.json"),
    (PEOPLE, "configs/people.yaml", "evidence: proof\n", "evidence: prof\n", "schema.evidence"),
    (ALBUM, "configs/album.yaml", "content[*].text", "content", "album.jsonl:1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "file", "old", "new", "expected"), MISTAKES, ids=[new for *_, new, _ in MISTAKES])
def test_a_mistake_is_located_and_nothing_is_spent(
    command: Command, folder: Path, name: str, file: str, old: str, new: str, expected: str
) -> None:
    edit(folder / "benchmarks" / file, old, new)
    shown = refused_at(command, name, expected)
    assert os.sep in shown or "schema" in shown or "data." in shown


def test_there_are_forty_mistakes() -> None:
    assert len(MISTAKES) >= 40


def write_mapped(command: Command, name: str, rows: list[dict[str, Any]], **schema: Any) -> None:
    """Write a benchmark whose items have a question `q`, an answer `a` and sessions `log`."""
    place = command.folder / "benchmarks/configs"
    (place / "datasets").mkdir(parents=True, exist_ok=True)
    (place / f"datasets/{name}.json").write_text(json.dumps(rows))
    data = {"type": "local", "path": f"./datasets/{name}.json"}
    mapping = schema if "questions" in schema else {"question": "q", "answer": "a", **schema}
    config = {"name": name, "data": data, "schema": mapping, "evaluation": {"method": "exact-match"}}
    (place / f"{name}.yaml").write_text(json.dumps(config))


def test_turns_may_have_the_ids_that_sessions_have_by_default(command: Command) -> None:
    """The session s1 took the place of the turn s1, and recall was wrong."""
    log = [{"t": [{"i": "s1", "c": "the kettle is red"}, {"i": "s2", "c": "a bike"}]}, {"t": [{"i": "s3", "c": "tea"}]}]
    context = {"field": "log", "turnsField": "t", "itemSchema": {"content": "c", "dialogId": "i"}}
    row = {"q": "which colour has the kettle?", "a": "red", "e": ["s1"], "log": log}
    write_mapped(command, "ids", [row], evidence="e", evidenceLevel="turn", context=context)
    done = command("eval", "--benchmarks", "ids", "--providers", "bm25", "oracle", "--run-id", "r", "--json")
    found = {one["subject"]: one for one in done.json["results"] if not one["group"]}
    recall = {name: next(m["value"] for m in one["measures"] if m["name"] == "recall@1") for name, one in found.items()}
    assert recall == {"bm25": 1, "oracle": 1}


def test_a_mark_that_is_the_text_false_marks_no_turn(command: Command) -> None:
    log = [{"c": "red", "has": "true"}, {"c": "blue", "has": "false"}, {"c": "green", "has": "0"}]
    context = {"field": "log", "itemSchema": {"content": "c", "evidence": "has"}}
    write_mapped(command, "marks", [{"q": "?", "a": "red", "log": log}], evidenceLevel="turn", context=context)
    assert len(preview(command, "marks")["samples"][0]["evidence"]) == 1


def test_blank_lines_and_empty_parts_keep_their_numbers(command: Command) -> None:
    row = {"q": "?", "a": 2, "o": "x;;z;", "ev": [4], "t": "one\n\ntwo\nthree\n"}
    shape = {"choices": "o", "choiceIndex": 0, "parse": {"o": ";"}, "evidence": "ev", "evidenceLevel": "turn"}
    context = {"field": "t", "type": "string", "split": "lines"}
    write_mapped(command, "numbers", [row], evidenceFormat="numbers-from-1", context=context, **shape)
    sample = preview(command, "numbers")["samples"][0]
    assert sample["evidence"] == ["s1:4"]
    assert sample["answers"] == ["(c) z"]
    assert (sample["turns"], sample["sessions"]) == (3, 1)
