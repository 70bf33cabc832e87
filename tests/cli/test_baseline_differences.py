"""Differences from baselines: each compares the values of one measure, by the histories of its own benchmark."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from memorybench.suites.audit.probe_file import write_probes
from memorybench.suites.stored_run import open_stored_run
from tests.cli.command import Command
from tests.cli.test_audit import SAMPLE
from tests.doubles.stub import Call, Stub, completion
from tests.suites.audit.probing import sample_probes

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


@pytest.mark.slow
def test_each_measure_has_a_table_of_its_own(command: Command, stub: Stub) -> None:
    def reply(call: Call) -> str:
        asked = call.json["messages"][-1]["content"]
        colour = "purple" if "purple" in asked else "green"
        if "yes or no" not in asked:
            return f"I believe that it is {colour}."
        return "yes" if colour == "green" else "perhaps"

    stub.always(completion(reply))
    write_benchmark(command, "many", 6, ("Which colour has the fence?",))
    write_notes(command)
    models = ("--answering-model", "gpt-4o-mini", "--judge-model", "gpt-4o", "--canaries", "off")
    flags = ("eval", "--benchmarks", "many", "--config-dir", ".", "--allow-code", "--run-id", "r", *models)
    command(*flags, "--providers", "notes", "bm25", "oracle")
    report = (command.folder / "results/r/report.md").read_text()
    tables = [part for part in report.split("###") if part.strip().startswith("Difference from baseline")]
    found = {part.split(",")[0].split()[-1]: re.findall(r"^\| (notes|bm25) ", part, re.MULTILINE) for part in tables}
    assert found == {"answer_f1": ["notes"], "accuracy": ["bm25"]}


def test_an_audit_is_compared_in_each_of_its_main_measures(command: Command) -> None:
    write_probes(command.folder / "probes.jsonl", sample_probes())
    words = ("--model", "scripted/quote", "--judge-model", "scripted/judge", "--canaries", "off", "--limit", "60")
    words += ("--probes", "probes.jsonl")
    document = command("audit", str(SAMPLE), *words, "--providers", "bm25", "none", "--run-id", "r", "--json").json
    measures = {
        (result["subject"], measure["name"]): measure
        for result in document["results"]
        for measure in result["measures"]
        if not result["group"]
    }
    rows = {row["measure"]: row for row in document["differences_from_baseline"]}
    assert set(rows) == {
        "recall_accuracy",
        "hallucinated_memory_rate",
        "conflict_resolution_accuracy",
        "temporal_accuracy",
        "dating_accuracy",
    }
    for name, row in rows.items():
        ours, theirs = measures["bm25", name], measures["none", name]
        assert row["n"] == ours["n"] > 0
        assert row["difference"] == pytest.approx(ours["value"] - theirs["value"])
    with open_stored_run(["r"], [command.folder / "audit-results"]) as stored:
        lower_is_better = [pair.measure for pair in stored.summary.differences if not pair.higher_is_better]
    assert lower_is_better == ["hallucinated_memory_rate"]
