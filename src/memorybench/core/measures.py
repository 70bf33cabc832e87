"""Measures, and the metrics that compute them from outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from .records import Record
from .trials import Outcome, Trial


class Measure(Record):
    """A number computed from many outcomes, with its interval and sample size."""

    name: str
    value: float | None
    """None: nothing was measured. Absent is not zero."""
    n: int
    planned: int
    low: float | None = None
    high: float | None = None
    higher_is_better: bool = True
    unit: str = ""
    """"": a share between 0 and 1 or a plain number; else "s", "tokens", "$"."""


class Metric(Protocol):
    """Reads a row of numbers from each outcome, then computes a measure from all rows. Outcomes are not kept."""

    @property
    def name(self) -> str: ...

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        """The row of this outcome; None: it does not count in n."""
        ...

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure: ...


@runtime_checkable
class Selective(Protocol):
    """A metric that applies to some of the trials: only these count as planned."""

    def concerns(self, trial: Trial) -> bool: ...
