"""Turns that are texts and begin with their speaker, such as "Ida: Good morning."."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memorybench.datasets.mapped import MappedDataset
from tests.datasets.described import item, opened
from tests.doubles.refusals import refused

LONG = "x" * 99
TALK = ["Ida: The roof leaks: badly.", "  Jon Doe :I call him.", "It rains.", "Ida:", f"{LONG}: a text", "User: Ok."]
READ = [
    ("Ida", "user", "The roof leaks: badly."),
    ("Jon Doe", "user", "I call him."),
    (None, "user", "It rains."),
    (None, "user", f"{LONG}: a text"),
    (None, "user", "Ok."),
]


def read(folder: Path, talk: Any, schema: dict[str, Any] | None = None, **context: Any) -> MappedDataset:
    mapping = {"context": {"field": "sessions", "type": "turns", "speakerSeparator": ":"} | context}
    return opened(folder, [item(sessions=talk, gold=[0])], mapping | (schema or {}))


def turns(dataset: MappedDataset) -> list[tuple[str | None, str, str]]:
    sessions = dataset.haystack(dataset.questions[0].haystack).sessions
    return [(turn.speaker, turn.role, turn.content) for session in sessions for turn in session.turns]


@pytest.mark.parametrize(
    ("talk", "context"),
    [
        (TALK, {}),
        ([TALK], {"type": "array"}),
        ("\n".join(TALK), {"type": "string", "split": "lines"}),
        ([{"line": text} for text in TALK], {"itemSchema": {"text": "line"}}),
        ({"day_1": TALK}, {"type": "object", "sessionPattern": "day_*"}),
    ],
    ids=["turns", "array", "string", "objects", "object"],
)
def test_the_name_before_the_separator_is_the_speaker(tmp_path: Path, talk: Any, context: dict[str, Any]) -> None:
    dataset = read(tmp_path, talk, **context)
    assert turns(dataset) == READ
    assert any("speakerSeparator" in note and note.endswith(" 2") for note in dataset.notes)
    assert any("empty turns" in note and note.endswith(" 1") for note in dataset.notes)


def test_a_role_before_the_separator_is_the_role(tmp_path: Path) -> None:
    dataset = read(tmp_path, ["USER - Hi.", "Assistant - Hello - there.", "Tool - 3"], speakerSeparator=" - ")
    assert turns(dataset) == [(None, "user", "Hi."), (None, "assistant", "Hello - there."), (None, "tool", "3")]
    objects = [{"line": "Assistant: Hi.", "by": "user"}]
    dataset = read(tmp_path, objects, itemSchema={"text": "line", "role": "by"})
    assert turns(dataset) == [("Assistant", "user", "Hi.")]


def test_without_the_key_the_text_is_kept(tmp_path: Path) -> None:
    dataset = read(tmp_path, TALK[:1], speakerSeparator=None)
    assert turns(dataset) == [(None, "user", TALK[0])]


@pytest.mark.parametrize("gold", ["Ida: The roof leaks: badly.", "the roof leaks", "Ida: The roof leaks"])
def test_evidence_may_contain_the_speaker(tmp_path: Path, gold: str) -> None:
    schema = {"evidence": "gold", "evidenceLevel": "turn", "evidenceFormat": "text"}
    mapping = schema | {"context": {"field": "sessions", "type": "turns", "speakerSeparator": ":"}}
    dataset = opened(tmp_path, [item(sessions=TALK, gold=gold)], mapping)
    assert dataset.questions[0].gold_turns == ("s1:1",)


def test_a_speaker_from_two_places_is_refused(tmp_path: Path) -> None:
    error = refused(read, tmp_path, [{"line": "a: b", "by": "c"}], itemSchema={"text": "line", "speaker": "by"})
    assert error.where.endswith("schema.context.speakerSeparator")
    assert refused(read, tmp_path, TALK, speakerSeparator="").where.endswith("schema.context.speakerSeparator")


def test_a_caption_is_not_searched_for_a_speaker(tmp_path: Path) -> None:
    talk = [{"line": "Look at this!", "photo": "a red kite"}, {"line": "Ida: Nice", "photo": "a dog: asleep"}]
    dataset = read(tmp_path, talk, itemSchema={"text": "line", "caption": "photo"})
    assert turns(dataset) == [
        (None, "user", "Look at this! [shares a photo: a red kite]"),
        ("Ida", "user", "Nice [shares a photo: a dog: asleep]"),
    ]
