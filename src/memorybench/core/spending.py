"""Adds up what calls cost. Each client reports the cost of a call with `charge`, which adds it to the open Tally."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated

from pydantic import Field

from .errors import Malformed, ServiceError, Transient
from .records import Record

Number = Annotated[int, Field(ge=0, le=2**53)]


class Spending(Record):
    calls: Number = 0
    input_tokens: Number = 0
    output_tokens: Number = 0
    cost: float | None = 0.0
    """The cost of all calls in US dollars; None if that of at least one call is unknown."""

    def __add__(self, other: "Spending") -> "Spending":
        known = self.cost is not None and other.cost is not None
        return Spending(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=(self.cost or 0.0) + (other.cost or 0.0) if known else None,
        )


NOTHING = Spending()


class Tally:
    """Adds up the costs that `charge` receives inside the `with` block, also from tasks that start in the block."""

    __slots__ = ("_token", "spent")

    def __init__(self) -> None:
        self.spent = NOTHING

    def __enter__(self) -> "Tally":
        self._token = _open_tally.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _open_tally.reset(self._token)


_open_tally: ContextVar[Tally | None] = ContextVar("memorybench_tally", default=None)


@contextmanager
def charging_unreadable(spent: Spending) -> Iterator[None]:
    """Charge `spent` if the block raises Malformed or an uncertain Transient: the service may have done the work."""
    try:
        yield
    except ServiceError as error:
        if isinstance(error, Malformed) or (isinstance(error, Transient) and error.uncertain):
            charge(spent)
        raise


def charge(spent: Spending) -> None:
    tally = _open_tally.get()
    if tally is not None:
        tally.spent = spent if tally.spent is NOTHING else tally.spent + spent
