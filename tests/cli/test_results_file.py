"""The results file as users meet it: odd file systems, empty and foreign files."""

import errno
import os
import sqlite3
from contextlib import closing

import pytest

from tests.cli.command import Command

EVAL = ("eval", "--providers", "bm25", "--end", "2", "--answering-model", "scripted/quote")


def no_hard_links(*args: object, **options: object) -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def test_a_file_system_without_hard_links_is_enough(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """R6"""
    monkeypatch.setattr(os, "link", no_hard_links)
    assert command(*EVAL).code == 0
    assert [path.name for path in (command.folder / "results").iterdir() if path.is_file()] == ["results.db"]


def test_files_left_by_a_killed_process_are_no_obstacle(command: Command) -> None:
    """R6"""
    results = command.folder / "results"
    results.mkdir()
    for name in (f".results.db-{os.getpid()}", ".results.db.part", ".results.db.part-wal", ".results.db.lock"):
        (results / name).write_bytes(b"half a file")
    assert command(*EVAL).code == 0


@pytest.mark.parametrize("content", ["empty file", "empty database", "other tables", "text", "our mark, no tables"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("results",),
        ("results", "r"),
        ("report", "r"),
        ("export", "r"),
        ("validate", "results/results.db"),
        ("eval", "--resume", "r"),
        (*EVAL, "--run-id", "r"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_file_that_is_not_ours_is_one_line_and_stays_as_it_is(
    command: Command, content: str, arguments: tuple[str, ...]
) -> None:
    """R7"""
    path = command.folder / "results/results.db"
    path.parent.mkdir()
    path.write_bytes(b"a letter" if content == "text" else b"")
    if content not in ("empty file", "text"):
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE recipes (name TEXT)")
            if content != "other tables":
                db.execute("DROP TABLE recipes")
            if content == "our mark, no tables":
                db.execute(f"PRAGMA application_id={0x6D656D62}")
    before = path.read_bytes()
    said = command(*arguments)
    assert (said.code, len(said.err.splitlines())) == (2, 1)
    assert "results/results.db" in said.err
    assert "no such table" not in said.err
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["results.db"]


@pytest.mark.parametrize("verb", ["results", "runs"])
def test_a_folder_without_runs_leads_to_the_first_one(command: Command, verb: str) -> None:
    said = command(verb)
    assert (said.code, "memorybench eval" in said.err, "--results" in said.err) == (2, True, True)
