"""Differences from baselines: each compares the values of one measure, by the histories of its own benchmark."""

import json
from collections.abc import Sequence
from typing import Any

from tests.cli.command import Command

SCHEMA = {
    "itemId": "id",
    "questions": {"field": "quiz", "idField": "id", "questionField": "q", "answerField": "a", "evidenceField": "gold"},
    "context": {"field": "sessions", "idField": "ids", "itemSchema": {"content": "text", "role": "role"}},
}
NOTES = """
class Notes:
    def add(self, scope, session): ...
    def clear(self, scope): ...
    def search(self, scope, query, limit):
        return ["The fence is purple."] if "fence" in query else []
"""


def write_benchmark(command: Command, name: str, histories: int, questions: Sequence[str]) -> None:
    """A benchmark that asks the same questions about each history; the ids of the questions are numbers."""
    folder = command.folder / "benchmarks"
    folder.mkdir(exist_ok=True)
    items = [
        {
            "id": f"{name}{n}",
            "ids": ["s1"],
            "sessions": [[{"role": "user", "text": "The fence is green."}]],
            "quiz": [
                {"id": str(n * len(questions) + place), "q": text, "a": "green", "gold": ["s1"]}
                for place, text in enumerate(questions)
            ],
        }
        for n in range(histories)
    ]
    (folder / f"{name}.json").write_text(json.dumps(items))
    config = {"name": name, "data": {"type": "local", "path": f"{name}.json"}, "schema": SCHEMA}
    (folder / f"{name}.yaml").write_text(json.dumps(config | {"evaluation": {"method": "llm-judge"}}))


def write_notes(command: Command) -> None:
    """A provider that reports no sources."""
    folder = command.folder / "providers"
    folder.mkdir()
    (folder / "notes.py").write_text(NOTES)
    (folder / "notes.yaml").write_text('{"name": "notes", "type": "local", "adapter": "./notes.py:Notes"}')


def differences(document: dict[str, Any], benchmark: str) -> list[dict[str, Any]]:
    return [row for row in document["differences_from_baseline"] if row["benchmark"] == benchmark]


def test_benchmarks_with_the_same_question_ids_keep_their_own_histories(command: Command) -> None:
    questions = ("Which colour has the fence?", "zzz")
    write_benchmark(command, "many", 12, questions)
    write_benchmark(command, "few", 2, questions * 6)
    flags = ("eval", "--providers", "bm25", "oracle", "--config-dir", ".", "--json", "--benchmarks")
    together, alone = command(*flags, "many", "few").json, command(*flags, "many").json
    (of_both,), (of_one,) = differences(together, "many"), differences(alone, "many")
    assert of_both["n"] == of_one["n"] == 24
    for name in ("difference", "low", "high", "p"):
        assert of_both[name] == of_one[name], name


def test_a_provider_without_recall_has_no_difference_in_recall(command: Command) -> None:
    write_benchmark(command, "many", 6, ("Which colour has the fence?", "zzz"))
    write_notes(command)
    flags = ("eval", "--benchmarks", "many", "--config-dir", ".", "--allow-code", "--json")
    document = command(*flags, "--providers", "notes", "bm25", "oracle").json
    values = {
        result["subject"]: measure["value"]
        for result in document["results"]
        for measure in result["measures"]
        if measure["name"] == "recall@5" and not result["group"]
    }
    assert values["notes"] is None
    assert [row["subject"] for row in differences(document, "many")] == ["bm25"]
