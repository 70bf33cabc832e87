"""`--dry-run`: what a run would call and cost, without keys, and without what is recorded already."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command
from tests.doubles.stub import Stub, completion

PAID = ("eval", "--providers", "bm25", "oracle", "--limit", "10", "--answering-model", "gpt-4o")


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(completion("Paris", tokens=(1000, 100)))
    return stub


def calls(document: dict[str, Any], stage: str) -> int:
    return sum(row["calls"] for row in document["expected"] if row["stage"] == stage)


@pytest.mark.parametrize(
    "arguments",
    [
        ("eval", "--providers", "mem0", "zep", "--answering-model", "gpt-4o", "--judge-model", "gpt-4o"),
        ("audit", "audit.json", "--model", "gpt-4o", "--judge-model", "gpt-4o", "--provider", "mem0"),
        ("extraction", "run", "--extractor", "reference", "--extractor-model", "gpt-4o", "--judge-model", "gpt-4o"),
        ("extraction", "run", "--extractor", "mem0"),
        ("extraction", "online", "--source", "jsonl", "traces.jsonl", "--judge-model", "gpt-4o"),
        ("hygiene", "run", "--agent", "builtin", "--model", "gpt-4o", "--agent-turn", "--i-understand-model-cost"),
    ],
    ids=lambda arguments: "-".join(arguments[:4]),
)
def test_no_key_is_needed(command: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    for variable in ("MEM0_API_KEY", "ZEP_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    shutil.copy(Path(__file__).parents[2] / "data" / "sample-dataset.json", command.folder / "audit.json")
    (command.folder / "traces.jsonl").write_text('{"id": "t", "conversation": "I live in Oslo.", "output": []}')
    said = command(*arguments, "--dry-run", "--json")
    assert said.code == 0, said.err
    assert said.json["expected"]
    assert said.json["planned"] > 0


@pytest.mark.parametrize("providers", [(), ("--providers", "full-context", "oracle")], ids=["replayed", "providers"])
def test_calls_of_verify_probes_are_counted(command: Command, stub: Stub, providers: tuple[str, ...]) -> None:
    data = str(Path(__file__).parents[2] / "data/sample-dataset.json")
    asked = ("--kinds", "conflict", "temporal", "--limit", "9", "--verify-probes", *providers)
    words = ("audit", data, "--model", "gpt-4o", "--judge-model", "none", *asked, "--json")
    expected = command(*words, "--dry-run").json
    command(*words)
    assert calls(expected, "answer") + calls(expected, "answer without context") == len(stub.calls)


def test_an_unknown_price_is_not_zero(command: Command) -> None:
    said = command("eval", "--providers", "mem0", "bm25", "--limit", "3", "--dry-run", "--json")
    costs = {(row["subject"], row["stage"]): row["cost"] for row in said.json["expected"]}
    assert costs["mem0", "add"] is None
    assert costs["mem0", "search"] is None
    assert costs["bm25", "add"] == 0
    assert said.json["cost"] == {"known": 0, "unknown": ["mem0: add", "mem0: search"]}
    text = command("eval", "--providers", "mem0", "bm25", "--limit", "3", "--dry-run").out
    assert "mem0: add" in text
    assert "?" in text


def test_dollars_have_two_digits(command: Command) -> None:
    from memorybench.reporting.formatting import about

    assert [about(dollars) for dollars in (5.3141, 0.0042, 0.98765, 1234.5, 0)] == [
        "$5.30", "$0.0042", "$0.99", "$1,200", "$0",
    ]  # fmt: skip


@pytest.mark.slow
def test_reuse_leaves_the_calls_that_are_left(command: Command, stub: Stub) -> None:
    command(*PAID, "--run-id", "a")
    document = command(*PAID, "--reuse", "a", "--dry-run", "--json").json
    assert (calls(document, "search"), calls(document, "answer"), calls(document, "add")) == (0, 0, 0)
    assert document["cost"]["known"] == 0
    more = command(
        "eval", "--providers", "bm25", "oracle", "--limit", "14", *PAID[-2:], "--reuse", "a", "--dry-run", "--json"
    )
    assert (calls(more.json, "search"), calls(more.json, "answer")) == (4, 8)
    other = command(*PAID[:-1], "gpt-4.1", "--reuse", "a", "--dry-run", "--json").json
    assert (calls(other, "search"), calls(other, "answer")) == (0, 20)


def test_score_leaves_the_calls_that_are_left(command: Command, stub: Stub) -> None:
    command(*PAID, "--judge-model", "scripted/judge", "--run-id", "a")
    for judge, number in {"scripted/judge": 0, "gpt-4o": 20}.items():
        document = command("score", "a", "--judge-model", judge, "--dry-run", "--json").json
        assert (calls(document, "judge"), sum(row["reused"] for row in document["expected"]) > 0) == (
            number,
            not number,
        )


@pytest.mark.slow
def test_resume_leaves_the_calls_that_are_left(command: Command, stub: Stub) -> None:
    command(*PAID, "--budget", "0.0175", "--concurrency", "1", "--run-id", "r")
    done = len(stub.calls)
    document = command("eval", "--resume", "r", "--dry-run", "--json").json
    assert calls(document, "answer") == 20 - done
    assert len(stub.calls) == done


def test_a_dry_run_without_a_judge_says_that_accuracy_is_not_measured(command: Command) -> None:
    run = ("eval", "--providers", "bm25", "--limit", "5", "--dry-run", "--answering-model", "scripted/quote")
    assert "Accuracy is not measured" in command(*run).out
    assert "Accuracy is not measured" not in command(*run, "--judge-model", "scripted/judge").out


def test_a_narrow_screen_drops_columns_and_keeps_names_and_words_whole(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    providers = ("--providers", "bm25", "supermemory", "full-context")
    for arguments in (("--limit", "20"), ()):
        said = command("eval", *providers, *arguments, "--answering-model", "ollama/llama3.2", "--dry-run")
        assert max(map(len, said.out.splitlines())) <= 80
        assert "│ full-context │" in said.out
        assert "│ supermemory  │" in said.out
        assert "reused" not in said.out


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["0.0175", "0.000001"])
def test_a_run_out_of_budget_suggests_a_command_that_works(command: Command, stub: Stub, budget: str) -> None:
    said = command(*PAID, "--budget", budget, "--concurrency", "1", "--run-id", "r")
    (suggested,) = re.findall(r"Continue with: memorybench (.*--budget .*)", " ".join(said.out.split()))
    answers = len(stub.calls)
    command(*suggested.split()[:5])
    assert len(stub.calls) > answers


@pytest.mark.slow
def test_a_dry_run_names_the_keys_that_a_run_lacks(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEM0_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    run = ("eval", "--providers", "mem0", "--answering-model", "openai/gpt-4o-mini", "--limit", "3", "--dry-run")
    missing = command(*run, "--json").json["missing"]
    assert [name for line in missing for name in ("MEM0_API_KEY", "OPENAI_API_KEY") if name in line] == [
        "MEM0_API_KEY",
        "OPENAI_API_KEY",
    ]
    assert all(line.split(": ")[-1] in " ".join(command(*run).out.split()) for line in missing)
    monkeypatch.setenv("MEM0_API_KEY", "k" * 20)
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    assert command(*run, "--json").json["missing"] == []
