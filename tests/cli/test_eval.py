"""What a user may claim about `memorybench eval` and the commands that read its results."""

import csv
import json
import re
import shlex
import sqlite3
from pathlib import Path

import pytest

from tests.cli.command import Command, measured
from tests.cli.test_compare import own_benchmark

ARMS = ["bm25", "dense", "hybrid", "none", "full-context", "oracle"]


def rows(folder: Path, sql: str) -> list[tuple]:
    with sqlite3.connect(folder / "results.db") as db:
        return db.execute(sql).fetchall()


def recall(document: dict, subject: str, name: str = "recall@5") -> float:
    (result,) = [r for r in document["results"] if r["subject"] == subject and not r["group"]]
    (measure,) = [m for m in result["measures"] if m["name"] == name]
    return measure["value"]


@pytest.mark.parametrize(
    ("flags", "questions"),
    [(("--limit", "72"), 72), pytest.param((), 360, marks=pytest.mark.slow)],
    ids=["part", "all"],
)
def test_without_arguments_eval_ranks_six_providers_on_the_starter(
    command: Command, flags: tuple[str, ...], questions: int
) -> None:
    assert command("eval", "--dry-run", "--json").json["planned"] == 6 * 360
    said = command("eval", *flags, "--json")
    assert said.code == 0
    document = said.json
    assert [r["subject"] for r in document["results"] if not r["group"]] == ARMS
    assert recall(document, "none") == 0 < recall(document, "bm25") < recall(document, "hybrid") < 1
    assert recall(document, "hybrid") > recall(document, "dense")
    assert recall(document, "oracle", "turn_recall@10") == 1
    assert recall(document, "full-context") is None, "the whole history has no ranking to judge"
    counts = document["counts"]
    assert counts["planned"] == 6 * questions == sum(n for name, n in counts.items() if name != "planned")
    assert not list(command.folder.glob("results/*/stores")), "the memories were put away"


@pytest.mark.slow
@pytest.mark.parametrize("places", [(1, 60), pytest.param((3, 95, 140), marks=pytest.mark.slow)])
def test_a_killed_evaluation_resumes_to_the_same_figures(command: Command, places: tuple[int, ...]) -> None:
    arguments = (
        "eval",
        "--providers",
        "bm25",
        "none",
        "--end",
        "48",
        "--concurrency",
        "1",
        "--run-id",
        "whole",
        "--json",
    )
    whole = command(*arguments).json
    for place in places:
        output = f"killed-{place}"
        again = tuple("victim" if word == "whole" else word for word in arguments)
        assert command.killed(*again, "--output", output, at=place)
        said = command("eval", "--resume", "victim", "--output", output, "--json")
        if place <= 2:  # killed before the run was recorded: there is nothing to resume, nor to lose
            assert said.code == 2
            continue
        assert measured(said.json) == measured(whole)
        report = json.loads((command.folder / output / "victim" / "report.json").read_text())
        assert measured(report) == measured(whole)


@pytest.mark.slow
def test_a_store_that_vanished_is_filled_again_and_never_searched_empty(command: Command) -> None:
    arguments = ("--providers", "bm25", "--end", "24", "--concurrency", "1", "--run-id", "r", "--json")
    whole = command("eval", *arguments, "--output", "whole").json
    assert command.killed("eval", *arguments, at=50)
    for file in command.folder.glob("results/r/stores/*"):
        file.unlink()
    said = command("eval", "--resume", "r", "--json")
    assert measured(said.json) == measured(whole)
    assert (
        len(
            rows(
                command.folder / "results",
                "SELECT DISTINCT json_extract(inputs, '$.incarnation') FROM steps WHERE name = 'add'",
            )
        )
        == 2
    )


def test_one_persons_memories_are_never_found_in_anothers(command: Command) -> None:
    """Two runs into one folder, twelve histories each: all that is retrieved is from the history asked about."""
    arguments = ("eval", "--providers", "bm25", "hybrid", "--question-type", "temporal")
    for run in ("first", "second"):
        assert command(*arguments, "--run-id", run).code == 0
    searches = rows(
        command.folder / "results",
        "SELECT o.case_id, s.result FROM outcomes o, json_each(o.body, '$.steps') AS step"
        " JOIN steps s ON s.run = o.run AND s.key = step.value WHERE s.name = 'search'",
    )
    assert len(searches) == 2 * 2 * 60
    assert len({case.rpartition("-q")[0] for case, _ in searches}) == 12
    for case, result in searches:
        person = case.rpartition("-q")[0]
        for memory in json.loads(result)["memories"]:
            assert memory["id"].startswith(f"{person}-"), f"{memory['id']} was found for {case}"


def test_question_types_and_ranges_select_questions(command: Command) -> None:
    said = command("eval", "--providers", "none,oracle", "--question-type", "temporal", "--run-id", "t", "--json")
    assert said.json["counts"]["planned"] == 2 * 60
    assert command("eval", "--providers", "none", "--start", "11", "--end", "20", "--run-id", "s").code == 0
    command("export", "s", "--format", "jsonl", "--output", "s.jsonl")
    items = [json.loads(line)["item"] for line in (command.folder / "s.jsonl").read_text().splitlines()]
    assert items == [f"amara-q{n}" for n in range(11, 21)]


@pytest.mark.slow
def test_shards_from_two_folders_read_as_one_run(command: Command) -> None:
    arms = ("--providers", "bm25", "oracle")
    whole = command("eval", *arms, "--end", "30", "--run-id", "whole", "--json").json
    command("eval", *arms, "--start", "1", "--end", "12", "--run-id", "one", "--output", "machine-a")
    command("eval", *arms, "--start", "13", "--end", "30", "--run-id", "two", "--output", "machine-b")
    both = command("results", "one", "two", "--results", "machine-a", "machine-b", "--json").json
    assert both["counts"] == whole["counts"]
    assert sorted(map(json.dumps, both["results"])) == sorted(map(json.dumps, whole["results"]))


def test_runs_that_are_not_shards_are_not_merged(command: Command) -> None:
    command("eval", "--providers", "none", "--end", "5", "--run-id", "a")
    command("eval", "--providers", "oracle", "--end", "5", "--run-id", "b")
    said = command("results", "a", "b")
    assert said.code == 2
    assert said.err.startswith("memorybench: a and b: ")
    assert "providers" in said.err


@pytest.mark.slow
def test_comparing_two_providers_says_whether_they_differ(command: Command) -> None:
    command("eval", "--providers", "bm25", "oracle", "--question-type", "temporal")
    said = command("results", "--compare", "oracle", "bm25", "--benchmark", "starter")
    assert "oracle is better in recall@5" in said.out
    said = command("results", "--compare", "oracle", "bm2", "--benchmark", "starter")
    assert said.code == 2
    assert said.err.startswith("memorybench: --compare: ")
    assert "bm2" in said.err


@pytest.mark.slow
def test_similar_providers_have_no_significant_difference(command: Command) -> None:
    command("eval", "--providers", "bm25", "dense", "--end", "30")
    said = command("results", "--compare", "bm25", "dense")
    assert "no significant difference" in said.out


def test_export_has_the_columns_and_keeps_formulas_out_of_spreadsheets(command: Command) -> None:
    command("eval", "--providers", "bm25", "--limit", "5", "--answering-model", "scripted/quote", "--run-id", "r")
    assert command("export", "r", "--format", "csv", "--output", "r.csv").code == 0
    with (command.folder / "r.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == 5
    wanted = ["run", "benchmark", "provider", "item", "question", "expected", "actual", "score", "correct"]
    assert list(table[0])[:9] == wanted
    assert json.loads(table[0]["metadata"])["question_type"] == "multi-hop"
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in table for cell in row.values())
    parsed = json.loads(command("export", "r", "--format", "json").out)
    assert [row["item"] for row in parsed] == [row["item"] for row in table]


def test_a_scripted_model_answers_offline_and_is_scored(command: Command) -> None:
    said = command(
        "eval", "--providers", "oracle", "none", "--end", "60", "--answering-model", "scripted/quote", "--json"
    )
    document = said.json
    assert recall(document, "oracle", "answer_f1") > recall(document, "none", "answer_f1")
    assert recall(document, "none", "accuracy") is None, "free text is not right or wrong without a judge"


def test_a_threshold_shows_on_which_side_of_it_the_value_is(command: Command) -> None:
    said = command("eval", "--providers", "bm25", "--end", "12", "--run-id", "r", "--json").json
    value = next(one["value"] for one in said["results"][0]["measures"] if one["name"] == "ndcg@10")
    for limit in (value - 1e-7, value, value + 1e-12, value + 1e-7):
        checks = command("eval", "--resume", "r", "--threshold", f"ndcg@10={limit!r}", "--json").json["checks"]
        shown = re.search(r"ndcg@10 (\S+), expected ≥ ([^\s;]+)", checks[0]["text"])
        assert shown is not None
        assert (float(shown[1]) < float(shown[2])) == checks[0]["missed"] == (value < limit - 1e-9)


@pytest.mark.slow
def test_thresholds_decide_the_exit_code_and_leave_baselines_alone(command: Command) -> None:
    arms = ("eval", "--providers", "bm25", "none", "--end", "60")
    assert command(*arms, "--threshold", "recall@5=0.1", "--run-id", "first").code == 0
    assert command(*arms, "--reuse", "first", "--threshold", "recall@5=0.99").code == 3
    said = command(*arms, "--reuse", "first", "--threshold", "recall@5=0.55", "--threshold-on", "lower")
    assert said.code == 3
    assert "threshold missed" in said.out


def test_a_dry_run_prints_the_plan_and_does_nothing(command: Command) -> None:
    said = command("eval", "--dry-run", "--providers", "bm25", "--limit", "40")
    assert said.code == 0
    assert "40 trials planned" in said.out
    planned = command("eval", "--dry-run", "--providers", "bm25", "--limit", "40", "--json").json
    assert {row["stage"]: row["calls"] for row in planned["expected"]} == {"add": 269, "search": 40}
    assert not (command.folder / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["eval", "--providers", "bm52"], '"bm25"'),
        (["eval", "--benchmarks", "startr"], '"starter"'),
        (["eval", "--start", "999"], "--start:"),
        (["eval", "--resume", "nobody"], "results.db"),
        (["eval", "--threshold", "recall@5=40%"], '"recall@5=0.4"'),
        (["eval", "--answering-model", "scripted/poet"], "scripted/poet"),
        (["eval", "--answering-model", "olama/x"], '"ollama/x"'),
        (["results", "nobody"], "results: folder not found"),
        (["describe", "hybird"], '"hybrid"'),
    ],
)
def test_a_wrong_command_line_is_an_error_before_anything_happens(
    command: Command, arguments: list[str], named: str
) -> None:
    """The message names the flag, or the nearest known name."""
    answer = command(*arguments)
    assert answer.code == 2
    assert named in answer.err
    assert "Traceback" not in answer.err
    assert list(command.folder.iterdir()) == [], "nothing on disk is changed"


def test_the_suggested_command_asks_the_benchmarks_of_the_run(command: Command) -> None:
    own_benchmark(command.folder, {"fence": "green", "door": "red"})

    def suggested_by(output: str) -> str:
        lines = re.sub(r" \\\n *", " ", output).splitlines()  # long commands continue on the next line
        [suggested] = [line for line in lines if "--answering-model" in line]
        return suggested.strip().split("    ")[0]

    said = command("eval", "--benchmarks", "sample", "--config-dir", ".", "--providers", "bm25")
    suggested = suggested_by(said.out)
    assert "--benchmarks sample" in suggested
    assert command(*shlex.split(suggested)[1:]).code == 0
    default = command("eval", "--providers", "bm25", "--end", "2")
    suggested = suggested_by(default.out)
    assert "--benchmarks" not in suggested


def test_a_suggested_command_quotes_the_results_folder(command: Command) -> None:
    said = command("eval", "--providers", "bm25", "--end", "2", "--run-id", "r", "--output", "sub dir")
    (suggested,) = [line for line in said.out.splitlines() if "--failures" in line]
    assert command(*shlex.split(suggested.strip().split("    ")[0])[1:]).code == 0


def test_the_error_for_an_unknown_run_names_the_nearest(command: Command) -> None:
    command("eval", "--providers", "none", "--end", "3", "--run-id", "done")
    assert 'did you mean "done"' in command("eval", "--resume", "dome").err
    assert "--resume done" in command("eval", "--run-id", "done").err


def test_json_is_the_only_output_on_standard_output(command: Command) -> None:
    for arguments in (
        ("eval", "--providers", "none", "--end", "3", "--run-id", "r"),
        ("results", "r"),
        ("results",),
        ("results", "r", "--failures"),
        ("list",),
        ("describe", "starter"),
        ("doctor",),
    ):
        assert isinstance(json.loads(command(*arguments, "--json").out), dict | list), arguments
