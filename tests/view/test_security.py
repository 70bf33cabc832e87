"""The viewer answers only its own user: Host, Origin, methods, token, paths and headers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from memorybench import view
from memorybench.view.security import is_own_host
from tests.cli.command import Command
from tests.view.conftest import opened

STATIC = Path(view.__file__).parent / "static"
TOKEN = "0123456789abcdef0123"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8750", "127.0.0.1.evil.example", "localhost.evil", "127.0.0.2", "[::2]:80", "", "x"],
)
def test_a_foreign_host_header_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8750", "localhost:1", "LOCALHOST", "[::1]:8750", "127.0.0.1"])
def test_loopback_names_are_served(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8750", "http://127.0.0.1:1"])
def test_another_origin_is_refused(client: TestClient, origin: str) -> None:
    assert client.get("/", headers={"Origin": origin}).status_code == 403


def test_other_sites_may_link_but_not_embed(client: TestClient) -> None:
    site = {"Sec-Fetch-Site": "cross-site"}
    link = {**site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/", headers=link).status_code == 200
    for mode, place in (("navigate", "iframe"), ("no-cors", "script"), ("no-cors", "image"), ("cors", "empty")):
        headers = {**site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": place}
        assert client.get("/", headers=headers).status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"])
def test_only_get_and_head_are_answered(client: TestClient, method: str) -> None:
    for path in ("/", "/run/0/first", "/static/style.css"):
        reply = client.request(method, path)
        assert reply.status_code == 405
        assert reply.headers["allow"] == "GET, HEAD"
    assert client.head("/").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/VENDORED.json",
        "/run/0/..",
        "/run/0/%2e%2e%2f%2e%2e%2fetc",
        "/run/0/..%2f..%2fetc%2fpasswd",
        "/run/9/first",
        "/run/-1/first",
        "/run/0/first%00",
        "/run/0/nothing",
        "/run/0/first/questions/../../../etc",
        "/run/0/first/question?benchmark=starter&case=../../etc/passwd",
        "/run/0/first/history?cluster=/etc",
        "/compare?side=/etc/passwd",
        "/compare?side=0/../../etc",
        "/compare?side=99999999999999/first",
        "/etc/passwd",
    ],
)
def test_paths_stay_inside_the_results_folders(client: TestClient, path: str) -> None:
    reply = client.get(path)
    assert reply.status_code in (404, 202), reply.text
    assert "root:" not in reply.text


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/", "/run/0/nothing", "/static/style.css", "/static/nothing", "/compare"])
def test_every_response_has_the_security_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_a_token_is_required_and_becomes_a_cookie(recorded: Path) -> None:
    with opened(recorded / "results", host="0.0.0.0", token=TOKEN) as client:
        assert client.get("/").status_code == 401
        assert client.get("/?token=wrong").status_code == 401
        assert client.get("/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        reply = client.get(f"/run/0/first?token={TOKEN}&x=1")
        assert (reply.status_code, reply.headers["location"]) == (303, "/run/0/first?x=1")
        assert "httponly" in reply.headers["set-cookie"].lower()
        assert "samesite=strict" in reply.headers["set-cookie"].lower()
        assert client.get("/").status_code == 200
        assert client.get(f"http://127.0.0.1:8750//evil.example/?token={TOKEN}").headers["location"] == "/evil.example/"


def test_hosts_of_a_server_on_one_address() -> None:
    assert is_own_host("10.0.0.5:8750", "10.0.0.5")
    assert not is_own_host("127.0.0.1:8750", "10.0.0.5")
    assert is_own_host("10.0.0.5:8750", "0.0.0.0")
    assert not is_own_host("evil.example", "0.0.0.0")


def test_a_reachable_address_needs_a_token(command: Command) -> None:
    said = command("view", "--no-browser", "--host", "0.0.0.0")
    assert said.code == 2
    assert said.err.startswith("memorybench: --host:")
    assert command("view", "--no-browser", "--host", "0.0.0.0", "--token", "short").err.startswith(
        "memorybench: --token:"
    )


def test_vendored_files_are_as_published() -> None:
    listed = json.loads((STATIC / "VENDORED.json").read_text())
    assert set(listed) == {"htmx.min.js"}
    for name, facts in listed.items():
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == facts["sha256"]
        assert (STATIC / "htmx.LICENSE.txt").exists()
