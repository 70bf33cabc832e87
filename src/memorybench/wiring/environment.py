"""Environment variables and the redactor. No other module reads the environment."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from memorybench.core.errors import BadInput

if TYPE_CHECKING:
    from memorybench.secrets.redaction import Redactor

_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "BEARER")
_HEADER_VARIABLES = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
_FAULT_VARIABLE = "MEMORYBENCH_FAULT_AT"


def environment() -> Mapping[str, str]:
    return os.environ


def first_variable(*names: str) -> str | None:
    """Return the value of the first of these variables that is set and not empty, or None."""
    return next((value for name in names if (value := environment().get(name))), None)


def named_variables(names: Sequence[str], flag: str) -> dict[str, str]:
    """Return the values of these variables. Raise BadInput, which names `flag`, if one is not set."""
    for name in names:
        if name not in environment():
            raise BadInput(
                flag, f"the environment variable {name} is not set", remedy=f"set it, or leave it out of {flag}"
            )
    return {name: environment()[name] for name in names}


def set_variables(values: Mapping[str, str]) -> None:
    """Set environment variables of this process."""
    os.environ.update(values)


@cache
def _shared_redactor() -> Redactor:
    from memorybench.secrets.redaction import Redactor

    return Redactor()


def redactor() -> Redactor:
    """Return the redactor that all parts of this process share.

    It knows the values of environment variables whose names look like those of secrets, and passwords in URLs and
    headers in other variables. credentials.py adds the values that configs use.
    """
    from memorybench.secrets.redaction import credentials_in_url

    shared = _shared_redactor()
    for name, value in environment().items():
        if is_secret_name(name):
            shared.add(value)
        elif name in _HEADER_VARIABLES:
            shared.add(*_header_values(value))
        elif "@" in value and "://" in value:
            shared.add(*credentials_in_url(value))
    return shared


def _header_values(headers: str) -> list[str]:
    """Return the secret values of headers in the form `name=value,name=value`.

    Each is returned as written and URL-decoded, with and without a scheme such as `Bearer`.
    """
    from urllib.parse import unquote

    pairs = [pair.partition("=") for pair in headers.split(",")]
    values = [
        value.strip()
        for name, _, value in pairs
        if "authorization" in name.lower() or is_secret_name(name.strip().replace("-", "_"))
    ]
    values += [unquote(value) for value in values]
    return [part for value in values for part in (value, value.rpartition(" ")[2]) if part]


def learn_journal(url: str | None) -> None:
    """Redact the password in the address of a journal database in all later output."""
    if url is not None:
        from memorybench.journal.places import passwords_in

        redactor().add(*passwords_in(url))


def forget_secrets() -> None:
    """Discard the redactor, so that the next command of this process starts with a new one."""
    _shared_redactor.cache_clear()


@cache
def is_secret_name(name: str) -> bool:
    parts = name.upper().split("_")
    return any(word in parts for word in _SECRET_WORDS) or name.upper().endswith(_SECRET_WORDS)


def fault() -> Callable[[], None] | None:
    """Return a function that kills this process at its n-th call, or None unless `MEMORYBENCH_FAULT_AT=n` is set.

    For tests: the journal calls it whenever a commit begins or ends.
    """
    place = environment().get(_FAULT_VARIABLE)
    if place is None:
        return None
    left = int(place)

    def tick() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return tick
