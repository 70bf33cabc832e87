"""`memorybench plot`: charts as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memorybench.cli.main import main

SIGNATURES = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.slow
@pytest.mark.parametrize("form", SIGNATURES)
def test_a_chart_is_written_in_the_format_of_the_file(recorded: Path, tmp_path: Path, form: str) -> None:
    pytest.importorskip("vl_convert")
    file = tmp_path / "new" / f"chart.{form}"
    assert main(["plot", str(recorded / "results" / "first"), "forest", "--output", str(file)]) == 0
    assert file.read_bytes().startswith(SIGNATURES[form])
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize(("folder", "run"), [("results", "h"), ("results", "e"), ("audit-results", "a")])
def test_every_suite_lists_its_charts(
    recorded: Path, capsys: pytest.CaptureFixture[str], folder: str, run: str
) -> None:
    assert main(["plot", str(recorded / folder / run), "--json"]) == 0
    assert "forest" in json.loads(capsys.readouterr().out)["charts"]


def test_the_spec_is_printed_for_other_programs(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(recorded / "results" / "first")
    assert main(["plot", run, "slope", "--sides", "bm25", "oracle", "--spec"]) == 0
    spec = json.loads(capsys.readouterr().out)
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert {row["side"] for row in spec["layer"][0]["data"]["values"]} == {"1 bm25", "2 oracle"}


def test_a_trend_joins_only_runs_with_the_same_settings_and_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    changes: tuple[tuple[str, ...], ...] = (
        ("--end", "4"),
        ("--end", "4"),
        ("--end", "4", "--top-k", "3"),
        ("--end", "8"),
    )
    for number, flags in enumerate(changes):
        assert main(["eval", "--providers", "bm25", "--run-id", f"r{number}", *flags]) == 0
    capsys.readouterr()
    assert main(["plot", "r3", "trend", "--spec"]) == 0
    spec = json.loads(capsys.readouterr().out)
    (panel,) = spec.get("vconcat", [spec])
    assert [row["line"] for row in panel["data"]["values"]] == [0, 0, 1, 2]
    assert panel["layer"][0]["encoding"]["detail"]["field"] == "line"


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["forst", "--output", "f.svg"], 'CHART: unknown chart "forst"'),
        (["forest"], "--output: missing"),
        (["--output", "f.svg"], "CHART: missing"),
        (["forest", "--output", "f.gif"], "--output: f.gif"),
        (["score-cost", "--output", "f.svg"], "no data for the chart score-cost"),
        (["forest", "--sides", "bm25", "--output", "f.svg"], "--sides: not supported"),
        (["slope", "--sides", "bm25", "oracle", "none", "--output", "f.svg"], "--sides: 3 sides"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    recorded: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    where: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("memorybench.charts.rendering.is_installed", lambda: True)
    assert main(["plot", str(recorded / "results" / "first"), *arguments]) == 2
    assert where in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memorybench.charts.rendering.is_installed", lambda: False)
    file = tmp_path / "f.svg"
    assert main(["plot", str(recorded / "results" / "first"), "forest", "--output", str(file)]) == 2
    assert "pip install 'memorybench[view]'" in capsys.readouterr().err
