"""Limits how much a run may spend."""

from __future__ import annotations

from collections.abc import Callable

from memorybench.core.errors import Blocked
from memorybench.core.spending import Spending


class Budget:
    """Counts what a run has spent. A call of unknown cost counts as much as the dearest step so far."""

    def __init__(
        self, dollars: float | None = None, spent: float = 0.0, highest: float = 0.0, unknown: int = 0
    ) -> None:
        """`spent`, `highest` and `unknown` are the costs of earlier processes of the run: see RunReader.costs."""
        self.dollars = dollars
        self.spent = spent
        self._highest = highest
        self._unknown = unknown
        self.read_total: Callable[[], tuple[float, float, int]] | None = None
        """Reads what all processes of the run have spent, if there may be several."""

    def allow(self) -> None:
        """Raise Blocked if no more paid work may start."""
        if self.dollars is not None:
            self.refresh()
        if self.dollars is None or not self.exhausted:
            return
        if self._unknown and not self._highest:
            raise Blocked(
                "the budget cannot be enforced: the cost of a paid call is unknown; resume with --budget none"
            )
        reserved = f", {self._unknown} calls of unknown cost" if self._unknown else ""
        raise Blocked(
            f"the budget of ${self.dollars:g} is used up (${self.spent:.4f} spent{reserved});"
            " resume with a larger --budget"
        )

    def refresh(self) -> None:
        """Read what other processes have spent, too."""
        if self.read_total is not None:
            self.spent, self._highest, self._unknown = self.read_total()

    def take(self, spent: Spending) -> None:
        """Add the cost of a call."""
        if spent.cost is None:
            self._unknown += spent.calls
        else:
            self.spent += spent.cost
            self._highest = max(self._highest, spent.cost)

    @property
    def calls_of_unknown_cost(self) -> int:
        return self._unknown

    @property
    def exhausted(self) -> bool:
        if self.dollars is None:
            return False
        is_known = not self._unknown or self._highest > 0
        return not is_known or self.spent + self._unknown * self._highest >= self.dollars
