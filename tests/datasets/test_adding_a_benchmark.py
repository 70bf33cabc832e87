"""What the documentation promises to someone who adds a benchmark, done as that one would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.stub import Stub, raw

DOCS = Path(__file__).parents[2] / "docs/adding-a-benchmark.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with the two files of the documentation in it."""
    for name, text in re.findall(r"^`(\S+)`\n```\w+\n(.*?)^```", DOCS.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


def memorybench(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    program = [sys.executable, "-m", "memorybench", *arguments]
    return subprocess.run(program, cwd=folder, env={**kept, **environment}, capture_output=True, text=True, check=False)


def test_the_example_of_the_documentation_runs(folder: Path) -> None:
    (command,) = re.findall(r"^\$ memorybench (.*)$", DOCS.read_text("utf-8"), re.MULTILINE)
    done = memorybench(folder, *command.split(), "--json")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    overall = next(result for result in results if not result["group"])
    measured = {measure["name"]: (measure["value"], measure["n"]) for measure in overall["measures"]}
    assert measured["recall@5"] == (1.0, 2)
    groups = {result["group"].get("question_type") for result in results if result["group"]}
    assert groups == {"facts", "journeys"}


def test_a_slip_in_the_data_is_told_before_anything_runs(folder: Path) -> None:
    file = folder / "benchmarks/datasets/travel-notes.json"
    file.write_text(file.read_text("utf-8").replace("19.04.2024 18:40", "19 April"), encoding="utf-8")
    done = memorybench(folder, "eval", "--benchmarks", "travel-notes", "--providers", "bm25")
    assert done.returncode == 2
    assert done.stdout == ""
    where = r"memorybench: benchmarks/datasets/travel-notes.json:7: people\[0\].log.chats\[1\].lines"
    expected = rf'{where}: invalid date "19 April"; expected %d.%m.%Y %H:%M; correct it, or set schema.dateFormat\n'
    assert re.fullmatch(expected, done.stderr)
    assert not (folder / "results").exists()


def test_without_its_data_a_benchmark_says_what_to_do(tmp_path: Path) -> None:
    done = memorybench(tmp_path, "eval", "--benchmarks", "locomo", MEMORYBENCH_DATA=str(tmp_path / "cache"))
    assert done.returncode == 2
    assert "memorybench data pull locomo; or download https://raw.githubusercontent.com/" in done.stderr
    assert f"and put it at {tmp_path}/cache/raw.githubusercontent.com/" in done.stderr


def test_data_is_pulled_listed_and_verified(folder: Path, stub: Stub) -> None:
    content = (folder / "benchmarks/datasets/travel-notes.json").read_bytes()
    stub.always(raw(content, content_type="application/json"))
    config = folder / "benchmarks/configs/travel-notes.yaml"
    remote = "type: huggingface\n  path: someone/notes/notes.json\n  licence: MIT"
    text = config.read_text("utf-8").replace("type: local\n  path: ./datasets/travel-notes.json", remote)
    config.write_text(text, encoding="utf-8")
    here = {"MEMORYBENCH_DATA": str(folder / "cache"), "HF_ENDPOINT": stub.url}

    rows = json.loads(memorybench(folder, "data", "list", "--json", **here).stdout)
    before = next(row for row in rows if row["name"] == "travel-notes")
    assert (before["present"], before["pinned"], before["size"]) == (False, False, None)
    pulled = memorybench(folder, "data", "pull", "travel-notes", **here)
    assert pulled.returncode == 0, pulled.stderr
    assert pulled.stdout.startswith("travel-notes: licence MIT\n")
    assert "unpinned, recorded for later" in pulled.stdout
    assert [call.path for call in stub.calls] == ["/datasets/someone/notes/resolve/main/notes.json"]
    table = memorybench(folder, "data", "list", **here).stdout
    assert re.search(r"^travel-notes +present .*unpinned  MIT$", table, re.MULTILINE)
    assert re.search(r"^locomo +missing .*pinned    CC BY-NC 4.0", table, re.MULTILINE)

    assert memorybench(folder, "data", "verify", **here).returncode == 0
    file = folder / "cache/someone/notes/notes.json"
    file.write_bytes(content + b" ")
    changed = memorybench(folder, "data", "verify", **here)
    assert changed.returncode == 1
    assert "memorybench data pull travel-notes" in changed.stdout
    refused = memorybench(folder, "eval", "--benchmarks", "travel-notes", "--providers", "bm25", **here)
    assert refused.returncode == 2
    assert "the checksum differs" in refused.stderr


def test_there_is_nothing_to_pull_where_nothing_is_remote(folder: Path) -> None:
    done = memorybench(folder, "data", "pull", "travel-notes")
    assert done.returncode == 2
    assert 'benchmark "travel-notes"' in done.stderr
    assert memorybench(folder, "data", "pull", "starter").returncode == 2
