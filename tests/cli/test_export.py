"""`memorybench export`: rows with one column per score, tables for papers, JUnit XML for CI servers."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from memorybench.cli.main import main
from memorybench.core.trials import Exhibit, Failure, Outcome, Score
from memorybench.reporting.export import COLUMNS
from tests.cli.command import Command
from tests.suites.recorded import record, scored, undone

ROOT = Path(__file__).parents[2]
ANSWERED = ("eval", "--providers", "bm25", "none", "--end", "6", "--answering-model", "scripted/quote")


@pytest.fixture
def answered(command: Command) -> Command:
    command.once(*ANSWERED, "--run-id", "r")
    return command


def table(command: Command) -> list[dict[str, str]]:
    assert command("export", "r", "--output", "r.csv").code == 0
    with (command.folder / "r.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv_has_a_column_for_each_score_label_and_step(answered: Command) -> None:
    rows = table(answered)
    first = next(row for row in rows if row["provider"] == "bm25")
    assert list(first)[: len(COLUMNS)] == list(COLUMNS)
    assert first["question_type"]
    assert 0 <= float(first["recall@5"]) <= 1
    assert 0 <= float(first["answer_f1"]) <= 1
    assert json.loads(first["gold_turns"])
    assert len(json.loads(first["ranking"])) == len(json.loads(first["ranking_sources"])) > 1
    assert float(first["search_seconds"]) + float(first["answer_seconds"]) <= float(first["seconds"])
    assert (first["cost"], first["failure"]) == ("0.0", "")
    baseline = next(row for row in rows if row["provider"] == "none")
    assert (baseline["ranking"], baseline["search_seconds"]) == ("", "")  # nothing was searched: absent, not zero


def test_recall_can_be_computed_again_from_gold_and_ranking(answered: Command) -> None:
    rows = [row for row in table(answered) if row["provider"] == "bm25" and json.loads(row["gold_sessions"])]
    assert rows
    for row in rows:
        sources = [source for memory in json.loads(row["ranking_sources"]) for source in memory]
        sessions = list(dict.fromkeys(source for source in sources if ":" not in source))
        gold = json.loads(row["gold_sessions"])
        assert float(row["recall@10"]) == len({*gold} & {*sessions[:10]}) / len(gold)


def test_json_lines_have_the_columns_of_csv_with_types(answered: Command) -> None:
    rows = [json.loads(line) for line in answered("export", "r", "--format", "jsonl").out.splitlines()]
    assert list(rows[0]) == list(table(answered)[0])
    assert isinstance(rows[0]["ranking"], list)
    assert isinstance(rows[0]["recall@5"], float)
    assert rows[0]["metadata"]["scores"]["recall@5"] == rows[0]["recall@5"]  # the old form, for one release


def test_a_label_and_a_score_keep_their_columns_apart(tmp_path: Path) -> None:
    outcome = scored("one", 1.0)
    labels = {"status": "married", "recall@5": "high"}
    trial = outcome.trial.model_copy(update={"labels": labels})
    scores = (*outcome.scores, Score(name="cost", value=0.5))
    record(tmp_path, [outcome.model_copy(update={"trial": trial, "scores": scores})])
    assert main(["export", "r", "--format", "jsonl", "--results", str(tmp_path), "--output", str(tmp_path / "o")]) == 0
    row = json.loads((tmp_path / "o").read_text(encoding="utf-8"))
    assert (row["status"], row["label_status"], row["label_recall@5"]) == ("scored", "married", "high")
    assert (row["recall@5"], row["cost"], row["score_cost"]) == (0.5, 0.0, 0.5)


def test_cost_and_tokens_are_those_of_the_trial(tmp_path: Path) -> None:
    one, other = scored("one", 1.0), scored("two", 0.0)
    record(tmp_path, [one.model_copy(update={"steps": ("a" * 32,)}), other])
    assert main(["export", "r", "--format", "json", "--results", str(tmp_path), "--output", str(tmp_path / "o")]) == 0
    first, second = json.loads((tmp_path / "o").read_text(encoding="utf-8"))
    assert (first["cost"], first["input_tokens"], first["output_tokens"], first["seconds"]) == (0.25, 30, 4, 0.1)
    assert (second["cost"], second["input_tokens"], second["seconds"]) == (0.0, 0, None)


def test_parquet_has_typed_columns(answered: Command) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet` is not installed")
    assert answered("export", "r", "--format", "parquet", "--output", "r.parquet").code == 0
    read = parquet.read_table(answered.folder / "r.parquet")
    types = {field.name: str(field.type) for field in read.schema}
    assert types["recall@5"] == types["cost"] == "double"
    assert types["calls"] == types["correct"] == "int64"
    assert types["gold_turns"].startswith("list<")
    assert types["created"] == "timestamp[ms, tz=UTC]"
    rows = table(answered)
    assert [row["item"] for row in read.to_pylist()] == [row["item"] for row in rows]
    assert list(read.column_names) == list(rows[0])


def test_parquet_without_pyarrow_names_the_command_that_installs_it(
    answered: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    said = answered("export", "r", "--format", "parquet", "--output", "r.parquet")
    assert said.code == 2
    assert "pip install 'memorybench[parquet]'" in said.err
    assert not (answered.folder / "r.parquet").exists()


def test_parquet_is_not_written_to_the_terminal(answered: Command) -> None:
    said = answered("export", "r", "--format", "parquet")
    assert (said.code, said.err.split(":")[1].strip()) == (2, "--output")


def test_every_column_is_documented_with_its_type() -> None:
    page = (ROOT / "docs" / "exports.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.MULTILINE))
    assert documented == COLUMNS


def test_latex_tables_compile_by_their_structure(answered: Command) -> None:
    text = answered("export", "r", "--format", "latex").out
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") >= 2
    for environment in re.findall(r"\\begin\{tabular\}\{(l[lr]*)\}\n(.*?)\\end\{tabular\}", text, re.DOTALL):
        columns, body = environment
        lines = [line for line in body.splitlines() if not line.startswith("\\")]
        assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines} == {len(columns)}
        assert body.startswith("\\toprule\n")
    assert not re.search(r"(?<!\\)[%#]|(?<![\\a-z{])_", text.replace("tab:", ""))


@pytest.mark.parametrize("form", ["latex", "markdown"])
def test_one_table_is_chosen_by_number_or_title(answered: Command, form: str) -> None:
    whole = answered("export", "r", "--format", form).out
    first = answered("export", "r", "--format", form, "--table", "1").out
    assert whole.startswith(first.rstrip("\n"))
    assert answered("export", "r", "--format", form, "--table", "Starter").out == first
    said = answered("export", "r", "--format", form, "--table", "99")
    assert (said.code, said.err.split(":")[1].strip()) == (2, "--table")


@pytest.mark.parametrize("form", ["latex", "markdown", "junit"])
def test_a_written_file_is_named(answered: Command, form: str) -> None:
    said = answered("export", "r", "--format", form, "--output", f"r.{form}")
    assert f"r.{form}" in said.out
    assert answered("export", "r", "--format", form).out == (answered.folder / f"r.{form}").read_text(encoding="utf-8")


def test_latex_escapes_names(tmp_path: Path) -> None:
    outcome = scored("one", 1.0)
    subject = outcome.trial.subject.model_copy(update={"name": r"50%_$\x{y}~^&#"})
    trial = outcome.trial.model_copy(update={"subject": subject})
    record(tmp_path, [outcome.model_copy(update={"trial": trial})], providers=[subject.name])
    assert main(["export", "r", "--format", "latex", "--results", str(tmp_path), "--output", str(tmp_path / "o")]) == 0
    text = (tmp_path / "o").read_text(encoding="utf-8")
    assert r"50\%\_\$\textbackslash{}x\{y\}\textasciitilde{}\textasciicircum{}\&\#" in text


def suites(path: Path) -> dict[str, ElementTree.Element]:
    return {suite.get("name", ""): suite for suite in ElementTree.parse(path).getroot()}


def test_junit_has_a_testcase_for_every_outcome(tmp_path: Path) -> None:
    hostile = Failure(kind="Transient", message="\x00\x1b[31m bad \ufffe & <b>")
    outcomes = [
        scored("right", 1.0),
        scored("wrong", 0.0),
        undone("unreadable", "unscored", Failure(kind="Unreadable", message="the judge said maybe")),
        undone("broken", "failed", hostile),
        undone("later", "blocked", None),
        undone("left-out", "skipped", None),
    ]
    record(tmp_path, outcomes)
    assert main(["export", "r", "--format", "junit", "--results", str(tmp_path), "--output", str(tmp_path / "j")]) == 0
    suite = suites(tmp_path / "j")["quiz × shelf"]
    results = {case.get("name"): [child.tag for child in case] for case in suite}
    assert results == {
        "right": [],
        "wrong": ["failure"],
        "unreadable": ["error"],
        "broken": ["error"],
        "later": ["skipped"],
        "left-out": ["skipped"],
    }
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "1",
        "errors": "2",
        "skipped": "2",
    }


def test_junit_and_failures_list_each_question_that_a_gate_on_recall_counts_as_missed(command: Command) -> None:
    gated = ("--threshold", "recall@5=0.9", "--junit", "j.xml")
    assert command("eval", "--providers", "bm25", "none", "--end", "30", "--run-id", "r", *gated).code == 3
    recall = {row["item"]: row["recall@5"] for row in table(command) if row["provider"] == "bm25"}
    missed = {item for item, value in recall.items() if value and float(value) == 0}
    failures = command("results", "r", "--failures", "--providers", "bm25", "--json").json
    assert {one["trial"]["case_id"] for one in failures} == missed
    assert {one["reason"] for one in failures} == {"not-retrieved"}
    cases = {case.get("name", ""): case for case in suites(command.folder / "j.xml")["starter × bm25"]}
    assert {name for name, case in cases.items() if case.find("failure") is not None} == missed
    assert all("first 5" in case[0].get("message", "") for name, case in cases.items() if name in missed)
    unmeasured = {item for item, value in recall.items() if not value}
    assert {name for name, case in cases.items() if case.find("skipped") is not None} == unmeasured
    assert missed
    assert unmeasured


def test_a_wrong_answer_names_how_many_memories_were_shown(command: Command) -> None:
    command("eval", "--providers", "bm25", "--end", "20", "--answering-model", "scripted/quote", "--run-id", "r",
            "--judge-model", "scripted/judge")  # fmt: skip
    missed = command("results", "r", "--failures", "--reason", "not-retrieved", "--json").json
    assert missed
    assert all(f"({one['shown']['memories_shown']})" in one["shown"]["reason"] for one in missed)


@pytest.mark.slow
def test_show_and_failures_name_the_depth_that_a_reason_is_about(command: Command) -> None:
    command("eval", "--providers", "bm25", "--end", "30", "--run-id", "found")
    command("eval", "--providers", "bm25", "--end", "30", "--answering-model", "scripted/quote", "--run-id", "answered",
            "--judge-model", "scripted/judge")  # fmt: skip
    missed, *_ = command("results", "found", "--failures", "--json").json
    assert "first 5" in command("show", "found", missed["trial"]["case_id"], "--provider", "bm25").out
    assert "first 5" in command("show", "found", missed["trial"]["case_id"]).out
    wrong = command("results", "answered", "--failures", "--json").json
    assert {one["reason"] for one in wrong} >= {"not-retrieved", "not-used"}
    for one in wrong:
        if one["reason"] != "wrong":
            assert f"memories shown ({one['shown']['memories_shown']})" in one["shown"]["reason"]


def exported(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_failure_has_its_reason_in_a_column(tmp_path: Path) -> None:
    failed = Outcome(
        trial=scored("one", 1.0).trial,
        status="failed",
        failure=Failure(kind="Transient", message="timed out"),
        shown=Exhibit(asked="?"),
    )
    record(tmp_path, [failed])
    assert main(["export", "r", "--format", "json", "--results", str(tmp_path), "--output", str(tmp_path / "o")]) == 0
    (row,) = exported(tmp_path / "o")
    assert (row["status"], row["failure"], row["correct"], row["reason"]) == ("failed", "timed out", None, None)


@pytest.mark.slow
def test_rows_of_other_suites_have_gold_and_score(command: Command) -> None:
    sample = str(ROOT / "data" / "sample-dataset.json")
    audit = ("audit", sample, "--model", "scripted/quote", "--judge-model", "none", "--provider", "bm25")
    command(*audit, "--limit", "6", "--run-id", "a", "--output", "results")
    probes = json.loads(command("export", "a", "--format", "json").out)
    recall = [row for row in probes if row["probe_type"] == "recall"]
    assert recall
    assert all(row["gold_turns"] and row["ranking"] is not None for row in recall)
    command("hygiene", "run", "memory-skip-local", "--run-id", "h")
    scenarios = json.loads(command("export", "h", "--format", "json").out)
    assert {row["score"] for row in scenarios if row["passed"] is not None} <= {0.0, 1.0}
