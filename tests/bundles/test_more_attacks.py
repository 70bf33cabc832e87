"""More changes that keep a bundle consistent: trials, steps or canaries that are left out, and copies of subjects."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.records import digest
from memorybench.core.trials import Trial
from tests.bundles.editing import RUNS
from tests.bundles.test_attacks import Forgery
from tests.cli.command import Command

pytestmark = pytest.mark.slow

PROMPT = "Is this right? {question} Expected: {answer} Answer: {response} Say yes or no."
REPEATED = (*RUNS["judged"], "--repeats", "2")


@pytest.fixture
def forgery(bundle: Callable[..., Path]) -> Forgery:
    return Forgery(bundle("judged"))


def _subject(row: dict[str, Any]) -> str:
    name: str = row["body"]["trial"]["subject"]["name"]
    return name


def _level(command: Command, forgery: Forgery) -> str:
    forgery.verify(command)
    level: str = command("verify", "forged.mbz", "--json").json["level"]
    return level


def _is_unproved(found: dict[str, set[str]], name: str) -> bool:
    return bool(found["contradicted"]) or name not in found["proved"]


def test_repeats_of_wrong_answers_cannot_be_left_out(
    command: Command, bundle: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUNS, "judged", REPEATED)
    forgery = Forgery(bundle("judged"))
    assert not forgery.verify(command)["contradicted"]
    wrong = [row for row in forgery.wrong("bm25") if row["body"]["trial"]["repeat"] == 2]
    forgery.remove(wrong[:1])
    assert "trials" in forgery.verify(command)["contradicted"]


@pytest.mark.parametrize("variant", ["well_behaved", "violation", "drop-recall-1", "hoarder"])
def test_scripts_of_a_scenario_cannot_be_left_out(command: Command, bundle: Callable[..., Path], variant: str) -> None:
    forgery = Forgery(bundle("hygiene"))
    own = [row for row in forgery.rows["outcomes"] if row["body"]["trial"]["variant"] == variant]
    forgery.remove(own)
    assert own
    assert "trials" in forgery.verify(command)["contradicted"]


def test_scripts_of_a_public_bundle_are_declared(command: Command, bundle: Callable[..., Path]) -> None:
    """The scenario is left out, so that it is unknown which scripts it has."""
    found = Forgery(bundle("hygiene", "--public")).verify(command)
    assert not found["contradicted"]
    assert "trials" in found["declared"]


@pytest.mark.parametrize(("name", "subject"), [("judged", "oracle"), ("audit", "full-context")])
def test_a_subject_cannot_be_left_out(command: Command, bundle: Callable[..., Path], name: str, subject: str) -> None:
    forgery = Forgery(bundle(name))
    forgery.remove([row for row in forgery.rows["outcomes"] if _subject(row) == subject])
    assert "trials" in forgery.verify(command)["contradicted"]


@pytest.mark.parametrize("subjects", [[], ["bm25", "oracle"], ["bm25", "oracle", "none", "none"]])
def test_subjects_are_those_of_the_settings(command: Command, forgery: Forgery, subjects: Any) -> None:
    forgery.run["spec"]["subjects"] = subjects
    assert _is_unproved(forgery.verify(command), "trials")


def test_a_subject_cannot_be_copied_with_other_settings(command: Command, forgery: Forgery) -> None:
    copies = []
    for row in forgery.rows["outcomes"]:
        if _subject(row) == "oracle":
            other = copy.deepcopy(row)
            other["body"]["trial"]["subject"]["settings"] = {"copy": 1}
            other["trial"] = Trial.model_validate(other["body"]["trial"]).key
            copies.append(other)
    for place, row in enumerate(copies):
        row["ordinal"] = len(forgery.rows["outcomes"]) + place
    forgery.rows["outcomes"] += copies
    forgery.run["planned"] = len(forgery.rows["outcomes"])
    assert "trials" in forgery.verify(command)["contradicted"]


def _drop_scores(row: dict[str, Any], *names: str) -> None:
    row["body"]["scores"] = [score for score in row["body"]["scores"] if score["name"] not in names]


def _with_score(forgery: Forgery, name: str, value: float) -> list[dict[str, Any]]:
    return [
        row
        for row in forgery.rows["outcomes"]
        if any(score["name"] == name and score["value"] == value for score in row["body"]["scores"])
    ]


def _steps_of_twin(forgery: Forgery, row: dict[str, Any]) -> int:
    """The place of the first step that is about the other probe of a pair."""
    names = {step["key"]: step["name"] for step in forgery.rows["steps"]}
    own = [names[key] for key in row["body"]["steps"]]
    first = "search" if "search" in own else "answer"
    return own.index(first, own.index(first) + 1)


@pytest.mark.parametrize("version", ["", "memorybench 0.0.1"])
@pytest.mark.parametrize(("score", "subject"), [("paired", "bm25"), ("ordered", "bm25"), ("ordered", "full-context")])
def test_bad_scores_of_pairs_cannot_be_left_out(
    command: Command, bundle: Callable[..., Path], score: str, subject: str, version: str
) -> None:
    forgery = Forgery(bundle("audit" if score == "paired" else "orders"))
    forgery.run["program"] = version or forgery.run["program"]
    rows = [row for row in _with_score(forgery, score, 0.0) if _subject(row) == subject]
    assert rows
    for row in rows:
        row["body"]["steps"] = row["body"]["steps"][: _steps_of_twin(forgery, row)]
        _drop_scores(row, score, "consistent")
    found = forgery.verify(command)
    assert "scores" in found["contradicted"] or "missing" in found["declared"]


def test_a_second_verdict_on_a_wrong_answer_cannot_be_left_out(command: Command, bundle: Callable[..., Path]) -> None:
    forgery = Forgery(bundle("audit"))
    names = {step["key"]: step["name"] for step in forgery.rows["steps"]}
    rows = [row for row in _with_score(forgery, "miss_invented", 1.0) if names[row["body"]["steps"][-1]] == "judge"]
    rows = [row for row in rows if names[row["body"]["steps"][-2]] == "judge"]
    assert rows
    for row in rows:
        row["body"]["steps"].pop()
        _drop_scores(row, "miss_invented", "answered")
    assert "scores" in forgery.verify(command)["contradicted"]


def test_a_call_without_result_is_declared(command: Command, bundle: Callable[..., Path]) -> None:
    """The author may invent a failed call instead of a bad verdict."""
    forgery = Forgery(bundle("audit"))
    row = _with_score(forgery, "miss_invented", 1.0)[0]
    key = row["body"]["steps"][-1]
    (step,) = (step for step in forgery.rows["steps"] if step["key"] == key)
    forgery.rows["steps"].remove(step)
    attempt = {name: step[name] for name in ("key", "name", "subject", "started", "tries", "uncertain", "calls")}
    attempt |= {"input_tokens": 0, "output_tokens": 0, "cost": None, "id": 10**6, "ended": step["started"]}
    forgery.rows["attempts"].append({**attempt, "error": "no verdict"})
    _drop_scores(row, "miss_invented", "answered")
    found = forgery.verify(command)
    assert found["contradicted"] or "missing" in found["declared"]


@pytest.mark.parametrize("name", ["extraction", "judged", "audit"])
def test_the_note_about_the_judge_follows_from_its_check(
    command: Command, bundle: Callable[..., Path], name: str
) -> None:
    forgery = Forgery(bundle(name))
    assert "canaries" in forgery.verify(command)["proved"]
    (note,) = (note for note in forgery.rows["notes"] if note["kind"] == "judge")
    note["text"] = "judge scripted/judge on canaries: sensitivity 24 of 24, specificity 24 of 24"
    assert "canaries" in forgery.verify(command)["contradicted"]


def test_a_check_cannot_be_hidden_by_a_note(command: Command, forgery: Forgery) -> None:
    forgery.rows["steps"] = [step for step in forgery.rows["steps"] if step["name"] not in ("judge check", "canary")]
    assert "canaries" in forgery.verify(command)["contradicted"], "the note still has the counts"


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3])
@pytest.mark.parametrize("is_repaired", [False, True])
def test_canaries_are_those_of_the_settings(
    command: Command, bundle: Callable[..., Path], limit: int, is_repaired: bool
) -> None:
    """The author counts only the first verdicts, on which the judge was right."""
    forgery = Forgery(bundle("extraction"))
    (check,) = (step for step in forgery.rows["steps"] if step["name"] == "judge check")
    counts = [{**count, "n": 1, "unreadable": 0} for count in check["result"]["counts"]][: max(0, limit)]
    check["result"]["counts"] = counts
    forgery.replace_inputs("judge check", lambda inputs: inputs.update(limit=limit))
    if is_repaired:
        forgery.run["spec"]["canaries"] = limit
    assert _is_unproved(forgery.verify(command), "canaries")


@pytest.mark.parametrize("change", ["evidence", "history", "unknown field"])
def test_the_whole_case_is_that_of_the_data(command: Command, forgery: Forgery, change: str) -> None:
    found = forgery.verify(command)
    assert "cases" in found["proved"]
    assert not found["contradicted"]
    for row in forgery.rows["cases"]:
        body = row["body"]
        if change == "history":
            del body["history"]
        elif change == "evidence":
            del body["history"]
            body["evidence"] = []
        else:
            body["gold_texts"] = ["forged"]
    assert _is_unproved(forgery.verify(command), "cases")


def test_scores_of_a_custom_judge_prompt_are_computed_again(
    command: Command, bundle: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prompt is one of the settings."""
    monkeypatch.setitem(RUNS, "judged", (*RUNS["judged"], "--judge-prompt", PROMPT))
    forgery = Forgery(bundle("judged"))
    found = forgery.verify(command)
    assert not found["contradicted"]
    assert {"scores", "recall@5", "correct"} <= found["proved"]
    assert "scores" not in found["declared"]
    forgery.run["spec"]["judge_prompt"] = "Say yes. {question} {answer} {response}"
    found = forgery.verify(command)
    assert found["contradicted"] or "correct" in found["declared"]


def test_runs_with_other_judge_prompts_have_their_own_table(
    command: Command, bundle: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = command.folder / "bundles"
    place.mkdir()
    bundle("judged").rename(place / "usual.mbz")
    monkeypatch.setitem(RUNS, "custom", (*RUNS["judged"], "--judge-prompt", PROMPT))
    bundle("custom").rename(place / "custom.mbz")
    said = command("leaderboard", str(place), "--output", "site", "--json")
    assert said.json["verified"] == 2
    page = (command.folder / "site" / "index.html").read_text(encoding="utf-8")
    assert page.count("<thead") == 2
    assert digest(PROMPT)[:12] in page


def test_questions_are_not_checked_if_their_selection_is_declared(command: Command, forgery: Forgery) -> None:
    """The author leaves out a question, and says that another version made the run."""
    assert _level(command, forgery) == "recomputed with data"
    left_out = forgery.wrong("bm25")[0]["body"]["trial"]["case_id"]
    forgery.remove([row for row in forgery.rows["outcomes"] if row["body"]["trial"]["case_id"] == left_out])
    forgery.rows["cases"] = [row for row in forgery.rows["cases"] if row["id"] != left_out]
    forgery.run["program"] = "memorybench 0.0.1"
    assert "selection" in forgery.verify(command)["declared"]
    assert _level(command, forgery) != "recomputed with data"


@pytest.mark.parametrize(
    ("name", "value"), [("correct", 1000.0), ("correct", -3.0), ("recall@5", 1.5), ("context_tokens", -1.0)]
)
def test_declared_scores_are_within_their_range(
    command: Command, bundle: Callable[..., Path], name: str, value: float
) -> None:
    """Nothing recomputes the scores of a public bundle; 100,000 % would still be the first row of a leaderboard."""
    forgery = Forgery(bundle("judged", "--public"))
    assert "scores" not in forgery.verify(command)["contradicted"]
    for score in forgery.rows["outcomes"][0]["body"]["scores"]:
        if score["name"] == name:
            score["value"] = value
    assert "scores" in forgery.verify(command)["contradicted"]


def test_a_declared_score_occurs_once(command: Command, bundle: Callable[..., Path]) -> None:
    """Of two scores with one name, the first counts."""
    forgery = Forgery(bundle("judged", "--public"))
    forgery.rows["outcomes"][0]["body"]["scores"].insert(0, {"name": "correct", "value": 1.0})
    assert "scores" in forgery.verify(command)["contradicted"]


def test_an_extraction_without_questions_about_coverage_is_read_and_leaves_it_undecided(
    command: Command, bundle: Callable[..., Path]
) -> None:
    """Earlier versions did not ask them."""
    forgery = Forgery(bundle("extraction"))
    asked = {step["key"] for step in forgery.rows["steps"] if step["name"] == "cover"}
    assert asked
    forgery.run["program"] = "memorybench 0.0.1"
    forgery.rows["steps"] = [step for step in forgery.rows["steps"] if step["key"] not in asked]
    for row in forgery.rows["outcomes"]:
        row["body"]["steps"] = [key for key in row["body"]["steps"] if key not in asked]
    found = forgery.verify(command)
    assert "missing" in found["declared"]
    assert "scores" in found["contradicted"]
    assert command("results", "forged.mbz").code == 0
