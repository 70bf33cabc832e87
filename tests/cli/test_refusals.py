"""Commands that are refused before anything is written, and plug-ins that cannot be loaded."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from memorybench.cli.main import main
from memorybench.files import entry_points


def test_a_provider_without_its_key_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MEM0_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["eval", "--providers", "mem0", "bm25", "--limit", "1"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "MEM0_API_KEY" in output.err
    assert list(tmp_path.iterdir()) == []


def test_a_suite_that_cannot_be_loaded_is_skipped_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = EntryPoint("zap", "no_such_module:SUITE", "memorybench.suites")
    monkeypatch.setattr(entry_points, "third_party_points", lambda group: [broken] if group == broken.group else [])
    assert main(["list", "--suites"]) == 0
    output = capsys.readouterr()
    assert "hygiene" in output.out
    assert "zap" in output.err
    assert "no_such_module" in output.err


def test_one_provider_cannot_be_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "--compare", "bm25"]) == 2
    assert "--compare" in capsys.readouterr().err
