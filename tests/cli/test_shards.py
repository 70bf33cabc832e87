"""`--shard I/N` performs a part of a run, and `memorybench merge` makes one run of all parts."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from memorybench.journal.checksums import CHECKSUMS, crc
from tests.cli.command import Command, Said, measured
from tests.cli.test_hygiene import AGENT, CONSENT
from tests.datasets.described import NO_SHARED, SHARED
from tests.doubles.stub import Stub, completion

DATA = Path(__file__).parents[2] / "src/memorybench/catalog/data"
EVAL = ("eval", "--providers", "bm25", "hybrid", "oracle", "--limit", "60")
AUDIT = ("audit", str(DATA / "sample-dataset.json"), "--model", "scripted/quote", "--judge-model", "scripted/judge")
SUITES = {
    "eval": (*EVAL, "--answering-model", "scripted/quote", "--judge-model", "scripted/judge", "--repeats", "2"),
    "audit": (*AUDIT, "--providers", "bm25", "none"),
    "extraction": ("extraction", "run", "--extractor", "hoarder", "--limit", "12", "--no-targets"),
    "hygiene": ("hygiene", "run", "--seed", "0"),
}
COUNT = 3
FOLDERS = tuple(f"machine-{number}" for number in range(1, COUNT + 1))


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 2, 30])
def test_a_slurm_task_that_was_killed_is_started_again(
    command: Command, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """The script of docs/many-machines.md, also if the task was killed before anything was recorded."""
    text = (Path(__file__).parents[2] / "docs/many-machines.md").read_text()
    [script] = re.findall(r"```bash\n(#!/bin/bash\n#SBATCH.*?)```", text, re.DOTALL)
    script = script.replace("bm25 hybrid", "bm25")
    words = "eval --providers bm25 --shard 1/4 --run-id nightly --output shards/1"
    assert command.killed(*words.split(), at=at)
    assert (command.folder / "shards/1/results.db").exists()
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    done = subprocess.run(["bash", "-e"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [row["status"] for row in command("runs", "--results", "shards/1", "--json").json] == ["complete"]


def perform_shards(command: Command, *words: str) -> None:
    """Perform every shard in a results folder of its own."""
    for number, folder in enumerate(FOLDERS, 1):
        said = command(*words, "--shard", f"{number}/{COUNT}", "--run-id", "part", "--output", folder)
        assert said.code == 0, said.err


@pytest.fixture
def shards(command: Command) -> Command:
    """Three shards of a run, each in a folder of its own."""
    for number, folder in enumerate(FOLDERS, 1):
        command.once(*EVAL, "--shard", f"{number}/{COUNT}", "--run-id", "part", "--output", folder)
    return command


def outcomes(folder: Path, run: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "results.db")) as db:
        columns = "trial, ordinal, benchmark, case_id, subject, status, body"
        return db.execute(f"SELECT {columns} FROM outcomes WHERE run = ? ORDER BY ordinal, trial", (run,)).fetchall()


def exported(command: Command, run: str, kind: str) -> str:
    """Return an export without times, costs and the name of the run."""
    file = command.folder / f"{run}.{kind}"
    said = command("export", run, "--results", "results", "--format", kind, "--output", str(file))
    assert said.code == 0, said.err
    if kind != "jsonl":
        return file.read_text()
    left_out = re.compile("^(run|created|cost)$|seconds$")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return "\n".join(json.dumps({k: v for k, v in row.items() if not left_out.search(k)}) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_merged_shards_equal_one_run(command: Command, suite: str) -> None:
    words = SUITES[suite]
    assert command(*words, "--run-id", "whole", "--output", "results").code == 0
    perform_shards(command, *words)
    said = command("merge", *reversed(FOLDERS), "--run-id", "merged", "--results", "results", "--json")
    assert said.code == 0, said.err
    whole, merged = (
        json.loads((command.folder / "results" / run / "report.json").read_text()) for run in ("whole", "merged")
    )
    started = {"timestamp": ""}  # of an audit
    assert measured(merged | started) == measured(whole | started)
    assert outcomes(command.folder / "results", "merged") == outcomes(command.folder / "results", "whole")
    assert exported(command, "merged", "jsonl") == exported(command, "whole", "jsonl")
    stages = [
        {(stage["name"], stage["subject"]): stage["steps"] for stage in one["circumstances"]["stages"]}
        for one in (whole, merged)
    ]
    assert stages[0] == stages[1]
    assert command("validate", "results/results.db").code == 0


def write_locomo(folder: Path, file: Path | None = None) -> None:
    """A benchmark `conversations` of LoCoMo's file, or of a small one with the same keys."""

    def conversation(n: int) -> dict[str, Any]:
        turns = [
            {"speaker": "Ana", "dia_id": f"D1:{i}", "text": f"My {i}. dog is called Rex{n}{i}"} for i in range(1, 5)
        ]
        questions = [
            {"question": f"Name of dog {i}?", "answer": f"Rex{n}{i}", "evidence": [f"D1:{i}"], "category": i}
            for i in range(1, 5)
        ]
        said = {"speaker_a": "Ana", "speaker_b": "Ben", "session_1_date_time": "1:56 pm on 8 May, 2023"}
        adversarial = {"question": "Name of the cat?", "adversarial_answer": "Tom", "evidence": [], "category": 5}
        return {"sample_id": f"conv-{n}", "conversation": {**said, "session_1": turns}, "qa": [*questions, adversarial]}

    (folder / "benchmarks/configs").mkdir(parents=True)
    (folder / "benchmarks/datasets").mkdir()
    written = folder / "benchmarks/datasets/conversations.json"
    written.write_bytes(file.read_bytes() if file else json.dumps([conversation(n) for n in range(8)]).encode())
    config = yaml.safe_load((DATA.parent / "benchmarks/locomo.yaml").read_text())
    config |= {"name": "conversations", "data": {"type": "local", "path": "./datasets/conversations.json"}}
    (folder / "benchmarks/configs/conversations.yaml").write_text(yaml.safe_dump(config))


@pytest.mark.slow
@pytest.mark.parametrize("is_real", [False, True], ids=["small", "real"])
def test_merged_shards_of_locomo_equal_one_run(command: Command, is_real: bool) -> None:
    if is_real and not SHARED.is_dir():
        pytest.skip(NO_SHARED)
    write_locomo(command.folder, SHARED / "locomo/locomo10.json" if is_real else None)
    words = ("eval", "--benchmarks", "conversations", "--providers", "bm25", "--limit", "100")
    assert command(*words, "--run-id", "whole", "--output", "results").code == 0
    perform_shards(command, *words)
    merge = ("merge", "--run-id", "merged", "--results", "results")
    missing = command(*merge, *FOLDERS[:-1])
    assert (missing.code, f"{COUNT}/{COUNT}" in missing.err) == (2, True), missing.err
    doubled = command(*merge, *FOLDERS, f"{FOLDERS[0]}/part")
    assert (doubled.code, FOLDERS[0] in doubled.err) == (2, True), doubled.err
    assert command(*merge, *FOLDERS).code == 0
    whole, merged = (
        json.loads((command.folder / "results" / run / "report.json").read_text()) for run in ("whole", "merged")
    )
    assert measured(merged) == measured(whole)
    assert outcomes(command.folder / "results", "merged") == outcomes(command.folder / "results", "whole")
    assert exported(command, "merged", "jsonl") == exported(command, "whole", "jsonl")


@pytest.mark.slow
def test_shards_are_a_partition_of_the_histories(shards: Command) -> None:
    parts = [
        {(row[2], row[3].rpartition("-q")[0]) for row in outcomes(shards.folder / name, "part")} for name in FOLDERS
    ]
    assert sorted(map(len, parts)) == [4, 4, 4]
    assert len(set.union(*parts)) == 12
    counts = Counter(row[0] for name in FOLDERS for row in outcomes(shards.folder / name, "part"))
    assert set(counts.values()) == {1}
    assert len(counts) == 3 * 60


def test_every_process_divides_a_run_in_the_same_way(shards: Command) -> None:
    found = {row[3].rpartition("-q")[0] for row in outcomes(shards.folder / "machine-1", "part")}
    assert found == {"kenji", "luc", "noor", "priya"}


@pytest.mark.slow
def test_a_shard_does_not_depend_on_the_providers(command: Command) -> None:
    asked = []
    for run, providers in (("a", ["none"]), ("b", ["oracle", "none"])):
        command("eval", "--providers", *providers, "--shard", "2/5", "--run-id", run)
        asked.append({row[3] for row in outcomes(command.folder / "results", run)})
    assert asked[0] == asked[1] != set()


def test_a_shard_says_what_it_is_a_part_of(shards: Command) -> None:
    said = shards("results", "machine-2/part", "--json").json
    shard = said["shard"]
    assert (shard["number"], shard["of"]) == (2, 3)
    assert (shard["histories"], shard["histories_in_all"], shard["questions_in_all"]) == (4, 12, 60)
    assert shard["questions"] == said["counts"]["planned"] // 3 == said["samples"][0]["cases"]
    assert any("2/3" in line for line in (shards.folder / "machine-2/part/report.md").read_text().splitlines()[:3])
    assert "2/3" in shards("runs", "--results", "machine-2").out


@pytest.mark.slow
def test_a_gate_on_a_shard_says_so(command: Command) -> None:
    words = ("eval", "--providers", "bm25", "--limit", "24", "--shard", "1/2", "--threshold", "recall@5=0.999")
    command("eval", "--providers", "bm25", "--limit", "24", "--run-id", "base")
    said = command(*words, "--baseline", "base", "--json", "--run-id", "part")
    assert said.code == 3
    checks = said.json["checks"]
    assert {check["name"].partition(" ")[0] for check in checks} == {"threshold", "baseline"}
    assert all("shard 1/2" in check["text"] for check in checks)


@pytest.mark.slow
def test_a_resumed_shard_stays_the_same_shard(command: Command) -> None:
    words = ("eval", "--providers", "bm25", "--limit", "24", "--concurrency", "1")
    command(*words, "--shard", "2/3", "--run-id", "straight")
    assert command.killed(*words, "--shard", "2/3", "--run-id", "part", at=12)
    assert command("eval", "--resume", "part", "--shard", "1/3").code == 2
    assert command("eval", "--resume", "part").code == 0
    folder = command.folder / "results"
    assert outcomes(folder, "part") == outcomes(folder, "straight")


def test_a_dry_run_of_a_shard_plans_its_part(command: Command) -> None:
    words = ("eval", "--providers", "bm25", "--limit", "24", "--dry-run", "--json")
    parts = [command(*words, "--shard", f"{number}/3").json for number in (1, 2, 3)]
    whole = command(*words).json
    assert sum(part["planned"] for part in parts) == whole["planned"]
    for stage in ("add", "search"):
        calls = [sum(row["calls"] for row in plan["expected"] if row["stage"] == stage) for plan in (*parts, whole)]
        assert sum(calls[:-1]) == calls[-1] > max(calls[:-1])


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "1/0", "a/b", "1/3/4", "-1/3", "1/13"])
def test_an_invalid_shard_is_refused(command: Command, shard: str) -> None:
    said = command("eval", "--providers", "bm25", f"--shard={shard}")
    assert said.code == 2
    assert said.err.startswith("memorybench: --shard: ")
    assert not (command.folder / "results").exists()


def merge(command: Command, *words: str) -> Any:
    return command("merge", *words, "--run-id", "all")


def test_a_missing_shard_is_refused_by_name(shards: Command) -> None:
    said = merge(shards, "machine-1", "machine-3")
    assert said.code == 2
    assert "2/3" in said.err
    assert "1/3" not in said.err
    assert not (shards.folder / "results").exists()


def test_a_doubled_shard_is_refused_by_name(shards: Command) -> None:
    shutil.copytree(shards.folder / "machine-2", shards.folder / "copy")
    said = merge(shards, *FOLDERS, "copy")
    assert said.code == 2
    assert said.err.startswith("memorybench: machine-2/part and copy/part: ")
    assert "2/3" in said.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("eval", "--providers", "bm25", "oracle", "--limit", "60", "--shard", "3/3"), "providers"),
        ((*EVAL, "--sample-seed", "9", "--shard", "3/3"), "sample_seed"),
        ((*EVAL, "--shard", "3/4"), "3/4"),
        ((*EVAL[:-2], "--end", "60", "--shard", "2/2"), "2/2"),
        (("hygiene", "run", "--shard", "3/3"), "hygiene"),
        (EVAL, "--shard"),
    ],
)
def test_a_foreign_shard_is_refused_with_the_difference(shards: Command, words: tuple[str, ...], named: str) -> None:
    shards(*words, "--run-id", "other", "--output", "foreign")
    said = merge(shards, "machine-1", "machine-2", "foreign/other")
    assert said.code == 2
    assert "foreign/other" in said.err.split(": ")[1]
    assert named in said.err
    assert not (shards.folder / "results").exists()


def edit(folder: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "results.db", isolation_level=None)) as db:
        db.execute(sql, values)


def reseal(folder: Path, **changes: str) -> None:
    """Change columns of the run, with a new checksum: as another machine would have written it."""
    with closing(sqlite3.connect(folder / "results.db", isolation_level=None)) as db:
        db.row_factory = sqlite3.Row
        row = {**dict(db.execute("SELECT * FROM runs").fetchone()), **changes}
        names = CHECKSUMS["runs"]["crc"]
        assignments = ", ".join(f"{name} = ?" for name in (*names, "crc"))
        db.execute(f"UPDATE runs SET {assignments}", (*(row[n] for n in names), crc(*(row[n] for n in names))))


def test_a_shard_of_another_version_is_refused(shards: Command) -> None:
    reseal(shards.folder / "machine-3", program="memorybench 0.0.1")
    said = merge(shards, *FOLDERS)
    assert said.code == 2
    assert "0.0.1" in said.err
    assert "machine-3/part" in said.err


def test_a_shard_of_other_data_is_refused(shards: Command) -> None:
    folder = shards.folder / "machine-2"
    with closing(sqlite3.connect(folder / "results.db")) as db:
        (text,) = db.execute("SELECT fingerprints FROM runs").fetchone()
    marks = json.loads(text)
    marks["benchmark starter"] = {"digest": "0" * 32, "text": None}
    reseal(folder, fingerprints=json.dumps(marks))
    said = merge(shards, *FOLDERS)
    assert said.code == 2
    assert "machine-2/part" in said.err
    assert "benchmark starter" in said.err


def test_an_edited_row_stops_the_merge(shards: Command) -> None:
    edit(shards.folder / "machine-2", "UPDATE outcomes SET body = replace(body, '1.0', '0.5')")
    said = merge(shards, *FOLDERS)
    assert said.code == 1
    assert "machine-2" in said.err
    assert not (shards.folder / "results/all").exists()


def test_a_damaged_file_stops_the_merge(shards: Command) -> None:
    (shards.folder / "machine-2/results.db").write_bytes(b"SQLite format 3\0" + b"\7" * 5000)
    said = merge(shards, *FOLDERS)
    assert said.code == 2
    assert said.err.startswith("memorybench: machine-2/results.db: ")


def test_a_missing_outcome_stops_the_merge(shards: Command) -> None:
    edit(shards.folder / "machine-2", "DELETE FROM outcomes WHERE ordinal = (SELECT max(ordinal) FROM outcomes)")
    said = merge(shards, *FOLDERS)
    assert said.code == 2
    assert "machine-2/part" in said.err


@pytest.mark.slow
def test_an_unfinished_shard_is_refused_unless_a_part_is_wanted(command: Command) -> None:
    words = ("eval", "--providers", "bm25", "--limit", "24", "--concurrency", "1")
    command(*words, "--run-id", "whole")
    command(*words, "--shard", "1/3", "--run-id", "s1")
    assert command.killed(*words, "--shard", "2/3", "--run-id", "s2", at=12)
    said = merge(command, "s1", "s2")
    assert said.code == 2
    said = merge(command, "s1", "s2", "--allow-partial", "--json")
    assert said.code == 0
    assert said.json["status"] == "partial"
    assert 0 < said.json["counts"]["scored"] < said.json["counts"]["planned"] == 24
    assert command("eval", "--resume", "all").code == 0
    reports = [json.loads((command.folder / f"results/{run}/report.json").read_text()) for run in ("whole", "all")]
    assert measured(reports[0]) == measured(reports[1])


@pytest.mark.slow
def test_a_shard_that_has_grown_since_is_not_taken_for_merged(command: Command) -> None:
    words = ("eval", "--providers", "bm25", "--limit", "24", "--concurrency", "1")
    command(*words, "--shard", "1/2", "--run-id", "s1")
    assert command.killed(*words, "--shard", "2/2", "--run-id", "s2", at=8)
    first = merge(command, "s1", "s2", "--allow-partial", "--json")
    assert merge(command, "s1", "s2", "--allow-partial").code == 0
    assert command.killed("eval", "--resume", "s2", at=8)
    assert merge(command, "s1", "s2", "--allow-partial").code == 2, "the name is taken by another merge"
    again = command("merge", "s1", "s2", "--allow-partial", "--run-id", "more", "--json")
    assert again.json["counts"]["scored"] > first.json["counts"]["scored"]


@pytest.mark.slow
def test_runs_of_one_folder_are_merged_and_stay_unchanged(command: Command) -> None:
    words = (*EVAL, "--answering-model", "scripted/quote", "--judge-model", "scripted/judge")
    for number in (1, 2):
        command(*words, "--shard", f"{number}/2", "--run-id", f"s{number}", "--tag", "nightly")
    before = [outcomes(command.folder / "results", run) for run in ("s1", "s2")]
    said = merge(command, "s1", "results/s2", "--json").json
    assert said["run_id"] == "all"
    assert [shard["run"] for shard in said["shards"]] == ["s1", "s2"]
    assert [outcomes(command.folder / "results", run) for run in ("s1", "s2")] == before
    assert command("results", "all", "--failures").code == 0
    assert command("show", "all", before[0][0][3], "--provider", "bm25").code == 0
    assert command("compare", "all:bm25", "all:hybrid").code == 0
    assert command("report", "all").code == 0
    assert command("eval", "--failed-in", "all", "--providers", "bm25", "--dry-run").code == 0
    assert command("score", "all", "--judge-model", "scripted/judge", "--run-id", "again").code == 0
    assert command("eval", "--resume", "all", "--threshold", "recall@5=1").code == 3, "a gate on all shards"
    listed = {row["id"]: row for row in command("runs", "--tag", "nightly", "--json").json}
    assert set(listed) == {"s1", "s2", "all"}
    assert command("runs", "delete", "s1", "s2", "--yes").code == 0
    assert command("results", "all", "--json").json["counts"]["planned"] == 180


def write_shared_questions(folder: Path) -> None:
    """Write the benchmark `shared`: four people, who are asked the same two questions."""
    people = [
        {
            "name": f"p{n}",
            "sessions": [{"id": "s1", "turns": [{"role": "user", "text": f"My colour is red {n}"}]}],
            "questions": [{"id": f"p{n}-{q}", "text": f"What is {q}?", "gold": "red", "gold_in": ["s1"]} for q in "ab"],
        }
        for n in range(4)
    ]
    fields = {"idField": "id", "questionField": "text", "answerField": "gold", "evidenceField": "gold_in"}
    turns = {"turnsField": "turns", "idField": "$.sessions[*].id", "itemSchema": {"role": "role", "text": "text"}}
    schema = {"itemId": "name", "evidenceLevel": "session", "questions": {"field": "questions", **fields}}
    config = {
        "name": "shared",
        "data": {"type": "local", "path": "./shared.json"},
        "schema": {**schema, "context": {"field": "sessions", **turns}},
        "evaluation": {"method": "llm-judge"},
    }
    (folder / "benchmarks/configs").mkdir(parents=True)
    (folder / "benchmarks/configs/shared.json").write_text(json.dumps(people))
    (folder / "benchmarks/configs/shared.yaml").write_text(yaml.safe_dump(config))


def merge_differing_shards(command: Command, stub: Stub, replies: Sequence[tuple[str, str]]) -> Said:
    """Merge shards whose model and judge gave these replies, each shard its own."""
    write_shared_questions(command.folder)
    words = ("eval", "--benchmarks", "shared", "--providers", "none", "oracle", "--answering-model", "gpt-4o")
    words = (*words, "--judge-model", "gpt-4.1", "--canaries", "8")
    for number, (answer, verdict) in enumerate(replies, 1):
        texts = {"gpt-4o": answer, "gpt-4.1": verdict}
        stub.always(completion(lambda call, own=texts: own[call.json["model"]]))
        shard = ("--shard", f"{number}/{len(replies)}", "--run-id", "part", "--output", f"machine-{number}")
        command(*words, *shard)
    said = merge(command, *(f"machine-{number}" for number in range(1, len(replies) + 1)), "--json")
    assert said.code == 0, said.err
    return said


def contradictions(command: Command) -> list[Any]:
    """Return what `verify` contradicts in the merged run."""
    assert command("bundle", "all", "--output", "all.mbz").code == 0
    claims = command("verify", "all.mbz", "--json").json["claims"]
    return [claim for claim in claims if claim["level"] == "contradicted"]


def test_the_first_result_of_a_step_counts_in_a_merged_run(command: Command, stub: Stub) -> None:
    merged = merge_differing_shards(command, stub, [("red 1", "yes"), ("red 2", "no")]).json
    assert (merged["status"], merged["differing_trials"], merged["counts"]["scored"]) == ("partial", 4, 12)
    assert contradictions(command) == []
    calls = len(stub.calls)
    resumed = command("eval", "--resume", "all", "--json").json
    assert (resumed["counts"]["scored"], len(stub.calls)) == (16, calls), "all steps are recorded"
    assert contradictions(command) == []
    rows = [json.loads(row[-1]) for row in outcomes(command.folder / "results", "all") if row[4] == "none"]
    assert {row["shown"]["got"] for row in rows} == {"red 1"}
    [check] = resumed["judge_checks"]
    assert check["sensitivity"]["agreed"] == check["sensitivity"]["n"] > 0
    assert [note["kind"] for note in resumed["notes"]].count("judge") == 1
    again = merge(command, "machine-1", "machine-2", "--json").json
    assert (again["is_new"], again["status"], again["differing_trials"]) == (False, "complete", 0)


@pytest.mark.parametrize("verdicts", [("perhaps", "yes"), ("yes", "perhaps")])
def test_a_verdict_that_one_shard_could_not_read_does_not_contradict_a_merged_run(
    command: Command, stub: Stub, verdicts: tuple[str, str]
) -> None:
    merge_differing_shards(command, stub, [("red", verdict) for verdict in verdicts])
    assert contradictions(command) == []
    stub.always(completion("yes"))
    assert command("eval", "--resume", "all", "--json").json["counts"]["scored"] == 16
    assert contradictions(command) == []


@pytest.mark.parametrize("verdicts", [("perhaps", "yes", "yes"), ("perhaps", "perhaps", "yes")])
def test_a_verdict_that_one_shard_has_is_not_asked_for_again(
    command: Command, stub: Stub, verdicts: tuple[str, ...]
) -> None:
    merge_differing_shards(command, stub, [("red", verdict) for verdict in verdicts])
    asked = Counter(json.dumps(call.json) for call in stub.calls)
    shared = {request for request, times in asked.items() if times >= len(verdicts)}
    calls = len(stub.calls)
    stub.always(completion("yes"))
    assert command("eval", "--resume", "all", "--json").json["counts"]["scored"] == 16
    assert not shared & {json.dumps(call.json) for call in stub.calls[calls:]}
    assert contradictions(command) == []


@pytest.mark.slow
def test_costs_of_all_shards_add_up(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    words = ("eval", "--providers", "none", "bm25", "--limit", "24", "--answering-model", "gpt-4o")
    words = (*words, "--judge-model", "gpt-4o", "--canaries", "4")
    with Stub() as stub:
        stub.always(completion("yes", tokens=(1000, 100)))
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        spent = []
        for number, folder in enumerate(FOLDERS, 1):
            shard = ("--shard", f"{number}/{COUNT}", "--output", folder, "--json")
            spent.append(command(*words, *shard, "--run-id", "part").json["circumstances"])
    said = merge(command, *FOLDERS, "--json").json
    report = json.loads((command.folder / "results/all/report.json").read_text())
    assert report["circumstances"]["known_cost"] == pytest.approx(sum(one["known_cost"] for one in spent))
    calls = [one["spent"]["calls"] for one in spent]
    assert report["circumstances"]["spent"]["calls"] == sum(calls) == len(stub.calls)
    assert report["possibly_charged_twice"] == 0
    assert said["known_cost"] == pytest.approx(report["circumstances"]["known_cost"])
    canaries = next(stage for stage in report["circumstances"]["stages"] if stage["name"] == "canary")
    assert (canaries["steps"], canaries["spent"]["calls"]) == (4, 4 * COUNT), "every shard checks its judge"


@pytest.mark.slow
def test_a_merged_run_has_the_transcripts_of_all_shards(command: Command) -> None:
    (command.folder / "agents/configs").mkdir(parents=True)
    (command.folder / "agents/configs/scripted.yaml").write_text(AGENT.replace("BEHAVIOUR", "hoarding"))
    words = ("hygiene", "run", "memory-skip-local", "memory-idempotent-write", "--agent", "scripted", "--allow-code")
    for number in (1, 2):
        said = command(*words, *CONSENT, "--shard", f"{number}/2", "--run-id", f"s{number}")
        assert said.code in (0, 3), said.err
    assert merge(command, "s1", "s2").code == 0
    files = {path.name for run in ("s1", "s2") for path in (command.folder / f"results/{run}/transcripts").iterdir()}
    assert {path.name for path in (command.folder / "results/all/transcripts").iterdir()} == files
    assert len(files) == 2


@pytest.mark.slow
def test_a_killed_merge_leaves_no_half_run(shards: Command) -> None:
    at = 1
    while shards.killed("merge", *FOLDERS, "--run-id", "all", at=at):
        found = outcomes(shards.folder / "results", "all") if (shards.folder / "results/results.db").exists() else []
        assert len(found) in (0, 180)
        said = merge(shards, *FOLDERS)
        assert said.code == 0, said.err
        assert (shards.folder / "results/all/report.json").exists()
        shutil.rmtree(shards.folder / "results")
        at += 1
    assert at > 2


@pytest.mark.slow
def test_a_repeated_merge_changes_nothing_and_other_shards_need_another_name(shards: Command) -> None:
    assert merge(shards, *FOLDERS).code == 0
    before = outcomes(shards.folder / "results", "all")
    assert merge(shards, *FOLDERS).code == 0
    assert outcomes(shards.folder / "results", "all") == before
    said = merge(shards, "machine-1", "machine-2", "--allow-partial")
    assert said.code == 2
    assert "all" in said.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nowhere", "machine-1/unknown", "results/../..", ""])
def test_an_unknown_folder_is_refused(shards: Command, name: str) -> None:
    said = merge(shards, *FOLDERS[:2], name)
    assert said.code == 2
    assert not (shards.folder / "results").exists()


def test_shards_are_read_as_one_without_a_merge(shards: Command) -> None:
    runs = [f"{folder}/part" for folder in FOLDERS]
    both = shards("results", *runs, "--json").json
    assert both["counts"]["planned"] == 180
    assert "shard" not in both
    assert shards("results", *runs[:2], "--json").json["shard"]["of"] == 3
    assert shards("results", runs[0], runs[0].replace("machine-1", "./machine-1")).code == 2


@pytest.mark.parametrize(
    "words",
    [
        (*AUDIT, "--limit", "30"),
        ("extraction", "run", "--extractor", "hoarder", "--limit", "6", "--no-targets"),
        ("hygiene", "run", "memory-one-copy", "memory-many-facts", "memory-deleted-ids", "--seed", "0"),
    ],
    ids=lambda words: words[0],
)
def test_the_header_of_shards_counts_the_cases_of_all(command: Command, words: tuple[str, ...]) -> None:
    perform_shards(command, *words)
    assert command("merge", *FOLDERS, "--run-id", "merged", "--results", "results").code == 0
    shards, merged = (
        command("results", *runs).out.splitlines()
        for runs in ([f"{folder}/part" for folder in FOLDERS], ["results/merged"])
    )
    different = [line for line in merged if line not in shards and "Run ID:" not in line and "Started:" not in line]
    assert different == []
