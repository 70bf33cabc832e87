"""The environment. It is read here and nowhere else."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memorybench.secrets.redaction import Redactor

_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")
_SHORTEST_SECRET = 8
_FAULT_VARIABLE = "MEMORYBENCH_FAULT_AT"


def environment() -> Mapping[str, str]:
    return os.environ


def first_variable(*names: str) -> str | None:
    """The value of the first of these variables that is set."""
    return next((value for name in names if (value := environment().get(name))), None)


def redactor() -> Redactor:
    """Replaces every value of the environment that looks like a secret."""
    from memorybench.secrets.redaction import Redactor

    return Redactor(
        value
        for name, value in environment().items()
        # a short value ("on", "test") occurs in ordinary text, and no service issues such keys
        if len(value) >= _SHORTEST_SECRET and _is_secret(name)
    )


def _is_secret(name: str) -> bool:
    parts = name.upper().split("_")
    return any(word in parts for word in _SECRET_WORDS) or name.upper().endswith(_SECRET_WORDS)


def fault() -> Callable[[], None] | None:
    """For tests: `MEMORYBENCH_FAULT_AT=n` kills this process at the n-th time a commit begins or ends."""
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
