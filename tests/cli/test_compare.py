"""`memorybench compare`: runs and providers, question by question, in every suite."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import memorybench
from tests.cli.command import Command
from tests.doubles.stub import Stub, completion, status

SAMPLE = str(Path(__file__).parents[2] / "data/sample-dataset.json")
KNOWN_EXTRACTORS = Path(__file__).parents[1] / "extractors/known.py"
BENCHMARK = """
name: sample
data: {type: local, path: sample.json}
schema:
  itemId: id
  question: question
  answer: answer
  context: {field: sessions, itemSchema: {content: text, role: role}}
evaluation: {method: exact-match}
"""


def test_runs_of_one_name_are_named_with_their_folders(command: Command) -> None:
    assert command("eval", "--providers", "bm25", "--end", "4", "--run-id", "first").code == 0
    shutil.copytree(command.folder / "results", command.folder / "other")
    sides = ("first:bm25", "other/first:bm25")
    document = command("compare", *sides, "--json").json
    assert [side["run"] for side in document["sides"]] == ["results/first", "other/first"]
    pair = document["comparisons"][0]
    assert (pair["first_run"], pair["second_run"]) == ("results/first", "other/first")
    shown = command("compare", *sides).out
    assert "bm25 and bm25" not in shown
    assert shown.count("other/first") >= 3, "in the header, the title and the sentence"
    (sentence,) = {one.sentence() for one in memorybench.compare(*sides, measures=["recall@5"]).comparisons}
    assert sentence.startswith("results/first and other/first: ")


@pytest.mark.slow
def test_messages_name_the_verb_that_makes_a_run(command: Command) -> None:
    assert command("eval", "--providers", "bm25", "--end", "2", "--run-id", "a").code == 0
    command("extraction", "run", "--extractor", "hoarder", "--limit", "2", "--run-id", "x")
    for arguments in (("compare", "a", "x"), ("extraction", "run", "--extractor", "hoarder", "--baseline", "a")):
        refused = command(*arguments)
        assert refused.code == 2
        assert "eval" in refused.err
        assert "bench" not in refused.err.replace("memorybench", "")


@pytest.mark.parametrize("verb", ["results", "show", "compare"])
def test_the_folder_of_a_run_alone_is_not_a_results_folder(command: Command, verb: str) -> None:
    assert command("eval", "--providers", "bm25", "--end", "1", "--output", "sent", "--run-id", "first").code == 0
    (command.folder / "alone").mkdir()
    shutil.move(command.folder / "sent/first", command.folder / "alone/first")
    said = command(verb, "./alone/first", *{"show": ["q1"], "compare": ["./alone/first:x"]}.get(verb, []))
    assert said.code == 2
    assert "results.db" in said.err
    assert "the whole results folder" in said.err


def own_benchmark(folder: Path, answers: dict[str, str], told: str = "") -> None:
    """`told` is the id of a question with another history."""
    (folder / "benchmarks").mkdir(exist_ok=True)
    (folder / "benchmarks/sample.yaml").write_text(BENCHMARK)
    items = [
        {
            "id": id,
            "question": f"Which colour is {id}?",
            "answer": answer,
            "sessions": [[{"role": "user", "text": f"{id} twice" if id == told else id}]],
        }
        for id, answer in answers.items()
    ]
    (folder / "benchmarks/sample.json").write_text(json.dumps(items))


def only_comparison(said: Any) -> Any:
    assert said.code == 0, said.err
    (pair,) = said.json["comparisons"]
    return pair


@pytest.mark.slow
def test_one_provider_is_compared_across_two_runs(command: Command) -> None:
    """U5."""
    command("eval", "--providers", "bm25", "--end", "20", "--run-id", "before")
    command("eval", "--providers", "bm25", "--end", "30", "--run-id", "after")
    document = command("compare", "before", "after:bm25", "--json").json
    pair = document["comparisons"][0]
    assert (pair["first_run"], pair["second_run"], pair["first"], pair["second"]) == ("before", "after", "bm25", "bm25")
    assert pair["comparison"]["difference"] == 0
    assert pair["ties"] == pair["comparison"]["n"] > 0
    assert pair["only_first"] == 0 < pair["only_second"]
    assert {setting["name"]: setting["second"] for setting in document["settings"]} == {"end": "30"}
    shown = command("compare", "before", "after").out
    assert shown.index(" end ") < shown.index("recall@5"), "what differs between the runs comes first"
    assert "no difference in recall@5" in shown
    assert "ahead by" not in shown


@pytest.mark.slow
def test_the_only_providers_of_two_runs_are_compared_whatever_their_names(command: Command) -> None:
    command("eval", "--providers", "bm25", "oracle", "--end", "10", "--run-id", "one")
    command("eval", "--providers", "dense", "--end", "10", "--run-id", "two")
    pair = only_comparison(command("compare", "one", "two", "--json"))
    assert (pair["first"], pair["second"]) == ("bm25", "dense")
    refused = command("compare", "one:bm25", "two:bm25")
    assert (refused.code, refused.err.split(": ")[1]) == (2, "two:bm25")


@pytest.mark.slow
def test_providers_are_taken_from_the_latest_runs_and_the_runs_are_named(command: Command) -> None:
    """E10, U12."""
    command("eval", "--providers", "bm25", "--end", "5", "--run-id", "old")
    command("eval", "--providers", "bm25", "dense", "hybrid", "--end", "20", "--run-id", "new")
    document = command("compare", "bm25", "dense", "hybrid", "--json").json
    assert [side["run"] for side in document["sides"]] == ["new"] * 3
    assert [(pair["first"], pair["second"]) for pair in document["comparisons"]] == [
        ("bm25", "dense"),
        ("bm25", "hybrid"),
        ("dense", "hybrid"),
    ]
    assert (document["correction"], document["tests"]) == ("holm", 3)
    assert {pair["benchmark"] for pair in document["comparisons"]} == {"starter"}
    shown = command("compare", "bm25", "dense", "hybrid").out
    assert "run new" in shown
    assert "Holm" in shown
    within = command("compare", "new", "--json").json
    assert within["comparisons"] == document["comparisons"], "one run: each of its providers with each"
    mixed = command("compare", "old", "bm25", "--json").json
    assert [side["run"] for side in mixed["sides"]] == ["old", "new"], "a run is not compared with itself"


def test_a_provider_that_finds_nothing_is_compared_by_the_value_that_its_table_shows(command: Command) -> None:
    """E2: no value in the table, and 100 points in the comparison."""
    (command.folder / "void.yaml").write_text("name: void\ntype: local\nadapter: ./void.py:Void\n")
    (command.folder / "void.py").write_text(
        "class Void:\n"
        "    def add(self, scope, session): pass\n"
        "    def search(self, scope, query, limit): return []\n"
        "    def clear(self, scope): pass\n"
    )
    run = ("eval", "--providers", "bm25", "void", "--end", "10", "--config-dir", ".", "--allow-code", "--run-id", "r")
    results = command(*run, "--json").json["results"]
    shown = {
        result["subject"]: next(m["value"] for m in result["measures"] if m["name"] == "recall@5")
        for result in results
        if not result["group"]
    }
    pair = only_comparison(command("compare", "bm25", "void", "--json"))
    assert (pair["first_value"], pair["second_value"]) == (pytest.approx(shown["bm25"]), shown["void"])
    expected = None if shown["void"] is None else pytest.approx(shown["bm25"] - shown["void"])
    assert pair["comparison"]["difference"] == expected


def test_a_provider_that_reports_no_sources_has_no_recall_to_compare(command: Command) -> None:
    (command.folder / "mute.yaml").write_text("name: mute\ntype: local\nadapter: ./mute.py:Mute\n")
    (command.folder / "mute.py").write_text(
        "from memorybench import Memory\n"
        "class Mute:\n"
        "    def add(self, scope, session): pass\n"
        "    def search(self, scope, query, limit):\n"
        "        return [Memory(id='m', content='something')] if len(query) % 3 else []\n"
        "    def clear(self, scope): pass\n"
    )
    command("eval", "--providers", "bm25", "mute", "--end", "10", "--config-dir", ".", "--allow-code")
    pair = only_comparison(command("compare", "bm25", "mute", "--json"))
    assert (pair["second_value"], pair["comparison"]["difference"], pair["comparison"]["n"]) == (None, None, 0)


@pytest.mark.slow
def test_results_compare_is_an_alias_with_the_old_keys(command: Command) -> None:
    """E10."""
    command("eval", "--providers", "bm25", "oracle", "--end", "20", "--run-id", "r")
    pair = only_comparison(command("compare", "bm25", "oracle", "--json"))
    (alias,) = command("results", "--compare", "bm25", "oracle", "--json").json
    assert alias.items() >= {k: v for k, v in pair.items() if k not in ("cases", "comparison")}.items()
    assert (alias["benchmark"], alias["first_run"], alias["second_run"]) == ("starter", "r", "r")
    assert (
        alias["found"]
        == alias["comparison"]
        == {**pair["comparison"], "tells_apart": pair["comparison"]["significant"]}
    )
    assert command("results", "--compare", "bm25", "oracle").out == command("compare", "bm25", "oracle").out
    twice = command("results", "r", "--compare", "bm25", "bm25")
    assert (twice.code, twice.err.split(": ")[1]) == (2, "--compare")


@pytest.mark.slow
def test_the_questions_behind_the_figures_are_listed_in_pages(command: Command) -> None:
    command("eval", "--providers", "bm25", "oracle", "--end", "60", "--run-id", "r")
    pair = only_comparison(command("compare", "oracle", "bm25", "--only", "wins", "--json"))
    assert len(pair["cases"]) == pair["wins"] > 3
    assert all(case["first"] > case["second"] and case["result"] == "win" for case in pair["cases"])
    page = only_comparison(
        command("compare", "oracle", "bm25", "--only", "wins", "--json", "--limit", "2", "--offset", "1")
    )
    assert page["cases"] == pair["cases"][1:3]
    losses = only_comparison(command("compare", "bm25", "oracle", "--only", "losses", "--json"))
    assert [case["case_id"] for case in losses["cases"]] == [case["case_id"] for case in pair["cases"]]
    assert not only_comparison(command("compare", "oracle", "bm25", "--only", "losses", "--json"))["cases"]
    shown = command("compare", "oracle", "bm25", "--only", "changed", "--limit", "2")
    assert pair["cases"][1]["case_id"] in shown.out
    assert pair["cases"][2]["case_id"] not in shown.out
    assert "--offset 2" in shown.out
    groups = [group for group in pair["groups"] if group["label"] == "question_type"]
    assert sum(group["wins"] for group in groups) == pair["wins"]
    assert sum(group["n"] for group in groups) == pair["comparison"]["n"]


@pytest.mark.slow
def test_the_document_follows_its_schema_and_markdown_has_the_same_tables(command: Command) -> None:
    command("eval", "--providers", "bm25", "dense", "--end", "20", "--answering-model", "scripted/quote")
    schema = command("schema", "comparison").json
    jsonschema.validate(command("compare", "bm25", "dense", "--only", "changed", "--json").json, schema)
    text = command("compare", "bm25", "dense", "--format", "markdown").out
    assert text.startswith("# ")
    assert "| recall@5 |" in text
    assert "p < 0.05" in text, "only what begins a tag is escaped"
    tokens = only_comparison(command("compare", "bm25", "dense", "--measure", "context_tokens", "--json"))
    assert (tokens["unit"], tokens["higher_is_better"]) == ("tokens", False)
    everything = command("compare", "bm25", "dense", "--measure", "all", "--json").json["comparisons"]
    assert len({pair["measure"] for pair in everything}) > 10
    unknown = command("compare", "bm25", "dense", "--measure", "recal@5")
    assert (unknown.code, unknown.err.split(": ")[1]) == (2, "--measure")


@pytest.mark.slow
def test_time_and_cost_are_compared_if_they_are_named(command: Command) -> None:
    command("eval", "--providers", "bm25", "dense", "--end", "12", "--answering-model", "scripted/quote")
    pairs = command("compare", "bm25", "dense", "--measure", "latency", "cost", "--json").json["comparisons"]
    assert [(pair["measure"], pair["unit"], pair["comparison"]["n"]) for pair in pairs] == [
        ("latency", "s", 12),
        ("cost", "$", 12),
    ]
    assert pairs[0]["first_value"] > 0
    assert not any(pair["higher_is_better"] for pair in pairs)
    same = command("eval", "--providers", "bm25", "--end", "12", "--baseline", "bm25", "--max-drop", "cost=0")
    assert (same.code, same.err.split(": ")[1]) == (2, "--baseline"), "a baseline is a run, not a provider"
    limited = ("--baseline", "latest:bm25", "--max-drop", "cost=0", "latency=60", "--json")
    said = command("eval", "--providers", "bm25", "--end", "12", "--answering-model", "scripted/quote", *limited)
    assert said.code == 0
    assert {pair["measure"] for pair in said.json["baseline"]["comparison"]["comparisons"]} >= {"cost", "latency"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "first", "second", "main"),
    [
        (
            ("audit", SAMPLE, "--judge-model", "none", "--limit", "30", "--output", "results"),
            ("--model", "scripted/quote"),
            ("--model", "scripted/silence"),
            {"recall_accuracy", "hallucinated_memory_rate"},
        ),
        (
            ("extraction", "run", "--no-targets", "--limit", "24"),
            ("--extractor", "hoarder"),
            ("--extractor", "amnesiac"),
            {"precision", "recall", "f1", "minimalism"},
        ),
        (
            ("hygiene", "run", "memory-skip-local", "--no-mutants"),
            ("--store", "reference"),
            ("--store", "reference", "--seed", "3"),
            {"passed", "caught"},
        ),
    ],
    ids=["audit", "extraction", "hygiene"],
)
def test_runs_of_every_suite_are_compared_by_their_main_measures(
    command: Command, run: tuple[str, ...], first: tuple[str, ...], second: tuple[str, ...], main: set[str]
) -> None:
    command(*run, *first, "--run-id", "one")
    command(*run, *second, "--run-id", "two")
    said = command("compare", "one", "two", "--json")
    assert said.code == 0, said.err
    pairs = {pair["measure"]: pair for pair in said.json["comparisons"]}
    assert main <= pairs.keys()
    assert said.json["settings"]
    for name in main:
        results = [
            next(measure for measure in result["measures"] if measure["name"] == name)["value"]
            for run_id in ("one", "two")
            for result in command("results", run_id, "--json").json["results"]
            if not result["group"]
        ]
        shown = [pairs[name]["first_value"], pairs[name]["second_value"]]
        assert shown == pytest.approx(results), "both runs asked the same, so nothing is left out"
    assert command("compare", "one", "two", "--only", "changed").code == 0


@pytest.mark.slow
def test_pooled_measures_get_an_exchange_test(command: Command) -> None:
    for name, extractor in (("perfect", f"{KNOWN_EXTRACTORS}:perfect"), ("amnesiac", "amnesiac")):
        command("extraction", "run", "--no-targets", "--extractor", extractor, "--allow-code", "--run-id", name)
    said = command("compare", "perfect", "amnesiac", "--measure", "recall", "--json")
    recall = only_comparison(said)
    assert recall["comparison"]["difference"] == pytest.approx(recall["first_value"] - recall["second_value"])
    assert recall["comparison"]["significant"]
    assert recall["comparison"]["low"] < recall["comparison"]["difference"] <= recall["comparison"]["high"]


def test_questions_that_are_the_same_in_changed_data_are_paired(command: Command) -> None:
    run = ("eval", "--benchmarks", "sample", "--providers", "bm25", "--config-dir", ".", "--json", "--run-id")
    own_benchmark(command.folder, {"fence": "green", "door": "red", "roof": "grey", "wall": "white"})
    assert command(*run, "one").code == 0
    own_benchmark(command.folder, {"fence": "green", "door": "blue", "roof": "grey", "gate": "black"}, told="roof")
    gate = command(*run, "two", "--baseline", "one").json["baseline"]
    compared = command("compare", "two", "one", "--json").json
    for document in (gate["comparison"], compared):
        (data,) = document["data"]
        assert (data["benchmark"], data["same"], data["only_first"], data["only_second"]) == ("sample", 1, 1, 1)
        assert data["changed"] == {"answers": 1, "history": 1}
    cases = memorybench.compare("two", "one", measures=["context_tokens"]).comparisons[0].cases
    assert [case.case_id for case in cases] == ["fence"]
    shown = command("compare", "two", "one").out
    assert shown.index("1 question is the same") < shown.index("two minus")
    jsonschema.validate(compared, json.loads(command("schema", "comparison").out))


def test_data_without_a_question_in_common_is_refused(command: Command) -> None:
    run = ("eval", "--benchmarks", "sample", "--providers", "bm25", "--config-dir", ".", "--run-id")
    own_benchmark(command.folder, {"door": "red"})
    assert command(*run, "one").code == 0
    own_benchmark(command.folder, {"door": "blue", "fence": "green"})
    assert command(*run, "two").code == 0
    for said, where in (
        (command("compare", "one", "two"), "one and two"),
        (command(*run, "three", "--baseline", "one"), "--baseline"),
    ):
        assert (said.code, said.err.split(": ")[1]) == (2, where)
        assert "sample" in said.err


@pytest.mark.slow
def test_a_case_with_other_content_is_left_out(command: Command) -> None:
    bundled = json.loads((Path(__file__).parents[2] / "data/memory_test_cases.json").read_text())
    cases = bundled if isinstance(bundled, list) else next(v for v in bundled.values() if isinstance(v, list))
    for run in ("one", "two"):
        Path("cases.json").write_text(json.dumps(bundled))
        command(
            "extraction",
            "run",
            "cases.json",
            "--limit",
            "8",
            "--no-targets",
            "--extractor",
            "hoarder",
            "--run-id",
            run,
        )
        cases[0]["conversation"] += " Indeed."
    said = command("compare", "one", "two", "--json")
    (data,) = said.json["data"]
    assert (data["same"], data["changed"]) == (7, {"conversation": 1})
    macro = {pair["measure"]: pair for pair in said.json["comparisons"]}["precision"]
    assert macro["comparison"]["n"] <= 7


@pytest.mark.parametrize(
    ("sides", "where"),
    [
        (("nobody", "bm25"), "nobody"),
        (("bm25", "bm25"), "bm25"),
        (("r", "r:bm25"), "r and r:bm25"),
        (("r:nobody", "h"), "r:nobody"),
        (("r", "h"), "r and h"),
        (("h",), "h"),
    ],
)
def test_sides_that_cannot_be_compared_are_refused(command: Command, sides: tuple[str, ...], where: str) -> None:
    command.once("eval", "--providers", "bm25", "--end", "3", "--run-id", "r")
    command.once("hygiene", "run", "memory-skip-local", "--no-mutants", "--run-id", "h")
    said = command("compare", *sides)
    assert (said.code, said.err.split(": ")[1]) == (2, where)


@pytest.mark.slow
def test_a_run_of_another_folder_is_a_side(command: Command) -> None:
    command("eval", "--providers", "bm25", "--end", "5", "--run-id", "r", "--output", "elsewhere")
    command("eval", "--providers", "dense", "--end", "5", "--run-id", "r")
    pair = only_comparison(command("compare", "r", "elsewhere/r", "--json"))
    assert (pair["first"], pair["second"]) == ("dense", "bm25")


def test_python_compares_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    memorybench.evaluate(providers=["bm25", "dense"], end=5, run_id="r")
    compared = memorybench.compare("r:bm25", "r:dense", measures=["recall@10"])
    (pair,) = compared.comparisons
    assert (pair.measure, pair.first, pair.second, len(pair.cases)) == ("recall@10", "bm25", "dense", pair.comparison.n)


def test_reused_steps_have_no_latency(command: Command) -> None:
    command("eval", "--providers", "bm25", "--end", "6", "--run-id", "first")
    command("eval", "--providers", "bm25", "--end", "6", "--run-id", "second", "--reuse", "first")
    pair = only_comparison(command("compare", "first", "second", "--measure", "latency", "--json"))
    assert pair["comparison"]["n"] == 0


def test_the_cost_of_a_question_is_that_of_its_answer_also_if_it_is_reused(command: Command, stub: Stub) -> None:
    stub.always(completion("yes", model=""))
    models = ("--answering-model", "gpt-4o-mini", "--judge-model", "gpt-4o", "--canaries", "off")
    first = ("eval", "--providers", "bm25", "--end", "3", *models, "--run-id")
    command(*first, "first")
    command(*first, "second", "--reuse", "first")
    pair = only_comparison(command("compare", "second", "first", "--measure", "cost", "--json"))
    assert pair["comparison"]["n"] == 3
    assert pair["second_value"] == pytest.approx(0.00021), "without the judge"
    assert pair["first_value"] == pair["second_value"]


def test_counts_are_compared_as_counts_and_not_tested(command: Command) -> None:
    for name in ("hoarder", "amnesiac"):
        command("extraction", "run", "--extractor", name, "--limit", "10", "--run-id", name)
    sides = ("compare", "hoarder", "amnesiac", "--measure")
    document = command(*sides, "unexpected", "hallucinated", "minimalism", "--json").json
    counted, equal, _ = document["comparisons"]
    assert counted["unit"] == equal["unit"] == "facts"
    assert counted["first_value"] > 10
    assert counted["comparison"]["difference"] == counted["first_value"] - counted["second_value"]
    assert equal["comparison"]["difference"] == 0
    assert [one["comparison"]["p"] for one in (counted, equal)] == [None, None]
    assert document["tests"] == 1
    untested = command(*sides, "unexpected").out
    assert "significant" not in untested.split("ahead")[0]
    assert "p-values" not in untested


@pytest.mark.slow
def test_a_run_of_another_folder_needs_no_default_folder(command: Command) -> None:
    command("eval", "--providers", "bm25", "hybrid", "--end", "20", "--output", "shared", "--run-id", "first")
    (command.folder / "results").mkdir()
    said = command("compare", "shared/first:bm25", "shared/first:hybrid", "--json")
    assert only_comparison(said)["first_run"] == "shared/first"
    whole = command("results", "first", "--results", "shared", "--json").json
    assert command("results", "shared/first", "--json").json == whole
    assert command("show", "shared/first", "amara-q01", "--json").code == 0
    assert "show shared/first amara" in command("results", "shared/first", "--failures").out
    assert command("export", "shared/first", "--format", "csv").code == 0
    assert command("report", "shared/latest").code == 0
    assert command("results", "shared/first", "--watch").code == 0
    assert command("runs", "tag", "shared/first", "kept", "--json").json == {"run_id": "first", "tags": ["kept"]}
    assert command("runs", "rename", "shared/first", "second").code == 0
    assert command("runs", "delete", "shared/second", "--yes").code == 0
    (command.folder / "results").rmdir()
    for folder in ("results", "audit-results"):
        command("eval", "--providers", "bm25", "--end", "2", "--output", folder)
    unknown = command("results", "--watch", "nosuch").err
    assert "results/results.db and audit-results/results.db" in unknown
    missing = command("results", "nowhere/first")
    assert (missing.code, "FOLDER/RUN" in missing.err) == (2, True)


def test_too_few_groups_are_reported_for_the_pair_that_has_them(command: Command) -> None:
    own_benchmark(command.folder, {f"thing{n}": f"thing{n}" for n in range(12)})
    run = ("eval", "--benchmarks", "sample", "--config-dir", ".", "--answering-model", "scripted/quote", "--providers")
    for name, provider, end in (("reg", "full-context", "12"), ("base", "none", "12"), ("ext", "full-context", "2")):
        assert command(*run, provider, "--end", end, "--run-id", name).code == 0
    document = command("compare", "reg", "base", "ext", "--measure", "context_tokens", "--json").json
    assert [pair["comparison"]["significant"] for pair in document["comparisons"]] == [True, False, False]
    warnings = [line for line in document["warnings"] if "can be significant" in line]
    assert len(warnings) == 2
    assert all("of ext" in line for line in warnings)


def test_a_run_that_is_named_twice_is_not_taken_for_a_provider(command: Command) -> None:
    command.once("eval", "--providers", "bm25", "--end", "3", "--run-id", "r")
    said = command("compare", "r", "r")
    assert said.code == 2
    assert "RUN:r" not in said.err
    assert "RUN:bm25" in command("compare", "bm25", "bm25").err


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["80", "160"])
def test_commands_in_hints_can_be_copied(command: Command, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/tools/with/a/long/path/bin/memorybench"])
    monkeypatch.setenv("COLUMNS", columns)
    (command.folder / "bad.yaml").write_text("name: bad\ntype: local\nadapter: ./bad.py:Bad\n")
    (command.folder / "bad.py").write_text("class Bad:\n    def add(self, *_): 1 / 0\n    search = add\n")
    given = ("--end", "12", "--config-dir", ".", "--allow-code", "--answering-model", "scripted/quote")
    shown = command("eval", "--providers", "bm25", "hybrid", "bad", *given, "--run-id", "first").out
    shown += command("compare", "first:bm25", "first:hybrid", "--only", "changed", "--measure", "answer_f1").out
    commands = re.findall(r"[^\s`]*memorybench (?:results|score|show) (?:\\\n|[^`\n])+", shown)
    assert len(commands) >= 4
    for text in commands:
        words = shlex.split(text.replace("\\\n", " "))
        assert words[0] == sys.argv[0], text
        assert any(word.startswith("--") for word in words), text
    assert all(len(line) <= int(columns) for line in shown.splitlines() if " " in line.strip())


def test_the_correction_says_that_intervals_are_not_adjusted(command: Command) -> None:
    command.once("eval", "--providers", "bm25", "--end", "3", "--run-id", "r")
    command.once("eval", "--providers", "dense", "--end", "3", "--run-id", "d")
    sides = ("compare", "r", "d", "--format", "markdown", "--measure")
    assert command(*sides, "recall@5", "recall@10").out.count("intervals are not adjusted") == 1
    assert "intervals are not" not in command(*sides, "recall@5").out


def test_failed_questions_have_no_latency_and_no_cost(command: Command, stub: Stub) -> None:
    """They lack the answer, so they would be fast and cheap."""
    flags = (
        "--providers",
        "bm25",
        "--end",
        "4",
        "--answering-model",
        "openai/gpt-4o",
        "--judge-model",
        "scripted/judge",
    )
    command("eval", *flags, "--run-id", "answered")
    stub.next(status(400), path="/v1/chat/completions")
    assert command("eval", *flags, "--run-id", "failed", "--json").json["counts"]["failed"] == 1
    pairs = command("compare", "answered", "failed", "--measure", "latency", "cost", "--json").json["comparisons"]
    assert [(pair["comparison"]["n"], pair["only_first"]) for pair in pairs] == [(3, 1), (3, 1)]
