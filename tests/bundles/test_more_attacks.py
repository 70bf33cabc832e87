"""More changes that keep a bundle consistent: trials, steps or canaries that are left out, and copies of subjects."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.trials import Trial
from tests.bundles.editing import RUNS
from tests.bundles.test_attacks import Forgery
from tests.cli.command import Command

REPEATED = (*RUNS["judged"], "--repeats", "2")


@pytest.fixture
def forgery(bundle: Callable[..., Path]) -> Forgery:
    return Forgery(bundle("judged"))


def _subject(row: dict[str, Any]) -> str:
    name: str = row["body"]["trial"]["subject"]["name"]
    return name


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
