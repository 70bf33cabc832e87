"""Hosted accounts that others use: whatever is run against them, their facts stay the same."""

from __future__ import annotations

from copy import deepcopy

import pytest
from aiohttp import web

from tests.cli.command import Command, Said
from tests.doubles.stub import Call, Stub
from tests.providers.http_memory import CONFIG, KEY, MemoryService, Space

DISPOSABLE = "--store-is-disposable"
SCENARIO = "memory-idempotent-write"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> MemoryService:
    """A hosted account with the facts of someone else."""
    monkeypatch.setenv("SPACES_KEY", KEY)
    service = MemoryService()
    service.spaces["ann"] = Space("sp #0", {"d1": {"id": "d1", "text": "Ann lives in Porto", "metadata": {}}}, {"d1"})
    return service


@pytest.fixture
def account(service: MemoryService, stub: Stub) -> Stub:
    stub.always(service.behave)
    return stub


def evaluate_account(command: Command, account: Stub, config: str, *arguments: str) -> Said:
    folder = command.folder / "providers/configs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spaces.yaml").write_text(config.replace("URL", account.url))
    run = ("eval", "--providers", "spaces", "--end", "2", "--answering-model", "none", "--allow-code", "--json")
    return command(*run, *arguments)


NO_CLEAR = CONFIG[: CONFIG.index("  clear:")] + CONFIG[CONFIG.index("  list:") :]


WIPING = CONFIG + 'teardown: [{method: DELETE, path: "/spaces"}]\n'


RESETTING = CONFIG.replace("setup:\n", 'setup:\n  - {method: DELETE, path: "/spaces"}\n')


@pytest.mark.slow
def test_eval_leaves_a_hosted_account_as_it_was(command: Command, service: MemoryService, account: Stub) -> None:
    before = deepcopy(service.spaces)
    said = evaluate_account(command, account, CONFIG)
    assert said.code == 0, said.err
    assert said.json["counts"]["scored"] == said.json["counts"]["planned"] == 2
    assert service.spaces == before


@pytest.mark.parametrize("config", [NO_CLEAR, WIPING, RESETTING], ids=["no-clear", "teardown", "setup"])
def test_an_account_that_would_be_left_changed_is_refused(
    command: Command, service: MemoryService, account: Stub, config: str
) -> None:
    said = evaluate_account(command, account, config)
    assert said.code == 2
    assert 'provider "spaces"' in said.err
    assert DISPOSABLE in said.err
    assert account.calls == []


@pytest.mark.slow
def test_a_disposable_account_need_not_be_cleared(command: Command, service: MemoryService, account: Stub) -> None:
    said = evaluate_account(command, account, NO_CLEAR, DISPOSABLE)
    assert said.json["counts"]["scored"] == said.json["counts"]["planned"] == 2
    assert service.spaces.pop("ann").documents.keys() == {"d1"}
    assert service.spaces


def test_an_account_whose_new_scope_has_entries_is_refused(
    command: Command, service: MemoryService, account: Stub
) -> None:
    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        if call.method == "GET" and call.path.endswith("/documents"):
            return web.json_response({"documents": [*service.spaces["ann"].documents.values()]})
        return await service.behave(request, call)

    account.always(behave)
    said = evaluate_account(command, account, CONFIG)
    assert said.code == 2
    assert "has 1 memories" in said.err
    assert not [call for call in account.calls if call.method == "POST" and call.path.endswith("/documents")]
    assert service.spaces["ann"].documents.keys() == {"d1"}


def test_a_provider_as_a_store_uses_a_scope_per_scenario(
    command: Command, service: MemoryService, account: Stub
) -> None:
    before = deepcopy(service.spaces)
    folder = command.folder / "stores/configs"
    folder.mkdir(parents=True)
    (folder / "spaces.yaml").write_text("name: spaces\ntype: provider\nprovider: spaces\n")
    (command.folder / "providers/configs").mkdir(parents=True)
    (command.folder / "providers/configs/spaces.yaml").write_text(CONFIG.replace("URL", account.url))
    said = command("hygiene", "run", SCENARIO, "--store", "spaces", "--no-mutants", "--allow-code", "--json")
    assert said.code in (0, 3), said.err
    assert [call for call in account.calls if call.method == "POST" and call.path.endswith("/documents")]
    assert service.spaces == before
