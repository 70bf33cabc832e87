"""How much may be spent."""

from __future__ import annotations

from memorybench.core.errors import Blocked
from memorybench.core.spending import Spending


class Budget:
    def __init__(self, dollars: float | None = None, spent: float | None = 0.0) -> None:
        """`spent` by earlier processes of the run; None: something of it has no known price."""
        self.dollars = dollars
        self.spent = spent or 0.0
        self.unpriced = 0 if spent is not None else 1

    def allow(self) -> None:
        """Raises Blocked where no more paid work may start."""
        if self.dollars is None:
            return
        if self.unpriced:
            raise Blocked("the budget can not be held: a paid call has no known price; run without --budget")
        if self.spent >= self.dollars:
            raise Blocked(f"the budget of ${self.dollars:g} is used up (${self.spent:.4f} spent)")

    def take(self, spent: Spending) -> None:
        if spent.cost is None:
            self.unpriced += 1
        else:
            self.spent += spent.cost

    @property
    def exhausted(self) -> bool:
        return self.dollars is not None and (self.unpriced > 0 or self.spent >= self.dollars)
