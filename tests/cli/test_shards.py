"""`--shard I/N` performs a part of a run, and `memorybench merge` makes one run of all parts."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command

DATA = Path(__file__).parents[2] / "src/memorybench/catalog/data"
EVAL = ("eval", "--providers", "bm25", "hybrid", "oracle", "--limit", "60")
AUDIT = ("audit", str(DATA / "sample-dataset.json"), "--model", "scripted/quote", "--judge-model", "scripted/judge")
SUITES = {
    "eval": (*EVAL, "--answering-model", "scripted/quote", "--judge-model", "scripted/judge", "--repeats", "2"),
    "audit": (*AUDIT, "--providers", "bm25", "none"),
    "extraction": ("extraction", "run", "--extractor", "hoarder", "--limit", "12", "--no-targets"),
    "hygiene": ("hygiene", "run"),
}
COUNT = 3
FOLDERS = tuple(f"machine-{number}" for number in range(1, COUNT + 1))


@pytest.fixture
def shards(command: Command) -> Command:
    """Three shards of a run, each in a folder of its own."""
    for number, folder in enumerate(FOLDERS, 1):
        command.once(*EVAL, "--shard", f"{number}/{COUNT}", "--run-id", "part", "--output", folder)
    return command


def outcomes(folder: Path, run: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "results.db")) as db:
        columns = "trial, ordinal, benchmark, case_id, subject, status, body"
        return db.execute(f"SELECT {columns} FROM outcomes WHERE run = ? ORDER BY ordinal, trial", (run,)).fetchall()


def test_shards_are_a_partition_of_the_histories(shards: Command) -> None:
    parts = [
        {(row[2], row[3].rpartition("-q")[0]) for row in outcomes(shards.folder / name, "part")} for name in FOLDERS
    ]
    assert sorted(map(len, parts)) == [4, 4, 4]
    assert len(set.union(*parts)) == 12
    counts = Counter(row[0] for name in FOLDERS for row in outcomes(shards.folder / name, "part"))
    assert set(counts.values()) == {1}
    assert len(counts) == 3 * 60


def test_a_shard_does_not_depend_on_the_providers(command: Command) -> None:
    asked = []
    for run, providers in (("a", ["none"]), ("b", ["oracle", "none"])):
        command("eval", "--providers", *providers, "--shard", "2/5", "--run-id", run)
        asked.append({row[3] for row in outcomes(command.folder / "results", run)})
    assert asked[0] == asked[1] != set()


def test_a_shard_says_what_it_is_a_part_of(shards: Command) -> None:
    said = shards("results", "machine-2/part", "--json").json
    shard = said["shard"]
    assert (shard["number"], shard["of"]) == (2, 3)
    assert (shard["histories"], shard["histories_in_all"], shard["questions_in_all"]) == (4, 12, 60)
    assert shard["questions"] == said["counts"]["planned"] // 3 == said["samples"][0]["cases"]
    assert any("2/3" in line for line in (shards.folder / "machine-2/part/report.md").read_text().splitlines()[:3])
    assert "2/3" in shards("runs", "--results", "machine-2").out


def test_a_gate_on_a_shard_says_so(command: Command) -> None:
    words = ("eval", "--providers", "bm25", "--limit", "24", "--shard", "1/2", "--threshold", "recall@5=0.999")
    command("eval", "--providers", "bm25", "--limit", "24", "--run-id", "base")
    said = command(*words, "--baseline", "base", "--json", "--run-id", "part")
    assert said.code == 3
    checks = said.json["checks"]
    assert {check["name"].partition(" ")[0] for check in checks} == {"threshold", "baseline"}
    assert all("shard 1/2" in check["text"] for check in checks)


def test_a_resumed_shard_stays_the_same_shard(command: Command) -> None:
    words = ("eval", "--providers", "bm25", "--limit", "24", "--concurrency", "1")
    command(*words, "--shard", "2/3", "--run-id", "straight")
    assert command.killed(*words, "--shard", "2/3", "--run-id", "part", at=12)
    assert command("eval", "--resume", "part", "--shard", "1/3").code == 2
    assert command("eval", "--resume", "part").code == 0
    folder = command.folder / "results"
    assert outcomes(folder, "part") == outcomes(folder, "straight")


def test_a_dry_run_of_a_shard_plans_its_part(command: Command) -> None:
    words = ("eval", "--providers", "bm25", "--limit", "24", "--dry-run", "--json")
    parts = [command(*words, "--shard", f"{number}/3").json for number in (1, 2, 3)]
    whole = command(*words).json
    assert sum(part["planned"] for part in parts) == whole["planned"]
    for stage in ("add", "search"):
        calls = [sum(row["calls"] for row in plan["expected"] if row["stage"] == stage) for plan in (*parts, whole)]
        assert sum(calls[:-1]) == calls[-1] > max(calls[:-1])


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "1/0", "a/b", "1/3/4", "-1/3", "1/13"])
def test_an_invalid_shard_is_refused(command: Command, shard: str) -> None:
    said = command("eval", "--providers", "bm25", f"--shard={shard}")
    assert said.code == 2
    assert said.err.startswith("memorybench: --shard: ")
    assert not (command.folder / "results").exists()
