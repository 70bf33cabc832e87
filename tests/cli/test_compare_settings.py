"""`memorybench compare` lists the settings, models and code by which two sides differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from memorybench.journal.rows import Fingerprint, differences
from tests.cli.command import Command
from tests.cli.test_resume import edit_fingerprints

SAMPLE = str(Path(__file__).parents[2] / "data/sample-dataset.json")


def test_settings_of_variants_are_listed_one_by_one_by_subject(command: Command) -> None:
    variants = ("bm25", "bm25(k1=2.0,b=0.3)", "bm25(k1=2.5,b=0.3)")
    assert command("eval", "--providers", *variants, "--end", "8", "--run-id", "r").code == 0
    settings = command("compare", "r", "--json").json["settings"]
    rows = [(one["first_side"], one["second_side"], one["name"], one["first"], one["second"]) for one in settings]
    assert rows == [
        ("bm25", "bm25(b=0.3,k1=2)", "bm25: b", "0.75 (default)", "0.3"),
        ("bm25", "bm25(b=0.3,k1=2)", "bm25: k1", "1.2 (default)", "2"),
        ("bm25", "bm25(b=0.3,k1=2.5)", "bm25: b", "0.75 (default)", "0.3"),
        ("bm25", "bm25(b=0.3,k1=2.5)", "bm25: k1", "1.2 (default)", "2.5"),
        ("bm25(b=0.3,k1=2)", "bm25(b=0.3,k1=2.5)", "bm25: k1", "2", "2.5"),
    ]
    said = command("compare", "r:bm25", f"r:{rows[0][1]}")
    assert "no such line" not in said.out
    assert " first " not in said.out.partition("starter:")[0]


def test_the_settings_of_two_runs_of_one_name_have_two_names(command: Command) -> None:
    for output, end in (("results", "4"), ("other", "5")):
        assert command("eval", "--providers", "bm25", "--end", end, "--output", output, "--run-id", "r").code == 0
    (setting,) = command("compare", "r", "other/r", "--json").json["settings"]
    assert (setting["name"], setting["first_side"], setting["second_side"]) == ("end", "results/r", "other/r")


def test_limits_that_were_not_given_are_compared_by_their_defaults(command: Command) -> None:
    for run, flags in (("a", ()), ("b", ("--top-k", "3", "--context-limit", "2", "--limit", "2"))):
        assert command("eval", "--providers", "bm25", *flags, "--end", "4", "--run-id", run).code == 0
    settings = {
        one["name"]: (one["first"], one["second"]) for one in command("compare", "a", "b", "--json").json["settings"]
    }
    assert settings == {
        "top_k": ("50 (default)", "3"),
        "context_limit": ("10 (default)", "2"),
        "limit": ("all (default)", "2"),
    }


def test_prompts_that_an_earlier_version_did_not_record_are_not_compared(command: Command) -> None:
    cases = ("extraction", "run", "--extractor", "hoarder", "--limit", "2", "--output", "results", "--no-targets")
    for run in ("a", "b"):
        assert command(*cases, "--judge-model", "scripted/judge", "--run-id", run).code == 0
        if run == "a":
            edit_fingerprints(command.folder, lambda marks: marks.pop("judge prompts"))
    assert command("compare", "a", "b", "--json").json["settings"] == []


@pytest.mark.slow
def test_the_limits_of_an_audit_are_compared_by_their_defaults(command: Command) -> None:
    models = ("--model", "scripted/quote", "--judge-model", "scripted/judge", "--limit", "4", "--output", "results")
    for run, flags in (("a", ("--top-k", "3")), ("b", ())):
        assert command("audit", SAMPLE, "--provider", "bm25", *models, *flags, "--run-id", run).code == 0
    (setting,) = command("compare", "a", "b", "--json").json["settings"]
    assert (setting["name"], setting["first"], setting["second"]) == ("top_k", "3", "10 (default)")


def test_the_adapters_of_two_providers_are_shown_without_json(command: Command) -> None:
    assert (
        command("eval", "--providers", "bm25", "full-context", "oracle", "dense", "--end", "2", "--run-id", "r").code
        == 0
    )
    settings = command("compare", "r:bm25", "r:dense", "--json").json["settings"]
    assert [(one["first"], one["second"]) for one in settings] == [("adapter: builtin:bm25", "adapter: builtin:dense")]


@pytest.mark.slow
def test_a_limit_that_differs_hides_the_questions_it_chose(command: Command) -> None:
    for run, limit in (("one", "3"), ("two", "20")):
        assert command("eval", "--providers", "bm25", "--limit", limit, "--run-id", run).code == 0
    settings = command("compare", "one", "two", "--json").json["settings"]
    assert [(one["name"], one["first"], one["second"]) for one in settings] == [("limit", "3", "20")]


@pytest.mark.slow
def test_the_ids_of_a_sample_are_not_a_setting(command: Command) -> None:
    for name, limit in (("small", "8"), ("large", "12")):
        command("eval", "--providers", "bm25", "--limit", limit, "--run-id", name)
    settings = command("compare", "small", "large", "--json").json["settings"]
    assert [setting["name"] for setting in settings] == ["limit"]


ADAPTER = """
from memorybench import Memory
{more}
class Mine:
    def __init__(self):
        self.sessions = {{}}
    def add(self, scope, session):
        self.sessions.setdefault(scope, []).append(session)
    def search(self, scope, query, limit):
        own = sorted(self.sessions.get(scope, []), key=lambda session: session.id, reverse={reverse})
        return [Memory(id=one.id, content=one.turns[0].content, sources=(one.id,)) for one in own[:limit]]
    def clear(self, scope):
        self.sessions.pop(scope, None)
"""


def adapter_run(command: Command, run: str, *flags: str, reverse: bool = False, more: str = "") -> int:
    (command.folder / "mymem.yaml").write_text("name: mymem\ntype: local\nadapter: ./mymem.py:Mine\n")
    (command.folder / "mymem.py").write_text(ADAPTER.format(reverse=reverse, more=more))
    given = ("--providers", "mymem", "--end", "6", "--config-dir", ".", "--allow-code", "--run-id", run)
    return command("eval", *given, *flags).code


def test_changed_code_of_an_adapter_is_the_first_difference(command: Command) -> None:
    assert adapter_run(command, "one") == 0
    assert adapter_run(command, "two", "--top-k", "3", "--baseline", "one", "--json", reverse=True) in (0, 3)
    settings = command("compare", "one", "two", "--json").json["settings"]
    assert [one["name"] for one in settings] == ["code of mymem", "top_k"]
    assert settings[0]["first"] != settings[0]["second"]
    gate = command("results", "two", "--json").json["baseline"]["comparison"]["settings"]
    assert gate[0]["name"] == "code of mymem"


def test_changed_code_of_a_module_that_an_adapter_imports_is_a_difference(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (command.folder / "library/ranking").mkdir(parents=True)
    (command.folder / "library/ranking/__init__.py").write_text("from .weights import WEIGHT\n")
    monkeypatch.syspath_prepend(command.folder / "library")
    for run, weight in (("one", 1), ("two", 2), ("three", 2)):
        (command.folder / "library/ranking/weights.py").write_text(f"WEIGHT = {weight}\n")
        assert adapter_run(command, run, more="import ranking") == 0
    names = [one["name"] for one in command("compare", "one", "two", "--json").json["settings"]]
    assert names == ["code of ranking.weights"]
    assert command("compare", "two", "three", "--json").json["settings"] == []


def test_a_run_is_not_resumed_with_changed_code(command: Command) -> None:
    assert adapter_run(command, "whole") == 0
    given = ("--providers", "mymem", "--end", "6", "--config-dir", ".", "--allow-code", "--run-id", "r")
    assert command.killed("eval", *given, at=8)
    (command.folder / "mymem.py").write_text(ADAPTER.format(reverse=True, more=""))
    refused = command("eval", "--resume", "r", "--allow-code")
    assert refused.code == 2
    assert "code of mymem" in refused.err


def test_a_run_that_recorded_no_code_can_be_resumed() -> None:
    old, new = Fingerprint.of("adapter: ./mymem.py:Mine"), Fingerprint.of("adapter: ./mymem.py:Mine\ncode of mymem: 1")
    assert differences({"provider mymem": old}, {"provider mymem": new}) == []
    assert len(differences({"provider mymem": new}, {"provider mymem": Fingerprint.of(f"{new.text}2")})) == 1


def test_a_model_that_differs_is_listed_once(command: Command) -> None:
    models = {
        "one": ("--answering-model", "scripted/quote"),
        "two": ("--answering-model", "scripted/silence"),
        "three": ("--answering-model", "scripted/quote", "--judge-model", "scripted/judge"),
    }
    for run, flags in models.items():
        assert command("eval", "--providers", "oracle", "--end", "3", *flags, "--run-id", run).code == 0
    settings = command("compare", "one", "two", "--json").json["settings"]
    assert [(one["name"], one["first"], one["second"]) for one in settings] == [
        ("answering_model", "scripted/quote", "scripted/silence")
    ]
    names = [one["name"] for one in command("compare", "one", "three", "--json").json["settings"]]
    assert [name for name in names if "model" in name] == ["judge_model"]
