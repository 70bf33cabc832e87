"""A spec declares its flags once; command line, resume check, saved spec and schema are derived from it."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

import pytest

from memorybench.cli.arguments import add_fields, given_fields
from memorybench.core.errors import BadInput
from memorybench.suites.audit.spec import AuditSpec
from memorybench.suites.bench.spec import BenchSpec
from memorybench.suites.extraction.spec import OnlineSpec
from memorybench.suites.hygiene.spec import HygieneSpec
from memorybench.suites.registry import suites
from memorybench.suites.spec import RunOptions, Spec, changed_flag, flag_words, is_flag, make_spec, saved_spec
from memorybench.suites.suite import Command

COMMANDS = [command for suite in suites() for command in suite.commands]


def parse(spec: type[Spec], *arguments: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_fields(parser, spec)
    return given_fields(parser.parse_args(arguments), spec)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_help_is_a_phrase_of_at_most_ten_words(command: Command) -> None:
    for spec in (command.spec, RunOptions):
        for name, field in spec.model_fields.items():
            if is_flag(field):
                assert len((field.description or "").split()) <= 10, name
                assert (field.description or "")[0].isupper(), name


@pytest.mark.parametrize("suite", list(suites()), ids=lambda suite: suite.name)
def test_the_functions_that_a_suite_names_exist(suite: Any) -> None:
    report = importlib.import_module(suite.report_module)
    assert all(callable(getattr(report, name)) for name in ("metrics", "facts", "report"))
    for command in suite.commands:
        module, _, function = command.prepare_function.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_only_given_flags_are_passed_on() -> None:
    assert parse(BenchSpec) == {}
    given = parse(BenchSpec, "--providers", "bm25,none", "oracle", "--limit", "5", "--data-file", "starter=a,b.json")
    assert given == {
        "providers": ("bm25", "none", "oracle"),
        "limit": "5",
        "data_files": {"starter": "a,b.json"},
    }
    spec = make_spec(BenchSpec, given)
    assert (spec.limit, spec.benchmarks) == (5, ("starter",))


def test_a_switch_that_is_on_by_default_has_a_flag_that_turns_it_off() -> None:
    assert make_spec(HygieneSpec, parse(HygieneSpec, "--no-mutants")).mutants is False
    assert make_spec(HygieneSpec, parse(HygieneSpec, "a", "b")).scenarios == ("a", "b")


@pytest.mark.parametrize(
    ("spec", "values", "where"),
    [
        (BenchSpec, {"limit": "many"}, "--limit"),
        (BenchSpec, {"limit": 0}, "--limit"),
        (BenchSpec, {"question_types": 3}, "--question-type"),
        (BenchSpec, {"lmit": 3}, "lmit"),
        (BenchSpec, {"start": 9, "end": 3}, "--start"),
        (AuditSpec, {}, "DATASET"),
        (AuditSpec, {"dataset": "d", "kinds": ("recal",)}, "--kinds"),
        (OnlineSpec, {}, "--source"),
        (OnlineSpec, {"source": ["jsonl"]}, "--source"),
        (RunOptions, {"budget": "-1"}, "--budget"),
    ],
)
def test_a_problem_is_reported_under_the_name_of_the_flag(spec: type[Spec], values: dict[str, Any], where: str) -> None:
    with pytest.raises(BadInput) as caught:
        make_spec(spec, values)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (AuditSpec, ("d.json", "--kinds", "recall", "--conflicts", "flag", "--seed", "3", "--verify-probes")),
        (
            AuditSpec,
            ("d.json", "--config-dir", "a b", "c", "--allow-code", "--allow-env", "X", "--context-window", "9"),
        ),
        (AuditSpec, ("d.json", "--seed=-3", "--canaries", "off", "--providers", "bm25(k1=1.5,b=1)", "none")),
        (HygieneSpec, ("one", "two", "--scenarios", "x", "--no-mutants", "--store-is-disposable")),
        (BenchSpec, ("--data-file", "a=b", "c=d", "--token-budget", "5", "--detect", "2.5")),
    ],
)
def test_a_spec_becomes_the_words_that_give_it(spec: type[Spec], words: tuple[str, ...]) -> None:
    made = make_spec(spec, parse(spec, *words))
    assert make_spec(spec, parse(spec, *flag_words(made))) == made
    assert sorted(flag_words(made)) == sorted(words)


def test_words_become_values() -> None:
    assert make_spec(RunOptions, {"budget": "$1.50"}).budget == 1.5
    spec = make_spec(OnlineSpec, parse(OnlineSpec, "--source", "jsonl", "f.jsonl", "--id-path", "$.id"))
    assert (spec.source, spec.file, spec.paths) == ("jsonl", "f.jsonl", {"id": "$.id"})
    assert make_spec(AuditSpec, {"dataset": "d", "kinds": ("temporal", "recall")}).kinds == ("recall", "temporal")


def test_a_saved_spec_is_read_back_and_consent_is_not_saved() -> None:
    spec = make_spec(HygieneSpec, {"agent": "a", "agent_turn": True, "i_understand_model_cost": True, "repeats": 2})
    saved = spec.model_dump(mode="json")
    assert not {"agent_turn", "i_understand_model_cost"} & saved.keys()
    again = saved_spec(HygieneSpec, {**saved, "titles": {}, "subjects": ["a"]})
    assert (again.repeats, again.agent_turn) == (2, False)


def test_a_spec_saved_by_version_0_1_is_read() -> None:
    old = {"source": "langsmith", "project": "p", "tag": "t", "paths": {"output": "$.memory"}, "mode": "online"}
    assert saved_spec(OnlineSpec, old).paths == {"output": "$.memory"}
    assert saved_spec(BenchSpec, {"providers": ["bm25"], "reader": None, "answered": False}).providers == ("bm25",)


def test_resume_accepts_only_flags_of_a_single_start() -> None:
    assert changed_flag(HygieneSpec, {"agent_turn": True, "allow_code": True}) is None
    assert changed_flag(HygieneSpec, {"agent_turn": True, "folders": ("x",)}) == "--scenarios"
    assert changed_flag(AuditSpec, {"format": "json"}) is None
    assert changed_flag(AuditSpec, {"dataset": "d"}) == "DATASET"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_schema_has_help_and_defaults(command: Command) -> None:
    properties = command.spec.model_json_schema()["properties"]
    assert properties["allow_code"]["description"].endswith(".")
    assert properties["allow_code"]["default"] is False
