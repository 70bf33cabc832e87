"""Texts of others must not control the terminal that they are printed to. Files and pipes get them as they are."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.bundles.editing import as_lines, derive_files, read_files, rows_of, write_files
from tests.cli.command import Command

HOSTILE = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e"
PROGRAM = (sys.executable, "-m", "memorybench")


@pytest.fixture
def hostile_bundle(command: Command) -> Path:
    """A bundle with escape sequences in its answers, errors and names."""
    command.once("eval", "--providers", "bm25", "oracle", "--end", "2", "--run-id", "r", "--output", "results")
    path = command.folder / "r.mbz"
    assert command("bundle", "r", "--output", str(path)).code == 0
    files = read_files(path)
    rows = rows_of(files, "outcomes.jsonl")
    for row in rows:
        body = row["body"]
        body["shown"] |= {"asked": f"why{HOSTILE}", "got": f"so{HOSTILE}"}
        body["trial"]["subject"]["name"] += HOSTILE
        body |= {"status": "failed", "scores": [], "failure": {"kind": f"Lost{HOSTILE}", "message": HOSTILE}}
    return write_files(path, derive_files({**files, "outcomes.jsonl": as_lines(rows)}))


def print_to_terminal(folder: Path, *arguments: str) -> str:
    """Run the command with a terminal as its standard output, and return what it wrote there."""
    master, slave = os.openpty()
    parts: list[bytes] = []

    def read() -> None:
        while True:
            try:
                part = os.read(master, 65_536)
            except OSError:  # the last writer is gone
                return
            if not part:
                return
            parts.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    plain = {**os.environ, "TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat"}
    try:
        subprocess.run([*PROGRAM, *arguments], cwd=folder, stdout=slave, env=plain, check=True)
    finally:
        os.close(slave)
        reader.join()
        os.close(master)
    return b"".join(parts).decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "r.mbz"),
        ("export", "r.mbz", "--format", "json"),
        ("export", "r.mbz", "--format", "jsonl"),
        ("export", "r.mbz", "--format", "junit"),
        ("results", "r.mbz", "--json"),
        ("show", "r.mbz", "amara-q01", "--json"),
        ("show", "r.mbz", "amara-q01"),
    ],
    ids=" ".join,
)
def test_texts_of_a_bundle_cannot_control_a_terminal(hostile_bundle: Path, arguments: tuple[str, ...]) -> None:
    printed = print_to_terminal(hostile_bundle.parent, *arguments)
    assert "bm25" in printed
    assert not {*"\x1b\x07\x9b\u202e"} & {*printed}


@pytest.mark.slow
def test_json_means_the_same_on_a_terminal(hostile_bundle: Path) -> None:
    printed = print_to_terminal(hostile_bundle.parent, "export", "r.mbz", "--format", "json")
    assert json.loads(printed)[0]["question"] == f"why{HOSTILE}"


def test_a_pipe_gets_the_texts_as_they_are(command: Command, hostile_bundle: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(command("export", str(hostile_bundle)).out)))
    assert rows[0]["question"] == f"why{HOSTILE}"


def test_kinds_of_errors_are_valid_xml(command: Command, hostile_bundle: Path) -> None:
    suite = ElementTree.fromstring(command("export", str(hostile_bundle), "--format", "junit").out)
    assert "Lost" in suite.find(".//error").get("type", "")  # type: ignore[union-attr]
