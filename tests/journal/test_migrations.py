"""Results files of earlier versions: they are read as they are, and migrated when a run is written."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memorybench.core.errors import BadInput
from memorybench.journal.checksums import check_rows, crc
from memorybench.journal.migrations import MIGRATIONS
from memorybench.journal.places import journal_of
from memorybench.journal.rows import Step
from memorybench.journal.run_changes import change_tags, rename_rows
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.journal.run_reader import RunReader
from memorybench.journal.sqlite import APPLICATION_ID, FILE_NAME
from tests.engine.workload import RUN

SCHEMA_2 = """\
CREATE TABLE runs (
    id TEXT PRIMARY KEY, suite TEXT NOT NULL, spec TEXT NOT NULL, fingerprints TEXT NOT NULL,
    program TEXT NOT NULL, status TEXT NOT NULL, planned INTEGER NOT NULL,
    created TEXT NOT NULL, finished TEXT, crc INTEGER NOT NULL);
CREATE TABLE cases (
    run TEXT NOT NULL REFERENCES runs(id), benchmark TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (run, benchmark, id));
CREATE TABLE steps (
    run TEXT NOT NULL REFERENCES runs(id), key TEXT NOT NULL, name TEXT NOT NULL, subject TEXT NOT NULL,
    inputs TEXT NOT NULL, result TEXT NOT NULL, started TEXT NOT NULL, seconds REAL NOT NULL,
    tries INTEGER NOT NULL, uncertain INTEGER NOT NULL, calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cost REAL,
    reused_from TEXT, attempt INTEGER, crc INTEGER NOT NULL,
    UNIQUE (run, key));
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL REFERENCES runs(id), key TEXT NOT NULL, name TEXT NOT NULL,
    subject TEXT NOT NULL, started TEXT NOT NULL, ended TEXT, error TEXT,
    tries INTEGER NOT NULL DEFAULT 0, uncertain INTEGER NOT NULL DEFAULT 0, calls INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0, cost REAL DEFAULT 0);
CREATE TABLE outcomes (
    run TEXT NOT NULL REFERENCES runs(id), trial TEXT NOT NULL, ordinal INTEGER NOT NULL,
    benchmark TEXT NOT NULL, case_id TEXT NOT NULL, subject TEXT NOT NULL, status TEXT NOT NULL,
    body TEXT NOT NULL, finished TEXT NOT NULL, crc INTEGER NOT NULL,
    UNIQUE (run, trial));
CREATE TABLE notes (run TEXT NOT NULL REFERENCES runs(id), kind TEXT NOT NULL, text TEXT NOT NULL);
CREATE INDEX shared_steps ON steps (key) WHERE name IN ('canary', 'entail', 'feedback', 'stated', 'written');
"""
STEPS = ("add", "settle", "canary", "entail", "feedback", "stated", "written")
SHARED = set(STEPS[2:])


def insert(db: sqlite3.Connection, table: str, columns: str, row: tuple[object, ...], checked: int) -> None:
    """Insert a row; its checksum covers the first `checked` values."""
    marks = ",".join("?" * (len(row) + 1))
    db.execute(f"INSERT INTO {table} ({columns}, crc) VALUES ({marks})", (*row, crc(*row[:checked])))


@pytest.fixture
def old_folder(tmp_path: Path) -> Path:
    """A results file of schema 2, which earlier versions wrote."""
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as db:
        db.executescript(SCHEMA_2)
        columns = "id, suite, spec, fingerprints, program, planned, created, status"
        insert(db, "runs", columns, ("old", "bench", "{}", "{}", "0.1", 1, "2026-01-01", "partial"), 7)
        columns = (
            "run, key, name, subject, inputs, result, started, seconds, tries, uncertain, calls, input_tokens,"
            " output_tokens, cost, reused_from, attempt"
        )
        for name in STEPS:
            row = ("old", f"key of {name}", name, "memory", "{}", '"yes"', "2026-01-01", 0.5, 1, 0, 1, 7, 2, 0.25)
            insert(db, "steps", columns, (*row, None, None), 16)
        db.execute("PRAGMA user_version=2")
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.commit()
        db.execute("PRAGMA journal_mode=WAL")
    return tmp_path


def test_an_old_file_is_read_without_being_changed(old_folder: Path) -> None:
    before = (old_folder / FILE_NAME).read_bytes()
    with RunReader.open(old_folder) as run_reader:
        assert [run.id for run in run_reader.runs()] == ["old"]
        stages = {stage.name: stage for stage in run_reader.stages("old")}
        assert run_reader.spent("old").cost == 0.25 * len(STEPS)
    assert set(stages) == {*STEPS, "wait_until_searchable"} - {"settle"}, "reports use the new name of the step"
    assert stages["wait_until_searchable"].seconds == (0.5,)
    assert (old_folder / FILE_NAME).read_bytes() == before


def test_an_old_file_is_validated_as_far_as_it_has_checksums(old_folder: Path) -> None:
    """R8"""
    path = old_folder / FILE_NAME
    checked = check_rows(journal_of(old_folder))
    assert (checked.runs, checked.rows) == (1, 1 + len(STEPS))
    assert checked.unchecked == 1, "the status of the run has no checksum"
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE steps SET seconds = 9 WHERE name = 'add'")
        db.commit()
    with pytest.raises(BadInput) as error:
        check_rows(journal_of(old_folder))
    assert error.value.where == str(path)


def test_an_old_run_is_migrated_when_it_is_resumed(old_folder: Path) -> None:
    with reopen_run(old_folder, "old", fingerprints={}) as run_writer:
        assert run_writer.has_earlier_steps
        for name in STEPS:
            assert run_writer.result(f"key of {name}") == '"yes"'
    with closing(sqlite3.connect(old_folder / FILE_NAME)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_shared_steps_of_an_old_file_stay_shared(old_folder: Path) -> None:
    with open_run(old_folder, RUN) as run_writer:
        reusable = {name: run_writer.find_reusable(f"key of {name}", shared=True) for name in STEPS}
    assert {name for name, step in reusable.items() if step is not None} == SHARED
    assert {step.reused_from for step in reusable.values() if step is not None} == {"old"}


def test_a_step_is_shared_because_of_its_column_and_not_its_name(tmp_path: Path) -> None:
    with open_run(tmp_path, RUN) as first:

        async def record() -> None:
            for name, shared in (("canary", False), ("any name", True)):
                step = Step(f"key of {name}", name, "", "{}", '"yes"', started="", seconds=0.1, shared=shared)
                await first.record_step(step)

        asyncio.run(record())
    with open_run(tmp_path, RUN.model_copy(update={"id": "second"})) as second:
        assert second.find_reusable("key of canary", shared=True) is None
        assert second.find_reusable("key of any name", shared=True) is not None
        assert second.find_reusable("key of any name", shared=False) is None


def test_a_lookup_of_a_shared_step_uses_the_index(tmp_path: Path) -> None:
    with open_run(tmp_path, RUN), closing(sqlite3.connect(tmp_path / FILE_NAME)) as db:
        plan = db.execute(
            "EXPLAIN QUERY PLAN SELECT run FROM steps WHERE shared = 1 AND key = ? LIMIT 1", ("k",)
        ).fetchall()
    assert "shared_steps" in plan[0][-1]


def test_an_old_file_has_no_tags_until_one_is_added(old_folder: Path) -> None:
    with RunReader.open(old_folder) as run_reader:
        assert run_reader.tags() == {}
    change_tags(old_folder, "old", ["kept"], [])
    with RunReader.open(old_folder) as run_reader:
        assert run_reader.tags() == {"old": ("kept",)}
    assert check_rows(journal_of(old_folder)).runs == 1


def test_an_old_run_is_renamed_and_its_rows_get_full_checksums(old_folder: Path) -> None:
    rename_rows(old_folder, "old", "new")
    with RunReader.open(old_folder) as run_reader:
        assert [run.id for run in run_reader.runs()] == ["new"]
        assert run_reader.spent("new").cost == 0.25 * len(STEPS)
    assert check_rows(journal_of(old_folder)).unchecked == 1, "the status of the run had no checksum"
