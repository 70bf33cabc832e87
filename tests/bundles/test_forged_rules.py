"""Bundles in which the rules, groups or subjects are forged, and everything else fits them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench.journal.rows import Fingerprint
from memorybench.wiring.live import LiveWiring
from tests.bundles.editing import RUNS, as_lines, derive_files, read_files, rescore_files, rows_of, write_files
from tests.bundles.test_attacks import Forgery
from tests.cli.command import Command

pytestmark = pytest.mark.slow

MakeBundle = Callable[..., Path]
ANSWERED = ("eval", "--providers", "oracle", "--end", "6", "--answering-model", "scripted/quote")
ONLINE = ("online", str(Path(__file__).parents[2] / "data" / "sample-spans.json"), "--only", "searches")


def levels(command: Command, path: Path, claim: str, *options: str) -> set[str]:
    found = command("verify", str(path), "--json", *options).json["claims"]
    return {one["level"] for one in found if one["name"] == claim}


def forge_config(path: Path) -> Path:
    """Score answers by a rule of the attacker: one that contains the gold answer is right."""
    files = read_files(path)
    run = json.loads(files["run.json"])
    text = run["fingerprints"]["config of starter"]["text"].replace('"method": "exact-match"', '"method": "contains"')
    run["fingerprints"]["config of starter"] = {"digest": Fingerprint.of(text).digest, "text": text}
    run["spec"]["methods"] = {"starter": "contains"}
    files["run.json"] = json.dumps(run).encode()
    wiring = LiveWiring()
    data = {"starter": wiring.dataset(wiring.benchmark("starter"))}
    forged = path.with_name("forged.mbz")
    return write_files(forged, derive_files(rescore_files(forged, files, data)))


def test_a_config_of_the_author_is_declared(
    command: Command, bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUNS, "answered", ANSWERED)
    path = bundle("answered")
    assert levels(command, path, "configs") == {"proved"}
    assert command("verify", str(path), "--json").json["level"] == "recomputed with data"
    forged = forge_config(path)
    assert command("verify", str(forged), "--json").json["level"] == "recomputed"
    assert levels(command, forged, "configs") == {"declared"}


def test_a_config_of_the_author_has_its_own_table(
    command: Command, bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUNS, "answered", ANSWERED)
    forge_config(bundle("answered"))
    said = command("leaderboard", str(command.folder), "--output", str(command.folder / "site"), "--json")
    assert [table["entries"] for table in said.json["tables"]] == [["oracle"], ["oracle"]]
    page = (command.folder / "site" / "index.html").read_text()
    assert "not the one here" in page
    assert page.count("questions declared") == 1


def rewrite(path: Path, name: str, change: Callable[[dict[str, Any]], None]) -> Path:
    """Change every row of a file, and derive the report from the changed rows."""
    files = read_files(path)
    rows = rows_of(files, name)
    for row in rows:
        change(row)
    return write_files(path, derive_files({**files, name: as_lines(rows)}))


def test_clusters_of_a_public_bundle_are_declared(command: Command, bundle: MakeBundle) -> None:
    """Intervals rest on them: trials of one history are not independent."""

    def split(row: dict[str, Any]) -> None:
        row["body"]["trial"]["cluster"] = row["body"]["trial"]["case_id"]

    forged = rewrite(bundle("judged", "--public"), "outcomes.jsonl", split)
    assert levels(command, forged, "groups") == {"declared"}
    assert levels(command, bundle("judged"), "groups") == set()


def test_days_of_online_operations_are_declared(
    command: Command, bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUNS, "searches", ONLINE)

    def hide_drift(row: dict[str, Any]) -> None:
        row["body"]["trial"]["labels"]["day"] = "2026-11-02"

    assert levels(command, rewrite(bundle("searches"), "outcomes.jsonl", hide_drift), "groups") == {"declared"}


def test_answers_of_a_model_with_other_settings_are_declared(command: Command, bundle: MakeBundle) -> None:
    forgery = Forgery(bundle("judged"))
    changed: list[dict[str, Any]] = []

    def heat(inputs: dict[str, Any]) -> None:
        if not changed:
            changed.append(inputs)
            inputs["model"]["settings"] = {"temperature": 1}

    forgery.replace_inputs("answer", heat)
    assert "models" in forgery.verify(command)["declared"]


@pytest.mark.parametrize("step", ["search", "answer", "judge"])
def test_a_step_is_of_the_subject_that_its_inputs_name(command: Command, bundle: MakeBundle, step: str) -> None:
    """Reports show times and costs by subject."""
    forgery = Forgery(bundle("judged"))
    for row in forgery.rows["steps"]:
        if row["name"] == step:
            row["subject"] = "gpt-5"
    assert "models" in forgery.verify(command)["contradicted"]


def test_what_was_added_to_a_memory_is_declared(command: Command, bundle: MakeBundle) -> None:
    forgery = Forgery(bundle("judged"))

    def leave_out(inputs: dict[str, Any]) -> None:
        inputs["haystack"] = "0" * 32

    forgery.replace_inputs("add", leave_out)
    assert "prompts" in forgery.verify(command)["declared"]


@pytest.mark.parametrize("field", ["cost", "seconds"])
def test_negative_costs_and_durations_are_refused(command: Command, bundle: MakeBundle, field: str) -> None:
    path = bundle("judged")
    files = read_files(path)
    rows = rows_of(files, "steps.jsonl")
    rows[0][field] = -5.0
    said = command("verify", str(write_files(path, {**files, "steps.jsonl": as_lines(rows)})))
    assert said.code == 2
    assert "steps.jsonl" in said.err


@pytest.mark.parametrize("prompts", ["answer prompts of starter", "judge prompts of starter"])
def test_without_the_fingerprints_of_prompts_scores_are_declared(
    command: Command, bundle: MakeBundle, prompts: str
) -> None:
    forgery = Forgery(bundle("judged"))
    del forgery.run["fingerprints"][prompts]
    found = forgery.verify(command)
    assert "correct" in found["declared"]
    assert "correct" not in found["proved"]
