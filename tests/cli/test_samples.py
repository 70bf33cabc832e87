"""Which questions a run asks: samples with --limit, single questions, and those that failed before."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench import evaluate
from memorybench.journal.checksums import crc
from tests.cli.command import Command, measured
from tests.doubles.refusals import refused

ASK = ("eval", "--providers", "none")


def asked(command: Command, run: str, results: str = "results") -> list[str]:
    """The ids of the questions of a run, in the order of the file."""
    with sqlite3.connect(command.folder / results / "results.db") as db:
        sql = "SELECT DISTINCT case_id, min(ordinal) FROM outcomes WHERE run = ? GROUP BY case_id ORDER BY 2"
        return [case for case, _ in db.execute(sql, (run,))]


def people(questions: list[str]) -> Counter[str]:
    return Counter(question.rpartition("-q")[0] for question in questions)


def types(command: Command, run: str) -> Counter[str]:
    with sqlite3.connect(command.folder / "results" / "results.db") as db:
        bodies = db.execute("SELECT body FROM outcomes WHERE run = ?", (run,))
        return Counter(json.loads(body)["trial"]["labels"]["question_type"] for (body,) in bodies)


def change_spec(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Edit the saved spec of the only run, as another version would have written it."""
    with sqlite3.connect(folder / "results.db") as db:
        columns = list(
            db.execute("SELECT id, suite, spec, fingerprints, program, planned, created FROM runs").fetchone()
        )
        spec = json.loads(columns[2])
        change(spec)
        columns[2] = json.dumps(spec)
        db.execute("UPDATE runs SET spec = ?, crc = ?", (columns[2], crc(*columns)))


@pytest.mark.slow
def test_a_limit_asks_about_every_person_and_type(command: Command) -> None:
    assert command(*ASK, "--limit", "24", "--run-id", "r").code == 0
    assert set(people(asked(command, "r")).values()) == {2}
    command(*ASK, "--run-id", "all")
    shares = {name: 24 * n / 360 for name, n in types(command, "all").items()}
    assert all(abs(n - shares[name]) <= 1 for name, n in types(command, "r").items())


@pytest.mark.slow
def test_a_sample_does_not_depend_on_the_providers_or_the_models_seed(command: Command) -> None:
    command(*ASK, "--limit", "10", "--run-id", "a")
    command("eval", "--providers", "oracle", "--limit", "10", "--seed", "5", "--run-id", "b")
    command(*ASK, "--limit", "10", "--sample-seed", "1", "--run-id", "c")
    assert asked(command, "a") == asked(command, "b")
    assert asked(command, "a") != asked(command, "c")


@pytest.mark.slow
def test_a_small_sample_is_part_of_a_larger_one_so_reuse_pays(command: Command) -> None:
    command("eval", "--providers", "bm25", "--limit", "12", "--run-id", "small")
    said = command("eval", "--providers", "bm25", "--limit", "30", "--reuse", "small", "--run-id", "large", "--json")
    assert set(asked(command, "small")) < set(asked(command, "large"))
    (searches,) = [stage for stage in said.json["circumstances"]["stages"] if stage["name"] == "search"]
    assert (searches["steps"], searches["reused"]) == (30, 12)


def test_single_questions_are_asked_by_id(command: Command) -> None:
    command(*ASK, "--question-id", "fiona-q03", "amara-q07", "--run-id", "r")
    assert asked(command, "r") == ["amara-q07", "fiona-q03"]


def test_an_unknown_question_is_an_error_that_names_the_nearest(command: Command) -> None:
    said = command(*ASK, "--question-id", "amara-q07", "amra-q08")
    assert said.code == 2
    assert said.err.startswith("memorybench: --question-id: ")
    assert '"amara-q08"' in said.err
    assert not (command.folder / "results").exists()


@pytest.mark.slow
def test_questions_that_failed_in_an_earlier_run_are_asked_again(command: Command) -> None:
    command("eval", "--providers", "bm25", "dense", "none", "--end", "60", "--run-id", "first")
    listed = command("results", "first", "--failures", "--json").json
    missed: dict[str, set[str]] = {"bm25": set(), "dense": set(), "none": set()}
    for trial in (row["trial"] for row in listed):
        missed[trial["subject"]["name"]].add(trial["case_id"])
    assert missed["bm25"]
    assert missed["bm25"] != missed["dense"]
    command("eval", "--providers", "bm25", "none", "--failed-in", "first", "--run-id", "same")
    assert set(asked(command, "same")) == missed["bm25"], "only the providers of both runs count, and no baseline"
    command("eval", "--providers", "hybrid", "--failed-in", "first", "--run-id", "other")
    assert set(asked(command, "other")) == missed["bm25"] | missed["dense"]


def test_failures_of_an_unknown_run_or_of_none_are_an_error(command: Command) -> None:
    command("eval", "--providers", "oracle", "--end", "5", "--run-id", "right")
    for flag in ("--failed-in", "--reuse", "--resume"):
        said = command("eval", *(["--providers", "bm25"] if flag != "--resume" else []), flag, "rihgt")
        assert said.code == 2
        assert said.err.startswith(f'memorybench: {flag}: run "rihgt" not found in ')
        assert 'did you mean "right"?' in said.err
        said = command("eval", flag, "right", "--output", "elsewhere")
        assert said.code == 2
        assert said.err.startswith(f"memorybench: {flag}: ")
    said = command("eval", "--providers", "bm25", "--failed-in", "right")
    assert said.code == 2
    assert said.err.startswith("memorybench: --failed-in: ")


@pytest.mark.slow
@pytest.mark.parametrize("choice", [("--limit", "7", "--sample-seed", "3"), ("--failed-in", "old", "--limit", "5")])
def test_a_killed_run_resumes_with_the_questions_that_it_chose(command: Command, choice: tuple[str, ...]) -> None:
    if "old" in choice:
        command("eval", "--providers", "bm25", "--end", "60", "--run-id", "old")
    arguments = ("eval", "--providers", "bm25", *choice, "--concurrency", "1", "--run-id", "r")
    whole = command(*arguments[:-1], "whole", "--json").json
    assert command.killed(*arguments, at=20)
    assert measured(command("eval", "--resume", "r", "--json").json) == measured(whole)
    assert asked(command, "r") == asked(command, "whole")


@pytest.mark.parametrize(
    ("seed", "questions"),
    [
        (None, [f"amara-q{n:02}" for n in range(1, 7)]),
        # what an earlier version drew from the starter with --limit 6 --seed 7
        (7, ["amara-q25", "beatriz-q08", "fiona-q18", "luc-q16", "marisol-q23", "wanjiru-q04"]),
    ],
)
def test_a_run_of_the_previous_release_resumes_with_its_own_questions(
    command: Command, seed: int | None, questions: list[str]
) -> None:
    """It had the first questions, or with --seed a random few. The killed run here had begun with one of them."""

    def as_previous_release_wrote_it(spec: dict[str, Any]) -> None:
        for key in ("sample_seed", "question_ids", "failed_in", "chosen", "samples"):
            spec.pop(key, None)
        spec.update(limit=6, seed=seed)

    arguments = (*ASK, "--question-id", *questions, "--concurrency", "1", "--run-id", "r")
    assert command.killed(*arguments, at=8)
    change_spec(command.folder / "results", as_previous_release_wrote_it)
    assert command("eval", "--resume", "r").code == 0
    assert asked(command, "r") == questions


def write_benchmark(command: Command, items: list[dict[str, Any]], **config: Any) -> None:
    """A benchmark "mine" whose items have two sessions each; all turns of both are gold."""
    folder = command.folder / "benchmarks" / "configs"
    folder.mkdir(parents=True)
    (command.folder / "benchmarks" / "mine.json").write_text(json.dumps(items))
    schema = {
        "itemId": "id",
        "question": "question",
        "answer": "answer",
        "evidence": "gold",
        "choices": "choices",
        "context": {"field": "sessions", "idField": "ids", "itemSchema": {"content": "text", "role": "role"}},
        "metadata": {"questionType": "type", "difficulty": "difficulty"},
    }
    value = {
        "name": "mine",
        "data": {"type": "local", "path": "../mine.json"},
        "schema": schema,
        "evaluation": {"method": "exact-match"},
    }
    (folder / "mine.yaml").write_text(json.dumps(value | config))


def item(n: int, **changed: Any) -> dict[str, Any]:
    return {
        "id": f"q{n}",
        "question": f"Which colour has fence {n}?",
        "answer": "green",
        "type": "fact" if n % 2 else "update",
        "difficulty": "easy" if n % 3 else "hard",
        "gold": [f"s{n}a", f"s{n}b"],
        "ids": [f"s{n}a", f"s{n}b"],
        "sessions": [[{"role": "user", "text": f"Fence {n} is green."}], [{"role": "user", "text": "Still green."}]],
    } | changed


def test_a_question_that_another_flag_leaves_out_is_not_called_unknown(command: Command) -> None:
    error = refused(evaluate, question_ids=["amara-q07"], start=200, providers=["none"])
    assert (error.where, "amara-q07" in error.problem) == ("", False)
    assert refused(evaluate, question_ids=["amara-q99"], providers=["none"]).where == "--question-id"


def test_the_measures_of_a_config_come_first(command: Command) -> None:
    write_benchmark(command, [item(n) for n in range(3)], metrics=["accuracy", "precision_at_3", "mrr"])
    command("eval", "--benchmarks", "mine", "--providers", "bm25", "--run-id", "r")
    columns = next(line for line in report(command).splitlines() if line.startswith("| provider |")).split("|")
    assert [name.strip() for name in columns[2:5]] == ["recall@5 [95%]", "precision@3", "mrr"]


def report(command: Command, run: str = "r") -> str:
    return (command.folder / "results" / run / "report.md").read_text()


def test_header_report_and_json_say_how_many_people_were_asked_about(command: Command) -> None:
    said = command(*ASK, "--limit", "8", "--run-id", "r")
    assert "8 of 360 questions, 8 of 12 histories" in said.out
    assert "8 of 360 questions, 8 of 12 histories" in report(command)
    numbers = {"cases": 8, "clusters": 8, "cases_available": 360, "clusters_available": 12}
    assert command("results", "r", "--json").json["samples"] == [{"benchmark": "starter", **numbers}]
    planned = command(*ASK, "--limit", "8", "--dry-run", "--json").json
    assert planned["samples"] == {"starter": numbers}


@pytest.mark.slow
def test_wide_intervals_are_called_out_beside_the_table(command: Command) -> None:
    said = command("eval", "--providers", "bm25", "none", "--limit", "8", "--run-id", "r")
    for text in (" ".join(said.out.split()), " ".join(report(command).split())):
        assert "Wide interval of bm25, none: 7 questions of 7 histories" in text
        assert "questions are needed for ±5 points" in text
    said = command("eval", "--providers", "bm25", "--run-id", "all")
    assert "Wide interval" not in said.out


def test_one_history_has_no_interval_in_any_table(command: Command) -> None:
    """Of the first six questions, which are about one person, some are the only ones of their type."""
    for run, end in {"r": "6", "s": "1"}.items():
        said = command("eval", "--end", end, "--providers", "bm25", "none", "--run-id", run, "--json")
        shares = [m for result in said.json["results"] for m in result["measures"] if m["n"] and not m.get("unit")]
        assert {(measure.get("low"), measure.get("high")) for measure in shares} == {(None, None)}
        assert "No interval" in report(command, run)


def test_only_a_benchmark_with_more_histories_can_be_sampled_for_an_interval(command: Command) -> None:
    write_benchmark(command, [item(0)])
    command("eval", "--benchmarks", "mine", "--providers", "bm25", "--run-id", "mine")
    command("eval", "--providers", "bm25", "--end", "6", "--run-id", "first")
    for run, can_sample in {"mine": False, "first": True}.items():
        assert "No interval" in report(command, run)
        assert ("--limit" in report(command, run)) == can_sample


def test_a_constant_measure_does_not_claim_that_there_is_one_history(command: Command) -> None:
    """recall@1 of two gold sessions is 0.5 for each of six people."""
    write_benchmark(command, [item(n) for n in range(6)])
    command("eval", "--benchmarks", "mine", "--providers", "oracle", "--run-id", "r")
    assert "No interval" not in report(command)
    command("eval", "--providers", "oracle", "--end", "6", "--run-id", "one")
    assert "No interval" in report(command, "one")


def test_each_label_has_its_own_table_with_its_name(command: Command) -> None:
    write_benchmark(command, [item(n) for n in range(6)])
    command("eval", "--benchmarks", "mine", "--providers", "bm25", "--run-id", "r")
    text = report(command)
    by_type, by_difficulty = text.index("### recall@5 by question type"), text.index("### recall@5 by difficulty")
    assert "| hard |" not in text[by_type:by_difficulty]
    assert "| update |" in text[by_type:by_difficulty]
    assert "| hard |" in text[by_difficulty:]


def test_oracle_shows_gold_sessions_of_which_no_turn_is_marked(command: Command) -> None:
    sessions = [[{"role": "user", "text": "It is green.", "gold": True}], [{"role": "user", "text": "Still green."}]]
    schema = {
        "itemId": "id",
        "question": "question",
        "answer": "answer",
        "evidence": "gold",
        "context": {
            "field": "sessions",
            "idField": "ids",
            "itemSchema": {"content": "text", "role": "role", "evidence": "gold"},
        },
    }
    write_benchmark(command, [item(n, sessions=sessions) for n in range(3)], schema=schema)
    document = command("eval", "--benchmarks", "mine", "--providers", "oracle", "--json").json
    measures = next(result["measures"] for result in document["results"] if not result["group"])
    assert {one["name"]: one["value"] for one in measures}["recall@5"] == 1


PARTLY = """
from memorybench import Memory

class Partly:
    def add(self, scope, session): ...
    def clear(self, scope): ...
    def search(self, scope, query, limit):
        if "fence 5" in query:
            raise ValueError("out of order")
        return [Memory(id="1", content="It is green.", sources=("s1",))]

class First(Partly):
    def search(self, scope, query, limit):
        return super().search(scope, query if "fence 0" in query else "fence 5", limit)
"""


def write_partly(command: Command, name: str) -> None:
    (command.folder / "partly.py").write_text(PARTLY)
    (command.folder / "partly.yaml").write_text(f"{{name: partly, type: local, adapter: ./partly.py:{name}}}")


def test_failures_do_not_claim_that_there_is_one_history(command: Command) -> None:
    write_benchmark(command, [item(n) for n in range(6)])
    write_partly(command, "First")
    own = ("--config-dir", ".", "--allow-code")
    document = command("eval", "--benchmarks", "mine", "--providers", "bm25", "partly", *own, "--run-id", "r", "--json")
    assert document.json["failures"][0]["failed"] == 5
    assert "No interval" not in report(command)


def test_a_table_by_type_shows_that_a_provider_failed_in_some_questions(command: Command) -> None:
    write_benchmark(command, [item(n) for n in range(6)])
    write_partly(command, "Partly")
    own = ("--config-dir", ".", "--allow-code")
    command("eval", "--benchmarks", "mine", "--providers", "bm25", "partly", *own, "--run-id", "r")
    rows = [line.strip("| ").split(" | ") for line in report(command).splitlines() if line.startswith("| ")]
    assert {row[0]: row[-1] for row in rows if row[0] in ("fact", "update")} == {"fact": "2 to 3", "update": "3"}


@pytest.mark.slow
def test_extraction_samples_cases_across_scenarios(command: Command) -> None:
    run = ("extraction", "run", "--extractor", "hoarder", "--no-targets", "--limit")
    command(*run, "6", "--run-id", "small")
    command(*run, "12", "--run-id", "large")
    small, large = asked(command, "small"), asked(command, "large")
    assert (len(small), len(large)) == (6, 12)
    assert set(small) < set(large)
    with sqlite3.connect(command.folder / "results" / "results.db") as db:
        bodies = db.execute("SELECT body FROM outcomes WHERE run = 'small'")
        assert len({json.loads(body)["trial"]["labels"]["scenario"] for (body,) in bodies}) == 6
    command(*run, "6", "--sample-seed", "1", "--run-id", "other")
    assert asked(command, "other") != small


@pytest.mark.slow
def test_extraction_runs_cases_by_id(command: Command) -> None:
    run = ("extraction", "run", "--extractor", "hoarder", "--no-targets")
    command(*run, "--limit", "2", "--run-id", "first")
    known = asked(command, "first")[0]
    command(*run, "--case-id", known, "--run-id", "second")
    assert asked(command, "second") == [known]
    said = command(*run, "--case-id", f"{known}x")
    assert said.code == 2
    assert said.err.startswith("memorybench: --case-id: ")
    assert f'"{known}"' in said.err


@pytest.mark.slow
def test_the_models_seed_does_not_choose_the_probes_of_an_audit(command: Command) -> None:
    dataset = str(Path(__file__).parents[2] / "data" / "sample-dataset.json")
    offline = (
        "audit",
        dataset,
        "--model",
        "scripted/quote",
        "--judge-model",
        "none",
        "--limit",
        "12",
        "--output",
        "results",
    )
    command(*offline, "--run-id", "a")
    command(*offline, "--seed", "5", "--run-id", "b")
    command(*offline, "--sample-seed", "5", "--run-id", "c")
    assert asked(command, "a") == asked(command, "b") != asked(command, "c")
