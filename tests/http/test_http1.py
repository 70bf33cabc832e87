"""Replies byte by byte, as servers really send them and as they should not."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.core.errors import BadInput, Denied, Malformed, MemorybenchError, ServiceError, Transient
from memorybench.http import connections
from memorybench.http.client import Http, open_http
from memorybench.http.http1 import HEAD_CAP, NotHttp, ReplyReader
from memorybench.http.replies import Reply
from memorybench.secrets.redaction import Redactor


class Script:
    """A server that gives the same bytes to every request, and counts who connects."""

    def __init__(self, reply: bytes, *, then: Callable[[asyncio.StreamWriter], None] | None = None) -> None:
        """`then`: how it ends the connection after each reply; None: it does not."""
        self._reply = reply
        self._then = then
        self.requests: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.connections = 0
        self.hung_up = asyncio.Semaphore(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):  # the client has closed, as it should in the end
            while head := await reader.readuntil(b"\r\n\r\n"):
                _, told, length = head.lower().partition(b"content-length:")
                body = await reader.readexactly(int(length.split(b"\r\n")[0])) if told else b""
                self.requests.append(head + body)
                writer.write(self._reply)
                if self._then is not None:
                    await writer.drain()
                    self._then(writer)
                    break
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        self.hung_up.release()


def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


def tear(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def running(script: Script, secured: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0, ssl=secured)
    async with server:
        yield f"http{'s' if secured else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for writer in script.writers:
            writer.transport.abort()
        await asyncio.sleep(0)


def asked(
    script: Script, *, times: int = 1, method: str = "GET", secured: ssl.SSLContext | None = None, **request: Any
) -> list[bytes | MemorybenchError]:
    """What each of `times` requests, one after the other, brought."""

    async def ask(http: Http, url: str) -> bytes | MemorybenchError:
        try:
            return (await http.request(method, url, **request)).body
        except MemorybenchError as error:
            return error

    async def everything() -> list[bytes | MemorybenchError]:
        async with running(script, secured) as url, open_http(Redactor([]), deadline=20.0) as http:
            return [await ask(http, url) for _ in range(times)]

    return asyncio.run(everything())


READABLE = {
    "a length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "no reason": b"HTTP/1.1 200\r\ncontent-length:5\r\n\r\nhello",
    "the length twice": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n003;x=1\r\nllo\r\n0\r\nA: b\r\n\r\n",
    "line feeds alone": b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    "a folded header": b"HTTP/1.1 200 OK\r\nX-Long: one\r\n two\r\nContent-Length: 5\r\n\r\nhello",
    "a word before": b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "an empty line before": b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "an older version": b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
}


@pytest.mark.parametrize("reply", READABLE.values(), ids=READABLE)
def test_a_reply_is_read_and_its_connection_used_again(reply: bytes) -> None:
    script = Script(reply)
    assert asked(script, times=3) == [b"hello"] * 3
    assert script.connections == 1


@pytest.mark.parametrize("reply", READABLE.values(), ids=READABLE)
def test_wherever_a_reply_is_cut_it_reads_the_same(reply: bytes) -> None:
    for first in range(1, len(reply) + 1):
        for second in range(first, len(reply) + 1):
            heard = Heard()
            reader = ReplyReader("GET", heard)
            for piece in filter(None, (reply[:first], reply[first:second], reply[second:])):
                assert not reader.whole
                reader.feed(piece)
            assert (reader.whole, heard.status, bytes(heard.body), reader.keeps_open) == (True, 200, b"hello", True)


def test_a_body_may_begin_with_an_empty_line() -> None:
    for end in (b"\n", b"\r\n"):
        head = end.join((b"HTTP/1.1 200 OK", b"Content-Length: 5", b"", b""))
        assert asked(Script(head + b"\r\n\r\nx")) == [b"\r\n\r\nx"]


def test_a_chunk_without_its_end_is_refused_wherever_it_is_cut() -> None:
    reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n"
    for cut in range(1, reply.index(b"0\r\n\r\n") + 1):
        reader = ReplyReader("GET", Heard())
        reader.feed(reply[:cut])
        with pytest.raises(NotHttp):
            reader.feed(reply[cut:])


@given(st.binary(max_size=300))
def test_whatever_comes_reads_alike_at_once_and_byte_by_byte(noise: bytes) -> None:
    for reply in (noise, b"HTTP/1.1 200 OK\r\n" + noise, READABLE["chunks"][:50] + noise):
        assert _heard([reply]) == _heard([bytes([byte]) for byte in reply])


def _heard(pieces: Sequence[bytes]) -> tuple[int, bytes, bool] | None:
    """None: it is no HTTP."""
    heard = Heard()
    reader = ReplyReader("GET", heard)
    try:
        for piece in pieces:
            if not reader.whole:
                reader.feed(piece)
    except NotHttp:
        return None
    reader.end()
    return heard.status, bytes(heard.body), reader.whole


class Heard:
    def __init__(self) -> None:
        self.status = 0
        self.body = bytearray()

    def head(self, status: int, _: object) -> bool:
        self.status = status
        return True

    def piece(self, data: bytes) -> bool:
        self.body += data
        return True


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more than was promised",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ],
    ids=["close", "1.0", "two lengths", "too much", "1.0 in chunks"],
)
def test_a_connection_that_may_not_be_used_again_is_not(reply: bytes) -> None:
    script = Script(reply)
    assert asked(script, times=2) == [b"hello"] * 2
    assert script.connections == 2


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    script = Script(b"HTTP/1.1 200 OK\r\n\r\nhello", then=hang_up)
    assert asked(script, times=2) == [b"hello"] * 2


@pytest.mark.parametrize(
    ("method", "reply"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        ("DELETE", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ],
)
def test_a_reply_without_a_body_is_not_waited_for(method: str, reply: bytes) -> None:
    script = Script(reply)
    assert asked(script, times=2, method=method) == [b"", b""]
    assert script.connections == 1


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
        b"\r\n" * 40_000 + b"X",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 5_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * HEAD_CAP,
    ],
)
def test_what_is_no_http_is_said_to_be_none_at_once(reply: bytes) -> None:
    # The connection stays open: who waits for its end would wait for the deadline.
    [told] = asked(Script(reply))
    assert isinstance(told, Malformed)
    assert "the reply is no HTTP" in str(told)


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ],
    ids=["head", "body", "chunks"],
)
def test_a_reply_that_breaks_off_may_have_been_paid_for(reply: bytes) -> None:
    [told] = asked(Script(reply, then=hang_up))
    assert isinstance(told, Transient)
    assert "the reply breaks off" in str(told)
    assert told.uncertain


def test_a_reply_of_unknown_length_that_is_torn_off_is_not_taken_for_whole() -> None:
    script = Script(b"HTTP/1.1 200 OK\r\n\r\n[1, 2", then=tear)
    [told] = asked(script)
    assert isinstance(told, Transient)
    assert told.uncertain


def test_what_comes_unasked_is_never_taken_for_a_reply() -> None:
    """Not even if it lies in the system's buffer when the next request is made, because the loop was busy."""
    script = Script(READABLE["a length"])

    async def ask() -> list[bytes]:
        async with running(script) as url, open_http(Redactor([])) as http:
            first = (await http.request("GET", url)).body
            script.writers[0].write(READABLE["a length"].replace(b"hello", b"STALE"))
            return [first, (await http.request("GET", url)).body]

    assert asyncio.run(ask()) == [b"hello"] * 2
    assert script.connections == 2


def test_a_server_that_hangs_up_between_requests_is_connected_to_again() -> None:
    script = Script(READABLE["a length"], then=hang_up)

    async def ask() -> list[bytes]:
        async with running(script) as url, open_http(Redactor([])) as http:
            replies = []
            for _ in range(3):
                replies.append((await http.request("GET", url)).body)
                await script.hung_up.acquire()
            return replies

    assert asyncio.run(ask()) == [b"hello"] * 3
    assert script.connections == 3


def test_what_is_under_way_when_all_is_closed_ends_and_nothing_more_is_sent() -> None:
    script = Script(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")

    async def ask() -> Sequence[BaseException | Reply]:
        async with running(script) as url:
            async with open_http(Redactor([])) as http:
                asking = asyncio.create_task(http.request("POST", url, json={}))
                while not script.requests:  # noqa: ASYNC110  the server is in this loop, and has no event to tell
                    await asyncio.sleep(0)
                connecting = asyncio.create_task(http.request("POST", url, json={}))
                await asyncio.sleep(0)
            late = http.request("POST", url, json={})
            return await asyncio.gather(asking, connecting, late, return_exceptions=True)

    told = asyncio.run(ask())
    assert [(type(one), one.uncertain) for one in told if isinstance(one, Transient)] == [
        (Transient, True),
        (Transient, False),
        (Transient, False),
    ]
    assert len(script.requests) == 1


@pytest.mark.parametrize("body", ["endless", "never", "packed otherwise"])
def test_where_a_reply_only_leads_elsewhere_its_body_is_not_waited_for(body: str) -> None:
    redirect = b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere.example.com/\r\n"
    ends = {
        "endless": b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "never": b"Content-Length: 9\r\n\r\n",
        "packed otherwise": b"Content-Encoding: br\r\nContent-Length: 5\r\n\r\nhello",
    }
    [told] = asked(Script(redirect + ends[body]))
    assert isinstance(told, ServiceError)
    assert "redirects to https://elsewhere.example.com/, which is not followed" in str(told)


@pytest.mark.parametrize(
    ("status", "kind"), [(b"429", Transient), (b"401", Denied), (b"999", ServiceError)], ids=["429", "401", "999"]
)
def test_a_status_is_told_whatever_its_body_is_packed_in(status: bytes, kind: type[ServiceError]) -> None:
    reply = (
        b"HTTP/1.1 %s X\r\nContent-Encoding: br\r\nRetry-After: 3\r\nRetry-After: 3\r\nContent-Length: 5\r\n\r\nhello"
    )
    [told] = asked(Script(reply % status))
    assert type(told) is kind
    assert f"HTTP {status.decode()}" in str(told)
    if isinstance(told, Transient):
        assert told.retry_after == 3.0


def test_an_old_idle_connection_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", -1.0)
    script = Script(READABLE["a length"])
    assert asked(script, times=2) == [b"hello"] * 2
    assert script.connections == 2


def test_our_own_fields_give_way_to_those_given_in_any_case() -> None:
    script = Script(READABLE["a length"])
    given = {"content-type": "application/vnd.x+json", "ACCEPT": "text/plain", "content-length": "1"}
    asked(script, method="POST", headers=given, json=[1])
    head, _, body = script.requests[0].partition(b"\r\n\r\n")
    first, *fields = head.decode().split("\r\n")
    assert (first, body) == ("POST / HTTP/1.1", b"[1]")
    assert sorted(field for field in fields if not field.startswith("Host: 127.0.0.1:")) == [
        "ACCEPT: text/plain",
        "Accept-Encoding: gzip",
        "Content-Length: 3",
        "User-Agent: memorybench",
        "content-type: application/vnd.x+json",
    ]


@pytest.mark.parametrize(
    "headers",
    [
        {"X-User": "u1\r\nAuthorization: Bearer other"},
        {"X-User": "u1\nX: y"},
        {"X: a\r\nY": "b"},
        {"X-User": "a\0b"},
        {"X User": "a"},
        {"": "a"},
        {"X-User": "\ud800"},
    ],
)
def test_no_header_brings_another_along(headers: dict[str, str]) -> None:
    script = Script(READABLE["a length"])
    [told] = asked(script, headers=headers)
    assert isinstance(told, BadInput)
    assert script.requests == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """For 127.0.0.1, signed by itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes a certificate for this test, is not installed")
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(made)),
        ],
        check=True,
        capture_output=True,
    )
    return made, key


@pytest.fixture
def secured(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture
def trusted(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_secured", lambda: ssl.create_default_context(cafile=certificate[0]))


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("reply", READABLE.values(), ids=READABLE)
def test_a_secure_server_is_asked_again_on_the_same_connection(secured: ssl.SSLContext, reply: bytes) -> None:
    script = Script(reply)
    assert asked(script, times=3, secured=secured, method="POST", json={"a": "x" * 300_000}) == [b"hello"] * 3
    assert script.connections == 1


@pytest.mark.usefixtures("trusted")
def test_a_secure_body_without_a_length_ends_with_the_connection(secured: ssl.SSLContext) -> None:
    script = Script(b"HTTP/1.1 200 OK\r\n\r\nhello", then=hang_up)
    assert asked(script, times=2, secured=secured) == [b"hello"] * 2


def test_a_certificate_that_nobody_vouches_for_is_not_accepted(secured: ssl.SSLContext) -> None:
    script = Script(READABLE["a length"])
    [told] = asked(script, secured=secured)
    assert type(told) is ServiceError
    assert "the certificate is not accepted" in str(told)
    assert script.requests == []


@pytest.mark.parametrize("secure", [True, False])
def test_a_connection_on_which_a_request_is_still_being_sent_is_not_used_again(
    secure: bool, request: pytest.FixtureRequest
) -> None:
    """A server may answer before it has heard all: the rest would be taken for the next request."""
    if secure:
        request.getfixturevalue("trusted")
    server = Impatient()
    told = asked(server, times=2, secured=request.getfixturevalue("secured") if secure else None, json="x" * 8_000_000)
    assert [str(one).rpartition("HTTP ")[2] for one in told] == ["413", "413"]
    assert server.connections == 2


class Impatient(Script):
    """Refuses at the first bytes, and listens no more."""

    def __init__(self) -> None:
        super().__init__(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        await reader.read(100)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(self._reply)
