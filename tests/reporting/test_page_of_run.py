"""The page that every run writes: report.html, complete with its charts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("jinja2")

from memorybench import charts
from memorybench.charts import rendering
from memorybench.cli.main import main
from memorybench.suites import html_report

CHART = re.compile(r'<section class="card chart"><h2>([^<]*)</h2>')


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def page(run: str) -> str:
    return Path("results", run, "report.html").read_text(encoding="utf-8")


def evaluate(run: str, questions: int, *more: str) -> str:
    assert main(["eval", "--providers", "bm25", "oracle", "--end", str(questions), "--run-id", run, *more]) == 0
    return page(run)


@pytest.mark.slow
def test_it_is_the_page_that_report_writes() -> None:
    pytest.importorskip("vl_convert")
    written = evaluate("r", 20)
    assert "Score against context" in CHART.findall(written)
    assert main(["report", "r", "--format", "html"]) == 0
    assert page("r") == written


def test_a_run_of_few_questions_names_the_command_that_adds_charts() -> None:
    written = evaluate("r", 19)
    assert not CHART.findall(written)
    assert "memorybench report r --format html" in written


@pytest.mark.slow
def test_it_keeps_its_charts_when_the_run_is_renamed() -> None:
    pytest.importorskip("vl_convert")
    titles = CHART.findall(evaluate("r", 20))
    assert main(["runs", "rename", "r", "other"]) == 0
    assert CHART.findall(page("other")) == titles != []


@pytest.mark.slow
def test_merged_shards_have_charts() -> None:
    pytest.importorskip("vl_convert")
    for number in (1, 2):
        evaluate(f"part{number}", 40, "--shard", f"{number}/2")
    assert main(["merge", "part1", "part2", "--run-id", "whole", "--results", "results"]) == 0
    assert "Results" in CHART.findall(page("whole"))


@pytest.mark.slow
def test_a_complete_run_without_reports_gets_its_page_again() -> None:
    pytest.importorskip("vl_convert")
    written = evaluate("r", 20)
    for file in Path("results/r").glob("report.*"):
        file.unlink()
    assert main(["eval", "--resume", "r"]) == 0
    assert page("r") == written


def test_without_the_renderer_the_page_and_the_run_name_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(charts, "is_installed", lambda: False)
    written = evaluate("r", 20)
    assert not CHART.findall(written)
    assert "pip install &#39;memorybench[view]&#39;" in written
    assert "pip install 'memorybench[view]'" in capsys.readouterr().out


def test_without_jinja2_the_run_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(html_report, "is_installed", lambda: False)
    assert main(["eval", "--providers", "bm25", "--end", "2"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "report.html" in said
    assert "pip install 'memorybench[view]'" in said


@pytest.mark.slow
@pytest.mark.parametrize("program", ["import os; os._exit(9)", "print('nonsense')"])
def test_a_renderer_that_fails_costs_the_charts_only(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(rendering, "COMMAND", (sys.executable, "-c", program))
    written = evaluate("r", 20)
    assert not CHART.findall(written)
    assert "memorybench report r --format html" in written


@pytest.mark.slow
def test_no_module_of_the_current_folder_is_imported() -> None:
    pytest.importorskip("vl_convert")
    Path("json.py").write_text("open('imported', 'w').close()\n")
    assert CHART.findall(evaluate("r", 20))
    assert not Path("imported").exists()
