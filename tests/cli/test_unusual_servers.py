"""Services of unusual shape, each described by YAML alone: paging by cursor with jobs, and logins that expire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.cli.command import Command, Said
from tests.doubles.stub import Call, Stub, status
from tests.doubles.unusual_servers import ARCHIVE, PASSWORD, RENEWED, VAULT, Archive, Vault

RUN = ("eval", "--benchmarks", "starter", "--limit", "4", "--top-k", "10", "--run-id", "r", "--json")


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as server:
        yield server


@pytest.fixture
def archive(stub: Stub) -> Archive:
    service = Archive()
    stub.always(service.behave)
    return service


@pytest.fixture
def vault(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("VAULT_PASSWORD", PASSWORD)
    service = Vault()
    stub.always(service.behave)
    return service


@pytest.fixture
def run(command: Command, stub: Stub) -> Callable[..., Said]:
    def run(text: str, *flags: str) -> Said:
        folder = command.folder / "providers/configs"
        folder.mkdir(parents=True, exist_ok=True)
        name = text.split("\n", 1)[0].removeprefix("name: ")
        (folder / f"{name}.yaml").write_text(text.replace("URL", stub.url))
        allowed = ("--allow-env", "VAULT_PASSWORD") if "VAULT_PASSWORD" in text else ()
        return command(*RUN, "--providers", name, *allowed, *flags)

    return run


def measures(said: Said) -> dict[str, Any]:
    [result] = [one for one in said.json["results"] if not one["group"]]
    return {one["name"]: one["value"] for one in result["measures"]}


@pytest.mark.slow
def test_cursor_paging_with_jobs_by_yaml_alone(run: Callable[..., Said], stub: Stub, archive: Archive) -> None:
    said = run(ARCHIVE)
    assert said.code == 0, said.err
    assert said.json["counts"]["scored"] == 4
    assert said.json["notes"] == []
    assert measures(said)["recall@10"] > measures(said)["recall@1"], "memories on later pages count"
    assert set(archive.added.values()) == {1}
    assert set(archive.polls.values()) == {2}, "each document has a job of its own"
    batches = [call.json["records"] for call in stub.calls if call.path.endswith("/records") and call.method == "POST"]
    assert max(map(len, batches)) == 5, "limits.batchMessages"
    assert max(len(call.body) for call in stub.calls if call.method == "POST") <= 4000, "limits.batchBytes"
    assert archive.records == {}


@pytest.mark.slow
def test_a_page_limit_that_leaves_searches_short_is_a_warning(run: Callable[..., Said], archive: Archive) -> None:
    said = run(ARCHIVE.replace("next: $.page.next}", "next: $.page.next, maxPages: 2}"))
    assert said.code == 0, said.err
    [note] = said.json["notes"]
    assert note["kind"] == "search cut short"
    assert "pages.maxPages" in note["text"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ARCHIVE, []),
        (ARCHIVE.replace(", sourcesField: $.ref", ""), ["no sources", "sourcesField"]),
        (ARCHIVE.replace("capabilities: {unordered: true}\n", ""), ["batchAdd"]),
    ],
)
def test_missing_sources_and_unused_batches_are_told(
    run: Callable[..., Said], command: Command, archive: Archive, text: str, expected: list[str]
) -> None:
    said = run(text)
    assert said.code == 0, said.err
    config = command("validate", "providers/configs/archive.yaml").out
    hints = [key for key in ("sourcesField", "batchAdd") if f".{key} is" in config]
    assert [*(note["kind"] for note in said.json["notes"]), *hints] == expected


def test_a_depth_beyond_all_pages_is_refused_before_anything_is_added(
    run: Callable[..., Said], stub: Stub, archive: Archive
) -> None:
    said = run(ARCHIVE.replace("next: $.page.next}", "next: $.page.next, size: 3, maxPages: 3}"))
    assert said.code == 2
    assert "--top-k 9" in said.err
    assert stub.calls == []


@pytest.mark.slow
def test_pages_that_were_read_are_not_requested_again_after_a_lost_one(
    run: Callable[..., Said], stub: Stub, archive: Archive
) -> None:
    """The first request for each later page is lost."""
    undisturbed = run(ARCHIVE)
    answered: Counter[str] = Counter()
    lost: set[str] = set()

    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        body = call.body.decode()
        if call.path.endswith("/query"):
            if call.json.get("after") and body not in lost:
                lost.add(body)
                return await status(503)(request, call)
            answered[body] += 1
        return await archive.behave(request, call)

    stub.always(behave)
    said = run(ARCHIVE, "--run-id", "r2")
    assert measures(said) == measures(undisturbed)
    assert lost
    assert set(answered.values()) == {1}
    assert set(archive.added.values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("config", [VAULT, RENEWED], ids=["on 401", "before expiry"])
def test_login_with_three_second_tokens_by_yaml_alone(
    run: Callable[..., Said], vault: Vault, config: str, command: Command
) -> None:
    said = run(config)
    assert said.code == 0, said.err
    assert said.json["counts"]["scored"] == 4
    assert len(vault.logins) > 10
    assert vault.refused > 10
    assert set(vault.stored.values()) == {1}
    assert vault.notes == {}
    secrets = [*vault.logins, PASSWORD]
    for file in [one for one in command.folder.rglob("*") if one.is_file()]:
        content = file.read_bytes()
        assert not any(secret.encode() in content for secret in secrets), file.name
    assert not any(secret in said.out + said.err for secret in secrets)


@pytest.mark.slow
def test_a_login_is_renewed_before_it_expires(run: Callable[..., Said], vault: Vault) -> None:
    vault.expires_in = 1e-9
    said = run(RENEWED, "--limit", "1")
    assert said.json["counts"]["scored"] == 1
    assert vault.refused == 0


PARALLEL = VAULT.replace(", concurrency: 1", "")


@pytest.mark.slow
def test_parallel_scopes_share_the_one_valid_token_of_an_account(
    run: Callable[..., Said], stub: Stub, vault: Vault
) -> None:
    vault.one_token = True
    said = run(PARALLEL)
    assert said.code == 0, said.err
    assert said.json["counts"]["scored"] == 4
    assert len({call.path.split("/")[2] for call in stub.calls if call.method == "PUT"}) > 1, "several scopes"
    assert len(vault.logins) == 1


@pytest.mark.slow
def test_parallel_scopes_whose_token_is_revoked_log_in_once(run: Callable[..., Said], stub: Stub, vault: Vault) -> None:
    vault.one_token = True

    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        if len(vault.stored) == 5:
            vault.logins.setdefault("of another client", 0)
        return await vault.behave(request, call)

    stub.always(behave)
    said = run(PARALLEL)
    assert said.code == 0, said.err
    assert said.json["counts"]["scored"] == 4
    assert vault.refused
    assert len([call for call in stub.calls if call.path == "/login"]) == 2
    assert set(vault.stored.values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("value", ["$.scope", "$.haystackId"])
def test_a_login_that_names_the_scope_is_one_per_scope(
    run: Callable[..., Said], stub: Stub, vault: Vault, value: str
) -> None:
    said = run(PARALLEL.replace("user: bench", f"user: {value}"))
    assert said.json["counts"]["scored"] == 4
    users = {call.json["user"] for call in stub.calls if call.path == "/login"}
    scopes = {call.path.split("/")[2] for call in stub.calls if call.method == "PUT"}
    assert len(users) == len(scopes) > 1


def test_a_login_that_no_longer_works_ends_the_calls(run: Callable[..., Said], stub: Stub, vault: Vault) -> None:
    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        if call.path == "/login" and len(vault.logins) >= 2:
            return await status(401)(request, call)
        return await vault.behave(request, call)

    stub.always(behave)
    said = run(VAULT)
    assert said.json["counts"]["failed"] == 4
    assert "/login: HTTP 401" in said.json["failures"][0]["reason"]
    assert len([call for call in stub.calls if call.path == "/login"]) < 10


def test_a_request_that_stays_unauthorized_is_sent_twice_only(
    run: Callable[..., Said], stub: Stub, vault: Vault
) -> None:
    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        return await (vault.behave if call.path == "/login" else status(401))(request, call)

    stub.always(behave)
    said = run(VAULT, "--limit", "1")
    assert "after a new login" in said.json["failures"][0]["reason"]
    assert len([call for call in stub.calls if call.method == "PUT"]) == 2


@pytest.mark.slow
def test_a_killed_run_logs_in_again(command: Command, stub: Stub, vault: Vault, run: Callable[..., Said]) -> None:
    complete = run(VAULT)
    stored = vault.stored.copy()
    vault.stored.clear()
    flags = ("--providers", "vault", "--allow-env", "VAULT_PASSWORD")
    assert command.killed(*RUN[:-3], "--run-id", "k", *flags, at=20)
    said = command("eval", "--resume", "k", "--allow-env", "VAULT_PASSWORD", "--json")
    assert said.code == 0, said.err
    assert measures(said) == measures(complete)
    assert vault.stored.keys().isdisjoint(stored), "another run has other documents"
    assert max(vault.stored.values()) <= 2
    repeated = sum(vault.stored.values()) - sum(stored.values())
    assert repeated < sum(stored.values()) / 2, "only the sessions that were under way are sent again"


LONG_TOKEN = ARCHIVE.replace(
    "endpoints:",
    "setup:\n  - {method: POST, path: /login, captures: {token: $.token}}\nendpoints:",
).replace('body: {records: "$.documents"}', 'body: {records: "$.documents", token: "${token}"}')


@pytest.mark.slow
def test_batches_are_complete_after_a_shorter_token(run: Callable[..., Said], stub: Stub, archive: Archive) -> None:
    """The second batch gets status 401, and with the new and shorter token, status 503."""
    complete = run(ARCHIVE, "--limit", "1")
    stored = sum(archive.added.values())
    archive.added.clear()
    logins = 0
    batches: Counter[str] = Counter()

    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        nonlocal logins
        if call.path == "/login":
            logins += 1
            return web.json_response({"token": f"sentinel-{logins}-".ljust(3000 if logins == 1 else 20, "x")})
        if call.path.endswith("/records") and b'"token"' in call.body:
            batches[call.path] += 1
            if batches[call.path] in (2, 3):
                return await status({2: 401, 3: 503}[batches[call.path]])(request, call)
        return await archive.behave(request, call)

    stub.always(behave)
    said = run(LONG_TOKEN.replace("batchMessages: 5, ", ""), "--limit", "1", "--run-id", "r2")
    assert said.code == 0, said.err
    assert logins > 1
    assert set(archive.added.values()) == {1}
    assert len(archive.added) == stored
    assert measures(said)["recall@10"] == measures(complete)["recall@10"]


SIGNER = """\
import hashlib, hmac

def sign(request):
    signed = f"{request.method} {request.url} ".encode() + request.body
    return {"X-Signature": hmac.new(request.key.encode(), signed, hashlib.sha256).hexdigest()}
"""


@pytest.mark.slow
def test_requests_are_signed_by_a_python_function(
    run: Callable[..., Said], command: Command, stub: Stub, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hashlib
    import hmac

    key = "sentinel-signing-key"
    monkeypatch.setenv("ARCHIVE_KEY", key)
    unsigned = 0

    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        nonlocal unsigned
        expected = hmac.new(key.encode(), f"{call.method} {request.url} ".encode() + call.body, hashlib.sha256)
        unsigned += call.headers.get("X-Signature") != expected.hexdigest()
        return await archive.behave(request, call)

    stub.always(behave)
    text = ARCHIVE.replace('"URL"}', '"URL", sign: "./sign.py:sign"}\nauth: {type: none, envVar: ARCHIVE_KEY}')
    refused = run(text)
    assert refused.code == 2
    assert "--allow-code" in refused.err
    assert stub.calls == []
    Path(command.folder / "providers/configs/sign.py").write_text(SIGNER)
    said = run(text, "--allow-code")
    assert said.code == 0, said.err
    assert unsigned == 0
    assert stub.calls


@pytest.mark.parametrize(
    ("code", "problem"),
    [("def sign(request): raise ValueError(request.key)", "ValueError"), ("def sign(request): return 3", "int")],
)
def test_a_function_that_cannot_sign_fails_the_trials(
    run: Callable[..., Said], command: Command, stub: Stub, archive: Archive, code: str, problem: str
) -> None:
    folder = command.folder / "providers/configs"
    folder.mkdir(parents=True)
    (folder / "sign.py").write_text(code)
    said = run(ARCHIVE.replace('"URL"}', '"URL", sign: "./sign.py:sign"}'), "--allow-code")
    assert said.json["counts"]["failed"] == 4
    assert problem in said.json["failures"][0]["reason"]
    assert stub.calls == []
