"""Providers with other settings: expressions such as `bm25(k1=1.5)`, configs with `extends`, and search limits."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memorybench
from memorybench.catalog.catalog import Catalog
from memorybench.catalog.files import Described
from memorybench.core.errors import BadInput
from tests.cli.command import Command, measured
from tests.doubles.refusals import refused
from tests.doubles.stub import Stub, completion
from tests.providers.http_memory import CONFIG, KEY

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data/sample-dataset.json"
EVAL = ("eval", "--end", "8", "--run-id", "r")
TWO = ("--providers", "bm25(k1=2,b=0)", "bm25(around_words=0)")


def subjects(document: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(result["subject"] for result in document["results"]))


def measures(document: dict[str, Any], subject: str) -> dict[str, float | None]:
    (result,) = (one for one in document["results"] if one["subject"] == subject and not one["group"])
    return {measure["name"]: measure["value"] for measure in result["measures"]}


def write_card(folder: Path, name: str, text: str) -> None:
    cards = folder / "providers" / "configs"
    cards.mkdir(parents=True, exist_ok=True)
    (cards / f"{name}.yaml").write_text(f"name: {name}\n{text}", encoding="utf-8")


def test_one_provider_with_two_settings_runs_side_by_side(command: Command) -> None:
    said = command(*EVAL, "--providers", "bm25", *TWO[1:], "--json")
    assert said.code == 0, said.err
    assert subjects(said.json) == ["bm25", "bm25(b=0,k1=2)", "bm25(around_words=0)"]
    assert said.json["counts"] == {"planned": 24, "scored": 24, "unscored": 0, "failed": 0, "skipped": 0, "blocked": 0}


@pytest.mark.parametrize(
    "providers",
    [
        ["bm25(k1=1.5,b=0.6),hybrid"],
        ["bm25( b = .6 , k1 = 1.50 )", "hybrid"],
        ["bm25(k1=1.5,b=0.6)", "bm25(b=0.60,k1=15e-1)", "hybrid"],
    ],
)
def test_two_spellings_are_one_provider(command: Command, providers: list[str]) -> None:
    said = command(*EVAL, "--providers", *providers, "--json")
    assert said.code == 0, said.err
    assert subjects(said.json) == ["bm25(b=0.6,k1=1.5)", "hybrid"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", [TWO, ("--providers", "bm25", "--top-k", "3"), ("--providers", "bm25", "--token-budget", "90")]
)
def test_a_killed_run_is_resumed_with_its_settings(command: Command, flags: tuple[str, ...]) -> None:
    whole = command(*EVAL[:-1], "whole", *flags, "--json")
    assert whole.code == 0, whole.err
    assert command.killed(*EVAL, *flags, "--concurrency", "1", at=20)
    resumed = command("eval", "--resume", "r", "--json")
    assert resumed.code == 0, resumed.err
    assert measured({"results": resumed.json["results"]}) == measured({"results": whole.json["results"]})


def test_unchanged_steps_of_an_expression_are_reused(command: Command) -> None:
    assert command(*EVAL, "--providers", "bm25(k1=2)").code == 0
    said = command("eval", "--end", "8", "--providers", "bm25(k1=2.0)", "--reuse", "r", "--run-id", "s", "--json")
    assert said.code == 0, said.err
    (search,) = (stage for stage in said.json["circumstances"]["stages"] if stage["name"] == "search")
    assert search["reused"] == search["steps"] == 8


def test_python_takes_expressions_and_limits(command: Command) -> None:
    result = memorybench.evaluate(providers=["bm25(k1=1.50)"], limit=4, top_k=5, output=command.folder / "results")
    assert {outcome.trial.subject.name for outcome in result.outcomes()} == {"bm25(k1=1.5)"}
    assert {outcome.trial.subject.settings["k1"] for outcome in result.outcomes()} == {1.5}


@pytest.mark.parametrize(
    ("expression", "where", "remedy"),
    [
        ("bm25(k=1)", 'provider "bm25(k=1)": settings.k', "k1"),
        ("bm25(k1=-1)", 'provider "bm25(k1=-1)": settings.k1', ""),
        ("bm25(b=high)", 'provider "bm25(b=high)": settings.b', ""),
        ("hybrid(dense_weigth=1)", 'provider "hybrid(dense_weigth=1)": settings.dense_weigth', "dense_weight"),
        ("aqrag(chunk.size=9)", 'provider "aqrag(chunk.size=9)": settings.chunk', "chunking"),
        ("aqrag(chunking.siz=9)", 'provider "aqrag(chunking.siz=9)": local.chunking.siz', "size"),
        ("mem0(limit.max_results=9)", 'provider "mem0(limit.max_results=9)": settings.limit', "limits"),
        ("bm52(k1=1)", "", "bm25"),
        ("full-context(k1=1)", "", "full-context"),
        ("bm25(k1=1", "", ""),
        ("bm25(k1)", "", ""),
        ("bm25(k1=1,k1=2)", "", ""),
        ("aqrag(chunking=1,chunking.size=2)", "", ""),
    ],
)
def test_an_invalid_setting_is_reported_before_the_run(
    command: Command, expression: str, where: str, remedy: str
) -> None:
    error = refused(memorybench.evaluate, providers=[expression])
    assert isinstance(error, BadInput)
    assert error.where == where
    assert remedy in error.remedy
    assert not (command.folder / "results").exists()


@pytest.mark.parametrize("expression", ["bm25(foo=1)", "hybrid(foo=1)", "aqrag(foo=1)"])
def test_an_unknown_setting_lists_the_known_ones_as_describe_does(command: Command, expression: str) -> None:
    error = refused(memorybench.evaluate, providers=[expression])
    described = command("describe", expression.partition("(")[0], "--json").json["settings"]
    known = {name.partition(".")[0] for name in described}
    assert set(error.expected.removeprefix("one of ").split(", ")) == known


def test_a_config_extends_another_one(command: Command) -> None:
    write_card(command.folder, "flat", "extends: bm25\nsettings: {aroundWords: 0, b: 0}\n")
    write_card(command.folder, "flatter", "extends: flat\nsettings:\n  k1: 0\n")
    said = command(*EVAL, "--providers", "flatter", "flatter(k1=3)", "bm25(around_words=0,b=0,k1=0)", "--json")
    assert said.code == 0, said.err
    assert subjects(said.json) == ["flatter", "flatter(k1=3)", "bm25(around_words=0,b=0,k1=0)"]
    assert measures(said.json, "flatter") == measures(said.json, "bm25(around_words=0,b=0,k1=0)")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("extends: bm52\n", 2),
        ("extends: none\n", 2),
        ("extends: broken\n", 2),
        ("extends: bm25\nsettings:\n  k1: 1\n  kb: 2\n", 5),
        ("extends: bm25\nsettings:\n  k1: 1\n  b: 2\n", 5),
        ("extends: bm25\nadapter: ./other.py:Memory\n", 3),
        ("extends: aqrag\nsettings:\n  chunking:\n    size: 1\n    overlap: 9\n", 6),
        ("extends: mem0\nsettings:\n  limits:\n    maxResult: 3\n", 5),
        ("extends: mem0\nendpoints:\n  search:\n    path: nowhere\n", 5),
    ],
)
def test_an_invalid_extension_is_located(command: Command, text: str, line: int) -> None:
    write_card(command.folder, "broken", text)
    error = refused(memorybench.evaluate, providers=["broken"])
    assert isinstance(error, BadInput)
    assert error.where.startswith(f"providers/configs/broken.yaml:{line}")
    checked = command("validate", "providers/configs/broken.yaml")
    assert checked.code == 2
    assert f"broken.yaml:{line}" in checked.err


def test_configs_that_extend_each_other_are_named_in_order(command: Command) -> None:
    write_card(command.folder, "a", "extends: b\n")
    write_card(command.folder, "b", "extends: a\n")
    write_card(command.folder, "c", "extends: c\n")
    for name, circle in {"a": "a -> b -> a", "b": "b -> a -> b", "c": "c -> c"}.items():
        error = refused(memorybench.evaluate, providers=[name])
        assert (error.where, error.problem.split(": ")[1]) == (f"providers/configs/{name}.yaml:2: extends", circle)


def test_a_setting_and_a_part_of_it_are_both_named(command: Command) -> None:
    for expression in ("aqrag(chunking=1,chunking.size=2)", "aqrag(chunking.size=2,chunking=1)"):
        error = refused(memorybench.evaluate, providers=[expression])
        assert {"chunking", "chunking.size"} <= set(error.problem.split()), "the first is not a duplicate of the second"


def test_an_extension_is_validated_by_name_of_its_file(command: Command) -> None:
    write_card(command.folder, "deep", "extends: mem0\nlimits: {maxResults: 20}\n")
    said = command("validate", "providers/configs/deep.yaml")
    assert said.code == 0, said.err
    assert '"deep" (hosted)' in said.out


def test_an_extension_may_not_send_a_key_elsewhere_without_consent(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEM0_API_KEY", "m0-not-a-real-key")
    write_card(command.folder, "elsewhere", "extends: mem0\nconnection: {baseUrl: https://example.org}\n")
    for name in ("elsewhere", "mem0(connection.base_url=https://example.org)"):
        said = command("eval", "--providers", name, "--top-k", "5")
        assert said.code == 2
        assert "--allow-env MEM0_API_KEY" in said.err


def test_an_extension_of_a_program_needs_no_more_consent_than_the_program(command: Command) -> None:
    write_card(command.folder, "slow", "extends: mcp-memory\nrateLimit: {requestsPerSecond: 1}\n")
    assert command("describe", "slow", "--json").json["uses"]["needs_consent"] == []


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    with Stub() as stub:
        stub.always(completion("I don't know.", model="m"))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        yield stub


def context_tokens(document: dict[str, Any]) -> dict[str, float]:
    return {subject: measures(document, subject)["context_tokens"] or 0 for subject in subjects(document)}


@pytest.mark.slow
def test_the_context_is_cut_for_every_provider_but_not_for_baselines(command: Command) -> None:
    providers = ("--providers", "bm25", "bm25(k1=0)", "full-context", "oracle", "--answering-model", "scripted/quote")
    judge = ("--judge-model", "scripted/judge")
    usual = context_tokens(command("eval", "--end", "4", *providers, *judge, "--json").json)
    small = command("eval", "--end", "4", *providers, *judge, "--context-limit", "2", "--json")
    tiny = command("eval", "--end", "4", *providers, *judge, "--token-budget", "60", "--json")
    assert small.code == tiny.code == 0
    for name in ("bm25", "bm25(k1=0)"):
        assert context_tokens(small.json)[name] < usual[name]
        assert 0 < context_tokens(tiny.json)[name] <= 60
    for name in ("full-context", "oracle"):
        assert context_tokens(small.json)[name] == context_tokens(tiny.json)[name] == usual[name]


def test_a_budget_without_room_for_one_memory_is_reported(command: Command) -> None:
    said = command(*EVAL, "--providers", "bm25", "--token-budget", "1", "--json")
    assert said.code == 0, said.err
    assert measures(said.json, "bm25")["over_token_budget"] == 1
    assert measures(said.json, "bm25")["context_tokens"] == 0
    assert "--token-budget" in command("results", "r").out


def test_the_header_shows_limits_that_were_given(command: Command) -> None:
    assert "Search:" not in command(*EVAL, "--providers", "bm25").out
    said = command("eval", "--end", "4", "--providers", "bm25", "--top-k", "7", "--context-limit", "3")
    (line,) = (line for line in said.out.splitlines() if "Search:" in line)
    assert "7" in line
    assert "3" in line


def test_more_shown_than_searched_is_refused(command: Command) -> None:
    error = refused(memorybench.evaluate, providers=["bm25"], top_k=5, context_limit=6)
    assert isinstance(error, BadInput)
    assert error.where == "--context-limit"
    assert "--top-k 6" in error.remedy


@pytest.mark.parametrize("provider", ["spaces", "three", "mem0(limits.max_results=3)"])
def test_a_provider_with_fewer_results_is_refused_before_anything_is_sent(
    command: Command, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("MEM0_API_KEY", "m0-not-a-real-key")
    write_card(command.folder, "three", "extends: mem0\nlimits: {maxResults: 3}\n")
    with Stub() as stub:
        monkeypatch.setenv("MEM0_API_URL", stub.url)
        monkeypatch.setenv("SPACES_KEY", KEY)
        card = CONFIG.replace("URL", stub.url, 1).partition("\n")[2]
        write_card(command.folder, "spaces", f"{card}limits: {{maxResults: 3}}\n")
        error = refused(memorybench.evaluate, providers=[provider], limit=2, output=command.folder / "results")
        assert isinstance(error, BadInput)
        assert error.where == f'provider "{provider}"'
        assert "--top-k 3" in error.remedy
        assert not stub.calls
    assert not (command.folder / "results").exists()


@pytest.mark.slow
def test_an_audit_takes_expressions_and_limits(command: Command, prompts: Stub) -> None:
    audit = ("audit", str(SAMPLE), "--limit", "4", "--judge-model", "none", "--provider", "bm25(k1=2.0)")
    said = command(*audit, "--top-k", "9", "--context-limit", "2")
    assert said.code == 0, said.err
    assert "bm25(k1=2)" in said.out
    assert "9 memories per search" in said.out
    sent = [json.loads(call.body)["messages"][-1]["content"] for call in prompts.calls]
    # a question about an absent fact may find nothing
    assert {len(re.findall(r"^\[\d{4}-", text, re.MULTILINE)) for text in sent} - {0} == {2}
    said = command(*audit, "--token-budget", "1")
    assert said.code == 0, said.err
    assert "--token-budget" in said.out


ADAPTER = """
class Mine:
    def __init__(self, settings):
        self.word = settings["word"]

    def add(self, scope, session):
        pass

    def search(self, scope, query, limit):
        return [self.word]
"""


def test_a_class_of_the_user_gets_its_settings(command: Command) -> None:
    write_card(command.folder, "mine", "type: local\nadapter: ./mine.py:Mine\nsettings: {word: tea}\n")
    (command.folder / "providers/configs/mine.py").write_text(ADAPTER, encoding="utf-8")
    said = command(*EVAL, "--providers", "mine", "mine(word=coffee)", "--allow-code", "--json")
    assert said.code == 0, said.err
    shown = {outcome.trial.subject.name: outcome.shown.context for outcome in memorybench.load_run("r").outcomes()}
    assert shown == {"mine": "tea", "mine(word=coffee)": "coffee"}
    refusal = command("eval", "--providers", "mine(word=coffee)")
    assert refusal.code == 2
    assert "--allow-code" in refusal.err


def test_an_extraction_takes_an_expression(command: Command) -> None:
    said = command("extraction", "run", "--extractor", "bm25(k1=2.0)", "--limit", "2", "--no-targets", "--json")
    assert said.code == 0, said.err
    assert subjects(said.json) == ["bm25(k1=2)"]


def test_results_find_another_spelling_of_an_expression(command: Command) -> None:
    assert command(*EVAL, "--providers", "bm25(b=0,k1=2)", "bm25").code == 0
    failures = command("results", "r", "--failures", "--providers", "bm25(k1=2.0,b=0)", "--json")
    assert failures.code == 0, failures.err
    assert all("bm25(b=0,k1=2)" in json.dumps(one) for one in failures.json)
    for sides in (("bm25(k1=2.0,b=0)", "bm25"), ("r:bm25(k1=2.0,b=0)", "r:bm25")):
        assert command("compare", *sides).code == 0
    case = next(memorybench.load_run("r").outcomes()).trial.case_id
    assert command("show", "r", case, "--provider", "bm25(k1=2.0,b=0)").code == 0


def save_copy(command: Command, kind: str, name: str) -> str:
    """Save what `describe --yaml` prints, and return the name of the copy."""
    said = command("describe", name, "--yaml", "--kind", kind)
    assert said.code == 0, said.err
    (line,) = (line for line in said.out.splitlines() if line.startswith("name:"))
    copy = line.removeprefix("name: ")
    file = command.folder / f"{kind}s" / "configs" / f"{copy}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(said.out, encoding="utf-8")
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["provider", "benchmark", "extractor", "store", "agent"])
def test_every_bundled_config_can_be_copied(command: Command, kind: Described) -> None:
    names = [entry.name for entry in Catalog(command.folder).entries(kind) if entry.broken is None]
    copies = {name: save_copy(command, kind, name) for name in names}
    catalog = Catalog(command.folder)
    for name, copy in copies.items():
        original, copied = (getattr(catalog, kind)(one).plain() for one in (name, copy))
        for config in (original, copied):
            for key in ("name", "extends", "settings"):
                config.pop(key, None)
        assert copied == original


@pytest.mark.parametrize("provider", ["bm25", "bm25(k1=0)", "flat"])
def test_a_copied_provider_gives_the_same_results(command: Command, provider: str) -> None:
    write_card(command.folder, "flat", "extends: bm25\nsettings: {aroundWords: 0}\n")
    copy = save_copy(command, "provider", provider)
    said = command(*EVAL, "--providers", provider, copy, "--json")
    assert said.code == 0, said.err
    assert measures(said.json, copy) == measures(said.json, provider)
    assert command("validate", f"providers/configs/{copy}.yaml").code == 0


@pytest.mark.slow
def test_settings_are_described_with_value_and_meaning(command: Command) -> None:
    settings = command("describe", "bm25(k1=2)", "--json").json["settings"]
    assert {name: setting["value"] for name, setting in settings.items()} == {
        "k1": "2.0",
        "b": "0.75",
        "around_words": "60",
        "around_turns": "1",
        "around_weight": "0.5",
    }
    assert all(setting["meaning"] for setting in settings.values())
    assert "chunking.size" in command("describe", "aqrag", "--json").json["settings"]
    assert "limits.max_results" in command("describe", "zep", "--json").json["settings"]
    assert "around_words" in command("describe", "bm25").out


@pytest.mark.parametrize("name", ["gpt-4o", "ollama/llama3.2"])
def test_a_model_without_a_card_has_no_config_to_copy(command: Command, name: str) -> None:
    said = command("describe", name, "--yaml")
    assert (said.code, f"model {name}" in said.err, "unknown" in said.err) == (2, True, False)


def test_a_baseline_has_no_config_to_copy(command: Command) -> None:
    assert command("describe", "oracle", "--yaml").code == 2


@pytest.mark.slow
def test_the_examples_of_the_documentation_work(command: Command) -> None:
    pytest.importorskip("wordllama", reason="hybrid needs the extra `embed`")
    text = (ROOT / "docs" / "varying.md").read_text(encoding="utf-8")
    for name, block in re.findall(r"```yaml\nname: (\S+)\n(.*?)```", text, re.DOTALL):
        write_card(command.folder, name, block)
        assert command("validate", f"providers/configs/{name}.yaml").code == 0
    for line in re.findall(r"^\$ memorybench (.*)$", text, re.MULTILINE):
        said = command(*shlex.split(line.partition(" > ")[0].replace("--limit 20", "--end 4")))
        assert said.code == 0, (line, said.err)


@pytest.mark.parametrize(
    "setting",
    ["connection.base_url=https://user:hunter2-secret@example.org", "embedding.env_var=sk-hunter2secretabcdefghij0123"],
)
def test_a_credential_in_an_expression_is_refused_and_not_shown(command: Command, setting: str) -> None:
    said = command("eval", "--providers", f"mem0({setting})", "--top-k", "5")
    assert said.code == 2
    assert "hunter2" not in said.out + said.err
    assert not (command.folder / "results").exists()


def test_a_variable_in_an_expression_is_sent_with_consent_only(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEM0_API_KEY", "m0-not-a-real-key")
    described = command("describe", "mem0(connection.base_url=${ELSEWHERE})", "--json").json
    assert described["uses"]["needs_consent"] == ["--allow-env MEM0_API_KEY"]
