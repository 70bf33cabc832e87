"""Changes that keep a bundle consistent: the attacker repairs keys, manifest and report. None may pass as proved."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench.bundles.archive import Entry
from memorybench.bundles.contents import Rows, import_rows, report_document
from memorybench.bundles.making import derived_texts
from memorybench.bundles.rows import RunRow
from memorybench.core.records import canonical
from memorybench.journal.rows import Fingerprint
from tests.bundles.editing import as_lines, read_files, rows_of, write_files
from tests.cli.command import Command

ROWS = ("cases.jsonl", "steps.jsonl", "attempts.jsonl", "outcomes.jsonl", "notes.jsonl")


class Forgery:
    """A bundle that is being changed."""

    def __init__(self, path: Path) -> None:
        self._path, self._files = path, read_files(path)
        self.run = json.loads(self._files["run.json"])
        self.rows = {name.removesuffix(".jsonl"): rows_of(self._files, name) for name in ROWS}

    def wrong(self, subject: str) -> list[dict[str, Any]]:
        """The outcomes of wrong answers."""
        own = [row for row in self.rows["outcomes"] if row["body"]["trial"]["subject"]["name"] == subject]
        return [row for row in own if any(s["name"] == "correct" and not s["value"] for s in row["body"]["scores"])]

    def keys(self, outcome: dict[str, Any], step: str) -> list[str]:
        own = outcome["body"]["steps"]
        return [row["key"] for row in self.rows["steps"] if row["name"] == step and row["key"] in own]

    def remove(self, outcomes: list[dict[str, Any]]) -> None:
        kept = [row for row in self.rows["outcomes"] if row not in outcomes]
        self.rows["outcomes"] = [{**row, "ordinal": place} for place, row in enumerate(kept)]
        self.run["planned"] = len(kept)

    def verify(self, command: Command) -> dict[str, set[str]]:
        """Return the names of claims by level; scores by their own names."""
        files = {**self._files, "run.json": canonical(self.run).encode()}
        files |= {name: as_lines(self.rows[name.removesuffix(".jsonl")]) for name in ROWS}
        with tempfile.TemporaryDirectory() as place:
            written = {name: Path(place) / name for name in ("run.json", *ROWS)}
            for name, file in written.items():
                file.write_bytes(files[name])
            run = import_rows(Rows.in_files(written), Path(place) / "results")
            report = report_document(run, Path(place) / "results")
            entries = {name: Entry.model_validate(_entry(files[name])) for name in written}
            texts = derived_texts(RunRow.model_validate_json(files["run.json"]), report, entries)
        files |= {name: text.encode() for name, text in texts.items()}
        said = command("verify", str(write_files(self._path.with_name("forged.mbz"), files)), "--json")
        levels: dict[str, set[str]] = {"proved": set(), "declared": set(), "unchecked": set(), "contradicted": set()}
        for claim in said.json["claims"]:
            levels[claim["level"]] |= {claim["name"], *claim["names"]}
        return levels


def _entry(content: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


@pytest.fixture
def forgery(bundle: Callable[..., Path]) -> Forgery:
    return Forgery(bundle("judged"))


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


def test_which_questions_were_asked_is_declared(command: Command, forgery: Forgery) -> None:
    assert "selection" in forgery.verify(command)["declared"]


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


def test_a_redacted_text_proves_no_fingerprint(command: Command, forgery: Forgery) -> None:
    for mark in forgery.run["fingerprints"].values():
        if mark["text"] is not None:
            mark["text"] = "[redacted] anything"
    found = forgery.verify(command)
    assert "fingerprints" in found["unchecked"]
    assert "fingerprints" not in found["proved"]


def test_a_huge_number_of_planned_trials_is_no_bomb(command: Command, forgery: Forgery) -> None:
    forgery.run["planned"] = 10**15
    assert "trials" in forgery.verify(command)["contradicted"]


def test_scores_of_an_audit_are_declared(command: Command, bundle: Callable[..., Path]) -> None:
    """A bundle has no conversations, so a search or an answer may be that of another trial."""
    found = Forgery(bundle("audit")).verify(command)
    assert "scores" in found["declared"]
    assert "scores" not in found["proved"]
