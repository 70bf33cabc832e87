"""Verdicts that the recorded reply of the judge does not give, in bundles whose scores and report fit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from memorybench.bundles.verification import verify_bundle
from memorybench.core.questions import Dataset
from memorybench.wiring.live import LiveWiring
from tests.bundles.editing import RUNS, as_lines, derive_files, read_files, rescore_files, rows_of, write_files
from tests.bundles.test_attacks import Forgery
from tests.cli.command import Command

pytestmark = pytest.mark.slow

MakeBundle = Callable[..., Path]
Change = Callable[[dict[str, Any]], None]

RUBRIC = """\
name: points
data: {type: local, path: ./points.json}
schema:
  itemId: id
  evidenceLevel: turn
  questions: {field: asked, questionField: question, rubricField: points, evidenceField: evidence}
  context: {field: messages, itemSchema: {role: role, content: content, dialogId: id}}
evaluation: {method: llm-judge}
"""
POINTS = """[{"id": "a", "messages": [{"id": "m1", "role": "user", "content": "The sprint ends on 29 March."}],
  "asked": [{"question": "When does the sprint end?", "points": ["a Monday", "29 March"], "evidence": ["m1"]}]}]"""
VERDICTS: dict[str, Mapping[str, Any]] = {
    "a reply that cannot be read": {"correct": True, "reason": "partly, I am not sure", "reply": ""},
    "an option of a question without options": {"correct": True, "reason": "A", "reply": "", "choice": "A"},
    "a score of a question without a rubric": {"correct": True, "reason": "1", "reply": "", "score": 1.0},
    "no prompt, as if code had decided": {"prompt": ""},
    "a flag that the answer does not raise": {"flags": ["speaks to the judge"]},
    "a shortened reply that is not that of the reply": {"reason": "yes", "reply": "no"},
}


@pytest.fixture(scope="module")
def starter() -> dict[str, Dataset]:
    wiring = LiveWiring()
    return {"starter": wiring.dataset(wiring.benchmark("starter"))}


def forge(path: Path, change: Change, datasets: Mapping[str, Dataset], *, version: str = "") -> set[str]:
    """Change all verdicts; return which scores pass as proved in a bundle that is not contradicted."""
    files = read_files(path)
    steps = rows_of(files, "steps.jsonl")
    for step in steps:
        if step["name"] == "judge":
            change(step["result"])
    files["steps.jsonl"] = as_lines(steps)
    if version:
        files["run.json"] = files["run.json"].replace(b"memorybench 0.1.0", version.encode())
    forged = derive_files(rescore_files(path, files, datasets))
    found = verify_bundle(write_files(path, forged), datasets)
    proved = {name for claim in found.claims if claim.level == "proved" for name in claim.names}
    return proved if found.is_consistent else set()


def test_an_unchanged_verdict_is_proved(command: Command, bundle: MakeBundle, starter: dict[str, Dataset]) -> None:
    assert "correct" in forge(bundle("judged"), lambda verdict: None, starter)


@pytest.mark.parametrize("version", ["", "memorybench 0.0.1"])
@pytest.mark.parametrize("kind", VERDICTS)
def test_a_verdict_is_what_our_code_reads_in_the_reply(
    command: Command, bundle: MakeBundle, starter: dict[str, Dataset], kind: str, version: str
) -> None:
    """If another version made the run, its scores are declared."""
    path = bundle("judged")
    assert "correct" not in forge(path, lambda verdict: verdict.update(VERDICTS[kind]), starter, version=version)


def test_a_chosen_option_decides_whether_an_answer_is_right(command: Command, bundle: MakeBundle) -> None:
    def change(verdict: dict[str, Any]) -> None:
        verdict["correct"] = verdict["correct"] or bool(verdict["choice"])

    path = bundle("orders")
    files = read_files(path)
    assert any(step["name"] == "judge" and step["result"]["choice"] for step in rows_of(files, "steps.jsonl"))
    assert forge(path, change, {}) == set()


def test_an_item_of_a_rubric_is_that_of_the_question(
    command: Command, bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = command.folder / "benchmarks" / "configs"
    folder.mkdir(parents=True)
    (folder / "points.yaml").write_text(RUBRIC)
    (folder / "points.json").write_text(POINTS)
    words = ("eval", "--benchmarks", "points", "--providers", "bm25", "--answering-model", "scripted/quote")
    monkeypatch.setitem(RUNS, "rubric", (*words, "--judge-model", "scripted/judge"))
    path = bundle("rubric")
    wiring = LiveWiring()
    datasets = {"points": wiring.dataset(wiring.benchmark("points"))}
    assert "rubric_score" in forge(path, lambda verdict: None, datasets)
    assert "rubric_score" not in forge(path, lambda verdict: verdict.update(item="29 March"), datasets)


def test_a_judge_with_several_settings_is_declared(command: Command, bundle: MakeBundle) -> None:
    """The author asks again at a high temperature where the verdict was no."""
    forgery = Forgery(bundle("judged"))
    assert "models" not in forgery.verify(command)["declared"]
    is_first = iter([True])

    def change(inputs: dict[str, Any]) -> None:
        if next(is_first, False):
            inputs["model"]["settings"] = {"temperature": 2.0}

    forgery.replace_inputs("judge", change)
    found = forgery.verify(command)
    assert found["contradicted"] or "models" in found["declared"]
