"""`memorybench judge calibrate`, as a user calls it."""

import argparse
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench.cli.judge import configure, run
from memorybench.core.errors import BadInput
from tests.doubles.stub import Call, Stub, completion

KEY = "sk-Sentinel0123456789abcdef"
Calibrate = Callable[..., tuple[int, Any]]


@pytest.fixture
def calibrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Calibrate:
    """Exit code and what was printed; read as JSON where that was asked for."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str | Path) -> tuple[int, Any]:
        parser = argparse.ArgumentParser()
        configure(parser)
        code = run(parser.parse_args(["calibrate", *map(str, arguments)]))
        printed = capsys.readouterr().out
        return code, json.loads(printed) if "--json" in arguments else printed

    return call


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(place: int, label: str | bool, **more: Any) -> dict[str, Any]:
    return {
        "question": f"Where did {place} go?",
        "answer": "Lisbon",
        "response": f"city {place}",
        "label": label,
        **more,
    }


def measures(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {measure["name"]: measure for measure in document["results"][0]["measures"]}


def test_verdicts_in_the_file_need_no_model(tmp_path: Path, calibrate: Calibrate) -> None:
    rows = [row(n, "yes", verdict="yes") for n in range(18)] + [row(n, "yes", verdict="no") for n in range(2)]
    rows += [row(n, False, verdict=False) for n in range(8)] + [row(n, "no", verdict="TRUE") for n in range(2)]
    code, document = calibrate(write(tmp_path / "labels.jsonl", rows), "--score", "350/500", "--json")
    assert code == 0
    assert document["run_id"] is None
    assert document["counts"]["planned"] == document["counts"]["scored"] == 30
    assert document["confusion"] == {"both_yes": 18, "person_yes": 2, "judge_yes": 2, "both_no": 8}
    found = measures(document)
    assert found["sensitivity"]["value"] == 0.9
    assert found["specificity"] | {"low": 0, "high": 0} == {
        "name": "specificity",
        "value": 0.8,
        "low": 0,
        "high": 0,
        "n": 10,
        "planned": 30,
    }
    assert found["kappa"]["value"] == pytest.approx(0.7)
    assert found["corrected_score"]["value"] == pytest.approx((0.7 + 0.8 - 1) / (0.9 + 0.8 - 1))
    assert not (tmp_path / "results").exists()


def test_csv_is_read_and_the_matrix_is_shown(tmp_path: Path, calibrate: Calibrate) -> None:
    file = tmp_path / "labels.csv"
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("question", "answer", "response", "label", "verdict"))
        writer.writerows([("Where?", "Lisbon", "Lisbon", "yes", "yes"), ("Where?", "Lisbon", "Porto", "no", "yes")])
    code, printed = calibrate(file, "--score", "0.7")
    assert code == 0
    assert "people: yes" in printed
    assert "corrected score undefined" in printed, "this judge says yes to everything"
    assert "2 labelled = 2 scored, 0 unscored" in printed


def test_the_judge_is_asked_once_per_response_and_never_again(
    tmp_path: Path, calibrate: Calibrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = write(tmp_path / "labels.jsonl", [row(n, "yes" if n < 6 else "no") for n in range(10)])

    def judge(call: Call) -> str:
        said = call.json["messages"][0]["content"]
        return "I can not say." if "city 9" in said else "yes" if any(f"city {n}\n" in said for n in range(7)) else "no"

    with Stub() as stub:
        stub.always(completion(judge))
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        code, document = calibrate(labels, "--judge-model", "gpt-4o", "--json")
        assert code == 1, "one reply could not be read"
        assert document["counts"] | {"planned": 10, "scored": 9, "unscored": 1} == document["counts"]
        assert document["confusion"] == {"both_yes": 6, "judge_yes": 1, "person_yes": 0, "both_no": 2}
        assert len(stub.calls) == 11
        again = calibrate(labels, "--judge-model", "gpt-4o", "--json")[1]
        costs = {"known_cost"}
        assert {key: again[key] for key in again.keys() - costs} == {key: document[key] for key in again.keys() - costs}
        assert again["known_cost"] > document["known_cost"]
        assert len(stub.calls) == 13, "only what could not be read is asked again, twice as before"
    kept = [file for file in (tmp_path / "results").rglob("*") if file.is_file()]
    assert not [file for file in kept if KEY.encode() in file.read_bytes()]


def test_a_type_that_is_the_name_of_a_prompt_is_judged_by_it(
    tmp_path: Path, calibrate: Calibrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(1, "yes", question_type="rubric"), row(2, "yes", question_type="abstention"), row(3, "no", id="x")]
    with Stub() as stub:
        stub.always(completion("no"))
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        calibrate(write(tmp_path / "l.jsonl", rows), "--judge-model", "gpt-4o", "--concurrency", "1")
        asked = [call.json["messages"][0]["content"] for call in stub.calls]
    assert ["<rubric " in text for text in asked] == [True, False, False]
    assert ["<explanation " in text for text in asked] == [False, True, False]


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        ([row(1, "maybe")], "labels.jsonl:1: label"),
        ([row(1, "yes"), row(2, "no", verdict="yes")], "labels.jsonl:1"),
        ([row(1, "yes", verdict="dunno")], "labels.jsonl:1: verdict"),
        ([row(1, "yes", verdit="no")], "labels.jsonl:1"),
        ([{"question": "Where?", "label": "yes"}], "labels.jsonl:1"),
        ([row(1, "yes", id=1), row(2, "no", id="1")], "labels.jsonl:2: id"),
        ([row(1, "yes")], "labels.jsonl"),
    ],
)
def test_bad_labels_are_an_error_with_their_line(
    tmp_path: Path, calibrate: Calibrate, rows: list[dict[str, Any]], where: str
) -> None:
    with pytest.raises(BadInput) as caught:
        calibrate(write(tmp_path / "labels.jsonl", rows))
    assert where in caught.value.where


@pytest.mark.parametrize("score", ["1.2", "7/5", "x", "1/0"])
def test_a_score_that_is_none_is_refused(tmp_path: Path, calibrate: Calibrate, score: str) -> None:
    with pytest.raises(SystemExit):
        calibrate(tmp_path / "labels.jsonl", "--score", score)
