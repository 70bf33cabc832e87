"""Bundles of runs that are not complete, of shards, and of runs whose trials the author left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bundles.editing import RUNS
from tests.bundles.test_attacks import Forgery
from tests.cli.command import Command

MakeBundle = Callable[..., Path]
SHARD = ("eval", "--providers", "bm25", "oracle", "--limit", "12", "--shard", "1/2")
JUDGED = ("--answering-model", "scripted/quote", "--judge-model", "scripted/judge")


@pytest.mark.parametrize("status", ["partial", "running", "blocked"])
@pytest.mark.parametrize("is_plan_changed", [False, True])
def test_trials_of_an_incomplete_run_are_not_proved(
    command: Command, bundle: MakeBundle, status: str, is_plan_changed: bool
) -> None:
    """The author leaves out wrong answers of one provider, and says that the run was not finished."""
    forgery = Forgery(bundle("judged"))
    planned = forgery.run["planned"]
    forgery.remove(forgery.wrong("bm25"))
    forgery.run["status"] = status
    if not is_plan_changed:
        forgery.run["planned"] = planned
    found = forgery.verify(command)
    assert "trials" not in found["proved"]
    assert "trials" in found["contradicted" if is_plan_changed else "declared"]


@pytest.mark.slow
def test_the_scores_of_a_shard_are_computed_again(
    command: Command, bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its questions need not use all judge prompts of the whole run."""
    monkeypatch.setitem(RUNS, "shard", (*SHARD, *JUDGED))
    forgery = Forgery(bundle("shard"))
    found = forgery.verify(command)
    assert not found["contradicted"]
    assert {"trials", "correct"} <= found["proved"]
    assert "selection" in found["declared"]
    forgery.remove(forgery.wrong("bm25")[:1])
    assert "trials" in forgery.verify(command)["contradicted"]
