"""Files that a verb writes: a device, pipe or link at that place is written into and never replaced."""

from __future__ import annotations

import os
import stat
import threading

import pytest

from memorybench.cli.main import main
from tests.cli.command import Command


@pytest.fixture
def finished(command: Command) -> Command:
    command.once("eval", "--providers", "bm25", "--end", "2", "--run-id", "r")
    return command


def test_an_export_writes_into_a_link(finished: Command) -> None:
    target = finished.folder / "target.csv"
    target.write_text("old", encoding="utf-8")
    for link, points_to in (("link.csv", target), ("dangling.csv", finished.folder / "new.csv")):
        (finished.folder / link).symlink_to(points_to)
        assert finished("export", "r", "--output", link).code == 0
        assert (finished.folder / link).is_symlink()
        assert points_to.read_text(encoding="utf-8").startswith("run,")


def test_an_export_writes_into_a_named_pipe(finished: Command) -> None:
    pipe = finished.folder / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    code = main(["export", "r", "--output", "pipe"])
    assert (code, stat.S_ISFIFO(pipe.stat().st_mode)) == (0, True)
    reader.join()
    assert read[0].startswith("run,")


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full"])
def test_an_export_does_not_replace_a_device(finished: Command, device: str) -> None:
    link = finished.folder / "device"  # a link: a test must never be able to damage the device itself
    link.symlink_to(device)
    assert finished("export", "r", "--output", "device").code == (2 if device == "/dev/full" else 0)
    assert link.is_symlink()
    assert stat.S_ISCHR(os.stat(device).st_mode)


def test_an_export_that_fails_leaves_the_old_file(finished: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    (finished.folder / "old.csv").write_text("old", encoding="utf-8")
    monkeypatch.setattr("memorybench.reporting.export.write", fail)
    assert finished("export", "r", "--output", "old.csv").code == 2
    assert (finished.folder / "old.csv").read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in finished.folder.iterdir()) == ["old.csv", "results"]


def test_a_suite_is_described_by_its_name_and_its_verb(command: Command) -> None:
    for name in ("hygiene", "bench", "eval"):
        assert command("describe", name, "--json").json["kind"] == "suite"


def test_a_results_folder_is_validated_by_its_database(finished: Command) -> None:
    assert "1 run," in finished("validate", "results").out


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "markdown", "junit"])
def test_an_export_creates_the_folder_of_its_file(command: Command, format: str) -> None:
    command.once("eval", "--providers", "bm25", "--end", "2", "--run-id", "r")
    said = command("export", "r", "--format", format, "--output", f"out/{format}/x")
    assert said.code == 0, said.err
    assert (command.folder / f"out/{format}/x").stat().st_size


def test_runs_list_is_runs_and_errors_name_what_is_expected(command: Command) -> None:
    command.once("eval", "--providers", "bm25", "--end", "2", "--run-id", "r")
    assert command("runs", "list", "--json").json == command("runs", "--json").json
    assert 'expected "7d"' in command("runs", "prune", "--older-than", "7").err
    assert "expected bash, zsh or fish" in command("completion").err


def test_a_table_without_intervals_says_so_before_the_next_one(command: Command) -> None:
    shown = command("eval", "--providers", "bm25", "oracle", "--end", "10").out
    assert "No interval: " in shown
    assert shown.index("No interval: ") < shown.index("Difference from baseline")
    assert "Holm" in shown
