"""Prints texts that may be longer than the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

    from memorybench.metrics.intervals import Interval


def print_paged(draw: Callable[[Console], object]) -> None:
    """Print what `draw` prints to a console, through a pager if it is longer than the terminal."""
    import pydoc

    from memorybench.reporting.terminal import console
    from memorybench.text.sanitize import sanitize
    from memorybench.wiring.environment import redactor

    out = console()
    with out.capture() as captured:
        draw(out)
    text = captured.get()
    if out.is_terminal and text.count("\n") >= out.height:
        pydoc.pager(redactor().clean(sanitize(text)))  # a pager shows colours as control characters
    else:
        sys.stdout.write(text)


def interval_text(found: Interval, scale: int = 1, unit: str = "") -> str:
    """Return a value with its interval, such as `0.812 [0.740, 0.867]`; "" if it is undefined."""
    if found.value is None:
        return ""
    digits = 1 if scale > 1 else 3
    value, *ends = (
        f"{number * scale:.{digits}f}" for number in (found.value, found.low, found.high) if number is not None
    )
    return f"{value}{unit}" + (f" [{', '.join(ends)}]" if len(ends) == 2 else "")


def print_wrapped(line: str, file: TextIO | None = None) -> None:
    """Print a text wrapped to the width of the terminal, without breaking words."""
    from textwrap import fill

    from memorybench.reporting.terminal import console

    width = console().width
    print(fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False), file=file)
