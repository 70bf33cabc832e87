"""Limits how much a run may spend."""

from __future__ import annotations

from collections.abc import Callable

from memorybench.core.errors import Blocked
from memorybench.core.spending import Spending
from memorybench.journal.run_reader import RunReader
from memorybench.text.quantities import quantity


class Budget:
    """Limits what a run spends. Counts the costs of its calls, and of calls whose cost is unknown.

    The cost of a call is unknown if its reply was lost or does not say how many tokens were used. Such a call counts as
    the most that it can cost; if that is unknown, as much as the most expensive step so far. Before work is blocked,
    these costs are estimated once more, because more costs may be known by then.
    """

    def __init__(self, dollars: float | None = None) -> None:
        """`dollars` is the limit; None: no limit."""
        self.dollars = dollars
        self.spent = 0.0
        self.calls_of_unknown_cost = 0
        self._highest = 0.0
        """The highest known cost of a step."""
        self._reserved = 0.0
        """What calls of unknown cost may have cost."""
        self._unknown = 0
        """The number of calls of unknown cost that `_reserved` does not contain."""
        self._surplus = 0.0
        self._surplus_unknown = 0
        """The two `_surplus` values: by how much the total that all processes share exceeded the last recount."""
        self._is_recounted = False
        """Whether the last recount showed that the budget is used up; then there is no further recount."""
        self.read_total: Callable[[], tuple[float, float, int]] | None = None
        """Returns what all processes of the run have spent, including calls of unknown cost; None if only one process
        writes the run."""
        self.recount: Callable[[], tuple[float, tuple[float, int]]] | None = None
        """Returns all recorded costs, and those of calls of unknown cost: see RunWriter.recount_spending."""
        self.estimate: Callable[[], float] = lambda: 0.0
        """Returns an estimate of the cost of a call, which counts until the first cost is known; 0 if there is none."""

    def add_recorded(self, run_reader: RunReader, run: str) -> None:
        """Count what earlier processes of a run have spent. Call it before the run continues."""
        self.spent, self._highest, self.calls_of_unknown_cost = run_reader.costs(run)
        self._reserved, self._unknown = run_reader.unknown_costs(run)

    def allow(self) -> None:
        """Raise Blocked if the budget is used up, or cannot be enforced because no cost is known."""
        if self.dollars is not None:
            self.refresh()
        if self.dollars is None or not self.exhausted:
            return
        if self._unknown and not self._price():
            raise Blocked(
                "the budget cannot be enforced: the cost of a paid call is unknown; resume with --budget none"
            )
        possible = f", possibly ${self._reserved:.4f} for calls of unknown cost" if self._reserved else ""
        others = f", {quantity(self._unknown, 'call')} of unknown cost" if self._unknown else ""
        raise Blocked(
            f"the budget of ${self.dollars:g} is used up (${self.spent:.4f} spent{possible}{others});"
            " resume with a larger --budget"
        )

    def refresh(self) -> None:
        """Read what other processes have spent. If the budget then seems to be used up, recount all costs once."""
        if self.read_total is not None:
            spent, self._highest, unknown = self.read_total()
            self.spent, self._unknown = spent - self._surplus, unknown - self._surplus_unknown
            self._reserved = 0.0
        if self.exhausted and not self._is_recounted and self.recount is not None:
            spent, (reserved, unknown) = self.recount()
            # without `read_total`, this process knows best: some of its costs are not committed yet
            if self.read_total is not None:
                self._surplus += self.spent - spent - reserved
                self._surplus_unknown += self._unknown - unknown
                self.spent = spent
            self._reserved, self._unknown = reserved, unknown
            self._is_recounted = self.exhausted

    def take(self, spent: Spending, highest_cost: float | None = None) -> None:
        """Add what a step, or a failed attempt at one, has spent. `highest_cost` is the most that a call can cost."""
        if spent.cost is not None:
            self.spent += spent.cost
            self._highest = max(self._highest, spent.cost)
            return
        self.calls_of_unknown_cost += spent.calls
        if highest_cost is not None:
            self._reserved += spent.calls * highest_cost
        else:
            self._unknown += spent.calls

    @property
    def exhausted(self) -> bool:
        if self.dollars is None:
            return False
        if self._unknown and not self._price():
            return True
        return self.spent + self._reserved + (self._unknown * self._price() if self._unknown else 0.0) >= self.dollars

    def _price(self) -> float:
        """Return how many dollars a call of unknown cost counts; 0 if no cost is known and there is no estimate."""
        return self._highest or self.estimate()
