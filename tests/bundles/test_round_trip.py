"""`memorybench bundle` and `memorybench verify`: what a bundle has, and what it proves."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memorybench.bundles.archive import CONTENT
from tests.bundles.editing import RUNS, as_lines, read_files, rows_of, write_files
from tests.cli.command import Command

MakeBundle = Callable[..., Path]
TABLES = ("run.json", "report.json", "cases.jsonl", "steps.jsonl", "attempts.jsonl", "outcomes.jsonl", "notes.jsonl")
TEXTS = ("asked", "expected", "got", "context")


def levels(document: dict[str, Any], name: str) -> set[str]:
    return {claim["level"] for claim in document["claims"] if claim["name"] == name}


@pytest.mark.parametrize("name", RUNS)
def test_a_bundle_of_each_suite_is_verified(command: Command, bundle: MakeBundle, name: str) -> None:
    path = bundle(name)
    said = command("verify", str(path), "--json")
    assert said.code == 0, said.out
    document = said.json
    assert document["consistent"] is True
    assert document["run_id"] == name
    for proved in ("digests", "rows", "inputs of steps", "trials", "report", "descriptions"):
        assert levels(document, proved) == {"proved"}
    assert "proved" in levels(document, "scores")
    judged = {"proved"} if name not in ("plain", "hygiene") else set()
    assert levels(document, "models") == levels(document, "canaries") == levels(document, "verdicts") == judged
    assert levels(document, "selection") == (
        {"declared"} if name in ("extraction", "hygiene", "orders") else {"proved"}
    )
    for declared in ("replies", "times and costs", "other runs"):
        assert levels(document, declared) == {"declared"}
    # some settings of a benchmark follow from its questions
    assert levels(document, "settings") == {"declared", *(["proved"] if name in ("plain", "judged") else [])}
    assert command("verify", str(path)).code == 0


def test_a_changed_outcome_is_named_with_what_differs(command: Command, bundle: MakeBundle) -> None:
    path = bundle("plain")
    files = read_files(path)
    first, second, *others = rows_of(files, "outcomes.jsonl")
    second["ordinal"] = first["ordinal"]
    score = second["body"]["scores"][0]
    recorded, score["value"] = score["value"], 0.25
    score = f"{score['name']} is recorded as 0.25, but computed again {recorded:g}"
    write_files(path, files | {"outcomes.jsonl": as_lines([first, second, *others])})
    said = command("verify", str(path), "--json")
    assert said.code == 1
    examples = [example for one in said.json["claims"] for example in one["examples"]]
    assert any(example.endswith(": another outcome has the same place in the order of trials") for example in examples)
    assert any(example.endswith(f": {score}") for example in examples)


@pytest.mark.slow
def test_all_cases_of_an_extractor_are_verified(command: Command) -> None:
    """Some cases have keys that are not sorted in their file, as they are in the journal."""
    words = ("extraction", "run", "--extractor", "hoarder", "--judge-model", "scripted/judge", "--no-targets")
    assert command(*words, "--run-id", "all", "--output", "results").code == 0
    assert command("bundle", "all").code == 0
    document = command("verify", "all.mbz", "--json").json
    assert levels(document, "scores") == levels(document, "texts") == {"proved"}


def test_with_the_data_at_hand_every_score_is_computed_again(command: Command, bundle: MakeBundle) -> None:
    document = command("verify", str(bundle("judged")), "--json").json
    assert levels(document, "scores") == {"proved"}
    assert levels(document, "verdicts") == {"proved"}
    assert levels(document, "cases") == {"proved"}
    assert levels(document, "texts") == {"proved"}
    recomputed = next(claim for claim in document["claims"] if claim["name"] == "scores")
    assert {"correct", "answer_f1", "recall@5", "ndcg@10", "context_tokens", "miss_not_used"} <= {*recomputed["names"]}
    assert document["level"] == "recomputed with data"


CONFIG = """\
name: own
displayName: Own questions
data: {type: local, path: DATA}
schema:
  itemId: question_id
  question: question
  answer: answer
  evidence: answer_session_ids
  evidenceLevel: session
  context:
    field: haystack_sessions
    idField: haystack_session_ids
    itemSchema: {content: $.content, role: $.role}
search: {defaultLimit: 10}
evaluation: {method: exact-match}
"""


@pytest.fixture
def own_bundle(command: Command) -> Path:
    """The bundle of a run of a benchmark whose config and data are files of the user."""
    items = [
        {
            "question_id": f"q{number}",
            "question": f"What is the name of dog {number}?",
            "answer": f"Rex{number}",
            "answer_session_ids": [f"s{number}"],
            "haystack_session_ids": [f"s{number}", f"t{number}"],
            "haystack_sessions": [
                [{"role": "user", "content": f"My dog {number} has the name Rex{number}."}],
                [{"role": "user", "content": f"I have seen {number} cats."}],
            ],
        }
        for number in range(3)
    ]
    data, configs = command.folder / "own.json", command.folder / "configs"
    data.write_text(json.dumps(items))
    configs.mkdir()
    (configs / "own.yaml").write_text(CONFIG.replace("DATA", str(data)))
    words = ("eval", "--benchmarks", "own", "--config-dir", "configs", "--providers", "bm25", "none")
    assert command(*words, "--run-id", "own", "--output", "results").code == 0
    assert command("bundle", "own").code == 0
    return command.folder / "own.mbz"


def test_data_of_an_own_benchmark_is_read_with_its_config(command: Command, own_bundle: Path) -> None:
    unknown = command("verify", "own.mbz", "--data", "own.json", "--json")
    assert unknown.code == 2
    assert "--config-dir" in unknown.err
    assert command("verify", "own.mbz", "--json").json["level"] == "consistent"
    document = command("verify", "own.mbz", "--data", "own.json", "--config-dir", "configs", "--json").json
    assert document["level"] == "recomputed with data"
    pytest.importorskip("jinja2")
    place = command.folder / "bundles"
    place.mkdir()
    own_bundle.rename(place / "own.mbz")
    words = ("leaderboard", "bundles", "--output", "site", "--data", "own=own.json", "--config-dir", "configs")
    assert command(*words, "--json").json["verified"] == 1


@pytest.mark.parametrize("name", ["plain", "hygiene"])
def test_the_same_run_gives_the_same_bytes(command: Command, bundle: MakeBundle, name: str) -> None:
    first = bundle(name).read_bytes()
    assert bundle(name).read_bytes() == first


@pytest.mark.parametrize("name", ["plain", "judged", "audit"])
def test_a_bundle_is_not_much_larger_than_the_compressed_journal(
    command: Command, bundle: MakeBundle, name: str
) -> None:
    path, results = bundle(name), command.folder / "results/results.db"
    with closing(sqlite3.connect(results)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the last rows may still be in the log
    journal = gzip.compress(results.read_bytes(), 9)
    with zipfile.ZipFile(path) as archive:
        # descriptions for other tools have a fixed size, which counts in a small run only
        descriptions = sum(archive.getinfo(one).compress_size for one in archive.namelist() if one not in TABLES)
    assert path.stat().st_size - descriptions <= 1.2 * len(journal)


def test_a_bundle_describes_itself_for_other_tools(command: Command, bundle: MakeBundle) -> None:
    files = read_files(bundle("judged"))
    assert {*files} == {*CONTENT, "manifest.json"}
    crate = json.loads(files["ro-crate-metadata.json"])
    parts = {entity["@id"]: entity for entity in crate["@graph"]}
    assert {part["@id"] for part in parts["./"]["hasPart"]} == {*files} - {"ro-crate-metadata.json"}
    assert parts["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    croissant = json.loads(files["croissant.json"])
    assert {one["name"] for one in croissant["distribution"]} >= {"outcomes.jsonl", "steps.jsonl", "report.json"}
    records = json.loads(files["every-eval-ever.json"])
    assert [record["model_info"]["name"] for record in records] == ["bm25", "oracle", "none"]
    accuracy = next(one for one in records[0]["evaluation_results"] if one["evaluation_name"] == "starter: accuracy")
    report = json.loads(files["report.json"])
    measured = report["results"][0]["measures"][0]
    assert (measured["name"], accuracy["score_details"]["score"]) == ("accuracy", measured["value"])
    run = json.loads(files["run.json"])
    assert run["spec"]["started_with"]["command_line"][:2] == ["memorybench", "eval"]
    assert "You answer questions" in run["fingerprints"]["answer prompts of starter"]["text"]


@pytest.mark.parametrize("name", RUNS)
def test_a_public_bundle_has_scores_and_digests_and_no_texts(command: Command, bundle: MakeBundle, name: str) -> None:
    private = read_files(bundle(name))
    path = bundle(name, "--public")
    files = read_files(path)
    content = b"".join(files.values()).decode()
    for outcome in rows_of(private, "outcomes.jsonl"):
        shown = outcome["body"]["shown"]
        assert not any(shown[key] and len(shown[key]) > 20 and json.dumps(shown[key])[1:-1] in content for key in TEXTS)
    for step, whole in zip(rows_of(files, "steps.jsonl"), rows_of(private, "steps.jsonl"), strict=True):
        assert step["inputs"] is None
        assert len(step["digests"]) == 2
        assert step["key"] == whole["key"]
    own = [[(one["name"], one["value"]) for one in row["body"]["scores"]] for row in rows_of(files, "outcomes.jsonl")]
    all_ = [
        [(one["name"], one["value"]) for one in row["body"]["scores"]] for row in rows_of(private, "outcomes.jsonl")
    ]
    assert own == all_
    document = command("verify", str(path), "--json").json
    assert document["consistent"] is True
    assert levels(document, "scores") == {"declared"}
    assert levels(document, "report") == {"proved"}


def test_paths_of_the_machine_are_left_out(command: Command, bundle: MakeBundle) -> None:
    run = json.loads(read_files(bundle("audit"))["run.json"])
    assert run["spec"]["dataset"] == "dataset.json"


def test_a_changed_file_is_detected_by_its_digest(command: Command, bundle: MakeBundle) -> None:
    path = bundle("hygiene")
    files = read_files(path)
    files["notes.jsonl"] += b'{"kind":"x","text":"y"}\n'
    said = command("verify", str(write_files(path, files, repair=False)), "--json")
    assert said.code == 1
    assert said.json["claims"][0]["examples"] == ["notes.jsonl"]


def test_a_running_or_missing_run_is_refused(command: Command, bundle: MakeBundle) -> None:
    bundle("hygiene")
    assert command("bundle", "nothing").code == 2
    assert not (command.folder / "nothing.mbz").exists()


def test_a_partial_run_says_what_is_missing(command: Command, bundle: MakeBundle) -> None:
    path = bundle("hygiene")
    files = read_files(path)
    run = json.loads(files["run.json"])
    assert run["planned"] == len(rows_of(files, "outcomes.jsonl"))
    outcomes = rows_of(files, "outcomes.jsonl")[:-1]
    files["outcomes.jsonl"] = as_lines(outcomes)
    document = command("verify", str(write_files(path, files)), "--json").json
    assert levels(document, "trials") == {"contradicted"}


def test_a_bundle_is_verified_where_an_event_loop_runs(command: Command, bundle: MakeBundle) -> None:
    """As in a notebook."""
    path = bundle("judged")

    async def in_a_notebook() -> int:
        return command("verify", str(path)).code

    assert asyncio.run(in_a_notebook()) == 0
