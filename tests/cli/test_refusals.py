"""Commands that are refused before anything is written, and plug-ins that cannot be loaded."""

from __future__ import annotations

import json
import shutil
import sqlite3
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from memorybench.cli.main import main
from memorybench.files import entry_points
from tests.cli.command import Command


def test_a_suite_that_cannot_be_loaded_is_skipped_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = EntryPoint("zap", "no_such_module:SUITE", "memorybench.suites")
    monkeypatch.setattr(entry_points, "third_party_points", lambda group: [broken] if group == broken.group else [])
    assert main(["list", "--suites"]) == 0
    output = capsys.readouterr()
    assert "hygiene" in output.out
    assert "zap" in output.err
    assert "no_such_module" in output.err


TRACE = {"id": "t", "conversation": [{"role": "user", "content": "I live in Oslo."}], "output": ["Lives in Oslo"]}
LOCAL = """
name: broken
type: local
adapter: {adapter}
"""


def write_provider(folder: Path, text: str) -> None:
    (folder / "providers" / "configs").mkdir(parents=True)
    (folder / "providers" / "configs" / "broken.yaml").write_text(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ("eval", "--providers", "bm25", "--answering-model", "gpt-4o"),
        ("eval", "--providers", "mem0", "bm25"),
        ("audit", "audit.json", "--model", "gpt-4o"),
        ("audit", "audit.json", "--model", "scripted/quote", "--judge-model", "none", "--provider", "mem0"),
        ("extraction", "run", "--extractor", "reference", "--extractor-model", "gpt-4o"),
        ("extraction", "online", "--source", "jsonl", "traces.jsonl", "--judge-model", "gpt-4o"),
        ("hygiene", "run", "--agent", "builtin", "--model", "gpt-4o", "--agent-turn", "--i-understand-model-cost"),
        ("judge", "calibrate", "labels.jsonl", "--judge-model", "gpt-4o"),
    ],
    ids=lambda arguments: "-".join(arguments[:2]),
)
def test_a_missing_key_leaves_nothing_behind(
    command: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.delenv("MEM0_API_KEY", raising=False)
    (command.folder / "traces.jsonl").write_text(json.dumps(TRACE))
    (command.folder / "labels.jsonl").write_text('{"question": "q", "answer": "a", "response": "a", "label": "yes"}')
    shutil.copy(Path(__file__).parents[2] / "data" / "sample-dataset.json", command.folder / "audit.json")
    before = sorted(command.folder.rglob("*"))
    said = command(*arguments)
    assert (said.code, said.out) == (2, "")
    assert "API_KEY" in said.err
    assert sorted(command.folder.rglob("*")) == before


def test_an_adapter_that_cannot_be_created_leaves_nothing_behind(command: Command) -> None:
    write_provider(command.folder, LOCAL.format(adapter="./memory.py:Memory"))
    (command.folder / "memory.py").write_text(
        "class Memory:\n"
        "    def __init__(self, folder): raise RuntimeError('no licence')\n"
        "    def add(self, scope, session): pass\n"
        "    def search(self, scope, query, limit): return []\n"
    )
    arguments = ("eval", "--providers", "bm25", "broken", "--end", "2", "--allow-code", "--run-id", "a")
    said = command(*arguments)
    assert said.code == 2
    assert "no licence" in said.err
    assert not (command.folder / "results").exists()
    code = (command.folder / "memory.py").read_text().replace("raise RuntimeError('no licence')", "pass")
    (command.folder / "memory.py").write_text(code)
    assert command(*arguments).code == 0, "the run id is free"


def test_an_embedder_without_its_key_is_refused_before_anything_is_written(command: Command) -> None:
    write_provider(
        command.folder,
        LOCAL.format(adapter="builtin:contextual-retrieval") + "local: {embedding: {provider: openai}}\n",
    )
    said = command("eval", "--providers", "broken", "--limit", "1")
    assert said.code == 2
    assert "OPENAI_API_KEY" in said.err
    assert not (command.folder / "results").exists()


def test_a_refused_run_leaves_the_other_runs_of_the_folder(command: Command) -> None:
    assert command("eval", "--providers", "bm25", "--limit", "1", "--run-id", "first").code == 0
    write_provider(command.folder, LOCAL.format(adapter="./missing.py:Memory"))
    assert command("eval", "--providers", "broken", "--allow-code", "--run-id", "second").code == 2
    assert sorted(place.name for place in (command.folder / "results").iterdir() if place.is_dir()) == ["first"]
    with sqlite3.connect(command.folder / "results" / "results.db") as db:
        assert db.execute("SELECT id FROM runs").fetchall() == [("first",)]


@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_the_id_of_an_existing_run_is_refused_before_its_folder_is_touched(
    command: Command, more: tuple[str, ...]
) -> None:
    (command.folder / "traces.jsonl").write_text(json.dumps(TRACE))
    online = ("extraction", "online", "--source", "jsonl", "traces.jsonl", "--judge-model", "scripted/judge")
    command(*online, "--run-id", "a")
    folder = command.folder / "results" / "a"
    before = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    assert command(*online, "--run-id", "a", *more).code == 2
    assert {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before
