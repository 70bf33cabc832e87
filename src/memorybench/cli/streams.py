"""Makes standard streams safe: they may be closed or full, or their encoding may lack characters to print."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from typing import TextIO, cast

from memorybench.text.sanitize import PLAIN, escape_json
from memorybench.wiring.output import CleanedStream


class OutputLost(BaseException):
    """Raised to end a verb that only prints, when standard output can no longer be written."""


class _Output(io.FileIO):
    """A raw file that drops all output after the first failed write, so that a run continues."""

    failure: OSError | None = None
    stop_on_failure = False

    def write(self, data: object) -> int:
        if self.failure is None:
            try:
                return super().write(data)  # type: ignore[arg-type]
            except BlockingIOError:
                raise
            except OSError as error:
                self.failure = error
                if self.stop_on_failure:
                    raise OutputLost from None
        return memoryview(data).nbytes  # type: ignore[arg-type]


def prepare_streams(*, as_json: bool) -> None:
    """Set up standard streams so that printing does not fail. Streams that were replaced, as in tests, are kept."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:  # closed: the next file that is opened would become this stream
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None or sys.stdout is sys.__stdout__:
        sys.stdout = _wrap(sys.stdout, 1)
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = _wrap(sys.stderr, 2)
    codecs.register_error("memorybench.plain", _plain_text)
    codecs.register_error("memorybench.json", _json_escapes)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="memorybench.json" if as_json else "memorybench.plain")
        if as_json and sys.stdout.isatty():
            sys.stdout = cast(TextIO, CleanedStream(sys.stdout, escape_json))


def stop_when_output_is_lost() -> None:
    """End the verb at the first failed write to standard output. For verbs that only print."""
    if (output := _output()) is not None:
        output.stop_on_failure = True


def output_failure() -> OSError | None:
    """Flush standard output; return the error if a write failed, otherwise None. A closed pipe is not an error."""
    sys.stdout.flush()
    output = _output()
    failure = output.failure if output is not None else None
    return None if failure is None or failure.errno == errno.EPIPE else failure


def _output() -> _Output | None:
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Output) else None


def _wrap(stream: io.TextIOBase | None, number: int) -> io.TextIOWrapper:
    encoding = (stream.encoding if stream is not None else None) or "utf-8"
    if stream is not None:
        stream.flush()
    is_terminal = os.isatty(number)
    buffer = io.BufferedWriter(_Output(number, "w", closefd=False))
    return io.TextIOWrapper(buffer, encoding, "backslashreplace", line_buffering=is_terminal or number == 2)


def _plain_text(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(PLAIN)
    return "".join(character if character.isascii() else "?" for character in text), error.end


def _json_escapes(error: UnicodeError) -> tuple[str, int]:
    """Encode characters as JSON escapes (an error handler for `codecs`)."""
    assert isinstance(error, UnicodeEncodeError)
    utf_16 = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(utf_16[::2], utf_16[1::2], strict=True)), error.end
