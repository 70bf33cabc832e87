"""`validate results.db` finds every row that was edited after it was written."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from memorybench.cli.main import main
from memorybench.core.spending import Spending
from memorybench.journal.rows import Fingerprint
from memorybench.journal.run_opening import reopen_run
from tests.cli.command import Command

EVAL = ("eval", "--providers", "bm25", "--end", "2", "--answering-model", "scripted/quote")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results file with rows in every table: paid calls that failed, and a note."""
    folder = tmp_path_factory.mktemp("recorded")
    main([*EVAL, "--run-id", "r", "--output", str(folder)])
    with closing(sqlite3.connect(folder / "results.db")) as db:
        (marks,) = db.execute("SELECT fingerprints FROM runs").fetchone()
    fingerprints = {name: Fingerprint.model_validate(mark) for name, mark in json.loads(marks).items()}
    with reopen_run(folder, "r", fingerprints=fingerprints) as run_writer:

        async def record() -> None:
            attempt = await run_writer.record_attempt("k" * 32, "answer", "model")
            spent = Spending(calls=1, input_tokens=3, output_tokens=0, cost=0.5)
            await run_writer.record_failure(attempt, "refused", tries=2, uncertain=1, spent=spent)
            await run_writer.record_attempt("l" * 32, "answer", "model")
            await run_writer.note("kind", "text")

        asyncio.run(record())
    with reopen_run(folder, "r", fingerprints=fingerprints) as run_writer:  # marks the open attempt as interrupted
        run_writer.end("complete")
    return folder


@contextmanager
def edit(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / "results.db")) as db:
        yield db
        db.commit()


def test_validate_counts_the_rows_it_checked(command: Command, recorded: Path) -> None:
    said = command("validate", str(recorded / "results.db"))
    assert said.code == 0, said.err
    assert "1 run," in said.out
    assert "without" not in said.out, "every row has a checksum"


EDITS = {
    "runs": ("spec", "status", "finished", "created", "planned", "program", "suite"),
    "cases": ("body", "benchmark"),
    "steps": ("result", "inputs", "seconds", "cost", "calls", "input_tokens", "tries", "subject", "shared", "started"),
    "attempts": ("cost", "error", "tries", "uncertain", "calls", "output_tokens", "ended", "started", "subject"),
    "outcomes": ("body", "status", "finished", "ordinal"),
    "notes": ("text", "kind"),
}


@pytest.mark.parametrize(("table", "column"), [(table, column) for table in EDITS for column in EDITS[table]])
def test_validate_finds_an_edited_row_in_any_table(
    command: Command, recorded: Path, tmp_path: Path, table: str, column: str
) -> None:
    """R8"""
    copy = tmp_path / "copy"
    shutil.copytree(recorded, copy)
    with edit(copy) as db:
        (value,) = db.execute(f"SELECT {column} FROM {table} ORDER BY rowid DESC LIMIT 1").fetchone()
        changed = (value or 0) + 1 if isinstance(value, int | float | None) else f"{value}x"
        db.execute(
            f"UPDATE {table} SET {column} = ? WHERE rowid = (SELECT max(rowid) FROM {table})",
            (changed,),
        )
    said = command("validate", str(copy / "results.db"))
    assert (said.code, len(said.err.splitlines())) == (2, 1)
    assert table.removesuffix("s") in said.err


@pytest.mark.parametrize(("table", "column"), [("steps", "seconds"), ("attempts", "cost"), ("notes", "text")])
def test_a_report_refuses_edited_costs_times_and_notes(
    command: Command, recorded: Path, tmp_path: Path, table: str, column: str
) -> None:
    """R8"""
    copy = tmp_path / "copy"
    shutil.copytree(recorded, copy)
    with edit(copy) as db:
        db.execute(f"UPDATE {table} SET {column} = 77")
    said = command("results", "r", "--results", str(copy))
    assert (said.code, len(said.err.splitlines())) == (1, 1)


def test_validate_finds_a_deleted_outcome(command: Command, recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(recorded, copy)
    with edit(copy) as db:
        db.execute("DELETE FROM outcomes WHERE rowid = (SELECT max(rowid) FROM outcomes)")
    assert command("validate", str(copy / "results.db")).code == 2


def test_validate_checks_a_file_under_any_name(command: Command, recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "shared.db"
    shutil.copy(recorded / "results.db", copy)
    assert "1 run," in command("validate", str(copy)).out
    with closing(sqlite3.connect(copy)) as db:
        db.execute("UPDATE steps SET cost = 1")
        db.commit()
    assert command("validate", str(copy)).code == 2
