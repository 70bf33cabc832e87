"""Numbers about many outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from .records import Record
from .trials import Outcome, Trial


class Measure(Record):
    name: str
    value: float | None
    """None: nothing to measure. Absent is not zero."""
    n: int
    planned: int
    low: float | None = None
    high: float | None = None
    higher_is_better: bool = True
    unit: str = ""
    """"": a share between 0 and 1 or a plain number; else "s", "tokens", "$"."""


class Metric(Protocol):
    """Reads what it needs from each outcome as it passes, then measures the lot: outcomes are not kept."""

    @property
    def name(self) -> str: ...

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        """What this outcome contributes; None: nothing, and it does not count in n."""
        ...

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure: ...


@runtime_checkable
class Selective(Protocol):
    """A metric that is about some of the trials: only these count as its planned ones."""

    def concerns(self, trial: Trial) -> bool: ...
