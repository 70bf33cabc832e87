"""Changes that keep a bundle consistent: the attacker repairs keys, manifest and report. None may pass as proved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.records import canonical
from memorybench.engine.steps import step_key
from memorybench.journal.rows import Fingerprint
from tests.bundles.editing import ROWS, as_lines, derive_files, read_files, rows_of, write_files
from tests.cli.command import Command


class Forgery:
    """A bundle that is being changed."""

    def __init__(self, path: Path) -> None:
        self._path, self._files = path, read_files(path)
        self.run = json.loads(self._files["run.json"])
        self.rows = {name.removesuffix(".jsonl"): rows_of(self._files, name) for name in ROWS}

    def wrong(self, subject: str) -> list[dict[str, Any]]:
        """The outcomes of wrong answers."""
        return self._scored(subject, 0.0)

    def right(self, subject: str) -> list[dict[str, Any]]:
        return self._scored(subject, 1.0)

    def _scored(self, subject: str, value: float) -> list[dict[str, Any]]:
        own = [row for row in self.rows["outcomes"] if row["body"]["trial"]["subject"]["name"] == subject]
        return [
            row for row in own if any(s["name"] == "correct" and s["value"] == value for s in row["body"]["scores"])
        ]

    def replace_inputs(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the inputs of all steps of that name, and everything that names the steps by their keys."""
        replaced = {}
        for step in self.rows["steps"]:
            if step["name"] == name:
                own = step["key"]
                change(step["inputs"])
                replaced[own] = step["key"] = step_key(name, canonical(step["inputs"]))
        for row in self.rows["outcomes"]:
            row["body"]["steps"] = [replaced.get(key, key) for key in row["body"]["steps"]]

    def keys(self, outcome: dict[str, Any], step: str) -> list[str]:
        own = outcome["body"]["steps"]
        return [row["key"] for row in self.rows["steps"] if row["name"] == step and row["key"] in own]

    def remove(self, outcomes: list[dict[str, Any]]) -> None:
        kept = [row for row in self.rows["outcomes"] if row not in outcomes]
        self.rows["outcomes"] = [{**row, "ordinal": place} for place, row in enumerate(kept)]
        self.run["planned"] = len(kept)

    def verify(self, command: Command, *options: str) -> dict[str, set[str]]:
        """Return the names of claims by level; scores by their own names."""
        files = {**self._files, "run.json": canonical(self.run).encode()}
        files |= {name: as_lines(self.rows[name.removesuffix(".jsonl")]) for name in ROWS}
        files = derive_files(files)
        said = command("verify", str(write_files(self._path.with_name("forged.mbz"), files)), "--json", *options)
        levels: dict[str, set[str]] = {"proved": set(), "declared": set(), "unchecked": set(), "contradicted": set()}
        for claim in said.json["claims"]:
            levels[claim["level"]] |= {claim["name"], *claim["names"]}
        return levels


@pytest.fixture
def forgery(bundle: Callable[..., Path]) -> Forgery:
    return Forgery(bundle("judged"))


@pytest.mark.slow
def test_an_unchanged_bundle_is_proved(command: Command, forgery: Forgery) -> None:
    found = forgery.verify(command)
    assert {"scores", "correct", "recall@5", "cases", "report"} <= found["proved"]
    assert not found["contradicted"]


def test_wrong_answers_that_become_unscored_are_not_proved(command: Command, forgery: Forgery) -> None:
    for row in forgery.wrong("bm25"):
        keys = forgery.keys(row, "judge")
        body = row["body"]
        body["steps"] = [key for key in body["steps"] if key not in keys]
        body["scores"] = [score for score in body["scores"] if score["name"] not in ("correct", "judged")]
        body |= {"status": "unscored", "failure": {"kind": "Unreadable", "message": "no verdict"}}
    found = forgery.verify(command)
    assert found["contradicted"] or "unscored" in found["declared"]


def test_wrong_answers_of_one_provider_cannot_be_left_out(command: Command, forgery: Forgery) -> None:
    forgery.remove(forgery.wrong("bm25")[:1])
    assert "trials" in forgery.verify(command)["contradicted"]


@pytest.mark.slow
def test_a_question_cannot_be_left_out_for_all_providers(command: Command, forgery: Forgery) -> None:
    left_out = forgery.wrong("bm25")[0]["body"]["trial"]["case_id"]
    forgery.remove([row for row in forgery.rows["outcomes"] if row["body"]["trial"]["case_id"] == left_out])
    forgery.rows["cases"] = [row for row in forgery.rows["cases"] if row["id"] != left_out]
    assert "selection" in forgery.verify(command)["contradicted"]


def test_that_there_are_no_other_runs_is_declared(command: Command, forgery: Forgery) -> None:
    assert "other runs" in forgery.verify(command)["declared"]


def test_a_verdict_of_another_question_proves_nothing(command: Command, forgery: Forgery) -> None:
    """With prompts that this version does not know, the inputs of steps cannot be made again."""
    mark = Fingerprint.of("other prompts")
    forgery.run["fingerprints"]["answer prompts of starter"] = mark.plain()
    for row in forgery.wrong("bm25"):
        right = next(
            one for one in forgery.rows["outcomes"] if one["body"]["scores"] and one not in forgery.wrong("bm25")
        )
        (own, *_), (other, *_) = forgery.keys(row, "judge"), forgery.keys(right, "judge")
        row["body"]["steps"] = [other if key == own else key for key in row["body"]["steps"]]
    assert "correct" not in forgery.verify(command)["proved"]


@pytest.mark.parametrize("settings", [{}, {"corrected": True, "errata": {"starter": "key.json"}}])
def test_changed_gold_is_found_also_where_scores_are_not_computed(
    command: Command, forgery: Forgery, settings: dict[str, Any]
) -> None:
    forgery.rows["cases"][0]["body"]["answers"] = ["banana"]
    forgery.run["spec"] |= settings
    assert "cases" in forgery.verify(command)["contradicted"]


def test_a_search_names_its_history(command: Command, forgery: Forgery) -> None:
    forgery.replace_inputs("search", lambda inputs: inputs.pop("haystack"))
    assert "scores" in forgery.verify(command)["contradicted"]


def test_a_redacted_text_proves_no_fingerprint(command: Command, forgery: Forgery) -> None:
    for mark in forgery.run["fingerprints"].values():
        if mark["text"] is not None:
            mark["text"] = "[redacted] anything"
    found = forgery.verify(command)
    assert "fingerprints" in found["unchecked"]
    assert "fingerprints" not in found["proved"]


@pytest.mark.slow
def test_a_huge_number_of_planned_trials_is_no_bomb(command: Command, forgery: Forgery) -> None:
    forgery.run["planned"] = 10**15
    assert "trials" in forgery.verify(command)["contradicted"]


@pytest.mark.slow
def test_scores_of_an_audit_follow_from_its_conversations(command: Command, bundle: Callable[..., Path]) -> None:
    found = Forgery(bundle("audit")).verify(command)
    assert {"scores", "correct", "miss_not_retrieved", "selection"} <= found["proved"]
    assert "scores" not in found["declared"]
    assert "cases" in found["declared"], "the author may have written the conversations"


@pytest.mark.slow
def test_without_conversations_the_scores_of_an_audit_are_declared(
    command: Command, bundle: Callable[..., Path]
) -> None:
    """Large datasets are not in a bundle. A search or an answer may be that of another trial."""
    forgery = Forgery(bundle("audit"))
    forgery.run["fingerprints"]["dataset sample"]["text"] = None
    found = forgery.verify(command)
    assert "scores" not in found["proved"]
    assert {"scores", "cases", "selection"} <= found["declared"]
    found = forgery.verify(command, "--data", "dataset.json")
    assert {"scores", "correct", "cases", "selection"} <= found["proved"]
    assert not found["contradicted"]


@pytest.mark.slow
def test_the_data_of_an_audit_must_have_the_recorded_fingerprint(command: Command, bundle: Callable[..., Path]) -> None:
    forgery = Forgery(bundle("audit"))
    data = json.loads((command.folder / "dataset.json").read_text())
    data["conversations"] = data["conversations"][1:]
    (command.folder / "other.json").write_text(json.dumps(data))
    assert "cases" in forgery.verify(command, "--data", "other.json")["contradicted"]


@pytest.mark.slow
def test_an_answer_of_another_audit_trial_is_found(command: Command, bundle: Callable[..., Path]) -> None:
    forgery = Forgery(bundle("audit"))
    row, right = forgery.wrong("bm25")[0], forgery.right("full-context")[0]
    row["body"] |= {"steps": right["body"]["steps"], "scores": right["body"]["scores"]}
    assert "scores" in forgery.verify(command)["contradicted"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["judged", "audit", "extraction"])
def test_counts_of_canaries_follow_from_the_verdicts(command: Command, bundle: Callable[..., Path], name: str) -> None:
    forgery = Forgery(bundle(name))
    (check,) = (step for step in forgery.rows["steps"] if step["name"] == "judge check")
    count = check["result"]["counts"][0]
    count["agreed"] = count["n"] - count["agreed"]
    assert "canaries" in forgery.verify(command)["contradicted"]


@pytest.mark.parametrize(
    ("dropped", "level"), [(("judge check",), "contradicted"), (("judge check", "canary"), "declared")]
)
def test_a_check_of_the_judge_cannot_be_left_out_silently(
    command: Command, forgery: Forgery, dropped: tuple[str, ...], level: str
) -> None:
    forgery.rows["steps"] = [step for step in forgery.rows["steps"] if step["name"] not in dropped]
    found = forgery.verify(command)
    assert "canaries" in found[level]
    assert "canaries" not in found["proved"]


def test_a_lost_verdict_on_a_canary_proves_no_count(command: Command, bundle: Callable[..., Path]) -> None:
    forgery = Forgery(bundle("extraction"))
    lost = next(step for step in forgery.rows["steps"] if step["name"] == "canary")
    forgery.rows["steps"].remove(lost)
    assert "canaries" in forgery.verify(command)["contradicted"]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("judged", "judge"),
        ("audit", "judge"),
        ("audit", "answer"),
        *(("extraction", name) for name in ("support", "cover", "canary")),
    ],
)
def test_steps_cannot_be_those_of_another_model(
    command: Command, bundle: Callable[..., Path], name: str, step: str
) -> None:
    forgery = Forgery(bundle(name))
    forgery.replace_inputs(step, lambda inputs: inputs["model"].update(name="scripted/other"))
    assert "models" in forgery.verify(command)["contradicted"]


@pytest.mark.slow
def test_a_run_of_another_version_is_proved_as_far_as_its_inputs_are_the_same(
    command: Command, bundle: Callable[..., Path]
) -> None:
    forgery = Forgery(bundle("audit"))
    forgery.run["program"] = "memorybench 0.0.1"
    assert "correct" in forgery.verify(command)["proved"]
    forgery.replace_inputs("judge", lambda inputs: inputs.update(prompt=f"Judge this.\n{inputs['prompt']}"))
    found = forgery.verify(command)
    assert not found["contradicted"], "another version may have had other prompts"
    assert "correct" in found["declared"]
