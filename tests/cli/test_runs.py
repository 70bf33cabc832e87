"""`memorybench runs`: lists, tags, renames, deletes and prunes runs; kills leave no half-done change."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from memorybench.journal.lock import RunLock
from memorybench.journal.run_opening import reopen_run
from memorybench.journal.run_reader import FREE_MODELS, RunReader
from memorybench.journal.run_writer import RunWriter
from memorybench.models import rehearsal
from memorybench.models.presets import PRESETS
from tests.cli.command import Command, measured

EVAL = ("eval", "--benchmarks", "starter", "--providers", "bm25")
RUNS = ("first", "second", "third")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: `second` reuses steps of `first`, `third` has another provider."""
    from memorybench.cli.main import main

    folder = tmp_path_factory.mktemp("recorded")
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main([*EVAL, "--end", "6", "--run-id", "first"]) == 0
        assert main([*EVAL, "--end", "6", "--run-id", "second", "--reuse", "first", "--tag", "paper", "v2"]) == 0
        assert main(["eval", "--providers", "bm25", "oracle", "--end", "4", "--run-id", "third"]) == 0
    finally:
        os.chdir(before)
    return folder / "results"


@pytest.fixture
def runs(command: Command, recorded: Path) -> Iterator[Command]:
    shutil.copytree(recorded, command.folder / "results")
    yield command
    said = command("validate", "results")
    assert said.code == 0, said.err


def ids(command: Command, *arguments: str) -> list[str]:
    return [row["id"] for row in command("runs", "--json", *arguments).json]


def listed(command: Command, run: str) -> dict[str, Any]:
    row: dict[str, Any] = next(row for row in command("runs", "--json").json if row["id"] == run)
    return row


def rows_of(command: Command, run: str) -> int:
    tables = ("cases", "steps", "attempts", "outcomes", "notes", "tags")
    with closing(sqlite3.connect(command.folder / "results" / "results.db")) as db:
        counts = [db.execute(f"SELECT count(*) FROM {table} WHERE run = ?", (run,)).fetchone()[0] for table in tables]
    return sum(counts)


def make_partial(command: Command, *arguments: str) -> None:
    assert command.killed(*EVAL, "--end", "6", "--concurrency", "1", *arguments, at=10)


def test_runs_are_listed_newest_first_with_headline_n_and_tags(runs: Command) -> None:
    """U16"""
    rows = runs("runs", "--json").json
    assert [row["id"] for row in rows] == ["third", "second", "first"]
    assert [row["tags"] for row in rows] == [[], ["paper", "v2"], []]
    (headline,) = rows[0]["headlines"]
    assert (headline["subject"], headline["measure"]) == ("bm25", "recall@5"), "not the baseline"
    assert rows[0]["counts"]["scored"] == rows[0]["planned"] == 8
    assert (rows[0]["known_cost"], rows[0]["calls_of_unknown_cost"]) == (0, 0)
    assert runs("results", "--json").json == rows


def test_the_headline_of_a_run_without_a_report_is_computed(runs: Command) -> None:
    before = listed(runs, "first")["headlines"]
    for file in (runs.folder / "results" / "first").iterdir():
        file.unlink()
    assert listed(runs, "first")["headlines"] == before


@pytest.mark.parametrize("columns", ["60", "80", "160"])
def test_the_table_fits_the_terminal(runs: Command, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    said = runs("runs")
    assert said.code == 0
    assert all(name in said.out for name in RUNS)
    assert max(map(len, said.out.splitlines())) <= int(columns)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (("--tag", "paper"), ["second"]),
        (("--tag", "v2,other"), ["second"]),
        (("--tag", "none-has-it"), []),
        (("--suite", "bench"), ["third", "second", "first"]),
        (("--suite", "eval,audit"), ["third", "second", "first"]),
        (("--suite", "audit", "hygiene"), []),
        (("--status", "partial"), ["begun"]),
        (("--status", "complete", "--tag", "v2"), ["second"]),
    ],
)
def test_runs_are_filtered(runs: Command, filters: tuple[str, ...], expected: list[str]) -> None:
    if "partial" in filters:
        make_partial(runs, "--run-id", "begun")
    assert ids(runs, *filters) == expected


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("runs", "--status", "done"), "--status"),
        (("runs", "--suite", "banch"), "--suite"),
        (("runs", "tag", "first", "two words"), "TAG"),
        (("runs", "tag", "first", "absent", "--remove"), "TAG"),
        (("runs", "rename", "first", "../x"), "NEW"),
        (("runs", "rename", "first", "latest"), "NEW"),
        (("runs", "rename", "first", "results.db-journal"), "NEW"),
        (("runs", "prune"), "runs prune"),
        (("runs", "prune", "--older-than", "soon"), "--older-than"),
        (("runs", "prune", "--keep", "1", "--status", "running"), "--status"),
        (("runs", "delete", "first"), "--yes"),
        (("runs", "delete", "frist", "--yes"), "results/results.db"),
        ((*EVAL, "--tag", "two words"), "--tag"),
        ((*EVAL, "--run-id", "latest"), "--run-id"),
        ((*EVAL, "--run-id", "results.db-wal"), "--run-id"),
    ],
)
def test_invalid_arguments_are_refused_and_nothing_changes(
    runs: Command, arguments: tuple[str, ...], where: str
) -> None:
    before = runs("runs", "--json").out
    said = runs(*arguments)
    assert said.code == 2
    assert said.err.startswith(f"memorybench: {where}: ")
    assert runs("runs", "--json").out == before


def test_tags_are_added_and_removed(runs: Command) -> None:
    """U16"""
    assert runs("runs", "tag", "first", "b", "a,c", "--json").json == {"run_id": "first", "tags": ["a", "b", "c"]}
    assert runs("runs", "tag", "first", "b", "--remove", "--json").json["tags"] == ["a", "c"]
    assert listed(runs, "first")["tags"] == ["a", "c"]


def test_a_tag_that_is_a_secret_reaches_no_file(runs: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefghijklmnop")
    runs("runs", "tag", "first", "sk-abcdefghijklmnop")
    runs(*EVAL, "--end", "2", "--run-id", "new", "--tag", "sk-abcdefghijklmnop")
    runs("eval", "--resume", "new", "--tag", "sk-abcdefghijklmnop")
    for path in (runs.folder / "results").rglob("*"):
        assert path.is_dir() or b"sk-abcdefghijklmnop" not in path.read_bytes(), path


@pytest.mark.slow
def test_a_killed_run_keeps_its_tags_and_gets_more_when_it_is_resumed(runs: Command) -> None:
    make_partial(runs, "--run-id", "begun", "--tag", "a")
    assert listed(runs, "begun")["tags"] == ["a"]
    assert runs("eval", "--resume", "begun", "--tag", "b").code == 0
    assert listed(runs, "begun")["tags"] == ["a", "b"]
    assert runs("eval", "--resume", "begun", "--tag", "c").code == 0, "complete"
    assert listed(runs, "begun")["tags"] == ["a", "b", "c"]


def test_a_narrow_terminal_shows_headline_n_cost_and_tags(runs: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("memorybench.reporting.formatting.total_cost", lambda *_: "$0.0069 + ?")
    runs("runs", "tag", "second", "a-longer-tag-than-usual")
    shown = runs("runs").out
    assert shown.count("$0.0069 + ?") == 3
    for heading in ("run", "headline", "n", "cost", "tags"):
        assert re.search(rf"│ +{heading} +│", shown), heading
    assert "started" not in shown


@pytest.mark.slow
def test_runs_of_other_suites_have_tags_and_a_headline(command: Command) -> None:
    assert command("hygiene", "run", "--no-mutants", "--run-id", "h", "--tag", "nightly").code in (0, 3)
    said = command("runs", "--tag", "nightly", "--suite", "hygiene", "--json")
    (row,) = said.json
    assert row["headlines"], "the main measure of the suite"


@pytest.mark.slow
def test_latest_is_the_newest_run(runs: Command) -> None:
    for arguments in (("results",), ("report",)):
        assert runs(*arguments, "latest", "--json").json["run_id"] == "third"
    assert "third" in runs("export", "latest").out
    assert runs("runs", "tag", "latest", "x", "--json").json["run_id"] == "third"


def test_latest_in_an_empty_folder_is_refused(runs: Command) -> None:
    assert runs("runs", "delete", *RUNS, "--yes").code == 0
    said = runs("results", "latest")
    assert said.code == 2
    assert said.err.startswith("memorybench: latest: ")


def test_a_renamed_run_has_the_same_results(runs: Command) -> None:
    """U16"""
    before = measured(runs("results", "first", "--json").json)
    second = measured(runs("results", "second", "--json").json)
    assert runs("runs", "rename", "first", "renamed").code == 0
    assert ids(runs) == ["third", "second", "renamed"]
    assert measured(runs("results", "renamed", "--json").json) == before
    assert measured(runs("results", "second", "--json").json) == second
    results = runs.folder / "results"
    assert not (results / "first").exists()
    assert json.loads((results / "renamed" / "report.json").read_bytes())["run_id"] == "renamed"
    assert runs("results", "first").code == 2
    assert listed(runs, "second")["spec"]["reuse"] == "renamed"
    assert runs("eval", "--resume", "renamed").code == 0


def test_a_name_that_is_taken_is_refused(runs: Command) -> None:
    (runs.folder / "results" / "mine").mkdir()
    for taken in ("second", "first", "mine"):
        assert runs("runs", "rename", "first", taken).code == 2
    assert ids(runs) == ["third", "second", "first"]


def test_an_unfinished_run_is_not_renamed(runs: Command) -> None:
    make_partial(runs, "--run-id", "begun")
    said = runs("runs", "rename", "begun", "new")
    assert said.code == 2
    assert "memorybench eval --resume begun" in said.err
    assert runs("eval", "--resume", "begun").code == 0
    assert runs("runs", "rename", "begun", "new").code == 0


def test_a_rename_does_not_hide_a_changed_row(command: Command, recorded: Path) -> None:
    shutil.copytree(recorded, command.folder / "results")
    with closing(sqlite3.connect(command.folder / "results" / "results.db")) as db:
        db.execute("UPDATE steps SET seconds = 9 WHERE run = 'first' AND name = 'search'")
        db.commit()
    assert command("runs", "rename", "first", "new").code == 1
    assert command("validate", "results").code == 2


def test_a_deleted_run_is_gone_and_others_are_unchanged(runs: Command) -> None:
    """U16"""
    others = [runs("results", run, "--json").json for run in ("second", "third")]
    path = runs.folder / "results" / "results.db"
    size = path.stat().st_size
    said = runs("runs", "delete", "first", "--yes", "--json")
    assert said.json["deleted"] == ["first"]
    assert said.json["freed_bytes"] > 0
    assert path.stat().st_size < size
    assert rows_of(runs, "first") == 0
    assert not (runs.folder / "results" / "first").exists()
    assert [runs("results", run, "--json").json for run in ("second", "third")] == others
    assert runs(*EVAL, "--end", "6", "--run-id", "first").code == 0, "its name is free again"


def test_a_run_that_a_process_writes_is_not_deleted(runs: Command) -> None:
    lock = RunLock(runs.folder / "results" / "first", "first")
    try:
        for arguments in (("delete", "third", "first", "--yes"), ("rename", "first", "new")):
            assert runs("runs", *arguments).code == 2
    finally:
        lock.release()
    assert ids(runs) == ["third", "second", "first"]


def test_a_run_whose_steps_an_unfinished_run_reuses_is_not_deleted(runs: Command) -> None:
    make_partial(runs, "--run-id", "begun", "--reuse", "first")
    for arguments in (("delete", "first", "--yes"), ("rename", "first", "new")):
        said = runs("runs", *arguments)
        assert said.code == 2
        assert "begun" in said.err
    assert (
        "first" in runs("runs", "prune", "--older-than", "0h", "--status", "complete", "--yes", "--json").json["kept"]
    )
    assert runs("runs", "delete", "first", "begun", "--yes").code == 0
    assert ids(runs) == ["second"]


def test_a_folder_with_files_of_the_user_does_not_become_that_of_a_run(runs: Command) -> None:
    """A complete run removes its folder `stores`, and a deleted one all files."""
    mine = runs.folder / "web" / "stores" / "cart.ts"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    said = runs("eval", "--providers", "none", "--end", "2", "--output", ".", "--run-id", "web")
    assert said.code == 2
    assert said.err.startswith("memorybench: web: ")
    assert runs("eval", "--providers", "none", "--end", "2", "--shard", "1/1", "--run-id", "part").code == 0
    assert runs("merge", "part", "--results", ".", "--run-id", "web").code == 2
    assert mine.read_text() == "mine"
    assert {path.name for path in (runs.folder / "web").iterdir()} == {"stores"}


def test_a_link_to_another_folder_is_not_followed(runs: Command) -> None:
    results = runs.folder / "results"
    (results / "first").rename(runs.folder / "elsewhere")
    (results / "first").symlink_to(runs.folder / "elsewhere")
    assert runs("runs", "delete", "first", "--yes").code == 2
    assert (runs.folder / "elsewhere" / "report.json").exists()


@pytest.mark.parametrize(
    ("arguments", "deleted"),
    [
        (("--keep", "1"), ["first"]),
        (("--keep", "2"), []),
        (("--older-than", "0h"), ["third", "first"]),
        (("--older-than", "30d"), []),
        (("--keep", "1", "--older-than", "1w"), []),
        (("--older-than", "0h", "--status", "partial"), []),
        (("--older-than", "0h", "--suite", "audit"), []),
    ],
)
def test_prune_deletes_old_runs_without_tags(runs: Command, arguments: tuple[str, ...], deleted: list[str]) -> None:
    dry = runs("runs", "prune", *arguments, "--dry-run", "--json").json
    assert dry["would_delete"] == deleted
    assert ids(runs) == ["third", "second", "first"]
    assert runs("runs", "prune", *arguments, "--yes", "--json").json["deleted"] == deleted
    assert ids(runs) == [run for run in ("third", "second", "first") if run not in deleted]


@pytest.mark.slow
def test_a_baseline_is_kept_as_long_as_the_run_that_is_compared_with_it(command: Command) -> None:
    assert command(*EVAL, "--end", "6", "--run-id", "w1").code == 0
    for earlier, run in (("w1", "w2"), ("w2", "w3"), ("w3", "w4")):
        assert command(*EVAL, "--end", "6", "--run-id", run, "--baseline", earlier).code == 0
    assert command("runs", "delete", "w1", "--yes").code == 2
    assert command("runs", "rename", "w3", "week3").code == 0
    assert command("report", "w4", "--json").code == 0
    pruned = command("runs", "prune", "--keep", "1", "--yes", "--json").json
    assert pruned["deleted"] == ["w2", "w1"], "a chain of baselines is not kept as a whole"
    assert list(pruned["kept"]) == ["week3"]
    for run in ("week3", "w4"):
        assert command("results", run).code == 0
    assert command("validate", "results").code == 0


def at_every_kill(command: Command, recorded: Path, *arguments: str) -> Iterator[int]:
    """Kill a command at each of its durable steps, in a fresh copy of the results."""
    for at in range(1, 100):
        shutil.rmtree(command.folder / "results", ignore_errors=True)
        shutil.copytree(recorded, command.folder / "results")
        if not command.killed(*arguments, at=at):
            assert at > 4, "the command has several durable steps"
            return
        yield at


def folders(command: Command) -> set[str]:
    return {path.name for path in (command.folder / "results").iterdir() if path.is_dir()}


@pytest.mark.slow
def test_a_killed_delete_is_undone_or_completed_by_the_next_command(command: Command, recorded: Path) -> None:
    states = set()
    for at in at_every_kill(command, recorded, "runs", "delete", "first", "--yes"):
        left = set(ids(command))
        assert folders(command) == left, at
        assert left in ({*RUNS}, {"second", "third"})
        assert command("validate", "results").code == 0
        assert rows_of(command, "first") == 0 or "first" in left
        assert "first" not in left or command("results", "first").code == 0
        states.add("first" in left)
    assert states == {True, False}


@pytest.mark.slow
def test_a_killed_rename_is_undone_or_completed_by_the_next_command(command: Command, recorded: Path) -> None:
    states = set()
    for at in at_every_kill(command, recorded, "runs", "rename", "first", "new"):
        left = set(ids(command))
        assert folders(command) == left, at
        assert left in ({*RUNS}, {"new", "second", "third"})
        assert command("validate", "results").code == 0
        run = "new" if "new" in left else "first"
        assert json.loads((command.folder / "results" / run / "report.json").read_bytes())["run_id"] == run
        states.add(run)
    assert states == {"first", "new"}


@pytest.mark.slow
def test_a_new_run_after_a_killed_delete_finds_nothing_of_the_old_one(command: Command, recorded: Path) -> None:
    for _ in at_every_kill(command, recorded, "runs", "delete", "first", "--yes"):
        said = command(*EVAL, "--end", "2", "--run-id", "first", "--json")
        assert said.code in (0, 2), "2: it still exists"
        assert said.code == 2 or said.json["counts"]["planned"] == 2


def test_calls_in_flight_are_not_reported_as_charged_without_a_result(runs: Command) -> None:
    with continued(runs, "first") as writer:
        for subject in ("openai/gpt-4o", "ollama/tiny"):
            asyncio.run(writer.record_attempt("key", "answer", subject))
        document = runs("results", "first", "--json").json
        assert (document["status"], document["possibly_charged_twice"]) == ("running", 0)
        assert "is running" not in runs("results", "first").out
    document = runs("results", "first", "--json").json
    assert (document["status"], document["possibly_charged_twice"]) == ("partial", 1), "a local model is free"


def continued(runs: Command, run_id: str) -> AbstractContextManager[RunWriter]:
    """A run that a process is writing."""
    with RunReader.open(runs.folder / "results") as reader:
        fingerprints = reader.run(run_id).fingerprints
    return reopen_run(runs.folder / "results", run_id, fingerprints=fingerprints)


def test_all_models_without_a_price_are_free_in_the_journal() -> None:
    local = [f"{name}/" for name, preset in PRESETS.items() if not preset.hosted]
    assert set(FREE_MODELS) == {rehearsal.PREFIX, *local}


def test_a_run_that_is_being_written_is_renamed_after_its_end_only(runs: Command) -> None:
    with continued(runs, "third"):
        said = runs("runs", "rename", "third", "new")
    assert (said.code, "--resume" in said.err, f"process {os.getpid()}" in said.err) == (2, False, True)
    assert "--resume" in runs("runs", "rename", "third", "new").err, "nobody writes it any more"
    assert runs("eval", "--resume", "third").code == 0
    assert runs("runs", "rename", "third", "new").code == 0
