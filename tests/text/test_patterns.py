"""A regular expression from a file that takes exponential time ends with an error instead of a hang."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memorybench.core.errors import BadInput, Unreadable
from memorybench.files.jsonpaths import Path as JsonPath
from memorybench.text import patterns
from memorybench.text.patterns import Pattern
from tests.cli.test_bad_inputs import SCENARIO

SLOW = "(a|aa)+$"
TEXT = "a" * 200 + "b"


@pytest.fixture(autouse=True)
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.05)


def test_a_slow_pattern_is_an_error_on_the_text_that_makes_it_slow() -> None:
    pattern = Pattern(SLOW)
    with pytest.raises(Unreadable):
        pattern.search(TEXT)
    assert pattern.search("caa")


@pytest.mark.parametrize("function", ["match", "search"])
def test_a_slow_pattern_in_a_path_names_the_place_of_the_path(function: str) -> None:
    path = JsonPath.parse(f"$[?{function}(@.a, '{SLOW}')]", "card.yaml:3: results")
    assert path.all([{"a": "aaa"}]) == [{"a": "aaa"}]
    with pytest.raises(BadInput) as caught:
        path.all([{"a": TEXT}])
    assert caught.value.where == "card.yaml:3: results"


def test_an_invalid_pattern_in_a_path_is_refused_with_its_column() -> None:
    with pytest.raises(BadInput) as caught:
        JsonPath.parse("$[?match(@.a, '(')]", "card.yaml:3")
    assert caught.value.where == "card.yaml:3"
    assert "column 4" in caught.value.problem


def test_an_invalid_pattern_in_the_data_does_not_match() -> None:
    assert JsonPath.parse("$[?match(@.a, @.b)]", "x").all([{"a": "x", "b": "("}]) == []


def test_a_scenario_with_a_slow_pattern_is_unscored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memorybench.cli.main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").mkdir()
    text = SCENARIO.replace('"regex": "tea"', f'"regex": "{SLOW}"').replace("The user likes tea", f"tea {TEXT}")
    (tmp_path / "scenarios" / "sample.json").write_text(text, encoding="utf-8")
    assert main(["hygiene", "run", "sample", "--no-mutants", "--run-id", "r"]) == 1
    report = json.loads((tmp_path / "results" / "r" / "report.json").read_text(encoding="utf-8"))
    assert report["counts"]["unscored"] + report["counts"]["failed"] > 0
