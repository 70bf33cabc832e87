from __future__ import annotations

import asyncio
import base64
import gzip
import json
import socket
import subprocess
import sys
import traceback
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import pytest
from aiohttp import ThreadedResolver, web

from memorybench.core.errors import BadInput, Denied, Malformed, ServiceError, Transient
from memorybench.http.client import Http, open_http
from memorybench.http.replies import Reply
from memorybench.http.tls import NO_TLS
from memorybench.secrets.redaction import Redactor
from tests.doubles.stub import (
    MIB,
    Behaviour,
    Call,
    Stub,
    babble,
    drip,
    flood,
    gzip_bomb,
    half_body,
    hang,
    html,
    raw,
    redirect,
    reply,
    reset,
    status,
    together,
)

from .servers import resolve_to

T = TypeVar("T")
KEY = "sk-Sentinel/0123+456\"789'abc"


def ask(url: str, method: str = "POST", **request: Any) -> Reply:
    async def once(http: Http) -> Reply:
        return await http.request(method, url, **request)

    return with_http(once)


def with_http(work: Callable[[Http], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_http(Redactor([KEY])) as http:
            return await work(http)

    return asyncio.run(run())


def test_a_request_has_the_given_headers_and_body(stub: Stub) -> None:
    stub.always(reply({"found": [1]}))
    answer = ask(f"{stub.url}/search?k=5", headers={"X-Key": "v"}, params={"q": "tea & rum"}, json={"a": "ü"})
    assert (answer.status, answer.json()) == (200, {"found": [1]})
    [call] = stub.calls
    assert (call.method, call.path, dict(call.query)) == ("POST", "/search", {"k": "5", "q": "tea & rum"})
    assert (call.headers["x-key"], call.headers["Content-Type"], call.json) == ("v", "application/json", {"a": "ü"})


def test_a_large_request_is_sent_whole_and_without_a_warning(stub: Stub) -> None:
    stub.always(reply({}))
    ask(stub.url, json={"context": "x" * 3 * MIB})
    assert len(stub.calls[0].json["context"]) == 3 * MIB


@pytest.mark.parametrize("text", ["naïve 😀", "half \ud83d", "NaN and Infinity", "\x00\x7f\u2028"])
def test_any_text_arrives_as_it_was(stub: Stub, text: str) -> None:
    stub.always(reply({}))
    ask(stub.url, json={"content": text, "n": 10**30, "share": 0.1})
    assert stub.calls[0].json == {"content": text, "n": 10**30, "share": 0.1}


def test_nan_is_not_sent(stub: Stub) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        ask(stub.url, json={"vector": [0.5, float("nan")]})
    assert stub.calls == []


def test_a_packed_body_is_unpacked(stub: Stub) -> None:
    stub.always(raw(gzip.compress(b'{"packed": true}'), headers={"Content-Encoding": "gzip"}))
    assert ask(stub.url).json() == {"packed": True}
    assert "gzip" in stub.calls[0].headers["Accept-Encoding"]


def test_json_of_another_content_type_is_accepted(stub: Stub) -> None:
    stub.always(raw(b'\xef\xbb\xbf{"plain": 1}', content_type="text/plain"))
    assert ask(stub.url).json() == {"plain": 1}


@pytest.mark.parametrize(
    "behaviour",
    [
        html(),
        raw(b""),
        raw(b'{"torn": '),
        raw(b'{"score": NaN}'),
        raw(b'"\xff"'),
        raw(b"[" * 200_000),
        raw(b"1" * 5_000),
    ],
    ids=["HTML", "nothing", "torn", "NaN", "no UTF-8", "too deep", "too long a number"],
)
def test_an_invalid_json_body_is_malformed(stub: Stub, behaviour: Behaviour) -> None:
    stub.always(behaviour)
    with pytest.raises(Malformed):
        ask(stub.url).json()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *((code, Denied) for code in (401, 402, 403)),
        *((code, Transient) for code in (408, 425, 429, 500, 502, 503, 504, 524, 529)),
        *((code, ServiceError) for code in (304, 400, 404, 409, 418, 422, 501)),
    ],
)
def test_a_status_becomes_its_kind_of_error(stub: Stub, code: int, kind: type[ServiceError]) -> None:
    stub.always(status(code, said="not today"))
    with pytest.raises(ServiceError, match=f"POST {stub.url}/x: ") as failed:
        ask(f"{stub.url}/x?q=private")
    assert (type(failed.value), failed.value.status) == (kind, code)
    assert "private" not in str(failed.value)
    assert ("not today" in str(failed.value)) is (code != 304)


def test_a_transient_error_has_retry_after(stub: Stub) -> None:
    stub.next(status(429, headers={"Retry-After": "2.5"}), status(429), status(504))
    waits = []
    for _ in range(3):
        with pytest.raises(Transient) as failed:
            ask(stub.url)
        waits.append((failed.value.retry_after, failed.value.uncertain))
    assert waits == [(2.5, False), (None, False), (None, True)]


def test_a_date_to_wait_for_counts_from_the_servers_own_clock(stub: Stub) -> None:
    dates = {"Date": "Fri, 02 Jan 2026 12:00:00 GMT", "Retry-After": "Fri, 02 Jan 2026 12:01:00 GMT"}
    stub.always(status(503, headers=dates))
    with pytest.raises(Transient) as failed:
        ask(stub.url)
    assert failed.value.retry_after == 60.0


def test_an_error_quotes_one_safe_line_of_the_body(stub: Stub) -> None:
    stub.always(raw(b"\x1b[31mred\x00\nnext \xe2\x80\xaeline " + b"x" * 20_000, code=400))
    with pytest.raises(ServiceError) as failed:
        ask(stub.url)
    quoted = str(failed.value).split("HTTP 400: ")[1]
    assert quoted.startswith("[31mred next line xxx")
    assert quoted.isprintable()
    assert len(quoted) == 301


def test_a_refused_connection_is_certain_not_to_have_done_anything() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(Transient) as failed:
            ask(f"http://127.0.0.1:{unused.getsockname()[1]}/")
    assert failed.value.uncertain is False


def test_an_unknown_host_is_certain_not_to_have_done_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(ThreadedResolver, "resolve", unknown)
    with pytest.raises(Transient) as failed:
        ask("https://nowhere.invalid/")
    assert failed.value.uncertain is False


def test_a_connect_timeout_is_not_uncertain(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(ThreadedResolver, "resolve", never)
    monkeypatch.setattr("memorybench.http.client.CONNECT_TIMEOUT", 0.05)
    with pytest.raises(Transient) as failed:
        ask("https://slow.invalid/")
    assert failed.value.uncertain is False


def test_a_deadline_that_passes_before_there_is_a_connection_is_certain_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(ThreadedResolver, "resolve", never)
    with pytest.raises(Transient) as failed:
        ask("https://slow.invalid/", deadline=0.05)
    assert failed.value.uncertain is False


@pytest.mark.parametrize("behaviour", [reset(), half_body(), drip(), hang()], ids=["reset", "half", "drip", "hang"])
def test_a_reply_lost_after_sending_is_uncertain(stub: Stub, behaviour: Behaviour) -> None:
    stub.always(behaviour)
    with pytest.raises(Transient) as failed:
        ask(stub.url, deadline=0.3)
    assert failed.value.uncertain is True
    assert len(stub.calls) <= 1


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_nothing_is_sent_again_on_our_behalf_when_a_used_connection_breaks(stub: Stub, method: str) -> None:
    stub.always(reply({}))

    async def ask_twice(http: Http) -> None:
        await http.request(method, stub.url)
        stub.next(reset())
        with pytest.raises(Transient) as failed:
            await http.request(method, stub.url)
        assert failed.value.uncertain is True

    with_http(ask_twice)
    assert len(stub.calls) == 2


def test_an_invalid_http_response_is_malformed(stub: Stub) -> None:
    stub.always(babble())
    with pytest.raises(Malformed):
        ask(stub.url)


def test_https_to_a_plain_server_is_an_error_not_worth_repeating(stub: Stub) -> None:
    with pytest.raises(ServiceError) as failed:
        ask(stub.url.replace("http:", "https:"))
    assert (type(failed.value), failed.value.reason) == (ServiceError, NO_TLS)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(b"not packed at all", "gzip"), (b"not packed at all", "deflate"), (zlib.compress(bytes(999))[:-9], "deflate")],
    ids=["gzip", "deflate", "truncated"],
)
def test_a_body_that_cannot_be_decoded_is_an_error(stub: Stub, body: bytes, encoding: str) -> None:
    stub.always(raw(body, headers={"Content-Encoding": encoding}))
    with pytest.raises(ServiceError):
        ask(stub.url)


def test_a_truncated_gzip_body_is_an_error(stub: Stub) -> None:
    packed = gzip.compress(json.dumps(list(range(2000))).encode())
    stub.always(raw(packed[:-200], headers={"Content-Encoding": "gzip"}))
    with pytest.raises(Malformed):
        ask(stub.url).json()


@pytest.mark.parametrize(("size", "passes"), [(1000, True), (1001, False)])
@pytest.mark.parametrize("packed", [True, False])
def test_the_cap_counts_unpacked_bytes(
    stub: Stub, size: int, passes: bool, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memorybench.http.client.BODY_CAP", 1000)
    body = b"1" + b" " * (size - 1)
    stub.always(raw(gzip.compress(body), headers={"Content-Encoding": "gzip"}) if packed else raw(body))
    if passes:
        assert ask(stub.url).json() == 1
    else:
        with pytest.raises(Malformed):
            ask(stub.url)


GREEDY_CLIENT = """
import asyncio, resource, sys
from memorybench.core.errors import Malformed
from memorybench.http.client import open_http
from memorybench.secrets.redaction import Redactor

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

async def main():
    async with open_http(Redactor([])) as http:
        before = peak()
        try:
            await http.request("GET", sys.argv[1])
        except Malformed as refused:
            print(peak() - before, refused)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "size"), [(flood, 256 * MIB), (gzip_bomb, 128 * MIB)])
def test_a_huge_body_is_cut_off_before_it_fills_the_memory(
    stub: Stub, sent: Callable[[int], Behaviour], size: int
) -> None:
    stub.always(sent(size))
    # In a process of its own: a peak of memory is never taken back.
    client = [sys.executable, "-c", GREEDY_CLIENT, stub.url]
    root = Path(__file__).parents[2]
    ran = subprocess.run(client, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(root / "src")})
    grown, said = ran.stdout.split(maxsplit=1)
    assert int(grown) < 100 * MIB
    assert "33,554,432 bytes" in said


def test_a_get_follows_redirects_on_its_own_server(stub: Stub) -> None:
    stub.always(redirect("/b"), path="/a")
    stub.always(redirect(f"{stub.url}/c?x=1", code=307), path="/b")
    stub.always(reply("here"), path="/c")
    assert ask(f"{stub.url}/a", "GET", headers={"X-Key": "v"}).json() == "here"
    assert [(call.method, call.path, call.headers["X-Key"]) for call in stub.calls] == [
        ("GET", path, "v") for path in ("/a", "/b", "/c")
    ]


def test_redirects_in_a_circle_end(stub: Stub) -> None:
    stub.always(redirect("/again"))
    with pytest.raises(ServiceError):
        ask(stub.url, "GET")
    assert len(stub.calls) == 4


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_post_is_never_redirected(stub: Stub, code: int) -> None:
    stub.always(redirect("/elsewhere", code=code))
    with pytest.raises(ServiceError) as failed:
        ask(stub.url, json={})
    assert failed.value.status == code
    assert len(stub.calls) == 1


def test_redirects_to_other_servers_are_rejected(stub: Stub) -> None:
    with Stub() as other:
        other.always(reply("stolen"))
        port = other.url.rpartition(":")[2]
        for target in (f"{other.url}/x", f"http://localhost:{port}/x", f"//127.0.0.1:{port}/x", "https://127.0.0.1/"):
            stub.next(redirect(target))
            with pytest.raises(ServiceError):
                ask(stub.url, "GET", headers={"Authorization": f"Bearer {KEY}"})
        assert other.calls == []


@pytest.mark.parametrize("target", ["mailto:admin@example.com", "data:,x", "javascript:alert(1)", "http://[::1"])
def test_a_redirect_to_an_invalid_url_is_malformed(stub: Stub, target: str) -> None:
    stub.always(redirect(target))
    with pytest.raises(Malformed) as failed:
        ask(stub.url, "GET")
    assert failed.value.status == 302


def test_a_password_in_a_redirect_is_not_shown(stub: Stub) -> None:
    stub.always(redirect("https://user:opensesame@storage.example.com/file?token=opensesame"))
    with pytest.raises(ServiceError) as failed:
        ask(stub.url, "GET")
    assert "storage.example.com/file" in str(failed.value)
    assert "opensesame" not in str(failed.value)


def test_an_error_whose_body_never_ends_keeps_its_status_and_retry_after(stub: Stub) -> None:
    stub.always(drip(code=429, headers={"Retry-After": "7"}))
    with pytest.raises(Transient) as failed:
        ask(stub.url, deadline=0.3)
    assert (failed.value.status, failed.value.retry_after, failed.value.uncertain) == (429, 7.0, False)


def test_the_pool_does_not_delay_requests(stub: Stub) -> None:
    many = 150
    stub.always(together(stub, many, reply({})))

    async def ask_all(http: Http) -> None:
        await asyncio.gather(*(http.request("POST", stub.url, json={}) for _ in range(many)))

    with_http(ask_all)
    assert stub.peak == many


def test_files_are_not_opened() -> None:
    with pytest.raises(BadInput):
        ask("file:///etc/passwd", "GET")


def test_a_name_resolved_to_a_metadata_address_is_not_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThreadedResolver, "resolve", resolve_to("169.254.169.254"))
    with pytest.raises(BadInput) as refused:
        ask("https://innocent.example.com/", "GET")
    assert refused.value.where == "innocent.example.com"


def encodings(secret: str) -> list[str]:
    octets = secret.encode()
    return [
        secret,
        quote(secret, safe=""),
        base64.b64encode(octets).decode(),
        octets.hex(),
        repr(secret)[1:-1],
        json.dumps(secret)[1:-1],
    ]


async def indiscreet(_: web.BaseRequest, call: Call) -> web.StreamResponse:
    """An error that repeats the key it was sent, in every encoding."""
    key = call.headers["Authorization"].removeprefix("Bearer ")
    return web.Response(status=400, text=" | ".join(encodings(key)))


@pytest.mark.parametrize(
    "behaviour",
    [indiscreet, reset(), half_body(), hang(), redirect(f"https://evil.example.com/{quote(KEY)}")],
    ids=["indiscreet", "reset", "half", "hang", "redirect"],
)
def test_no_error_shows_the_key_in_any_encoding(stub: Stub, behaviour: Behaviour) -> None:
    stub.always(behaviour)
    with pytest.raises(ServiceError) as failed:
        ask(f"{stub.url}/{quote(KEY)}", headers={"Authorization": f"Bearer {KEY}"}, params={"key": KEY}, deadline=0.3)
    shown = "".join(traceback.format_exception(failed.value)) + repr(failed.value)
    assert [form for form in (*encodings(KEY), "Sentinel") if form in shown] == []


def test_a_key_that_can_not_be_a_header_is_not_shown(stub: Stub) -> None:
    with pytest.raises(BadInput) as failed:
        ask(stub.url, headers={"Authorization": f"Bearer {KEY}\nX-Injected: 1"})
    assert KEY not in "".join(traceback.format_exception(failed.value))
    assert stub.calls == []
