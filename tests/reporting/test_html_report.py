"""The report as one HTML file: complete, self-contained, harmless."""

from __future__ import annotations

import re
import shlex
import shutil
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from html import unescape
from itertools import combinations
from pathlib import Path

import pytest

pytest.importorskip("jinja2")

from memorybench.api import load_run
from memorybench.charts import page as chart_page
from memorybench.cli.main import main
from memorybench.core.measures import Measure
from memorybench.core.report_sections import Column, Notes, Report, Table, text_column
from memorybench.metrics.comparison import Comparison
from memorybench.reporting.formatting import cell_text
from memorybench.reporting.html import is_heat_map
from memorybench.suites import html_report, report_questions
from memorybench.suites.case_view import find_case, hit_level, memories_of
from memorybench.suites.comparison import Pair
from memorybench.suites.gate import report_of
from memorybench.suites.run_comparison import RunComparison
from memorybench.suites.sides import ComparedRun
from memorybench.suites.stored_run import open_stored_run
from tests.view.conftest import SAMPLE, get, opened
from tests.view.hostile import MARKER, Markup, make_hostile
from tests.view.test_pages import ATTRIBUTES, TAGS

RUNS = [("results", "first"), ("results", "second"), ("results", "h"), ("results", "e"), ("audit-results", "a")]


def write(run: Path, file: Path) -> str:
    assert main(["report", str(run), "--format", "html", "--output", str(file)]) == 0
    return file.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "run"), RUNS)
def test_it_has_every_section_and_question_of_the_run(recorded: Path, tmp_path: Path, folder: str, run: str) -> None:
    page = write(recorded / folder / run, tmp_path / "page.html")
    text = " ".join(Markup(page).text.split())
    with open_stored_run([run], [recorded / folder]) as stored:
        report, cases = report_of(stored), {outcome.trial.case_id for outcome in stored.outcomes()}
    for section in report.sections:
        if isinstance(section, Table):
            for row in (*section.rows, *section.detail_rows):
                for cell, column in zip(row, section.columns, strict=True):
                    shown = cell_text(cell, column.shows if not isinstance(cell, tuple) else "value").partition(" [")[0]
                    assert " ".join(shown.split(", ")[0].split()) in text
    for name in (*report.warnings, *cases):
        assert " ".join(name.split()) in text


@pytest.mark.parametrize(("folder", "run"), RUNS)
def test_every_run_has_written_it(recorded: Path, folder: str, run: str) -> None:
    page = (recorded / folder / run / "report.html").read_text(encoding="utf-8")
    assert "Content-Security-Policy" in page


@pytest.mark.slow
def test_it_makes_no_request_and_runs_only_its_own_script(recorded: Path, tmp_path: Path) -> None:
    page = write(recorded / "results" / "second", tmp_path / "page.html")
    assert not re.search(r"https?:|//[a-z]|url\(|@import", page.partition("<body>")[0])
    markup = Markup(page)
    assert not {"src", "srcset", "style", "action", "formaction"} & markup.attributes.keys()
    assert all(address.startswith("#") for address in markup.attributes["href"])
    for tag, kind in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = b64encode(sha256(content.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'".replace("'", "&#39;").replace("+", "+") in page
    assert "default-src &#39;none&#39;" in page
    assert len(page.encode()) < 3_000_000


@pytest.mark.slow
def test_hostile_texts_stay_text(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    make_hostile(folder, "second")
    page = write(folder / "second", tmp_path / "page.html")
    markup = Markup(page)
    assert page.count(MARKER) > 50
    assert markup.tags <= {*TAGS.split(), "style"}
    own = {"http-equiv", "hidden", "data-type", "data-marks", "data-noun", "data-column", "data-label"}
    assert markup.attributes.keys() <= {*ATTRIBUTES.split(), *own}
    assert not any(MARKER in script for script in markup.scripts)
    assert len(re.findall("<script", page)) == 1
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "49" + MARKER not in page  # an evaluated template


@pytest.mark.slow
def test_a_long_list_of_questions_is_shortened_and_says_so(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_questions, "_MOST_TEXT", 3000)
    page = write(recorded / "results" / "first", tmp_path / "page.html")
    found = re.search(r"(\d+) of 12 questions; <code>memorybench view first</code>", page)
    assert found is not None
    assert page.count("<tr data-type") == int(found[1]) < 12
    monkeypatch.setattr(report_questions, "_MOST_TRIALS", 10)
    assert "0 of 12 questions" in write(recorded / "results" / "first", tmp_path / "page.html")


def test_a_kind_of_section_without_a_macro_is_refused(recorded: Path) -> None:
    class Drawing(Notes):
        pass

    with open_stored_run(["second"], [recorded / "results"]) as stored:
        report = replace(report_of(stored), sections=(Drawing(("a line",)),))
        with pytest.raises(TypeError, match="Drawing"):
            html_report.to_html(stored, report, list)


def test_a_warning_that_leads_the_report_is_above_the_charts(recorded: Path) -> None:
    with open_stored_run(["second"], [recorded / "results"]) as stored:
        report = report_of(stored)
        warned = replace(report, sections=(Notes(("a judge that failed",), warning=True), *report.sections))
        page = html_report.to_html(stored, warned, lambda: [("Results", "<svg></svg>")])
    assert page.index("a judge that failed") < page.index("<svg>")
    assert page.count("a judge that failed") == 1


@pytest.mark.parametrize(
    ("values", "significant", "heading"),
    [
        ((0.5, 0.5, 0.4), "", "x: a and b have the highest m"),
        ((0.5, 0.4, 0.3), "", "x: a has the highest m, not significantly better than any other"),
        ((0.5, 0.4, 0.3), "c", "x: a has the highest m, significantly better only than c"),
        ((0.5, 0.4, 0.3), "bc", "x: a has the highest m, significantly better than all others"),
        ((0.5, 0.4), "b", "x: a has the highest m, significantly better than b"),
    ],
)
def test_the_heading_names_those_that_are_best_and_whom_they_beat(
    values: Sequence[float], significant: str, heading: str
) -> None:
    pairs = []
    for (first, value), (second, other) in combinations(zip("abc", values, strict=False), 2):
        p = 0.001 if first == "a" and second in significant else 0.9
        comparison = Comparison(n=9, planned=9, difference=value - other, p=p, significant=p < 0.05)
        named = {"benchmark": "x", "first": first, "second": second, "measure": "m"}
        pairs.append(Pair(**named, first_value=value, second_value=other, comparison=comparison))
    compared = RunComparison(suite="bench", sides=(), settings=(), tests=1, comparisons=tuple(pairs))
    found, sentences = html_report.verdict_of(Report("t", ()), compared)
    assert found == heading
    assert len(sentences) == len([pair for pair in pairs if "a" in (pair.first, pair.second)])


def test_the_questions_of_a_hygiene_report_have_the_words_of_its_tables(recorded: Path) -> None:
    page = (recorded / "results" / "h" / "report.html").read_text()
    shown = dict(re.findall(r"<dt>reference · (\w+)[^<]*</dt><dd[^>]*>([^<]*)", page))
    assert shown["well_behaved"] == "pass; expected: pass"
    assert shown["violation"] == "detected; expected: blocked by store, or detected"
    assert not [text for text in shown.values() if "compliant" in text or "defended" in text]


CELL = re.compile(r"<td[^>]*>\s*(?:<a[^>]*>)?([^<]*)")


def rows_below(page: str, title: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    table = page.partition(f"<h2>{title}</h2>")[2].partition("<tbody>")[2].partition("</tbody>")[0]
    return [CELL.findall(row) for row in table.split("</tr>")[:-1]]


@pytest.fixture(scope="module")
def two_memories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a run of two memories and two baselines, and one of the memories alone."""
    folder = tmp_path_factory.mktemp("two")
    memories, questions = ("bm25", "bm25(around_weight=0)"), ("--end", "20", "--output", str(folder))
    assert main(["eval", "--providers", *memories, "oracle", "none", "--run-id", "r", *questions]) == 0
    assert main(["eval", "--providers", *memories, "--run-id", "alone", *questions]) == 0
    return folder


@pytest.mark.slow
def test_it_has_the_disagreements_and_failures_of_the_viewer(two_memories: Path, tmp_path: Path) -> None:
    page = write(two_memories / "r", tmp_path / "page.html")
    with opened(two_memories) as client:
        seen = get(client, "/run/0/r")
    for title in ("Where they disagree", "Failures by reason"):
        assert rows_below(page, title) == rows_below(seen, title) != []
    assert rows_below(page, "Where they disagree")[0][0] == "bm25 and bm25(around_weight=0)"


@pytest.mark.slow
def test_its_questions_have_the_memories_found_with_ranks_and_hits(two_memories: Path, tmp_path: Path) -> None:
    page = write(two_memories / "r", tmp_path / "page.html")
    with open_stored_run(["r"], [two_memories]) as stored:
        case_ids = list(dict.fromkeys(outcome.trial.case_id for outcome in stored.outcomes()))
        views = [find_case(stored, id, provider="bm25") for id in case_ids]
    found = [
        (memory["rank"], " ".join(memory["content"].split())[:40], hit_level(memory["hits"], view.case))
        for view in views
        for memory in memories_of(view.trials[0], view.trials[0].named("search")[0])[:5]
    ]
    assert {level for _, _, level in found} == {"turn", "session", ""}
    listed = re.findall(r'<p class="mem ?(hit|near|)"><b>([^<]*)</b>[^<]*<br>([^<]*)</p>', page)
    levels = {"turn": "hit", "session": "near", "": ""}
    for rank, content, level in found:
        assert any(
            kind == levels[level] and f"bm25 {rank}" in names.split(", ") and unescape(text).startswith(content)
            for kind, names, text in listed
        )
    assert "oracle" not in "".join(names for _, names, _ in listed), "baselines are left out"


@pytest.mark.slow
def test_memories_that_have_no_room_are_left_out_and_it_says_so(
    two_memories: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_questions, "_MOST_MEMORY_TEXT", 9000)
    page = write(two_memories / "r", tmp_path / "page.html")
    said = re.search(r"of the first (\d+) questions", page)
    assert said is not None
    assert 0 < page.count('<div class="found">') <= int(said[1]) < 20


@pytest.mark.slow
def test_a_leading_memory_is_not_called_the_best_if_a_baseline_is_better(two_memories: Path, tmp_path: Path) -> None:
    written = {run: write(two_memories / run, tmp_path / f"{run}.html") for run in ("r", "alone")}
    with opened(two_memories) as client:
        pages = [(run, page) for run in written for page in (written[run], get(client, f"/run/0/{run}"))]
    for run, page in pages:
        (heading,) = re.findall("<h1>(.*?)</h1>", page)
        assert (" among the memories" in heading) == (run == "r")
        better = [line for line in re.findall('<p class="lead">(.*?)</p>', page) if line.startswith("Baselines with")]
        assert [("oracle (" in line, "none (" in line) for line in better] == [(True, False)] * (run == "r")


@pytest.mark.parametrize("is_absolute", [True, False])
def test_it_has_the_name_of_a_data_file_and_not_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_absolute: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("private-folder")
    folder.mkdir()
    shutil.copy(SAMPLE, folder / "facts.json")
    dataset = folder.absolute() / "facts.json" if is_absolute else folder / "facts.json"
    models = ("--model", "scripted/quote", "--judge-model", "scripted/judge")
    audit = ["audit", str(dataset), "--limit", "2", *models, "--run-id", "a"]
    assert main([*audit, "--output", str(folder.absolute() / "results")]) in (0, 3)
    page = (folder / "results" / "a" / "report.html").read_text(encoding="utf-8")
    assert "private-folder" not in page
    assert "memorybench audit facts.json --limit 2 --model scripted/quote" in page


def test_its_command_can_be_pasted_into_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = ["eval", "--providers", "bm25(k1=1.5)", "--end", "1", "--run-id", "r"]
    assert main(given) == 0
    with open_stored_run(["r"], [Path("results")]) as stored:
        (command,) = [line[1] for line in html_report.provenance_notes(stored)[0].lines if line[0] == "command"]
    assert shlex.split(command)[1:] == given
    assert "&#39;bm25(k1=1.5)&#39;" in Path("results/r/report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_failure_has_its_reason_as_in_the_viewer(recorded: Path, tmp_path: Path) -> None:
    page = write(recorded / "results" / "first", tmp_path / "page.html")
    assert "✗ not-retrieved" in page
    assert "✗ wrong" not in page
    assert 'data-marks="not-retrieved wrong"' in page  # the filter finds it by either


def test_only_a_table_with_one_column_of_names_is_shaded() -> None:
    shares = (Column("as judged", "interval"), Column("corrected", "interval"))
    assert is_heat_map(Table("by type", (text_column("type"), *shares), ()))
    assert not is_heat_map(Table("corrected", (text_column("benchmark"), text_column("subject"), *shares), ()))


def test_a_file_needs_the_format_html(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(recorded / "results" / "first"), "--output", str(tmp_path / "a.html")]) == 2
    assert "add --format html" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_python_writes_it_too(recorded: Path, tmp_path: Path) -> None:
    files = load_run("first", recorded / "results").write_reports(tmp_path, ["markdown", "html"])
    assert [file.name for file in files] == ["report.md", "report.html"]


def test_without_jinja2_runs_write_none_and_the_format_is_refused(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_report, "is_installed", lambda: False)
    monkeypatch.chdir(tmp_path)
    assert main(["eval", "--providers", "bm25", "--limit", "1", "--run-id", "r"]) == 0
    assert not Path("results/r/report.html").exists()
    assert main(["report", "r"]) == 0
    assert main(["report", "r", "--format", "html"]) == 2
    assert "pip install 'memorybench[view]'" in capsys.readouterr().err


def test_a_renamed_run_has_its_new_name(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    assert main(["runs", "rename", "first", "other", "--results", str(folder)]) == 0
    assert ": other</title>" in (folder / "other" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_providers_of_a_large_run_are_not_read_to_compare_them(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("all cases were read")

    monkeypatch.setattr(chart_page, "_MOST_COMPARED", 30)
    monkeypatch.setattr(report_questions, "_MOST_TRIALS", 30)
    monkeypatch.setattr(ComparedRun, "cases", property(fail))
    monkeypatch.setattr(report_questions, "outcome_mark", fail)
    text = write(recorded / "results" / "first", tmp_path / "page.html")
    assert "0 of 12 questions" in text
    assert "memorybench view first" in text


def test_the_verdict_has_a_main_measure_that_is_a_range() -> None:
    ranged = Measure(name="precision", value=None, low=0.33, high=0.67, n=0, planned=80)
    rows = (("precision", ranged), ("recall", Measure(name="recall", value=None, n=0, planned=80)))
    table = Table("cases", (text_column("measure"), Column("value [95%]", shows="interval")), rows)
    _, (sentence,) = html_report.verdict_of(Report("t", (table,)), None)
    assert "precision 33.0 to 67.0%" in sentence
    assert "recall" not in sentence
