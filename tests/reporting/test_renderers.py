"""Every renderer shows every section, whatever suite it is from."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from memorybench.core.measures import Measure
from memorybench.core.report_sections import (
    Case,
    Cases,
    Column,
    Money,
    Notes,
    Provenance,
    Report,
    State,
    Table,
    text_column,
)
from memorybench.reporting.latex import to_latex
from memorybench.reporting.markdown import to_markdown
from memorybench.reporting.report_files import write_reports
from memorybench.reporting.terminal import show_case, show_report, show_table

SHARE = Measure(name="recall", value=0.5, n=8, planned=8, low=0.25, high=0.75)
TABLE = Table(
    "Scores",
    (
        text_column("provider"),
        Column("recall_of_all_sessions", "interval"),
        Column("precision_of_all_sessions", "interval", priority=1),
        Column("mrr", priority=2),
    ),
    (("a|b", SHARE, SHARE, SHARE),),
    detail_rows=(("documents only", None, None, None),),
)
REPORT = Report(
    title="Toy",
    verdict=("The toy works.",),
    warnings=("The run is partial.",),
    sections=(
        TABLE,
        Cases("Failures", (Case(("case-1", "toy"), (("asked", "who <b>?"), ("got", "nobody"))),), 3, "None."),
        Notes(("one line",)),
        Notes((("pass", "it works"),), title="States"),
        Provenance({"Run ID": "r"}, title="How it was made"),
        Table("Details", (text_column("check"),), (("hidden",),), detail=True),
    ),
    document={"run_id": "r"},
)


def shown(report: Report, width: int = 120) -> str:
    out = Console(file=io.StringIO(), width=width, highlight=False, emoji=False, markup=False)
    show_report(out, report)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def headings(width: int) -> str:
    out = Console(file=io.StringIO(), width=width, highlight=False)
    show_table(out, TABLE)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_markdown_has_the_warnings_first_and_all_sections() -> None:
    text = to_markdown(REPORT)
    lines = text.splitlines()
    assert lines[:5] == ["# Toy", "", "> The run is partial.", "", "**The toy works.**"]
    assert "| a\\|b | 50.0% [25.0, 75.0] | 50.0% [25.0, 75.0] | 50.0% |" in lines
    assert "| documents only | – | – | – |" in lines
    assert "- asked: who &lt;b>?" in lines
    assert "… and 2 more: `memorybench results RUN --failures`" in lines
    assert "- pass: it works" in lines
    assert "- Run ID: r" in lines
    assert "| hidden |" in lines


def test_a_terminal_leaves_details_out_and_ends_with_the_warnings() -> None:
    text = shown(REPORT)
    assert "The toy works." in text
    assert "pass: it works" in text
    assert "hidden" not in text
    assert "documents only" not in text
    assert "case-1" not in text
    assert text.rstrip().endswith("The run is partial.")


@pytest.mark.parametrize(
    ("width", "expected", "absent"),
    [
        (120, ["recall_of_all_sessions", "precision_of_all_sessions", "mrr"], []),
        (65, ["recall_", "precision_", "mrr", "50.0% [25.0, 75.0] │ 50.0% [25.0, 75.0]"], ["recall_of"]),
        (54, ["recall_", "precision_", "mrr", "50.0% [25.0, 75.0] │      50.0%"], []),
        (46, ["recall_", "precision_"], ["mrr"]),
        (34, ["recall_", "50.0% [25.0, 75.0]"], ["precision_", "mrr"]),
    ],
)
def test_a_narrow_terminal_breaks_headings_then_shortens_cells_then_drops_columns(
    width: int, expected: list[str], absent: list[str]
) -> None:
    text = headings(width)
    assert all(len(line) <= width for line in text.splitlines())
    assert [part for part in expected if part not in text] == []
    assert [part for part in absent if part in text] == []


def test_a_bad_state_is_red_and_marked() -> None:
    out = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard", highlight=False)
    states = ((State("pass", good=True),), (State("missed", good=False),))
    show_table(out, Table("", (text_column("a"), text_column("b")), (states,)))
    assert isinstance(out.file, io.StringIO)
    text = out.file.getvalue()
    assert "✓ pass" in text
    assert "\x1b[31m✗ missed" in text


def test_a_case_is_shown_with_its_lines_indented() -> None:
    out = Console(file=io.StringIO(), width=80, highlight=False)
    show_case(out, Case(("case-1", ""), (("got", "two\nlines"),)))
    assert isinstance(out.file, io.StringIO)
    assert out.file.getvalue().splitlines() == ["case-1", "  got       two", "            lines", ""]


def test_cases_that_are_not_details_are_shown() -> None:
    case = Case(("case-1", ""), (("got", "two"),))
    sections = [Cases("Cases", cases, len(cases), "No failures.", detail=False) for cases in ((case,), ())]
    out = Console(file=io.StringIO(), width=80, highlight=False)
    show_report(out, Report("", (*sections, Cases("Cases", (case,), 1, ""))))
    assert isinstance(out.file, io.StringIO)
    assert out.file.getvalue().splitlines() == ["case-1", "  got       two", "", "1 trial", "No failures."]


def test_control_sequences_in_values_reach_no_renderer() -> None:
    report = Report(title="t", sections=(Notes(("a\x1b[2Jb",)), Table("", (text_column("x"),), (("c\x1b[2Jd",),))))
    for text in (to_markdown(report), shown(report)):
        assert "\x1b" not in text


def test_report_files_are_those_of_the_chosen_formats(tmp_path: Path) -> None:
    write_reports(REPORT, tmp_path / "run", ["json"])
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["report.json"]
    assert json.loads((tmp_path / "run" / "report.json").read_text()) == {"run_id": "r"}
    write_reports(REPORT, tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["report.json", "report.md"]


def test_an_unknown_price_is_a_question_mark_with_a_footnote() -> None:
    table = Table("Cost", (text_column("step"), Column("cost")), (("answer", Money(None)),))
    report = Report(title="t", sections=(table,))
    for text in (shown(report, 40), to_markdown(report), to_latex([table])):
        assert re.search(r"(\||│|&) +\? ", text), text
        assert "?: a model has no known price, or" in text
    priced = Table("Cost", (Column("cost"),), ((Money(0.5),),))
    assert "no known price" not in shown(Report(title="t", sections=(priced,)))


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_drops_columns_before_it_breaks_a_number(width: int) -> None:
    names = ("nomic-embed-text-with-a-very-long-name-of-a-model", "記憶システムの長い名前")
    columns = (text_column("subject"), *(Column(f"figure_{n}", "interval") for n in range(9)))
    table = Table("Wide", columns, tuple((name, *[SHARE] * 9) for name in names))
    text = shown(Report(title="t", sections=(table,)), width)
    lines = text.splitlines()
    assert all(cell_len(line) <= width for line in lines)
    body = [line for line in lines[lines.index(next(line for line in lines if "├" in line)) :] if "│" in line]
    assert {cell.strip() for line in body for cell in line.split("│")[2:-1]} <= {"", "50.0% [25.0, 75.0]"}
    hidden = 9 - len(re.findall(r"figure_", text))
    assert f"{hidden} more columns in report.md" in text
    assert hidden < 9


def test_a_list_that_is_in_no_report_names_no_report() -> None:
    out = Console(file=io.StringIO(), width=34, highlight=False)
    show_table(out, TABLE)
    assert isinstance(out.file, io.StringIO)
    assert "2 more columns in a wider terminal" in out.file.getvalue()


def test_headings_are_whole_again_once_columns_are_dropped() -> None:
    columns = (text_column("name"), Column("value of it", "interval"), text_column("meaning", priority=1))
    table = Table("Measures", columns, (("recall", SHARE, "a long explanation " * 4),))
    text = shown(Report(title="t", sections=(table,)), 60)
    assert "value of it" in text
    assert "1 more column in report.md" in text


@pytest.mark.parametrize("width", [30, 40])
def test_rows_fit_in_a_terminal_without_unicode(width: int) -> None:
    raw = io.BytesIO()
    out = Console(file=io.TextIOWrapper(raw, "ascii", errors="replace"), width=width, highlight=False)
    table = Table("T…", (text_column("run"), text_column("text", wrap=True)), (("a…", "±5 …" * 6), ("b", "≥ 1")))
    show_report(out, Report(title="t", sections=(table, Notes(("… ± " * 30,)))))
    out.file.flush()
    text = raw.getvalue().decode("ascii")
    assert "?" not in text
    assert "+/-5 ..." in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows
    assert {len(line) for line in rows} == {len(rows[0])}
    assert all(len(line) <= width for line in text.splitlines())


def test_wide_characters_that_a_terminal_lacks_keep_the_rows_equally_long() -> None:
    raw = io.BytesIO()
    out = Console(file=io.TextIOWrapper(raw, "ascii", errors="replace"), width=40, highlight=False)
    show_table(out, Table("T", (text_column("run"), text_column("text")), (("a", "日本茶 🍵"), ("b", "tea"))))
    out.file.flush()
    rows = [line for line in raw.getvalue().decode("ascii").splitlines() if line.startswith("|")]
    assert rows
    assert {len(line) for line in rows} == {len(rows[0])}


def test_a_heading_announces_no_interval_where_none_is_shown() -> None:
    columns = (text_column("measure"), *(Column(f"{name} [95%]", "interval", priority=1) for name in ("raw", "fair")))
    table = Table("T", columns, (("recall", SHARE, SHARE),))
    assert "[95%]" in shown(Report(title="t", sections=(table,)), 80)
    narrow = shown(Report(title="t", sections=(table,)), 36)
    assert "raw" in narrow
    assert "fair" in narrow
    assert "[" not in narrow
