"""Removes secrets from everything that a process prints: results, warnings, logs and progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from .environment import forget_secrets, redactor


class CleanedStream:
    """A text stream that applies `clean` to every text and writes it to another stream."""

    def __init__(self, stream: TextIO, clean: Callable[[str], str]) -> None:
        self._stream = stream
        self._clean = clean

    def write(self, text: str) -> int:
        self._stream.write(self._clean(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def redacted_output() -> Iterator[None]:
    """Redact everything that is written to standard output and standard error inside the `with` block.

    For one command: the secrets that an earlier command of this process learned are forgotten first.
    """
    forget_secrets()
    clean = redactor().clean
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream and CleanedStream(stream, clean) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
