"""`--baseline` and `--max-drop`: a run that is worse than an earlier one exits with 3."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest

import memorybench
from memorybench.journal.checksums import CHECKSUMS, crc
from memorybench.metrics.comparison import Comparison
from memorybench.suites.comparison import Pair
from memorybench.suites.gate import _check
from tests.cli.command import Command
from tests.cli.test_compare import SAMPLE, own_benchmark
from tests.cli.test_documents import SCHEMA
from tests.cli.test_hygiene import AGENT, CONSENT
from tests.doubles.refusals import refused

FEW = ("--question-type", "temporal")
EVAL = ("eval", "--providers", "bm25", *FEW)


@pytest.fixture
def good(command: Command) -> str:
    command.once(*EVAL, "--run-id", "good")
    return "good"


@pytest.mark.slow
def test_a_planted_regression_exits_with_3_and_an_equal_run_with_0(command: Command, good: str) -> None:
    same = command(*EVAL, "--reuse", good, "--baseline", good, "--run-id", "same", "--json")
    assert (same.code, same.json["baseline"]["passed"]) == (0, True)
    worse = command(*EVAL, "--top-k", "1", "--baseline", good, "--run-id", "worse", "--json")
    assert (worse.code, worse.json["baseline"]["passed"], len(worse.json["baseline"]["failures"])) == (3, False, 1)
    (pair,) = worse.json["baseline"]["comparison"]["comparisons"]
    assert (pair["first_run"], pair["second_run"], pair["comparison"]["significant"]) == ("worse", "good", True)
    assert pair["comparison"]["difference"] < 0
    jsonschema.validate(worse.json, SCHEMA)
    assert command("results", "worse", "--json").json == worse.json, "the comparison is part of the report"
    assert "good" in (command.folder / "results/worse/report.md").read_text()
    better = command(*EVAL, "--reuse", good, "--baseline", "worse", "--run-id", "better")
    assert better.code == 0, "better is not worse"


@pytest.mark.slow
def test_the_document_of_a_run_lists_its_thresholds_and_its_baseline(command: Command, good: str) -> None:
    checks = ("--baseline", good, "--threshold", "recall@5=1", "--threshold-on", "lower")
    said = command(*EVAL, "--reuse", good, *checks, "--run-id", "r", "--json")
    assert said.code == 3
    jsonschema.validate(said.json, SCHEMA)
    threshold, baseline = said.json["checks"]
    assert (threshold["where"], threshold["name"]) == ("starter × bm25", "threshold recall@5")
    assert (threshold["missed"], threshold["limit"]) == (True, 1.0)
    assert (baseline["name"], baseline["missed"]) == ("baseline recall@5", False)
    assert threshold["value"] == baseline["value"] == baseline["limit"]
    saved = command.folder / "results/r"
    assert json.loads((saved / "report.json").read_text())["checks"] == said.json["checks"]
    assert threshold["text"] in (saved / "report.md").read_text()
    assert threshold["text"] in said.err


def test_two_thresholds_of_one_measure_are_refused(command: Command) -> None:
    """Only one of them could be saved with the run, and be checked when it is resumed."""
    said = command(*EVAL, "--threshold", "recall@5=0.9", "--threshold", "recall@5=0.1")
    assert (said.code, said.err.split(": ")[1]) == (2, "--threshold")


@pytest.mark.parametrize("measure", ["accuracy", "answer_f1", "f1", "rubric_score"])
def test_a_threshold_for_answers_needs_an_answering_model(command: Command, measure: str) -> None:
    said = command(*EVAL, "--threshold", f"{measure}=0.5")
    assert said.code == 2
    assert "--answering-model" in said.err
    assert "unknown measure" not in said.err
    other = command("hygiene", "run", "memory-skip-local", "--threshold", f"{measure}=0.5")
    assert "unknown measure" in other.err
    assert "--answering-model" not in other.err


def test_a_run_with_thresholds_that_are_refused_today_can_be_read_and_resumed(command: Command, good: str) -> None:
    """Earlier versions accepted two names of one measure, and for some shares numbers above 1."""
    columns = CHECKSUMS["runs"]["crc"]
    with closing(sqlite3.connect(command.folder / "results/results.db")) as db, db:
        values = dict(zip(columns, db.execute(f"SELECT {', '.join(columns)} FROM runs").fetchone(), strict=True))
        thresholds = {"any@5": 0.0, "recall_any@5": 80.0}
        values["spec"] = json.dumps({**json.loads(values["spec"]), "thresholds": thresholds})
        db.execute("UPDATE runs SET spec = ?, crc = ?", (values["spec"], crc(*values.values())))
    said = command("results", good, "--json")
    assert (said.code, [check["limit"] for check in said.json["checks"]]) == (0, [0.0, 80.0])
    assert command("eval", "--resume", good).code == 3, "the second threshold is missed"


@pytest.mark.slow
def test_thresholds_are_saved_with_the_run(command: Command) -> None:
    said = command(*EVAL, "--threshold", "recall@5=1", "--threshold-on", "lower", "--run-id", "r", "--json")
    assert said.code == 3
    assert command("results", "r", "--json").json["checks"] == said.json["checks"]
    assert command("eval", "--resume", "r", "--json").json["checks"] == said.json["checks"]
    assert command("eval", "--resume", "r").code == 3
    assert command("eval", "--resume", "r", "--threshold", "recall@6=0").code == 2, "it is checked before it is saved"
    replaced = command("eval", "--resume", "r", "--threshold", "recall@5=0", "--json")
    assert (replaced.code, replaced.json["checks"][0]["limit"]) == (0, 0)
    assert command("eval", "--resume", "r").code == 0
    assert command("results", "r", "--json").json["checks"] == replaced.json["checks"]
    assert json.loads((command.folder / "results/r/report.json").read_text())["checks"] == replaced.json["checks"]
    assert "threshold met" in (command.folder / "results/r/report.html").read_text()
    assert command("verify", command("bundle", "r", "--output", "r.mbz") and "r.mbz").code == 0, "checksums agree"


@pytest.mark.slow
def test_reading_a_run_shows_its_checks(command: Command, good: str) -> None:
    checks = ("--threshold", "recall@5=1", "--threshold-on", "lower", "--baseline", good)
    ended = command(*EVAL, "--top-k", "1", *checks, "--run-id", "r", "--junit", "run.xml")
    assert ended.code == 3
    read = command("results", "r")
    texts = [check["text"] for check in command("results", "r", "--json").json["checks"]]
    assert len(texts) == 2
    for said in (ended, read):
        assert [text in " ".join(said.out.split()) for text in texts] == [True, True]
    assert read.code == 0, "reading a run is not a gate"
    assert command("export", "r", "--format", "junit", "--output", "export.xml").code == 0
    assert (command.folder / "export.xml").read_text() == (command.folder / "run.xml").read_text()


@pytest.mark.slow
def test_a_drop_beyond_the_limit_fails_even_if_it_is_not_significant(command: Command, good: str) -> None:
    run = ("eval", "--providers", "dense", *FEW, "--baseline", f"{good}:bm25", "--json")
    free = command(*run, "--run-id", "free", "--max-drop", "recall@1=100")
    pairs = {pair["measure"]: pair for pair in free.json["baseline"]["comparison"]["comparisons"]}
    assert (free.code, set(pairs)) == (0, {"recall@5", "recall@1"}), "a measure with a limit is compared, too"
    drop = max(-100 * pairs["recall@5"]["comparison"]["difference"], 0)
    tokens = command(*run, "--reuse", "free", "--run-id", "tokens", "--max-drop", "context_tokens=0")
    pair = tokens.json["baseline"]["comparison"]["comparisons"][-1]
    is_worse = pair["comparison"]["difference"] > 0
    assert (pair["measure"], tokens.code) == ("context_tokens", 3 if is_worse else 0)
    loose = command(*run, "--reuse", "free", "--run-id", "loose", "--max-drop", f"{drop + 1}")
    assert loose.code == 0


@pytest.mark.slow
def test_max_drop_is_measured_in_points(command: Command, good: str) -> None:
    run = (*EVAL, "--top-k", "2", "--baseline", good, "--json")
    first = command(*run, "--run-id", "first").json["baseline"]["comparison"]["comparisons"][0]
    drop = -100 * first["comparison"]["difference"]
    assert drop > 0
    assert command(*run, "--reuse", "first", "--max-drop", f"recall@5={drop - 0.01:.6f}").code == 3
    checks = command(*run, "--reuse", "first", "--max-drop", f"recall@5={drop - 1e-6!r}").json["checks"]
    (shown,) = (
        match for one in checks if (match := re.search(r"worse by (\S+) points, more than (\S+)$", one["text"]))
    )
    assert float(shown[1]) > float(shown[2])
    strict = command(*run, "--reuse", "first", "--max-drop", f"{drop + 0.01:.6f}").json["baseline"]
    assert not any("more than" in line for line in strict["failures"])


@pytest.mark.slow
def test_a_resumed_run_keeps_its_baseline(command: Command, good: str) -> None:
    run = (*EVAL, "--top-k", "1", "--run-id", "r", "--baseline", good)
    assert command.killed(*run, at=40)
    resumed = command("eval", "--resume", "r", "--json")
    assert (resumed.code, resumed.json["baseline"]["baseline"]) == (3, good)
    again = command("eval", "--resume", "r", "--json")
    assert (again.code, again.json) == (3, resumed.json)
    assert command("eval", "--resume", "r", "--baseline", "none").code == 0
    assert command("eval", "--resume", "r").code == 0, "it is lifted for good"


@pytest.mark.slow
def test_what_cannot_be_compared_is_refused_before_the_run(command: Command) -> None:
    command("eval", "--providers", "bm25", "--end", "5", "--run-id", "first")
    command("hygiene", "run", "memory-skip-local", "--no-mutants", "--run-id", "other-suite")
    own_benchmark(command.folder, {"door": "red"})
    command("eval", "--benchmarks", "sample", "--providers", "bm25", "--config-dir", ".", "--run-id", "data")
    own_benchmark(command.folder, {"fence": "green", "door": "blue"})
    sample = ("--benchmarks", "sample", "--config-dir", ".", "--baseline", "data")
    for arguments, where in (
        (("--start", "6", "--end", "9", "--baseline", "first"), "--baseline"),
        (("--baseline", "other-suite"), "--baseline"),
        (("--baseline", "nobody"), "--baseline"),
        (("--baseline", "first:nobody"), "--baseline"),
        (("--baseline", "first", "--run-id", "first"), "first"),
        (sample, "--baseline"),
        (("--max-drop", "3"), "--max-drop"),
        (("--baseline", "first", "--max-drop", "recal@5=3"), "--max-drop"),
        (("--baseline", "first", "--max-drop", "-3"), "--max-drop"),
        (("--baseline", "first", "--max-drop", "many"), "--max-drop"),
    ):
        said = command(
            "eval", "--providers", "bm25", *(arguments if "--run-id" in arguments else ("--run-id", "new", *arguments))
        )
        assert said.code == 2, (arguments, said.out)
        assert where in said.err, (arguments, said.err)
        assert not (command.folder / "results/new").exists(), arguments


def test_the_error_for_other_questions_names_the_baseline_run_and_the_flags(command: Command) -> None:
    command("eval", "--providers", "bm25", "--end", "5", "--run-id", "first")
    error = refused(memorybench.evaluate, providers=["bm25"], start=6, end=9, baseline="first")
    assert "run first" in error.problem
    assert "--limit" in error.remedy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "good", "bad"),
    [
        (
            ("audit", SAMPLE, "--judge-model", "scripted/judge", "--kinds", "recall", "--output", "results"),
            ("--model", "scripted/quote"),
            ("--model", "scripted/silence"),
        ),
        (("extraction", "run", "--no-targets"), ("--extractor", "amnesiac"), ("--extractor", "hoarder")),
    ],
    ids=["audit", "extraction"],
)
def test_every_suite_has_the_gate(
    command: Command, run: tuple[str, ...], good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    command(*run, *good, "--run-id", "good")
    assert command(*run, *good, "--run-id", "again", "--baseline", "good").code in (0, 1)
    said = command(*run, *bad, "--run-id", "bad", "--baseline", "good", "--json")
    assert (said.code, said.json["baseline"]["passed"]) == (3, False)
    assert json.loads(Path("results/bad/report.json").read_text())["baseline"] == said.json["baseline"]


@pytest.mark.slow
def test_an_agent_that_got_worse_fails_the_gate_of_hygiene(command: Command) -> None:
    (command.folder / "agents/configs").mkdir(parents=True)
    agent = ("--agent", "scripted", "--allow-code", *CONSENT)
    run = ("hygiene", "run", "memory-skip-local", "--seed", "1", *agent, "--json")
    for behaviour in ("reading", "hoarding"):
        (command.folder / "agents/configs/scripted.yaml").write_text(AGENT.replace("BEHAVIOUR", behaviour))
        gate = () if behaviour == "reading" else ("--baseline", "reading", "--max-drop", "10")
        said = command(*run, "--run-id", behaviour, *gate)
    document = said.json["baseline"]
    assert (said.code, document["passed"], document["comparison"]["suite"]) == (3, False, "hygiene")
    assert document["comparison"]["warnings"], "one scenario: only --max-drop can fail"
    assert [setting["name"] for setting in document["comparison"]["settings"]] == ["agent"]


@pytest.mark.slow
def test_a_baseline_in_another_folder_and_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    memorybench.evaluate(providers=["bm25"], end=20, run_id="good", output="main")
    run = memorybench.evaluate(providers=["bm25"], end=20, baseline="main/good", max_drop=["0"])
    assert run.gate is not None
    assert run.gate.passed
    assert memorybench.load_run("good", "main").gate is None


@pytest.mark.slow
def test_saved_files_name_a_baseline_of_another_folder_without_its_absolute_path(command: Command, good: str) -> None:
    elsewhere = command.folder / "lastweek/results"
    elsewhere.parent.mkdir()
    (command.folder / "results").rename(elsewhere)
    run = (*EVAL, "--baseline", "lastweek/results/good", "--json")
    pairs = {}
    for run_id in ("a-name-that-is-long", "good"):
        said = command(*run, "--run-id", run_id)
        assert (said.code, said.json["baseline"]["baseline"]) == (0, "good")
        (pair,) = said.json["baseline"]["comparison"]["comparisons"]
        pairs[run_id] = pair["first_run"], pair["second_run"]
        for file in (command.folder / "results" / run_id).iterdir():
            assert str(command.folder) not in file.read_text(), file
    assert pairs["a-name-that-is-long"] == ("a-name-that-is-long", "good")
    assert pairs["good"] == ("results/good", "lastweek/results/good")
    lines = (command.folder / "results/a-name-that-is-long/report.md").read_text().splitlines()
    (title,) = (line for line in lines if " minus " in line)
    assert [f"{name} (side {n})" in title for n, name in ((1, "a-name-that-is-long"), (2, "good"))] == [True, True]
    for folder in ("lastweek", "results"):
        shutil.move(command.folder / folder, command.folder / "moved" / folder)
    assert command("results", "moved/results/good", "--json").json["baseline"]["passed"], "the folders moved together"


@pytest.mark.slow
def test_a_gate_compares_other_providers_only_if_they_are_named(command: Command, good: str) -> None:
    other = ("eval", "--providers", "dense", *FEW, "--run-id", "other")
    refused = command(*other, "--baseline", good)
    assert (refused.code, "--baseline: run good has bm25" in refused.err) == (2, True)
    assert not (command.folder / "results/other").exists()
    assert command(*other, "--baseline", f"{good}:bm25").code in (0, 3)


@pytest.mark.slow
def test_the_hint_for_other_providers_works_as_typed(command: Command, good: str) -> None:
    (command.folder / "results").rename(command.folder / "shared")
    error = refused(memorybench.evaluate, providers=["bm25(k1=2)"], question_types=["temporal"], baseline="shared/good")
    flag, value = shlex.split(error.remedy)[-2:]
    assert (flag, value) == ("--baseline", "shared/good:bm25")
    assert command("eval", "--providers", "bm25(k1=2)", *FEW, flag, value).code in (0, 3)


@pytest.mark.slow
def test_a_tag_of_one_run_names_a_baseline(command: Command, good: str) -> None:
    command("runs", "tag", good, "released")
    said = command(*EVAL, "--reuse", good, "--baseline", "released", "--run-id", "r", "--tag", "released", "--json")
    assert (said.code, said.json["baseline"]["baseline"]) == (0, good)
    error = refused(memorybench.evaluate, providers=["bm25"], question_types=["temporal"], baseline="released")
    assert (error.where, good in error.problem, "r" in error.problem) == ("--baseline", True, True)
    error = refused(memorybench.evaluate, providers=["bm25"], question_types=["temporal"], baseline="unknown")
    assert (error.where, "tag" in error.expected) == ("--baseline", True)


@pytest.mark.slow
def test_a_missed_gate_suggests_the_questions_that_got_worse(command: Command, good: str) -> None:
    command("runs", "tag", good, "released")
    said = command(*EVAL, "--top-k", "1", "--baseline", "released", "--run-id", "worse")
    assert said.code == 3
    (hint,) = (line.split("    ")[0].strip() for line in said.out.splitlines() if "memorybench compare " in line)
    assert hint == "memorybench compare worse good --only losses"
    assert command(*hint.split()[1:]).code == 0


@pytest.mark.slow
def test_a_baseline_of_another_suite_in_another_folder_is_recognised(command: Command) -> None:
    command("audit", SAMPLE, "--model", "scripted/quote", "--judge-model", "none", "--limit", "3", "--run-id", "a1")
    said = command(*EVAL, "--baseline", "a1")
    assert (said.code, "is a run of audit" in said.err) == (2, True)


def test_lines_of_the_gate_say_what_was_compared() -> None:
    def line(difference: float | None) -> str:
        result = Comparison(difference=difference, n=4, planned=4)
        pair = Pair(first="bm25", second="bm25", measure="recall@5", benchmark="starter", comparison=result)
        check = _check(pair, {})
        assert not check.missed
        return check.text

    assert line(None).startswith("baseline not compared: ")
    assert line(0.0) == line(-0.0) == line(0.00001)
    assert "no difference" in line(0.0)
    assert "2.0 points better" in line(0.02)


@pytest.mark.slow
def test_a_threshold_on_the_lower_bound_says_what_was_compared(command: Command) -> None:
    threshold = ("--threshold", "recall@5=0.3", "--threshold-on", "lower")
    said = command("eval", "--providers", "bm25", "--limit", "8", "--run-id", "r", *threshold, "--json")
    (check,) = said.json["checks"]
    assert check["on"] == "lower"
    low = next(m["low"] for m in said.json["results"][0]["measures"] if m["name"] == "recall@5")
    assert f"lower bound {low:.3f} of recall@5" in check["text"].partition(", expected")[0]


def test_a_count_that_is_limited_is_not_called_tested(command: Command) -> None:
    run = ("extraction", "run", "--limit", "4", "--no-targets", "--extractor")
    command(*run, "amnesiac", "--run-id", "first")
    command(*run, "hoarder", "--run-id", "second", "--baseline", "first", "--max-drop", "unexpected=500")
    report = (command.folder / "results/second/report.md").read_text()
    (line,) = [line for line in report.splitlines() if "baseline met" in line and ": unexpected " in line]
    assert "worse" in line
    assert "significant" not in line
