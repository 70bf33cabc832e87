"""Data that could be read wrong without a word: it is read right, refused with its place, or counted."""

from __future__ import annotations

import json
import zipfile
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from memorybench.datasets.locating import local_source
from memorybench.datasets.mapped import MappedDataset, open_mapped
from tests.cli.command import Command
from tests.datasets.described import config, item, opened
from tests.doubles.refusals import refused

DATED = [{"id": "A", "day": "2024-01-01", "t": ["a"]}, {"t": ["b"]}, {"id": "C", "day": "2024-03-01", "t": ["c"]}]
LISTED = {"field": "sessions", "turnsField": "t", "idField": "$.sessions[*].id", "dateField": "$.sessions[*].day"}


def note(dataset: MappedDataset, words: str) -> int:
    """The count of the note with these words; 0 if there is none."""
    counts = [int(note.rpartition(" ")[2]) for note in dataset.notes if words in note and note[-1].isdigit()]
    return sum(counts)


def write(command: Command, name: str, value: Any) -> None:
    (command.folder / name).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


def preview(command: Command, data: dict[str, Any], schema: dict[str, Any]) -> Any:
    """What `data preview` shows of the data."""
    config = {
        "name": "sample",
        "data": {"type": "local"} | data,
        "schema": schema,
        "evaluation": {"method": "exact-match"},
    }
    write(command, "sample.yaml", config)
    done = command("data", "preview", "sample.yaml", "--json")
    assert done.code == 0, done.err
    return done.json


@pytest.mark.parametrize("prefix", [{}, {"prefix": "n"}])
def test_ids_of_later_sessions_do_not_move_to_a_session_without_one(tmp_path: Path, prefix: dict[str, str]) -> None:
    error = refused(opened, tmp_path, [item(sessions=DATED, n=2)], {"context": LISTED | prefix})
    assert "sample.json" in error.where
    assert "sessionSchema" in error.remedy


def test_sessions_may_lack_ids_with_a_path_within_the_session(tmp_path: Path) -> None:
    context = {"field": "sessions", "turnsField": "t", "prefix": "n", "sessionSchema": {"id": "id", "date": "day"}}
    dataset = opened(tmp_path, [item(sessions=DATED, n=3, gold=["C"])], {"context": context, "evidence": "gold"})
    assert dataset.questions[0].gold_sessions == ("s3",)
    days = [session.at and session.at.month for session in dataset.haystack("q1").sessions]
    assert days == [1, None, 3]


def test_ids_that_belong_to_another_session_are_refused(tmp_path: Path) -> None:
    """As many ids as sessions, but the first session has two and the second none."""
    sessions = [{"ids": ["A", "B"], "t": ["a"]}, {"ids": [], "t": ["b"]}]
    context = {"field": "sessions", "turnsField": "t", "idField": "$.sessions[*].ids[*]"}
    assert "sample.json" in refused(opened, tmp_path, [item(sessions=sessions)], {"context": context}).where
    apart = [{"t": ["a"]}, {"id": "B"}, {"id": "C", "t": ["c"]}]
    context = {"field": "$.sessions[*].t", "idField": "$.sessions[*].id"}
    assert "sample.json" in refused(opened, tmp_path, [item(sessions=apart)], {"context": context}).where


@pytest.mark.parametrize("ids", [["A", "B", "C"], ["A", "B"]])
def test_a_list_of_ids_may_be_that_of_the_prefix(tmp_path: Path, ids: list[str]) -> None:
    context = {"field": "sessions", "idField": "ids", "prefix": "n"}
    one = item(sessions=["a", "b", "c"], ids=ids, n=2, gold=["B"])
    dataset = opened(tmp_path, [one], {"context": context, "evidence": "gold"})
    assert dataset.questions[0].gold_sessions == ("s2",)


def test_one_session_does_not_take_the_first_of_several_dates(tmp_path: Path) -> None:
    context = {"field": "sessions", "type": "turns", "dateField": "days", "prefix": "n"}
    one = item(sessions=["a", "b"], days=["2024-01-01", "2024-02-02"], n=1)
    assert "sample.json" in refused(opened, tmp_path, [one], {"context": context}).where


@pytest.mark.parametrize(
    ("sessions", "context"),
    [
        (["a", "b", "c"], {"idField": "ids"}),
        ([{"t": ["a"]}, {"id": "0", "t": ["b"]}], {"turnsField": "t", "sessionSchema": {"id": "id"}}),
    ],
)
def test_sessions_without_an_id_do_not_repeat_one(tmp_path: Path, sessions: Any, context: dict[str, Any]) -> None:
    one = item(sessions=sessions, ids=["A", None, None], gold=["0"])
    dataset = opened(tmp_path, [one], {"context": {"field": "sessions"} | context})
    assert not note(dataset, "repeat a session id")


def test_turns_that_are_divided_where_questions_are_asked_repeat_no_session_id(tmp_path: Path) -> None:
    questions = {"field": "quiz", "questionField": "q", "answerField": "a", "prefixField": "n"}
    quiz = [{"q": "?", "a": "x", "n": 1}, {"q": "?", "a": "x", "n": 3}]
    turns = [{"text": text} for text in "abc"]
    schema = {"question": None, "answer": None, "questions": questions}
    dataset = opened(tmp_path, [item(sessions=turns, quiz=quiz)], schema)
    assert len(dataset.haystack("q1@3").sessions) == 2
    assert not note(dataset, "repeat a session id")


def quiz_schema(context: dict[str, Any], **questions: Any) -> dict[str, Any]:
    fields = {"questionField": "q", "answerField": "a"} | questions
    return {"question": None, "answer": None, "questions": fields, "context": context}


ASK = {"q": "?", "a": "x"}


def test_the_index_of_the_parent_is_that_of_the_object_around_the_question(tmp_path: Path) -> None:
    """Not that of a list within its list of questions."""
    sessions = [{"t": ["a"], "quiz": [[ASK]]}, {"t": ["b"]}, {"t": ["c"], "quiz": [[], [ASK, ASK]]}]
    context = {"field": "sessions", "turnsField": "t"}
    schema = quiz_schema(context, field="sessions[*].quiz", prefixField="@parentIndex", labels={"n": "@parentIndex"})
    questions = opened(tmp_path, [item(sessions=sessions)], schema).questions
    assert [(question.asked_after, question.labels["n"]) for question in questions] == [(1, "1"), (3, "3"), (3, "3")]


def test_the_index_of_a_session_in_a_group_is_that_in_the_history(tmp_path: Path) -> None:
    groups = [{"s": [{"t": ["a"]}, {"t": ["b"], "quiz": [ASK]}]}, {"s": [{"t": ["c"], "extra": {"quiz": [ASK]}}]}]
    context = {"field": "sessions[*].s[*]", "turnsField": "t"}
    schema = quiz_schema(context, field="sessions[*].s[*]..quiz", prefixField="@parentIndex")
    questions = opened(tmp_path, [item(sessions=groups)], schema).questions
    assert [question.asked_after for question in questions] == [2, 3]


def test_the_index_in_nested_lists_that_are_not_the_history_is_no_prefix(tmp_path: Path) -> None:
    groups = [{"s": [{"quiz": [ASK]}]}, {"s": [{"quiz": [ASK]}]}]
    schema = quiz_schema({"field": "sessions"}, field="groups[*].s[*].quiz", prefixField="@parentIndex")
    error = refused(opened, tmp_path, [item(groups=groups, sessions=["a", "b"])], schema)
    assert "sample.json" in error.where
    assert "@parentIndex" in error.problem


def test_a_list_of_keys_is_not_named_like_a_row(command: Command) -> None:
    refs = [["docs-2", "docs-3"], "docs-1"]
    write(command, "q.json", [{"id": str(n), "q": "?", "a": "x", "refs": one} for n, one in enumerate(refs)])
    write(command, "docs.json", [{"id": f"docs-{n}", "text": f"text {n}"} for n in (1, 2, 3)])
    join = {"docs": {"files": ["docs.json"], "key": "id", "by": "refs"}}
    schema = {"itemId": "id", "question": "q", "answer": "a", "context": {"field": "$.docs..text"}}
    read = preview(command, {"path": ".", "files": ["q.json"], "join": join}, schema)
    assert [(one["first_turn"], one["turns"]) for one in read["samples"]] == [("text 2", 2), ("text 1", 1)]


TURNS = {"field": "sessions", "type": "turns"}
SPANS = {"evidence": "gold", "evidenceLevel": "turn", "evidenceFormat": "ranges-from-0", "context": TURNS}


def with_gold(*golds: Any) -> list[dict[str, Any]]:
    return [item(id=f"q{n}", sessions=list("abcde"), gold=gold) for n, gold in enumerate(golds)]


def gold_turns(dataset: MappedDataset) -> list[int]:
    return [len(question.gold_turns) for question in dataset.questions]


def test_a_pair_of_numbers_in_every_question_is_a_range(tmp_path: Path) -> None:
    assert gold_turns(opened(tmp_path, with_gold([0, 3], ["1", "2"], [], 4), SPANS)) == [4, 2, 0, 1]


@pytest.mark.parametrize("others", [[4], [0, 1, 2], [[1, 2]], ["1-2"], [[1, 2], 4]])
def test_a_pair_that_may_be_two_numbers_is_refused(tmp_path: Path, others: list[Any]) -> None:
    for golds in ([[0, 3], others], [others, [0, 3]]):
        error = refused(opened, tmp_path, with_gold(*golds), SPANS)
        assert "sample.json" in error.where
        assert "numbers-from-0" in error.remedy
    numbers = SPANS | {"evidenceFormat": "numbers-from-0"}
    assert gold_turns(opened(tmp_path, with_gold([0, 3], [4]), numbers)) == [2, 1]


def test_text_that_several_turns_have_is_no_evidence_and_counted(tmp_path: Path) -> None:
    sessions = ["Yes", "yes!", "No", "C is hard", "C# is hard", "It is -5 degrees"]
    schema = SPANS | {"evidenceFormat": "text"}
    cited = ["yes.", "C++ is hard", "no", "It is 5 degrees"]
    dataset = opened(tmp_path, [item(sessions=sessions, gold=cited)], schema)
    assert dataset.questions[0].gold_turns == ("s1:3",)
    assert (note(dataset, "several turns have"), note(dataset, "unknown evidence ids")) == (1, 2)
    dataset = opened(tmp_path, [item(sessions=sessions, gold=["yes!", "c# IS hard."])], schema)
    assert dataset.questions[0].gold_turns == ("s1:2", "s1:5")


@pytest.mark.parametrize(
    ("sessions", "context"),
    [
        ([["a", "b", "c"], [], ["d"]], {}),
        ({"s_1": ["a", "b", "c"], "s_3": ["d"]}, {"type": "object", "sessionPattern": "s_*"}),
    ],
)
def test_numbers_at_session_level_count_sessions(tmp_path: Path, sessions: Any, context: dict[str, str]) -> None:
    schema = {"evidence": "gold", "evidenceFormat": "numbers-from-1", "context": {"field": "sessions"} | context}
    items = [item(sessions=sessions, gold=[3, 2])]
    dataset = opened(tmp_path, items, schema | {"evidenceLevel": "session"})
    (gold,) = dataset.questions[0].gold_sessions
    last = dataset.haystack("q1").sessions[-1]
    assert (gold, last.turns[0].content) == (last.id, "d")
    assert note(dataset, "unknown evidence ids") == 1
    assert refused(opened, tmp_path, items, schema).where.endswith("evidenceFormat")


def test_objects_that_a_deep_path_leads_to_are_read_or_counted(tmp_path: Path) -> None:
    turns = [{"n": str(n), "text": "x"} for n in range(4)]
    context = {"field": "sessions", "itemSchema": {"content": "text", "dialogId": "n"}}
    one = item(sessions=turns, e={"first": "1"}, more={"e": ["2", {"z": "3"}]})
    dataset = opened(tmp_path, [one], {"evidence": "$..e", "evidenceLevel": "turn", "context": context})
    assert dataset.questions[0].gold_turns == ("2",)
    assert note(dataset, "unknown evidence ids") == 2
    dataset = opened(tmp_path, [one], {"evidence": "$.more.e..*", "evidenceLevel": "turn", "context": context})
    assert dataset.questions[0].gold_turns == ("2", "3")
    assert not note(dataset, "unknown evidence ids")


def test_dialog_ids_that_are_partly_read_are_counted(tmp_path: Path) -> None:
    turns = [{"n": f"D1:{n}", "text": "x"} for n in (1, 2, 3)]
    context = {"field": "sessions", "itemSchema": {"content": "text", "dialogId": "n"}}
    schema = {"evidence": "gold", "evidenceLevel": "turn", "evidenceFormat": "dialog-ids", "context": context}
    dataset = opened(tmp_path, [item(sessions=turns, gold=["D1:1; D1-2", "D1:1, 2", "D:1:3"])], schema)
    assert dataset.questions[0].gold_turns == ("D1:1", "D1:3")
    assert (note(dataset, "unknown evidence ids"), note(dataset, "repaired")) == (2, 1)


def test_whole_numbers_have_no_decimal_point(tmp_path: Path) -> None:
    """Without it, 10.0 would be compared as 100."""
    assert opened(tmp_path, [item(answer=[10.0, 2.5, 7])]).questions[0].answers == ("10", "2.5", "7")


def test_decimals_of_parquet_keep_their_value(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    digits = "0.12345678901234567890"
    golds = [pyarrow.scalar(Decimal(text), pyarrow.decimal128(38, 20)) for text in ("10.00", "3.50", digits)]
    rows = {"id": ["1", "2", "3"], "question": ["?"] * 3, "answer": golds, "sessions": [["a"]] * 3}
    parquet.write_table(pyarrow.table(rows), tmp_path / "sample.parquet")
    described = config({"context": {"field": "sessions"}})
    source = local_source(described, tmp_path / "sample.parquet")
    dataset = open_mapped(described, source, lambda: "checksum")
    assert [question.answers[0] for question in dataset.questions] == ["10", "3.5", digits]


@pytest.mark.parametrize("day", ["202404010930", 202404010930, "2024040109", 2024040109])
def test_a_date_without_separators_is_no_number_of_seconds(tmp_path: Path, day: Any) -> None:
    context = {"field": "sessions", "turnsField": "t", "sessionSchema": {"date": "day"}}
    items = [item(sessions=[{"day": day, "t": ["a"]}])]
    error = refused(opened, tmp_path, items, {"context": context})
    assert "sample.json" in error.where
    format = error.remedy.rpartition(" ")[2]
    dataset = opened(tmp_path, items, {"context": context, "dateFormat": format})
    assert dataset.haystack("q1").sessions[0].at in (datetime(2024, 4, 1, 9), datetime(2024, 4, 1, 9, 30))


@pytest.mark.parametrize("text", ["A", "the", "$", " ?! "])
@pytest.mark.parametrize("key", ["mustContain", "mustNotContain"])
def test_a_text_that_no_answer_can_contain_is_refused(tmp_path: Path, key: str, text: str) -> None:
    error = refused(opened, tmp_path, [item(texts=["green", text])], {key: "texts"})
    assert "sample.json:" in error.where
    assert "texts" in error.where


@pytest.mark.parametrize("schema", [{"answerMode": "rubric"}, {"rubric": "answer", "answer": None}])
def test_repeated_and_empty_items_of_a_rubric_are_counted(tmp_path: Path, schema: dict[str, Any]) -> None:
    dataset = opened(tmp_path, [item(answer=["says X", "says X", None, "", "says Y", " "])], schema)
    assert [one.text for one in dataset.questions[0].rubric] == ["says X", "says X", "says Y"]
    assert (note(dataset, "rubric items that repeat"), note(dataset, "empty answers")) == (1, 3)


def test_an_answer_of_blanks_is_no_answer(tmp_path: Path) -> None:
    assert "sample.json" in refused(opened, tmp_path, [item(answer="  ")]).where
    assert note(opened(tmp_path, [item(answer=["green", " "])]), "empty answers") == 1


def test_sessions_after_the_last_question_are_counted(tmp_path: Path) -> None:
    quiz = [ASK | {"n": 2}, ASK | {"n": 1}]
    schema = quiz_schema({"field": "sessions"}, field="quiz", prefixField="n")
    dataset = opened(tmp_path, [item(sessions=list("abcde"), quiz=quiz)], schema)
    assert note(dataset, "after the last question") == 3
    prefix = {"context": {"field": "sessions", "prefix": "n"}}
    assert note(opened(tmp_path, [item(sessions=list("abcde"), n=4)], prefix), "after the last question") == 1


def test_keys_that_are_not_sessions_are_listed(command: Command) -> None:
    sessions = {"session_01": ["a"], "session_01_day": "2024-01-01", "session_2b": ["b"], "session_9_day": "2024-02-02"}
    write(command, "q.json", [item(sessions=sessions)])
    context = {"field": "sessions", "type": "object", "sessionPattern": "session_*", "datePattern": "session_*_day"}
    schema = {"question": "question", "answer": "answer", "itemId": "id", "context": context}
    left_out = preview(command, {"path": "q.json"}, schema)["left_out"]
    assert any('"session_2b"' in one and '"session_01"' not in one for one in left_out)
    assert any("dates of sessions" in one and one.endswith(" 1") for one in left_out)
    assert not any("sessions without a date" in one for one in left_out)


@pytest.mark.parametrize(
    ("field", "filtered"), [("quiz[?@.ok]", 2), ("$..quiz[?@.ok]", 2), ("$.more..[?@.ok]", 1), ("$..quiz..[?@.ok]", 2)]
)
def test_questions_that_a_filter_leaves_out_are_counted(tmp_path: Path, field: str, filtered: int) -> None:
    quiz = [ASK | {"ok": 1}, ASK, ASK]
    one = item(quiz=quiz, more={"deep": [ASK | {"ok": 1}, ASK]})
    dataset = opened(tmp_path, [one], quiz_schema({"field": "sessions", "itemSchema": {"text": "text"}}, field=field))
    assert len(dataset.questions) == 1
    assert note(dataset, "left out by the filter in schema.questions.field") == filtered


@pytest.mark.parametrize(
    "context",
    [
        {"field": "sessions", "turnsField": "t[?@.keep]"},
        {"field": "sessions", "turnsField": "$..t[?@.keep]"},
        {"field": "$.sessions[*].t[?@.keep]"},
    ],
)
def test_turns_that_a_filter_leaves_out_are_counted(tmp_path: Path, context: dict[str, Any]) -> None:
    turns = [{"c": "a", "keep": True}, {"c": "b"}, {"c": "d"}]
    schema = {"context": context | {"itemSchema": {"content": "c"}}}
    dataset = opened(tmp_path, [item(sessions=[{"t": turns}])], schema)
    assert note(dataset, "left out by filters in schema.context") == 2


def test_files_that_are_not_data_are_listed(command: Command) -> None:
    folder = command.folder / "data"
    folder.mkdir()
    for name in ("a.jsonl", ".hidden.jsonl", "more.tsv", ".DS_Store", "._a.jsonl"):
        (folder / name).write_text(json.dumps(item()) if name == "a.jsonl" else "not read")
    schema = {"itemId": "id", "question": "question", "answer": "answer", "context": CONTENT}
    read = preview(command, {"path": "data"}, schema)
    assert read["counts"]["items"] == 1
    (files,) = [one for one in read["left_out"] if "files" in one]
    assert all(name in files for name in ('"more.tsv"', '".hidden.jsonl"'))
    assert ".DS_Store" not in files
    assert "._a" not in files


def test_an_archive_may_have_files_of_an_operating_system(command: Command) -> None:
    with zipfile.ZipFile(command.folder / "notes.zip", "w") as archive:
        archive.writestr("a/q.jsonl", json.dumps(item()))
        for name in ("__MACOSX/a/._q.jsonl", "a/.DS_Store", "a/._q.jsonl", "a/more.tsv", "a/.old.json"):
            archive.writestr(name, "not data")
    schema = {"itemId": "id", "question": "question", "answer": "answer", "context": CONTENT}
    read = preview(command, {"path": "notes.zip"}, schema)
    assert read["counts"]["items"] == 1
    (files,) = [one for one in read["left_out"] if "files" in one]
    assert files.endswith('"a/more.tsv", "a/.old.json"')


CONTENT = {"field": "sessions", "itemSchema": {"content": "text"}}


def test_paths_that_match_nothing_are_named(command: Command) -> None:
    quiz = [ASK | {"meta": {"options": ["x", "y"], "lacks": ["z"], "old": ["s1"], "date": "2024-01-01"}}]
    write(command, "q.json", [item(quiz=quiz, kind={"name": "k"})])
    keys = ("choicesField", "mustNotContainField", "forbiddenField", "dateField", "categoryField", "mustContainField")
    fields = {"field": "quiz", "questionField": "q", "answerField": "a"} | {key: f"meta.{key}" for key in keys}
    turns = {"role": "meta.role", "speaker": "meta.who", "date": "meta.day", "caption": "meta.photo"}
    context = {"field": "sessions", "itemSchema": {"content": "text"} | turns}
    metadata = {"questionType": "kind.nam", "questionDate": "kind.day"}
    schema = {"itemId": "id", "questions": fields, "context": context, "metadata": metadata}
    left_out = preview(command, {"path": "q.json"}, schema)["left_out"]
    expected = [f"schema.questions.{key}" for key in keys] + [f"schema.metadata.{name}" for name in metadata]
    expected += [f"schema.context.itemSchema.{name}" for name in turns]
    for key in expected:
        assert sum(f"({key})" in one for one in left_out) == 1, key


def test_fields_that_are_read_are_not_called_unread(command: Command) -> None:
    turns = [{"nr": "n1", "day": "2024-01-01", "text": "green", "draft": False}]
    one = item(sessions=turns, points=["says green"], must=["green"], never=["red"], old=["n1"], lang="en", owner="me")
    write(command, "q.json", [one])
    schema = {
        "itemId": "id",
        "question": "question",
        "rubric": "points",
        "mustContain": "must",
        "mustNotContain": "never",
        "forbidden": "old",
        "context": {
            "field": "sessions[?@.draft == false && $.owner == 'me']",
            "sessionSchema": {"id": "nr", "date": "day"},
            "itemSchema": {"content": "text"},
        },
    }
    unread = preview(command, {"path": "q.json", "where": "@.lang == 'en'"}, schema)["left_out"]
    assert [one for one in unread if "no path reads" in one] == ['fields of items that no path reads: "answer"']
    fields = {"field": "quiz", "questionField": "q", "answerField": "a", "forbiddenField": "@others"}
    labels = {"lang": "@item.lang", "owner": "@parent.owner"}
    context = {"field": "sessions", "idField": "$.sessions[*].nr", "itemSchema": {"content": "text", "date": "day"}}
    write(command, "q.json", [{"id": "1", "lang": "en", "owner": "me", "quiz": [ASK], "sessions": turns}])
    schema = {"itemId": "id", "questions": fields | {"labels": labels}, "context": context}
    unread = preview(command, {"path": "q.json"}, schema)["left_out"]
    assert [one for one in unread if "no path reads" in one] == ['fields of turns that no path reads: "draft"']


def test_a_text_of_a_joined_row_is_parsed(command: Command) -> None:
    """The questions in it were not found, although the text had been parsed."""
    write(command, "q.json", [{"id": "1", "log": ["x"]}])
    write(command, "more.json", [{"id": "1", "quiz": json.dumps([{"q": "Who?", "a": "me"}])}])
    join = {"more": {"files": ["more.json"], "key": "id", "by": "id"}}
    questions = {"field": "more.quiz", "questionField": "q", "answerField": "a"}
    schema = {"itemId": "id", "parse": {"more.quiz": "json"}, "questions": questions, "context": {"field": "log"}}
    read = preview(command, {"path": ".", "files": ["q.json"], "join": join}, schema)
    assert [one["question"] for one in read["samples"]] == ["Who?"]


def test_several_fields_make_the_id_of_an_item(tmp_path: Path) -> None:
    items = [item(user=user, day=day) for user, day in (("ann", 3), ("ann", 4), ("bob", 3))]
    dataset = opened(tmp_path, items, {"itemId": ["user", "day"]})
    assert [question.id for question in dataset.questions] == ["ann:3", "ann:4", "bob:3"]
    assert "schema.itemId" in refused(opened, tmp_path, items, {"itemId": ["user", "question"]}).remedy
    assert "sample.json" in refused(opened, tmp_path, items, {"itemId": ["user", "none"]}).where
    for broken in ([], ["user", "$["]):
        assert "itemId" in refused(opened, tmp_path, items, {"itemId": broken}).where
