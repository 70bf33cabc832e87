"""What a call cost. Models charge the step that is open around them, wherever in the code they are called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .records import Record


class Spending(Record):
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    """US dollars; None: at least one call has no known price. Unknown is not 0."""

    def __add__(self, other: Spending) -> Spending:
        known = self.cost is not None and other.cost is not None
        return Spending(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=(self.cost or 0.0) + (other.cost or 0.0) if known else None,
        )


NOTHING = Spending()


class Tally:
    """Collects what is charged while it is open."""

    __slots__ = ("spent",)

    def __init__(self) -> None:
        self.spent = NOTHING


_open_tally: ContextVar[Tally | None] = ContextVar("memorybench_tally", default=None)


@contextmanager
def tallying() -> Iterator[Tally]:
    """Opens a tally; `charge` inside, also in tasks started inside, adds to it."""
    tally = Tally()
    token = _open_tally.set(tally)
    try:
        yield tally
    finally:
        _open_tally.reset(token)


def charge(spent: Spending) -> None:
    tally = _open_tally.get()
    if tally is not None:
        tally.spent = spent if tally.spent is NOTHING else tally.spent + spent
