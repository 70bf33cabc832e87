"""Turns without ids: evidence by their number, ranges of them, and lists of texts that are one session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memorybench.datasets.mapped import MappedDataset
from tests.datasets.described import item, opened
from tests.doubles.refusals import refused

TEXTS = ["zero", "one", "", "three", "four", "five"]


def read(folder: Path, gold: Any, format: str, **schema: Any) -> MappedDataset:
    mapping = {
        "evidence": "gold",
        "evidenceLevel": "turn",
        "evidenceFormat": format,
        "context": {"field": "sessions", "type": "turns"},
    }
    return opened(folder, [item(sessions=TEXTS, gold=gold)], mapping | schema)


def gold_texts(dataset: MappedDataset) -> list[str]:
    (question,) = dataset.questions
    turns = {turn.id: turn.content for one in dataset.haystack(question.haystack).sessions for turn in one.turns}
    return [turns[id] for id in question.gold_turns]


@pytest.mark.parametrize(
    ("gold", "format", "expected"),
    [
        ([1, 3], "numbers-from-0", ["one", "three"]),
        (["1", "3"], "numbers-from-0", ["one", "three"]),
        ([[1], [[3]]], "numbers-from-0", ["one", "three"]),
        ([1, 2], "numbers-from-1", ["zero", "one"]),
        (4, "numbers-from-0", ["four"]),
        ([["1", "4"]], "ranges-from-0", ["one", "three", "four"]),
        ([["1", "4"]], "ranges-from-1", ["zero", "one", "three"]),
        ([[0, 0], [4, 5]], "ranges-from-0", ["zero", "four", "five"]),
        (["0-1", 5], "ranges-from-0", ["zero", "one", "five"]),
        ([[0, 3], [1, 1]], "ranges-from-0", ["zero", "one", "three"]),
    ],
)
def test_evidence_is_the_number_of_a_turn(tmp_path: Path, gold: Any, format: str, expected: list[str]) -> None:
    dataset = read(tmp_path, gold, format)
    assert gold_texts(dataset) == expected
    assert dataset.questions[0].gold_sessions == ("s1",)
    assert not any("evidence ids" in note for note in dataset.notes)


def test_each_match_of_a_path_may_be_a_range(tmp_path: Path) -> None:
    gold = [{"span": [0, 1]}, {"span": [4, 4]}]
    assert gold_texts(read(tmp_path, gold, "ranges-from-0", evidence="gold[*].span")) == ["zero", "one", "four"]


@pytest.mark.parametrize("gold", [[6], ["6"], [2], ["x"], [-1]])
def test_numbers_without_a_turn_are_dropped_and_counted(tmp_path: Path, gold: list[Any]) -> None:
    dataset = read(tmp_path, [0, *gold], "numbers-from-0")
    assert gold_texts(dataset) == ["zero"]
    assert any(note.startswith("unknown evidence ids") and note.endswith(": 1") for note in dataset.notes)


@pytest.mark.parametrize("gold", [[[0, 6]], [[4, 1]], [[1, 2, 3]], ["a-b"]])
def test_ranges_outside_the_history_are_dropped_and_counted(tmp_path: Path, gold: list[Any]) -> None:
    dataset = read(tmp_path, [[0, 0], *gold], "ranges-from-0")
    assert gold_texts(dataset) == ["zero"]
    assert any(note.startswith("unknown evidence ids") and note.endswith(": 1") for note in dataset.notes)


def test_turns_are_numbered_through_all_sessions(tmp_path: Path) -> None:
    sessions = [["a", "b"], [], ["", "d"], ["e"]]
    mapping = {"evidence": "gold", "evidenceFormat": "ranges-from-0", "evidenceLevel": "turn"}
    dataset = opened(tmp_path, [item(sessions=sessions, gold=[[1, 3]])], mapping)
    assert gold_texts(dataset) == ["b", "d"]
    assert dataset.questions[0].gold_sessions == ("s1", "s3")


def test_an_unknown_number_says_which_format_to_set(tmp_path: Path) -> None:
    error = refused(read, tmp_path, ["1", "16"], "exact")
    assert "schema.evidenceFormat: numbers-from-0" in error.remedy
    error = refused(read, tmp_path, [["1", "16"]], "exact")
    assert "ranges-from-0" in error.remedy


def test_a_list_of_texts_is_one_session(tmp_path: Path) -> None:
    dataset = read(tmp_path, [1], "numbers-from-0")
    (session,) = dataset.haystack("q1").sessions
    assert [turn.content for turn in session.turns] == [text for text in TEXTS if text]


def test_one_session_has_one_date(tmp_path: Path) -> None:
    context = {"field": "sessions", "type": "turns", "dateField": "day"}
    dataset = opened(tmp_path, [item(sessions=["a", "b"], day="2024-05-06")], {"context": context})
    (session,) = dataset.haystack("q1").sessions
    assert session.at is not None
    assert session.at.isoformat() == "2024-05-06T00:00:00"


@pytest.mark.parametrize("key", ["idField", "turnsField", "sessionPattern"])
def test_keys_that_have_no_effect_on_one_session_are_refused(tmp_path: Path, key: str) -> None:
    context = {"field": "sessions", "type": "turns", key: "x*"}
    assert refused(opened, tmp_path, [item()], {"context": context}).where.endswith(key)


@pytest.mark.parametrize("sessions", ["a text", {"a": "b"}])
def test_what_is_not_a_list_of_turns_is_refused(tmp_path: Path, sessions: Any) -> None:
    error = refused(opened, tmp_path, [item(sessions=sessions)], {"context": {"field": "sessions", "type": "turns"}})
    assert "schema.context.type" in error.remedy
