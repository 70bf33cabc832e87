"""Plays of hygiene whose recorded result does not follow from the findings that are recorded with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench.bundles.verification import verify_bundle
from tests.bundles.editing import as_lines, derive_files, read_files, rescore_files, rows_of, write_files
from tests.cli.command import Command


def _break_first(report: dict[str, Any]) -> None:
    report["findings"][0] |= {"status": "broken", "found": "a fact was lost"}


def _drop_first(report: dict[str, Any]) -> None:
    del report["findings"][0]


def _defend(report: dict[str, Any]) -> None:
    report |= {"result": "defended", "reason": "refused"}


def _detect(report: dict[str, Any]) -> None:
    for finding in report["findings"]:
        finding["status"] = "held"


@pytest.mark.parametrize("version", ["memorybench 0.1.0", "memorybench 0.0.1"])
@pytest.mark.parametrize(
    ("phase", "change"),
    [("well_behaved", _break_first), ("well_behaved", _drop_first), ("violation", _defend), ("violation", _detect)],
)
def test_a_result_follows_from_the_findings(
    command: Command,
    bundle: Callable[..., Path],
    phase: str,
    change: Callable[[dict[str, Any]], None],
    version: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = bundle("hygiene")
    files = read_files(path)
    assert "passed" in _proved(path)
    steps = rows_of(files, "steps.jsonl")
    for step in steps:
        if step["name"] == "phase" and step["inputs"]["phase"] == phase:
            change(step["result"])
    files["steps.jsonl"] = as_lines(steps)
    files["run.json"] = files["run.json"].replace(b"memorybench 0.1.0", version.encode())
    with monkeypatch.context() as patch:  # the attacker computes scores with code that does not check this
        patch.setattr("memorybench.suites.hygiene.rescoring.is_consistent", lambda *_, **__: True, raising=False)
        files = derive_files(rescore_files(path, files, {}))
    trials = [row["body"]["trial"] for row in rows_of(files, "outcomes.jsonl")]
    assert any(trial["variant"] == phase for trial in trials)
    found = verify_bundle(write_files(path, files))
    wholly_proved = {claim.level for claim in found.claims if claim.name == "scores"} == {"proved"}
    assert not (found.is_consistent and wholly_proved)


def _proved(path: Path) -> set[str]:
    found = verify_bundle(path)
    assert found.is_consistent
    return {name for claim in found.claims if claim.level == "proved" for name in claim.names}


def test_a_scenario_that_an_earlier_version_accepted_contradicts_nothing(bundle: Callable[..., Path]) -> None:
    """A user of an assertion that has no user was ignored."""
    path = bundle("hygiene")
    files = read_files(path)
    cases = rows_of(files, "cases.jsonl")
    for case in cases:
        case["body"]["assertions"].append({"kind": "curate_report", "claim": "announced", "user": "user"})
    files["cases.jsonl"] = as_lines(cases)
    files["run.json"] = files["run.json"].replace(b"memorybench 0.1.0", b"memorybench 0.0.1")
    found = verify_bundle(write_files(path, derive_files(files)))
    assert {claim.level for claim in found.claims if claim.name == "scores"} == {"declared"}
    assert found.is_consistent
