"""What a user may claim about `memorybench export --format inspect`, as far as it can be told without inspect_ai."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memorybench.cli.main import main
from memorybench.core.trials import Failure
from memorybench.journal.rows import RunStatus
from tests.suites.recorded import record, scored, undone

HEADER = ["version", "status", "eval", "plan", "results", "stats"]
"""Inspect reads a log's header field by field, in this order."""


def export(folder: Path, *runs: str, into: str = "logs") -> list[dict[str, Any]]:
    logs = folder / into
    arguments = ["export", *(runs or ("r",)), "--format", "inspect", "--results", str(folder), "--output", str(logs)]
    assert main(arguments) == 0
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(logs.iterdir())]


def figures(log: Mapping[str, Any]) -> dict[str, float]:
    return {name: one["value"] for score in log["results"]["scores"] for name, one in score["metrics"].items()}


def test_a_sample_tells_question_gold_answer_and_scores(tmp_path: Path) -> None:
    record(tmp_path, [scored("q1", 1.0), scored("q2", 0.0), scored("q3", 0.25)])
    (log,) = export(tmp_path)
    first, second, third = log["samples"]
    assert (first["id"], first["epoch"], first["input"], first["target"]) == ("q1", 1, "q1?", ["a", "b"])
    assert first["output"]["completion"] == "ä 猫" == first["output"]["choices"][0]["message"]["content"]
    assert first["scores"]["correct"] == {"value": "C", "answer": "ä 猫", "explanation": "it says so", "history": []}
    assert [sample["scores"]["correct"]["value"] for sample in (second, third)] == ["I", 0.25]
    assert first["scores"]["recall@5"]["value"] == 0.5
    assert first["metadata"]["question_type"] == "temporal"
    assert first["metadata"]["memorybench"]["context"] == "a memory"
    assert "error" not in first


def test_a_header_tells_task_memory_model_judge_and_figures(tmp_path: Path) -> None:
    record(tmp_path, [scored("q1", 1.0), scored("q2", 0.0)])
    (log,) = export(tmp_path)
    assert list(log)[: len(HEADER)] == HEADER
    assert list(log)[-1] == "samples", "a header is read without reading samples"
    assert (log["version"], log["status"]) == (2, "success")
    told = log["eval"]
    assert (told["task"], told["solver"], told["model"]) == ("quiz", "shelf", "scripted/quote")
    assert told["solver_args"] == {"k": 3}
    assert told["model_roles"]["grader"]["model"] == "scripted/judge"
    assert told["dataset"] == {"name": "quiz", "samples": 2, "sample_ids": ["q1", "q2"]}
    assert log["results"]["scores"][0]["name"] == "correct"
    assert figures(log) == {"accuracy": 0.5, "recall@1": 0.0, "recall@5": 0.5}, (
        "what was not measured has no figure, not even 0"
    )
    assert (log["results"]["total_samples"], log["results"]["completed_samples"]) == (4, 2)
    accuracy = log["results"]["scores"][0]
    assert (accuracy["scored_samples"], accuracy["unscored_samples"]) == (2, 2)


def test_what_failed_is_an_error_and_what_could_not_be_judged_is_not(tmp_path: Path) -> None:
    outcomes = [
        scored("q1", 1.0),
        undone("q2", "failed", Failure(kind="Malformed", message="no JSON", traceback="line 1")),
        undone("q3", "unscored", Failure(kind="Unreadable", message="perhaps")),
        undone("q4", "blocked", None),
    ]
    record(tmp_path, outcomes)
    (log,) = export(tmp_path)
    errors = {sample["id"]: sample.get("error", {}).get("message") for sample in log["samples"]}
    assert errors == {
        "q1": None,
        "q2": "Malformed: no JSON",
        "q3": None,
        "q4": "blocked: no reason was recorded",
    }
    _, failed, unscored, _ = log["samples"]
    assert failed["error"]["traceback"] == "line 1"
    assert failed["output"]["choices"] == []
    assert unscored["metadata"]["memorybench"]["failure"] == "Unreadable: perhaps"
    assert "correct" not in unscored["scores"], "neither right nor wrong"
    assert log["results"]["completed_samples"] == 2
    assert log["status"] == "success"


@pytest.mark.parametrize(("run", "log"), [("complete", "success"), ("partial", "cancelled"), ("blocked", "cancelled")])
def test_a_log_ends_as_its_run_did(tmp_path: Path, run: RunStatus, log: str) -> None:
    record(tmp_path, [scored("q1", 1.0)], run)
    assert [one["status"] for one in export(tmp_path)] == [log]


def test_a_memory_that_never_worked_is_an_error(tmp_path: Path) -> None:
    record(tmp_path, [undone("q1", "failed", Failure(kind="Denied", message="401"))])
    (log,) = export(tmp_path)
    assert (log["status"], log["error"]["message"]) == ("error", "Denied: 401")


def test_every_memory_has_a_log_even_one_that_has_not_begun(tmp_path: Path) -> None:
    record(
        tmp_path, [scored("q1", 1.0), scored("q1", 0.0, subject="pile")], "partial", providers=["shelf", "pile", "x"]
    )
    logs = {log["eval"]["solver"]: log for log in export(tmp_path)}
    assert {name: len(log["samples"]) for name, log in logs.items()} == {"shelf": 1, "pile": 1, "x": 0}
    assert {name: figures(log).get("accuracy") for name, log in logs.items()} == {"shelf": 1.0, "pile": 0.0, "x": None}
    assert len({log["eval"]["eval_id"] for log in logs.values()}) == 3


def test_usage_stands_with_whoever_spent_it(tmp_path: Path) -> None:
    used = {"scripted/quote": {"input_tokens": 30, "output_tokens": 4, "total_tokens": 34, "total_cost": 0.25}}
    record(tmp_path / "one", [scored("q1", 1.0)])
    (log,) = export(tmp_path / "one")
    assert log["stats"]["model_usage"] == used
    record(tmp_path / "two", [scored("q1", 1.0)], providers=["shelf", "pile"])
    for log in export(tmp_path / "two"):  # who of the two spent it is not known
        assert log["stats"]["model_usage"] == {}
        assert log["eval"]["metadata"]["usage_of_the_whole_run"] == used


def test_without_answers_there_is_no_model_no_output_and_another_headline(tmp_path: Path) -> None:
    record(tmp_path, [scored("q1", 1.0)], answered=False, reader=None, judge=None)
    (log,) = export(tmp_path)
    assert log["eval"]["model"] == "none"
    assert "model_roles" not in log["eval"]
    assert log["samples"][0]["output"]["choices"] == []
    assert log["results"]["scores"][0]["name"] == "recall@5", "Inspect shows the first"


def test_a_case_that_is_put_again_is_the_next_epoch(tmp_path: Path) -> None:
    record(tmp_path, [scored("q1", 1.0), scored("q1", 0.0, variant="2"), scored("q2", 1.0)])
    (log,) = export(tmp_path)
    assert [(sample["id"], sample["epoch"]) for sample in log["samples"]] == [("q1", 1), ("q1", 2), ("q2", 1)]
    assert log["eval"]["dataset"]["samples"] == 2


def test_a_repeat_is_an_epoch_and_the_samples_of_all_epochs_are_counted(tmp_path: Path) -> None:
    record(tmp_path, [scored("q1", 1.0, repeat=number) for number in (1, 2, 3)], repeats=3, questions={"quiz": 1})
    (log,) = export(tmp_path)
    assert [sample["epoch"] for sample in log["samples"]] == [1, 2, 3]
    assert (log["eval"]["config"]["epochs"], log["eval"]["dataset"]["samples"]) == (3, 1)
    assert (log["results"]["total_samples"], log["results"]["completed_samples"]) == (3, 3)


def test_shards_become_one_log(tmp_path: Path) -> None:
    record(tmp_path, [scored("q1", 1.0)], id="a", start=1, end=1, questions={"quiz": 1})
    record(tmp_path, [scored("q2", 0.0)], id="b", start=2, end=2, questions={"quiz": 1})
    (log,) = export(tmp_path, "a", "b")
    assert [sample["id"] for sample in log["samples"]] == ["q1", "q2"]
    assert figures(log)["accuracy"] == 0.5
    assert log["results"]["total_samples"] == 2


def test_written_twice_a_log_is_the_same_and_bears_a_name_that_inspect_knows(tmp_path: Path) -> None:
    record(tmp_path, [scored("q1", 1.0)])
    export(tmp_path, into="one")
    export(tmp_path, into="two")
    export(tmp_path, into="two")  # over what is there
    (one,), (two,) = (list((tmp_path / name).iterdir()) for name in ("one", "two"))
    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d_quiz_shelf_[0-9a-f]{32}\.json", one.name)


def test_a_name_with_underscores_or_worse_stays_one_part_of_a_file_name(tmp_path: Path) -> None:
    record(tmp_path, [scored("q1", 1.0, subject="../my_shelf")], providers=["../my_shelf"])
    export(tmp_path)
    (path,) = (tmp_path / "logs").iterdir()
    assert path.name.split("_")[2] == "..-my-shelf"
    assert path.name.count("_") == 3


def test_a_journal_that_turns_out_damaged_leaves_no_half_a_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, [scored("q1", 1.0), scored("q2", 1.0)])
    with sqlite3.connect(tmp_path / "results.db") as db:
        db.execute("UPDATE cases SET body = '{}' WHERE id = 'q2'")
    db.close()
    logs = tmp_path / "logs"
    assert main(["export", "r", "--format", "inspect", "--results", str(tmp_path), "--output", str(logs)]) != 0
    assert "case q2 is damaged" in capsys.readouterr().err
    assert list(logs.iterdir()) == []


@pytest.mark.parametrize("output", [[], ["--output", "-"], ["--output", "taken"], ["--output", "taken/logs"]])
def test_logs_want_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    record(tmp_path, [scored("q1", 1.0)])
    (tmp_path / "taken").write_text("a file")
    assert main(["export", "r", "--format", "inspect", "--results", ".", *output]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "folder" in said
    assert (tmp_path / "taken").read_text() == "a file"
