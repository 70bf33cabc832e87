"""TLS settings, and the reason why a secure connection failed."""

import os
import ssl
from functools import lru_cache
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.core.records import Record

UNKNOWN_AUTHORITY = "unknown certificate authority"
HOST_MISMATCH = "host name mismatch"
EXPIRED = "certificate expired"
NO_TLS = "not a TLS server"

# X509_V_ERR_* of OpenSSL
_REASONS = {
    9: "certificate not yet valid",
    10: EXPIRED,
    **dict.fromkeys((18, 19, 20, 21), UNKNOWN_AUTHORITY),
    23: "certificate revoked",
    **dict.fromkeys((62, 63, 64), HOST_MISMATCH),
}
_REMEDIES = {
    UNKNOWN_AUTHORITY: "set SSL_CERT_FILE to a PEM file with the authority that signed the server's certificate",
    HOST_MISMATCH: "use a host name that the server's certificate contains",
    EXPIRED: "renew the server's certificate, or correct this machine's clock",
    "certificate not yet valid": "correct this machine's clock",
    NO_TLS: "use http:// if the server has no TLS",
}
_PLAIN_SERVER = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")


class TlsFiles(Record):
    """PEM files for https; paths are relative to the working folder.

    Field docstrings are the user's documentation: docs/config-keys.md and the JSON Schema show them.
    """

    ca_file: str | None = None
    """Certificate authorities to trust, instead of those of SSL_CERT_FILE, REQUESTS_CA_BUNDLE or the system."""
    cert_file: str | None = None
    """Client certificate, for a server that requires one."""
    key_file: str | None = None
    """Private key of the client certificate, if `certFile` does not contain it."""


def tls_context(files: TlsFiles) -> ssl.SSLContext:
    """Return an SSL context that trusts the authorities in `files.ca_file`, or else those of the environment or system.

    The environment variables are SSL_CERT_FILE and REQUESTS_CA_BUNDLE.
    """
    environment = tuple((name, os.environ.get(name, "")) for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"))
    return _tls_context(files, environment)


@lru_cache(maxsize=16)  # loads every certificate that this machine trusts
def _tls_context(files: TlsFiles, environment: tuple[tuple[str, str], ...]) -> ssl.SSLContext:
    name, path = next(
        ((name, path) for name, path in (("tls.caFile", files.ca_file), *environment) if path), ("", None)
    )
    try:
        is_folder = path is not None and Path(path).is_dir()
        context = ssl.create_default_context(cafile=None if is_folder else path, capath=path if is_folder else None)
    except OSError as error:
        raise BadInput(name, f"{path}: {_problem(error)}", expected="a PEM file of certificate authorities") from None
    if files.key_file is not None and files.cert_file is None:
        raise BadInput(
            "tls.keyFile", "tls.certFile is missing", remedy="add tls.certFile with the certificate of this key"
        )
    if files.cert_file is not None:
        try:
            context.load_cert_chain(files.cert_file, files.key_file)
        except OSError as error:
            raise BadInput(
                "tls.certFile",
                f"{files.cert_file}: {_problem(error)}",
                expected="a PEM file with the certificate, and its key there or in tls.keyFile",
            ) from None
    return context


def _problem(error: OSError) -> str:
    return f"invalid ({error.reason or 'no PEM'})" if isinstance(error, ssl.SSLError) else error.strerror or "not found"


def failure_reason(error: BaseException) -> str:
    """Return in a few words why TLS failed; "" if TLS is not the cause of `error`."""
    cause: ssl.SSLError | None = None
    link: BaseException | None = error
    while link is not None:  # the innermost one; errors of aiohttp are of the same class, but without details
        if isinstance(link, ssl.SSLError):
            cause = link
        link = link.__cause__ or link.__context__
    if cause is None:
        return ""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _REASONS.get(cause.verify_code, f"certificate rejected ({cause.verify_message})")
    if cause.reason in _PLAIN_SERVER:
        return NO_TLS
    return f"TLS handshake failed ({cause.reason or 'connection closed'})"


def remedy(reason: str) -> str:
    return _REMEDIES.get(reason, "")
