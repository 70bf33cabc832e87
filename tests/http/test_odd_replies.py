"""What a caller gets for the replies that servers really send, and for those that they should not send."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorybench.core.errors import BadInput, Denied, Malformed, MemorybenchError, ServiceError, Transient
from memorybench.http.client import open_http
from memorybench.http.replies import Reply
from memorybench.secrets.redaction import Redactor

from .servers import HELLO, ByteServer, close_connection, reset_connection, running, send

VALID = {
    "length": HELLO,
    "no reason phrase": b"HTTP/1.1 200\r\ncontent-length:5\r\n\r\nhello",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n003;x=1\r\nllo\r\n0\r\nA: b\r\n\r\n",
    "early hints": b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + HELLO,
    "HTTP 1.0": b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
}


@pytest.mark.parametrize("reply", VALID.values(), ids=VALID)
def test_valid_reply_is_read_and_connection_reused(reply: bytes) -> None:
    server = ByteServer(reply)
    assert send(server, times=3) == [b"hello"] * 3
    assert server.connections == 1


def test_body_may_begin_with_an_empty_line() -> None:
    assert send(ByteServer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\r\n\r\nx")) == [b"\r\n\r\nx"]


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ],
    ids=["close", "HTTP 1.0"],
)
def test_connection_that_the_server_closes_is_not_reused(reply: bytes) -> None:
    server = ByteServer(reply)
    assert send(server, times=2) == [b"hello"] * 2
    assert server.connections == 2


def test_bytes_after_a_reply_are_not_read_as_the_next_reply() -> None:
    server = ByteServer(HELLO + HELLO.replace(b"hello", b"STALE"))
    replies = send(server, times=3)
    assert b"STALE" not in replies
    assert b"hello" in replies


def test_body_without_length_ends_with_the_connection() -> None:
    server = ByteServer(b"HTTP/1.1 200 OK\r\n\r\nhello", end=close_connection)
    assert send(server, times=2) == [b"hello"] * 2


@pytest.mark.parametrize(
    ("method", "reply"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        ("DELETE", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ],
)
def test_reply_without_body_is_complete_at_once(method: str, reply: bytes) -> None:
    server = ByteServer(reply)
    assert send(server, times=2, method=method) == [b"", b""]
    assert server.connections == 1


INVALID = {
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "HTTP/2": b"HTTP/2 200\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "no colon": b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    "null byte": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
    "length in words": b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
    "negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "long header": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 2**17,
}
BROKEN_CHUNKS = {
    "no size": b"hello\r\n",
    "negative size": b"-5\r\nhello\r\n",
    "wrong size": b"2\r\nhello\r\n",
}


@pytest.mark.parametrize("reply", INVALID.values(), ids=INVALID)
def test_invalid_http_is_malformed_at_once(reply: bytes) -> None:
    # The server keeps the connection open: a client that waits for its end would time out.
    [error] = send(ByteServer(reply))
    assert type(error) is Malformed


@pytest.mark.parametrize("chunks", BROKEN_CHUNKS.values(), ids=BROKEN_CHUNKS)
def test_broken_chunk_is_never_taken_for_a_body(chunks: bytes) -> None:
    [error] = send(ByteServer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks))
    assert isinstance(error, Malformed | Transient)


@settings(max_examples=30)
@given(st.binary(max_size=100))
def test_any_bytes_give_a_body_or_a_known_error(noise: bytes) -> None:
    for reply in (noise, b"HTTP/1.1 200 OK\r\n" + noise, VALID["chunks"][:50] + noise):
        [result] = send(ByteServer(reply, end=close_connection))
        assert isinstance(result, bytes | MemorybenchError)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ],
    ids=["nothing", "head", "body", "chunks"],
)
def test_truncated_reply_is_uncertain(reply: bytes) -> None:
    [error] = send(ByteServer(reply, end=close_connection), method="POST")
    assert type(error) is Transient
    assert error.uncertain


def test_reset_body_is_uncertain() -> None:
    [error] = send(ByteServer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1, 2", end=reset_connection))
    assert isinstance(error, Transient)
    assert error.uncertain


def test_unrequested_bytes_are_never_taken_for_a_reply() -> None:
    """Not even if the event loop has not yet read them when the next request is sent."""
    server = ByteServer(HELLO)

    async def send_twice() -> list[bytes]:
        async with running(server) as port, open_http(Redactor([])) as http:
            url = f"http://127.0.0.1:{port}"
            first = (await http.request("GET", url)).body
            server.writers[0].write(HELLO.replace(b"hello", b"STALE"))
            return [first, (await http.request("GET", url)).body]

    assert asyncio.run(send_twice()) == [b"hello"] * 2
    assert server.connections == 2


def test_post_after_the_server_closed_an_idle_connection_uses_a_new_one() -> None:
    server = ByteServer(HELLO, end=close_connection)

    async def send_all() -> list[bytes]:
        async with running(server) as port, open_http(Redactor([])) as http:
            bodies = []
            for number in range(3):
                bodies.append((await http.request("POST", f"http://127.0.0.1:{port}", json=number)).body)
                await server.closed.acquire()
            return bodies

    assert asyncio.run(send_all()) == [b"hello"] * 3
    assert server.connections == 3
    assert [request[-1:] for request in server.requests] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_request_on_a_connection_that_breaks_is_not_sent_again(method: str) -> None:
    """The server reads the second request on a reused connection and closes without a reply."""
    server = ByteServer(HELLO)

    async def send_twice() -> MemorybenchError | None:
        async with running(server) as port, open_http(Redactor([])) as http:
            url = f"http://127.0.0.1:{port}"
            await http.request(method, url)
            server._reply, server._end = b"", close_connection
            try:
                await http.request(method, url)
            except MemorybenchError as error:
                return error
            return None

    error = asyncio.run(send_twice())
    assert isinstance(error, Transient)
    assert error.uncertain
    assert (server.connections, len(server.requests)) == (1, 2)


def test_closing_the_client_ends_requests_in_flight_and_sends_no_more() -> None:
    server = ByteServer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")

    async def send_all() -> Sequence[BaseException | Reply]:
        async with running(server) as port:
            url = f"http://127.0.0.1:{port}"
            async with open_http(Redactor([])) as http:
                in_flight = asyncio.create_task(http.request("POST", url, json={}))
                while not server.requests:  # noqa: ASYNC110  the server runs in this loop and has no event for this
                    await asyncio.sleep(0)
            late = http.request("POST", url, json={})
            return await asyncio.gather(in_flight, late, return_exceptions=True)

    errors = asyncio.run(send_all())
    assert [error.uncertain for error in errors if isinstance(error, Transient)] == [True, False]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "rest",
    [b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", b"Content-Length: 9\r\n\r\n"],
    ids=["endless", "missing"],
)
def test_body_of_a_redirect_is_not_read(rest: bytes) -> None:
    redirect = b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere.example.com/\r\n"
    [error] = send(ByteServer(redirect + rest))
    assert type(error) is ServiceError
    assert error.status == 302


@pytest.mark.parametrize(("status", "kind"), [(429, Transient), (401, Denied), (999, ServiceError)])
def test_status_is_reported_even_if_the_body_cannot_be_decoded(status: int, kind: type[ServiceError]) -> None:
    reply = (
        b"HTTP/1.1 %d X\r\nContent-Encoding: gzip\r\nRetry-After: 3\r\nRetry-After: 3\r\nContent-Length: 5\r\n\r\nhello"
    )
    [error] = send(ByteServer(reply % status))
    assert isinstance(error, ServiceError)
    assert (type(error), error.status) == (kind, status)
    if isinstance(error, Transient):
        assert error.retry_after == 3.0


def test_own_headers_replace_the_defaults_in_any_case() -> None:
    server = ByteServer(HELLO)
    own = {"content-type": "application/vnd.x+json", "ACCEPT": "text/plain", "content-length": "1"}
    send(server, method="POST", headers=own, json=[1])
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, *fields = head.decode().split("\r\n")
    headers = [field.partition(": ") for field in fields]
    assert (first, body) == ("POST / HTTP/1.1", b"[1]")
    assert sorted(name.lower() for name, _, _ in headers) == sorted(
        {"host", "accept", "accept-encoding", "content-length", "content-type", "user-agent"}
    )
    values = {name.lower(): value for name, _, value in headers}
    assert (values["accept"], values["content-length"], values["user-agent"]) == ("text/plain", "3", "memorybench")
    assert values["content-type"] == "application/vnd.x+json"


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
def test_header_cannot_inject_another_header(headers: dict[str, str]) -> None:
    server = ByteServer(HELLO)
    [error] = send(server, headers=headers)
    assert isinstance(error, BadInput)
    assert server.requests == []


def test_connection_is_not_reused_while_a_request_is_still_being_sent() -> None:
    """A server may reply before it has read the whole request; the rest must not be read as the next request."""
    server = EarlyReply()
    errors = send(server, times=2, json="x" * 8_000_000)
    assert [error.status for error in errors if isinstance(error, ServiceError)] == [413, 413]
    assert server.connections == 2


class EarlyReply(ByteServer):
    """Replies after the first bytes and stops reading."""

    def __init__(self) -> None:
        super().__init__(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        await reader.read(100)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(self._reply)
