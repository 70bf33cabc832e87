"""Trusted authorities, client certificates, and the reason of a failed TLS connection."""

from __future__ import annotations

import asyncio
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from memorybench.core.errors import BadInput, ServiceError, Transient
from memorybench.http.tls import EXPIRED, HOST_MISMATCH, UNKNOWN_AUTHORITY, TlsFiles

from .servers import HELLO, ByteServer, close_connection, send


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


def server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    return server_context(authority.issue_cert("127.0.0.1"))


def failure(**options: Any) -> ServiceError:
    server = ByteServer(HELLO)
    [error] = send(server, **options)
    assert type(error) is ServiceError  # a retry cannot help
    assert server.requests == []
    return error


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_private_authority_is_trusted_by_an_environment_variable(
    variable: str, tls: ssl.SSLContext, ca_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv(variable, ca_file)
    server = ByteServer(HELLO)
    assert send(server, times=3, tls=tls, method="POST", json={"a": "x" * 300_000}) == [b"hello"] * 3
    assert server.connections == 1


def test_private_authority_is_trusted_by_config(tls: ssl.SSLContext, ca_file: str) -> None:
    assert send(ByteServer(HELLO), tls=tls, opened={"tls": TlsFiles(ca_file=ca_file)}) == [b"hello"]


def test_body_without_length_ends_with_the_secure_connection(tls: ssl.SSLContext, ca_file: str) -> None:
    server = ByteServer(b"HTTP/1.1 200 OK\r\n\r\nhello", end=close_connection)
    assert send(server, times=2, tls=tls, opened={"tls": TlsFiles(ca_file=ca_file)}) == [b"hello"] * 2


def test_unknown_authority_is_named(tls: ssl.SSLContext) -> None:
    error = failure(tls=tls)
    assert error.reason == UNKNOWN_AUTHORITY
    assert "SSL_CERT_FILE" in str(error)


@pytest.mark.parametrize("name", ["other.example.com", "127.0.0.9"])
def test_wrong_host_is_named(name: str, authority: trustme.CA, ca_file: str) -> None:
    tls = server_context(authority.issue_cert(name))
    assert failure(tls=tls, opened={"tls": TlsFiles(ca_file=ca_file)}).reason == HOST_MISMATCH


def test_expired_certificate_is_named(authority: trustme.CA, ca_file: str) -> None:
    tls = server_context(authority.issue_cert("127.0.0.1", not_after=datetime.now(UTC) - timedelta(days=1)))
    assert failure(tls=tls, opened={"tls": TlsFiles(ca_file=ca_file)}).reason == EXPIRED


def test_client_certificate_is_sent(authority: trustme.CA, ca_file: str, tls: ssl.SSLContext, tmp_path: Path) -> None:
    tls.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(tls)
    files = TlsFiles(ca_file=ca_file, cert_file=str(tmp_path / "cert.pem"), key_file=str(tmp_path / "key.pem"))
    client = authority.issue_cert("client@example.com")
    client.private_key_pem.write_to_path(tmp_path / "key.pem")
    client.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    assert send(ByteServer(HELLO), tls=tls, opened={"tls": files}) == [b"hello"]
    server = ByteServer(HELLO)
    [error] = send(server, tls=tls, opened={"tls": TlsFiles(ca_file=ca_file)})
    assert isinstance(error, ServiceError)
    assert server.requests == []


@pytest.mark.parametrize(
    ("files", "where"),
    [
        (TlsFiles(ca_file="missing.pem"), "tls.caFile"),
        (TlsFiles(ca_file=__file__), "tls.caFile"),
        (TlsFiles(cert_file="missing.pem"), "tls.certFile"),
        (TlsFiles(key_file="missing.pem"), "tls.keyFile"),
    ],
)
def test_invalid_file_is_bad_input(files: TlsFiles, where: str, tls: ssl.SSLContext) -> None:
    [error] = send(ByteServer(HELLO), tls=tls, opened={"tls": files})
    assert isinstance(error, BadInput)
    assert error.where == where


def test_missing_file_of_the_environment_is_bad_input(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "missing.pem")
    [error] = send(ByteServer(HELLO), tls=tls)
    assert isinstance(error, BadInput)
    assert error.where == "SSL_CERT_FILE"


def test_a_tls_error_while_the_reply_is_read_is_uncertain(
    tls: ssl.SSLContext, ca_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has received the request, and may have done and charged for the work."""

    def send_invalid_record(writer: asyncio.StreamWriter) -> None:
        os.write(writer.get_extra_info("socket").fileno(), b"\x17\x03\x03\x00\x10" + b"x" * 16)

    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    server = ByteServer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello", end=send_invalid_record)
    [error] = send(server, tls=tls)
    assert isinstance(error, Transient)
    assert error.uncertain
