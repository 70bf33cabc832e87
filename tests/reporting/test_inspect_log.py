"""What a user may claim about `memorybench export --format inspect`, as far as it can be told without inspect_ai."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from memorybench.cli.main import main
from memorybench.journal.book import open_run
from memorybench.journal.rows import Run, RunStatus, Step
from memorybench.vocabulary.questions import Question
from memorybench.vocabulary.spending import Spending
from memorybench.vocabulary.trials import Exhibit, Failure, Outcome, Score, Subject, Trial

SPEC = {
    "answered": True,
    "benchmarks": ["quiz"],
    "corrected": False,
    "evidence": {"quiz": "session"},
    "judge": "scripted/judge",
    "methods": {"quiz": "llm-judge"},
    "providers": ["shelf"],
    "questions": {"quiz": 4},
    "reader": "scripted/quote",
}
HEADER = ["version", "status", "eval", "plan", "results", "stats"]
"""Inspect reads a log's header field by field, in this order."""


def trial(case: str, subject: str = "shelf", variant: str = "") -> Trial:
    return Trial(
        suite="bench",
        benchmark="quiz",
        case_id=case,
        subject=Subject(role="provider", name=subject, settings={"k": 3}),
        labels={"question_type": "temporal"},
        variant=variant,
        cluster="home",
    )


def scored(case: str, correct: float, **more: str) -> Outcome:
    return Outcome(
        trial=trial(case, **more),
        status="scored",
        scores=(Score(name="correct", value=correct), Score(name="recall@5", value=0.5)),
        shown=Exhibit(asked=f"{case}?", expected="a | b", got="ä 猫", context="a memory", reason="it says so"),
    )


def undone(case: str, status: str, failure: Failure | None) -> Outcome:
    return Outcome.model_validate(
        {"trial": trial(case), "status": status, "failure": failure, "shown": Exhibit(asked=f"{case}?", expected="a")}
    )


def record(
    folder: Path, outcomes: Sequence[Outcome], status: RunStatus = "complete", id: str = "r", **changes: Any
) -> None:
    """A run with these outcomes, and one paid answer."""
    spent = Spending(calls=1, input_tokens=30, output_tokens=4, cost=0.25)
    step = Step("a" * 32, "answer", "scripted/quote", "{}", "{}", "2026-01-01T00:00:00.000+00:00", 0.1, spent=spent)

    async def settle() -> None:
        await book.record(step)
        for ordinal, outcome in enumerate(outcomes):
            case = Question(id=outcome.trial.case_id, haystack="home", question="?", answers=("a", "b"))
            await book.settle(outcome, ordinal, case)

    run = Run(id=id, suite="bench", spec={**SPEC, **changes}, program="memorybench 9", planned=4)
    with open_run(folder, run) as book:
        asyncio.run(settle())
        book.end(status)


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
    assert figures(log) == {"accuracy": 0.5, "recall@5": 0.5}, "what was not measured has no figure, not even 0"
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


def test_without_answers_there_is_no_model_and_no_output(tmp_path: Path) -> None:
    record(tmp_path, [scored("q1", 1.0)], answered=False, reader=None, judge=None)
    (log,) = export(tmp_path)
    assert log["eval"]["model"] == "none"
    assert "model_roles" not in log["eval"]
    assert log["samples"][0]["output"]["choices"] == []


def test_a_case_that_is_put_again_is_the_next_epoch(tmp_path: Path) -> None:
    record(tmp_path, [scored("q1", 1.0), scored("q1", 0.0, variant="2"), scored("q2", 1.0)])
    (log,) = export(tmp_path)
    assert [(sample["id"], sample["epoch"]) for sample in log["samples"]] == [("q1", 1), ("q1", 2), ("q2", 1)]
    assert log["eval"]["dataset"]["samples"] == 2


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
