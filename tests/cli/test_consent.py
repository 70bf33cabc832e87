"""Code and variables that configs of others name: nothing runs and nothing is sent without consent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import ConsentRequired
from tests.cli.command import Command
from tests.doubles import hostile_folder
from tests.doubles.hostile_folder import ENVIRONMENT, SENTINEL, http_provider, mcp_provider, write_config
from tests.doubles.stub import Stub, reply


@pytest.fixture
def server() -> Iterator[Stub]:
    with Stub() as stub:
        stub.always(reply({"results": []}))
        yield stub


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STRANGER_KEY", "its-own-credential")


def refusal(command: Command, *arguments: str) -> ConsentRequired:
    """The refusal of a command, whose text is one line, with exit code 2."""
    seen: list[Exception] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memorybench.cli.main._explain", lambda program, error, debug, given: seen.append(error) or 2)
        assert command(*arguments).code == 2
    assert isinstance(seen[0], ConsentRequired), seen
    assert "\n" not in str(seen[0])
    return seen[0]


CONFIGS = hostile_folder.everything(Path("harm"), "http://127.0.0.1:1")


def arguments_for(kind: str, name: str) -> tuple[str, ...]:
    return {
        "provider": ("eval", "--limit", "1", "--providers", name),
        "store": ("hygiene", "run", "memory-skip-local", "--store", name),
        "extractor": ("extraction", "run", "--limit", "1", "--extractor", name),
        "agent": ("hygiene", "run", "memory-skip-local", "--agent", name, "--agent-turn", "--i-understand-model-cost"),
        "benchmark": ("data", "pull", name) if name == "b-url" else ("eval", "--benchmarks", name),
    }[kind]


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, configs in CONFIGS.items() for name in configs])
def test_a_config_of_another_is_refused(command: Command, server: Stub, kind: str, name: str) -> None:
    hostile_folder.write(command.folder, server.url)
    error = refusal(command, *arguments_for(kind, name))
    assert name in error.where or "provider" in name, error
    assert "--allow-" in error.remedy
    for use in error.uses:
        assert use.value in error.problem, "the refusal shows exactly what would run"
        assert use.key in error.problem, "and where it is named"
    assert error.uses
    assert not (command.folder / "harm").exists()
    assert not server.calls
    assert not (command.folder / "results").exists()


@pytest.mark.parametrize(
    ("run", "verb"),
    [
        (run, {"bench": "eval", "audit": "audit"}.get(suite, f"{suite} run"))
        for run, (suite, _) in hostile_folder.hostile_runs(Path("harm")).items()
    ],
)
def test_consent_is_not_taken_from_a_database(command: Command, server: Stub, run: str, verb: str) -> None:
    hostile_folder.write(command.folder, server.url)
    hostile_folder.write_results(command.folder, hostile_folder.hostile_runs(command.folder / "harm"))
    said = command(*verb.split(), "--resume", run, "--output", "results")
    assert said.code == 2, said
    if run != "r-agent":  # which is blocked for its cost
        assert "--allow-" in said.err
    assert not (command.folder / "harm").exists()
    assert not server.calls


def test_scoring_takes_no_consent_from_the_old_run(command: Command, server: Stub) -> None:
    hostile_folder.write(command.folder, server.url)
    hostile_folder.write_results(command.folder, hostile_folder.hostile_runs(command.folder / "harm"))
    assert command("score", "r-evaluator", "--judge-model", "scripted/echo").code == 2
    assert not (command.folder / "harm").exists()


def test_consent_is_not_saved(command: Command, server: Stub) -> None:
    note = {"method": "POST", "path": "/add", "headers": {"X-Note": "${PRIVATE_NOTE}"}, "body": {"s": "${scope}"}}
    config = http_provider(server.url)
    config["endpoints"]["add"] = {**note, "body": {"s": "${scope}", "t": "${content}"}}
    write_config(command.folder, "provider", {"name": "mine", **config})
    given = ("--providers", "mine", "--limit", "1", "--run-id", "r")
    assert command("eval", *given, "--allow-env", "PRIVATE_NOTE").code in (0, 1)
    assert server.calls[0].headers["X-Note"] == ENVIRONMENT["PRIVATE_NOTE"]
    spec = _saved_spec(command.folder, "r")
    assert not spec.keys() & {"allow_code", "allow_env"}


def _saved_spec(folder: Path, run: str) -> dict[str, Any]:
    from memorybench.journal.run_reader import RunReader

    with RunReader.open(folder / "results") as reader:
        return dict(reader.run(run).spec)


@pytest.mark.parametrize("consent", [("--allow-env", "PRIVATE_NOTE"), ("--allow-code",)])
def test_a_variable_is_sent_with_consent(command: Command, server: Stub, consent: tuple[str, ...]) -> None:
    hostile_folder.write(command.folder, server.url)
    assert command("eval", "--providers", "header", "--limit", "1", *consent).code in (0, 1)
    assert server.calls


def test_consent_for_another_variable_does_not_count(command: Command, server: Stub) -> None:
    hostile_folder.write(command.folder, server.url)
    error = refusal(command, "eval", "--providers", "header", "--limit", "1", "--allow-env", "PRIVATE_PATH")
    assert [use.value for use in error.uses] == ["PRIVATE_NOTE"]
    assert not server.calls


def test_consent_for_a_variable_does_not_allow_code(command: Command, server: Stub) -> None:
    hostile_folder.write(command.folder, server.url)
    error = refusal(command, "eval", "--providers", "mcp-env", "--limit", "1", "--allow-env", "OPENAI_API_KEY")
    assert "--allow-code" in error.remedy
    assert not (command.folder / "harm").exists()


def test_its_own_credential_needs_no_consent(command: Command, server: Stub) -> None:
    auth = {"type": "bearer", "envVar": "STRANGER_KEY"}
    write_config(command.folder, "provider", {"name": "mine", **http_provider(server.url, auth=auth)})
    assert command("eval", "--providers", "mine", "--limit", "1").code in (0, 1)
    assert server.calls[0].headers["Authorization"] == "Bearer its-own-credential"


@pytest.mark.parametrize(
    "variable", ["LANGSMITH_API_KEY", "LANGFUSE_SECRET_KEY", "OTEL_EXPORTER_OTLP_HEADERS", "POSTGRES_PASSWORD"]
)
def test_a_key_of_another_service_that_memorybench_uses_needs_consent(
    command: Command, server: Stub, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "a-key-of-another-service")
    config = http_provider(server.url, auth={"type": "bearer", "envVar": variable})
    write_config(command.folder, "provider", {"name": "mine", **config})
    error = refusal(command, "eval", "--providers", "mine", "--limit", "1")
    assert [use.value for use in error.uses] == [variable]
    assert server.calls == []


def test_a_copy_of_a_bundled_card_keeps_its_credential(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a bundled service may go to the host of that service."""
    from memorybench.catalog.catalog import Catalog
    from memorybench.core.uses import Consent
    from memorybench.wiring.providers import check_provider

    auth = {"type": "token", "envVar": "MEM0_API_KEY"}
    for name, url in (("same", "https://api.mem0.ai"), ("moved", "https://mem0.example")):
        write_config(command.folder, "provider", {"name": name, **http_provider(url, auth=auth)})
    catalog = Catalog(command.folder)
    check_provider(catalog, catalog.chosen("provider", "same"), Consent())
    with pytest.raises(ConsentRequired):
        check_provider(catalog, catalog.chosen("provider", "moved"), Consent())


def test_describe_lists_what_a_config_uses(command: Command, server: Stub) -> None:
    write_config(command.folder, "provider", {"name": "mine", **mcp_provider(command=["sh", "-c", "x"])})
    uses = command("describe", "mine", "--json").json["uses"]
    assert uses["programs"] == [{"value": "sh -c x", "key": "mcp.command", "to": ""}]
    assert uses["needs_consent"] == ["--allow-code"]
    bundled = command("describe", "mem0", "--json").json["uses"]
    assert bundled["hosts"][0]["value"] == "https://api.mem0.ai"
    assert bundled["credentials"][0]["value"] == "MEM0_API_KEY"
    assert bundled["needs_consent"] == []
    assert "sh -c x" in command("describe", "mine").out


def test_describe_a_store_shows_what_its_provider_uses(command: Command, server: Stub) -> None:
    hostile_folder.write(command.folder, server.url)
    uses = command("describe", "s-provider", "--json").json["uses"]
    assert uses["programs"][0]["key"] == "mcp.command"


def test_validate_says_that_a_config_needs_consent(command: Command, server: Stub) -> None:
    file = write_config(command.folder, "provider", {"name": "mine", **mcp_provider(command=["sh", "-c", "x"])})
    assert "--allow-code" in command("validate", str(file)).out


@pytest.mark.slow
def test_the_refusal_shows_no_value_of_a_variable(command: Command, server: Stub) -> None:
    hostile_folder.write(command.folder, server.url)
    for name in CONFIGS["provider"]:
        said = command("eval", "--providers", name, "--limit", "1")
        assert SENTINEL not in said.err + said.out


def test_recording_on_a_store_of_another_needs_consent(command: Command, server: Stub) -> None:
    hostile_folder.write(command.folder, server.url)
    refusal(command, "hygiene", "record", "--store", "s-mcp-command", "--", "true")
    assert not (command.folder / "harm").exists()


@pytest.mark.slow
def test_a_scenario_with_sql_needs_consent(command: Command) -> None:
    (command.folder / "scenarios").mkdir()
    scenario = hostile_folder.scenario("SELECT count(*) FROM facts")
    (command.folder / "scenarios" / "stranger.json").write_text(json.dumps(scenario))
    error = refusal(command, "hygiene", "run", "stranger")
    assert error.uses[0].value == "SELECT count(*) FROM facts"
    assert command("hygiene", "run", "memory-skip-local").code == 0
    assert command("hygiene", "run", "stranger", "--allow-code").code in (0, 3)


@pytest.mark.parametrize("query", ["VACUUM INTO 'FILE'", "ATTACH DATABASE 'FILE' AS x", "PRAGMA user_version"])
def test_a_query_of_a_scenario_reads_only(command: Command, query: str) -> None:
    """Also with consent: a scenario is data, and its assertion is one SELECT."""
    (command.folder / "scenarios").mkdir()
    scenario = hostile_folder.scenario(query.replace("FILE", str(command.folder / "harm")))
    (command.folder / "scenarios" / "stranger.json").write_text(json.dumps(scenario))
    assert command("hygiene", "run", "stranger", "--allow-code").code == 2
    assert not (command.folder / "harm").exists()


@pytest.mark.slow
def test_a_query_that_never_ends_is_interrupted(command: Command) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    (command.folder / "scenarios").mkdir()
    (command.folder / "scenarios" / "stranger.json").write_text(json.dumps(hostile_folder.scenario(endless)))
    said = command("hygiene", "run", "stranger", "--allow-code", "--no-mutants", "--json")
    assert said.json["counts"]["scored"] == 0
    assert said.code in (1, 3)
