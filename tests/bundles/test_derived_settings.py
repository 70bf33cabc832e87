"""Settings that follow from the questions: reports rest on them, so that an author may not choose them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bundles.test_attacks import Forgery
from tests.cli.command import Command


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chance", {"starter": 1.0}),  # hides that questions can be answered without a memory
        ("special_measures", ["rubric_score"]),
        ("measured_on", {"accuracy": ["another"]}),
        ("questions", {"starter": 1000}),
        ("samples", {"starter": {"cases": 4, "cases_available": 4, "clusters": 1, "clusters_available": 1}}),
        ("evidence", {"starter": "turn"}),
        ("methods", {"starter": "contains"}),
    ],
)
def test_settings_follow_from_the_questions(
    command: Command, bundle: Callable[..., Path], name: str, value: Any
) -> None:
    forgery = Forgery(bundle("judged"))
    found = forgery.verify(command)
    assert "settings" in found["proved"]
    assert not found["contradicted"]
    assert forgery.run["spec"][name] != value
    forgery.run["spec"][name] = value
    assert "settings" in forgery.verify(command)["contradicted"]
