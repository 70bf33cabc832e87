"""A bundle in place of a run: `results`, `show`, `compare`, `export`, `plot` and `view`."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.bundles.editing import read_files, write_files
from tests.cli.command import Command

MakeBundle = Callable[..., Path]


@pytest.fixture
def demo(command: Command, bundle: MakeBundle) -> str:
    """A bundle in a folder that has no results."""
    path = bundle("judged")
    shutil.rmtree(command.folder / "results")
    shutil.move(path, command.folder / "demo.mbz")
    return "demo.mbz"


def test_results_of_a_bundle_are_those_of_its_report(command: Command, demo: str) -> None:
    said = command("results", demo, "--json")
    assert said.code == 0, said.err
    own: dict[str, Any] = json.loads(read_files(command.folder / demo)["report.json"])
    assert {**said.json, "run_id": own["run_id"]} == own
    assert said.json["run_id"] == "demo.mbz"
    assert not (command.folder / "results").exists()


def test_commands_that_are_shown_name_the_bundle(command: Command, demo: str) -> None:
    failures = command("results", demo, "--failures", "--json").json
    shown = failures[0]["command"]
    assert shown.split()[2] == demo
    assert "/tmp" not in shown
    words = shown.split()[1:]
    assert command(*words).code == 0


def test_a_bundle_is_compared_with_a_bundle_and_with_a_run(command: Command, bundle: MakeBundle) -> None:
    path = bundle("judged")
    shutil.copy(path, command.folder / "other.mbz")
    (command.folder / "folder").mkdir()
    shutil.copy(path, command.folder / "folder" / "other.mbz")
    for sides in (
        ("judged.mbz:bm25", "other.mbz:oracle"),
        ("judged:bm25", "other.mbz:bm25"),
        ("other.mbz", "folder/other.mbz"),
    ):
        said = command("compare", *sides, "--json")
        assert said.code == 0, said.err
        assert said.json["comparisons"]
        assert "memorybench-bundle-" not in said.out


def test_a_bundle_is_exported_and_plotted(command: Command, demo: str) -> None:
    assert command("export", demo, "--format", "csv", "--output", "rows.csv").code == 0
    assert (command.folder / "rows.csv").read_text().count("\n") == 13


def test_the_temporary_folder_is_removed(command: Command, demo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = command.folder / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    assert command("results", demo).code == 0
    assert command("results", demo, "--providers", "unknown", "--failures").code in (0, 2)
    assert list(place.iterdir()) == []


def test_a_damaged_bundle_is_not_opened(command: Command, demo: str) -> None:
    path = command.folder / demo
    files = read_files(path)
    write_files(path, {**files, "notes.jsonl": b""}, repair=False)
    said = command("results", demo)
    assert said.code == 2
    assert "notes.jsonl" in said.err


def test_the_viewer_shows_a_bundle(command: Command, demo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pages: dict[str, str] = {}

    def serve(app: Starlette, listening: socket.socket) -> None:
        with TestClient(app, base_url="http://127.0.0.1") as client:
            for path in ("/", "/run/0/demo.mbz"):
                reply = client.get(path)
                pages[path] = f"{reply.status_code} {reply.text}"

    monkeypatch.setattr("memorybench.cli.view.serve", serve)
    said = command("view", demo, "--no-browser", "--port", "0", "--json")
    assert said.code == 0, said.err
    assert said.json["url"].endswith("demo.mbz")
    assert all(page.startswith("200") and "demo.mbz" in page for page in pages.values())
