"""Names that users try: aliases of verbs, flags and measures, and commands that work as they are printed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import memorybench
from memorybench.core.errors import BadInput
from memorybench.reporting.typed_commands import as_typed
from tests.cli.command import Command

RUN = ("eval", "--providers", "bm25", "--limit", "2")
SAMPLE = str(Path(__file__).parents[2] / "data" / "sample-dataset.json")


def test_a_verb_and_its_flags_have_aliases(command: Command) -> None:
    named = command(*RUN, "--benchmarks", "starter", "--answering-model", "scripted/quote", "--dry-run", "--json")
    alias = ("bench", "--provider", "bm25", "--limit", "2", "--benchmark", "starter", "--model", "scripted/quote")
    assert command(*alias, "--dry-run", "--json").json == named.json


@pytest.mark.slow
def test_every_verb_takes_the_singular_and_the_plural(command: Command) -> None:
    audit = ("audit", SAMPLE, "--limit", "2", "--judge-model", "none", "--dry-run", "--json")
    first = command(*audit, "--model", "scripted/quote", "--provider", "bm25")
    assert first.json == command(*audit, "--answering-model", "scripted/quote", "--providers", "bm25").json
    command(*RUN, "--run-id", "r")
    assert command("results", "r", "--failures", "--provider", "bm25").code == 0
    assert command("results", "--compare", "bm25", "none", "--benchmarks", "starter").code == 2  # none was not run
    assert command("list", "--provider", "--json").json == command("list", "--providers", "--json").json


def test_an_alias_is_not_in_the_help(command: Command) -> None:
    text = command("eval", "--help").out
    assert "--providers" in text
    assert not re.search(r"--provider\b", text)


@pytest.mark.parametrize(
    "words", [("results",), ("hygiene", "scan"), ("hygiene",), ("export", "r", "--format", "xxxx"), ("runs", "tag")]
)
def test_an_error_about_a_flag_names_the_help_of_its_verb(command: Command, words: tuple[str, ...]) -> None:
    said = command(*words, "--nothing-like-it")
    assert said.code == 2
    (named,) = re.findall(r"`memorybench (.*) --help`", said.err)
    assert named.split() == list(words[: 1 if words[0] == "export" else 2])
    assert command(*named.split(), "--help").code == 0


def test_an_unknown_choice_lists_the_choices(command: Command) -> None:
    said = command("export", "r", "--format", "pdf")
    where, problem, expected, *_ = re.split(r": |; ", said.err.removeprefix("memorybench: "))
    assert (where, problem) == ("--format", "invalid value 'pdf'")
    assert {"csv", "latex", "junit"} <= set(expected.removeprefix("expected one of ").split(", "))


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (("audit",), "[--probes FILE]"),
        (("extraction", "online"), "[--source SOURCE [FILE]]"),
        (("runs",), "[ACTION ...]\n"),
    ],
)
def test_the_usage_shows_which_values_an_argument_takes(command: Command, words: tuple[str, ...], usage: str) -> None:
    assert usage in command(*words, "--help").out


@pytest.mark.parametrize(
    ("words", "needed"),
    [(("audit", "probes"), "--probe-model"), (("hygiene", "scan"), "--model"), (("verify",), "--rejudge")],
)
def test_the_help_of_a_budget_names_the_flag_that_it_needs(
    command: Command, words: tuple[str, ...], needed: str
) -> None:
    text = " ".join(command(*words, "--help").out.split())
    assert f"--budget DOLLARS With {needed}: stop spending" in text


def test_an_unknown_measure_lists_the_measures(command: Command) -> None:
    said = command(*RUN, "--threshold", "recal@5=0.5")
    assert said.code == 2
    assert "expected one of " in said.err
    assert 'did you mean "recall@5"?' in said.err


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        (("eval", "--budget", "-1"), "expected 0 or more"),
        (("audit",), "add DATASET to audit with "),
        (("score", "x"), "add --judge-model MODEL to judge with this model\n"),
        (("extraction", "run"), "add --extractor NAME or --extractor-command LINE"),
        (("extraction", "run", "--extractor", "x", "--extractor-command", "y"), "two extractors are given"),
        (("eval", "--data-file", "starter=x.json"), "leave out starter=x.json"),
        (("results", "--results", "nowhere"), "nowhere: folder not found;"),
        (("results", "--results", "."), ".: has no results.db;"),
    ],
)
def test_an_error_says_what_to_type(command: Command, words: tuple[str, ...], phrase: str) -> None:
    said = command(*words)
    assert said.code == 2
    assert phrase in said.err


def test_a_measure_has_its_short_name(command: Command) -> None:
    said = command(*RUN, "--threshold", "any@5=0.0", "--threshold", "context=100000")
    assert said.code == 0, said.err
    assert "recall_any@5" in said.out


@pytest.mark.parametrize("threshold", ["recall@5=60", "any@5=1.5", "recall@5=-0.1"])
def test_a_share_is_between_0_and_1(command: Command, threshold: str) -> None:
    said = command(*RUN, "--threshold", threshold)
    assert said.code == 2
    assert "--threshold" in said.err
    assert ("0.6" in said.err) == (threshold == "recall@5=60")
    assert not (command.folder / "results").exists()


def test_a_run_is_found_where_its_suite_writes_it(command: Command) -> None:
    offline = ("--model", "scripted/quote", "--judge-model", "scripted/judge", "--limit", "2")
    assert command("audit", SAMPLE, *offline, "--run-id", "a").code == 0
    command(*RUN, "--run-id", "r")
    for run in ("a", "r"):
        assert command("results", run).code == 0
        assert memorybench.load_run(run).run_id == run
    assert {row["id"] for row in command("results", "--json").json} == {"a", "r"}


@pytest.mark.slow
def test_printed_commands_work_as_typed(tmp_path: Path) -> None:
    """The hint, the remedy of an error and the resume command of a program that is not on the PATH."""
    script = Path(sys.executable).parent / "memorybench"
    (tmp_path / "bin").symlink_to(script.parent)
    environment = {**os.environ, "PATH": "/usr/bin:/bin", "COLUMNS": "200"}

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            shlex.split(line), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    said = run("bin/memorybench eval --providers bm25 --limit 2 --run-id r")
    [hint] = re.findall(r"^  (\S+ results r --failures)", said.stdout, re.MULTILINE)
    assert hint.startswith("bin/memorybench ")
    assert run(hint).returncode == 0
    assert "`bin/memorybench runs`" in run("bin/memorybench results nope").stderr
    module = run(f"{sys.executable} -m memorybench results nope").stderr
    [remedy] = re.findall(r"`(.* -m memorybench runs)`", module)
    assert run(remedy).returncode == 0


def test_a_command_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(Path(memorybench.__file__).parent / "__main__.py")])
    typed = as_typed("continue with: memorybench eval --resume r")
    assert typed.endswith(" -m memorybench eval --resume r")
    assert as_typed(typed) == typed, "the error of a command contains one that was converted before"


def test_a_sentence_about_the_program_is_not_a_command(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("eval", "--providers", "bm25", "--end", "1", "--run-id", "r").code == 0
    monkeypatch.setattr(sys, "argv", ["/opt/bin/memorybench"])
    said = command("runs", "delete", "r")
    assert (said.code, "--yes" in said.err, "/opt/bin" in said.err) == (2, True, False)


def test_a_next_step_names_the_program_as_it_was_started(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("eval", "--providers", "bm25", "--end", "1", "--run-id", "r").code == 0
    monkeypatch.setattr(sys, "argv", ["/opt/bin/memorybench"])
    assert "/opt/bin/memorybench eval --providers mine " in command("init", "provider", "mine").out
    assert "/opt/bin/memorybench verify 'my run.mbz'" in command("bundle", "r", "--output", "my run.mbz").out
    assert "/opt/bin/memorybench verify 'my run.mbz'" in command("results", "my run.mbz").err


def test_the_api_is_listed() -> None:
    assert set(memorybench.__all__) <= set(dir(memorybench))
    assert "Any" not in dir(memorybench)


def test_a_misspelled_argument_is_a_plain_error() -> None:
    with pytest.raises(BadInput) as raised:
        memorybench.evaluate(limt=5)
    assert (raised.value.where, raised.value.remedy) == ("limt", 'did you mean "limit"?')


def test_one_name_is_a_list_of_one(command: Command) -> None:
    result = memorybench.evaluate("starter", "bm25", limit=1)
    assert {outcome.trial.subject.name for outcome in result.outcomes()} == {"bm25"}


@pytest.mark.parametrize(("code", "found"), [(0, True), (1, False)])
def test_doctor_asks_the_docker_daemon(
    command: Command, monkeypatch: pytest.MonkeyPatch, code: int, found: bool
) -> None:
    docker = command.folder / "docker"
    docker.write_text(f"#!/bin/sh\necho 27.0\nexit {code}\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.folder))
    [row] = [row for row in command("doctor", "--json").json if row["name"] == "docker"]
    assert row["found"] is found
    assert ("daemon" in row["detail"]) == (not found)


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("extraction online --source jsonl x.jsonl --no-targets", None),
        ("extraction run --extractor hoarder --no-target", "--no-targets"),
        ("extraction run --limit", None),
        ("eval --provders bm25", "--providers"),
        ("describe bm25 json", None),
    ],
)
def test_only_arguments_of_the_same_command_are_suggested(command: Command, arguments: str, remedy: str | None) -> None:
    said = command(*arguments.split())
    assert said.code == 2
    assert re.findall('did you mean "(.*)"', said.err) == ([remedy] if remedy else [])
