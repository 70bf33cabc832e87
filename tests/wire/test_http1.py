"""Replies byte by byte, as servers really send them and as they should not."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.vocabulary.errors import Malformed, MemorybenchError, Transient
from memorybench.wire import connections
from memorybench.wire.http import Http, open_http
from memorybench.wire.http1 import HEAD_CAP, NotHttp, ReplyReader
from memorybench.wire.redaction import Redactor


class Script:
    """A server that gives the same bytes to every request, and counts who connects."""

    def __init__(self, reply: bytes, *, then_close: bool = False) -> None:
        self._reply = reply
        self._then_close = then_close
        self.requests: list[bytes] = []
        self.connections = 0
        self.hung_up = asyncio.Semaphore(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                _, told, length = head.lower().partition(b"content-length:")
                body = await reader.readexactly(int(length.split(b"\r\n")[0])) if told else b""
                self.requests.append(head + body)
                writer.write(self._reply)
                if self._then_close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self.hung_up.release()


@asynccontextmanager
async def running(script: Script, secured: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0, ssl=secured)
    async with server:
        yield f"http{'s' if secured else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def asked(script: Script, *, times: int = 1, method: str = "GET", **request: object) -> list[bytes | MemorybenchError]:
    """What each of `times` requests, one after the other, brought."""

    async def ask(http: Http, url: str) -> bytes | MemorybenchError:
        try:
            return (await http.request(method, url, **request)).body  # type: ignore[arg-type]
        except MemorybenchError as error:
            return error

    async def everything() -> list[bytes | MemorybenchError]:
        async with running(script) as url, open_http(Redactor([]), deadline=5.0) as http:
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


@given(reply=st.sampled_from(list(READABLE.values())), cuts=st.sets(st.integers(1, 110), max_size=8))
def test_however_a_reply_is_cut_it_reads_the_same(reply: bytes, cuts: set[int]) -> None:
    places = [0, *sorted(cut for cut in cuts if cut < len(reply)), len(reply)]
    heard = Heard()
    reader = ReplyReader("GET", heard)
    for start, stop in pairwise(places):
        assert not reader.whole
        reader.feed(reply[start:stop])
    assert (reader.whole, heard.status, bytes(heard.body), reader.keeps_open) == (True, 200, b"hello", True)


@given(st.binary(max_size=300))
def test_no_bytes_whatever_break_the_reader(noise: bytes) -> None:
    for reply in (noise, b"HTTP/1.1 200 OK\r\n" + noise, READABLE["chunks"][:50] + noise):
        reader = ReplyReader("GET", Heard())
        with suppress(NotHttp):
            reader.feed(reply)
            reader.end()


class Heard:
    def __init__(self) -> None:
        self.status = 0
        self.body = bytearray()

    def head(self, status: int, _: object) -> None:
        self.status = status

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
    ],
    ids=["close", "1.0", "two lengths", "too much"],
)
def test_a_connection_that_may_not_be_used_again_is_not(reply: bytes) -> None:
    script = Script(reply)
    assert asked(script, times=2) == [b"hello"] * 2
    assert script.connections == 2


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    script = Script(b"HTTP/1.1 200 OK\r\n\r\nhello", then_close=True)
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
    [told] = asked(Script(reply, then_close=True))
    assert isinstance(told, Transient)
    assert "the reply breaks off" in str(told)
    assert told.uncertain


def test_a_server_that_hangs_up_between_requests_is_connected_to_again() -> None:
    script = Script(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", then_close=True)

    async def ask() -> list[bytes]:
        async with running(script) as url, open_http(Redactor([])) as http:
            replies = []
            for _ in range(3):
                replies.append((await http.request("GET", url)).body)
                await script.hung_up.acquire()
                for _ in range(3):
                    await asyncio.sleep(0)  # the end has come, but must be read
            return replies

    assert asyncio.run(ask()) == [b"hello"] * 3
    assert script.connections == 3


def test_an_old_idle_connection_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", -1.0)
    script = Script(READABLE["a length"])
    assert asked(script, times=2) == [b"hello"] * 2
    assert script.connections == 2


def test_our_own_fields_give_way_to_those_given_in_any_case() -> None:
    script = Script(READABLE["a length"])
    asked(script, method="POST", headers={"content-type": "application/vnd.x+json", "ACCEPT": "text/plain"}, json=[1])
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


SECURE_CLIENT = """
import asyncio, sys
from memorybench.vocabulary.errors import ServiceError
from memorybench.wire.http import open_http
from memorybench.wire.redaction import Redactor

async def main():
    async with open_http(Redactor([])) as http:
        try:
            for _ in range(2):
                print((await http.request("POST", sys.argv[1], json={})).body.decode())
        except ServiceError as refused:
            print(type(refused).__name__, refused)

asyncio.run(main())
"""


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


@pytest.mark.parametrize(
    ("trusted", "said"), [(True, "hello\nhello\n"), (False, "ServiceError POST https://127.0.0.1:PORT: the cert")]
)
def test_a_secure_server_is_asked_only_if_its_certificate_is_trusted(
    certificate: tuple[Path, Path], trusted: bool, said: str
) -> None:
    made, key = certificate
    script = Script(READABLE["a length"])
    secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secured.load_cert_chain(made, key)

    async def ask() -> str:
        async with running(script, secured) as url:
            environment = {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
            client = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", SECURE_CLIENT, url),
                stdout=subprocess.PIPE,
                env=environment | ({"SSL_CERT_FILE": str(made)} if trusted else {}),
            )
            printed, _ = await client.communicate()
            return printed.decode().replace(url.rpartition(":")[2], "PORT")

    assert asyncio.run(ask()).startswith(said)
    assert len(script.requests) == (2 if trusted else 0)
    assert script.connections == (1 if trusted else 0)
