"""Limits how much a run may spend."""

from __future__ import annotations

from memorybench.core.errors import Blocked
from memorybench.core.spending import Spending


class Budget:
    """Counts what a run has spent."""

    def __init__(self, dollars: float | None = None, spent: float | None = 0.0) -> None:
        """`spent` is the cost of earlier processes of the run; None: part of it has no known price."""
        self.dollars = dollars
        self.spent = spent or 0.0
        self.unpriced = 0 if spent is not None else 1

    def allow(self) -> None:
        """Raise Blocked if no more paid work may start."""
        if self.exhausted:
            raise Blocked(
                "the budget cannot be enforced: a paid call has no known price; run without --budget"
                if self.unpriced
                else f"the budget of ${self.dollars:g} is used up (${self.spent:.4f} spent)"
            )

    def take(self, spent: Spending) -> None:
        """Add the cost of a call."""
        if spent.cost is None:
            self.unpriced += 1
        else:
            self.spent += spent.cost

    @property
    def exhausted(self) -> bool:
        return self.dollars is not None and (self.unpriced > 0 or self.spent >= self.dollars)
