"""Standard streams that are closed, full, narrow or of another encoding: a run completes, and no verb prints a
traceback."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memorybench.cli.main import main
from tests.cli.command import Command

PROGRAM = (sys.executable, "-m", "memorybench")
EVAL = (*PROGRAM, "eval", "--providers", "bm25", "--end", "2", "--run-id", "r")


def run_in_shell(redirection: str, command: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["sh", "-c", f'"$@" {redirection}', "sh", *command], cwd=folder, capture_output=True)


def run_into_closed_pipe(command: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[bytes]:
    """The reader is gone before the command starts, as that of `| true` may be."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(command, cwd=folder, stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)


def assert_complete(folder: Path) -> None:
    report = json.loads((folder / "results" / "r" / "report.json").read_text(encoding="utf-8"))
    assert report["status"] == "complete"
    assert report["counts"]["scored"] == report["counts"]["planned"] == 2


@pytest.mark.slow
def test_a_run_completes_although_nobody_reads_its_output(tmp_path: Path) -> None:
    finished = run_into_closed_pipe(EVAL, tmp_path)
    assert finished.returncode == 0
    assert b"Traceback" not in finished.stderr
    assert_complete(tmp_path)


@pytest.mark.slow
def test_a_run_completes_with_closed_streams(tmp_path: Path) -> None:
    assert run_in_shell("<&- >&- 2>&-", EVAL, tmp_path).returncode == 0
    assert_complete(tmp_path)


@pytest.mark.slow
def test_a_run_whose_output_cannot_be_written_completes_and_says_so(tmp_path: Path) -> None:
    finished = run_in_shell(">/dev/full", EVAL, tmp_path)
    assert finished.returncode == 1
    assert [line for line in finished.stderr.splitlines() if line.startswith(b"memorybench: standard output: ")]
    assert b"Traceback" not in finished.stderr
    assert_complete(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("redirection", "code"), [("| head -c 1", 0), (">&-", 0), (">/dev/full", 1)])
def test_a_listing_ends_without_a_traceback(tmp_path: Path, redirection: str, code: int) -> None:
    finished = run_in_shell(redirection, (*PROGRAM, "list", "--stores"), tmp_path)
    assert finished.returncode == code
    assert finished.stderr.count(b"memorybench: standard output: ") == len(finished.stderr.splitlines()) == code


@pytest.mark.slow
def test_a_listing_whose_reader_is_gone_exits_with_0(tmp_path: Path) -> None:
    finished = run_into_closed_pipe((*PROGRAM, "list", "--stores"), tmp_path)
    assert (finished.returncode, finished.stderr) == (0, b"")


def output_in(encoding: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> bytes:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding, write_through=True) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(list(arguments)) == 0
        return raw.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_unicode_gets_text_it_can_show(
    command: Command, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    shown = output_in(encoding, monkeypatch, "eval", "--providers", "bm25", "--end", "2", "--run-id", "r")
    assert b"bm25" in shown
    assert_complete(command.folder)


@pytest.mark.slow
def test_json_is_valid_in_every_encoding(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    card = "name: notes\ndescription: Café 😀 notes\ntype: provider\nprovider: bm25\n"
    (command.folder / "stores").mkdir()
    (command.folder / "stores" / "notes.yaml").write_text(card, encoding="utf-8")
    expected = command("describe", "notes", "--json", "--config-dir", "stores").json
    assert "😀" in json.dumps(expected, ensure_ascii=False)
    for encoding in ("ascii", "latin-1"):
        shown = output_in(encoding, monkeypatch, "describe", "notes", "--json", "--config-dir", "stores")
        assert json.loads(shown.decode(encoding)) == expected


def test_an_export_on_standard_output_is_utf_8(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    command("eval", "--providers", "bm25", "--limit", "1", "--run-id", "r")
    monkeypatch.setattr("memorybench.reporting.export.COLUMNS", {"é": "text"})
    assert output_in("ascii", monkeypatch, "export", "r").startswith("é".encode())


def test_an_error_in_showing_progress_does_not_stop_a_run(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError("no")

    monkeypatch.setattr("memorybench.reporting.progress_view.share", fail)
    assert command("eval", "--providers", "bm25", "--end", "2", "--run-id", "r").code == 0
    assert_complete(command.folder)


def test_a_width_of_zero_columns_means_unknown(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    assert "bm25" in command("list", "--providers").out
