"""Limits how much a run may spend."""

from __future__ import annotations

from collections.abc import Callable

from memorybench.core.errors import Blocked
from memorybench.core.spending import Spending


class Budget:
    """Limits what a run spends. Counts the costs of its calls, including lost calls.

    A lost call is one whose process died before its reply was recorded; it may have been charged. A call of unknown
    cost counts as much as the most expensive step so far. The cost of lost calls is estimated when they are found.
    Before work is blocked, it is estimated once more, because more costs may be known by then.
    """

    def __init__(
        self, dollars: float | None = None, spent: float = 0.0, highest: float = 0.0, unknown: int = 0
    ) -> None:
        """`dollars` is the limit; None: no limit.

        `spent`, `highest` and `unknown` are what earlier processes of the run have spent, as RunReader.costs returns.
        """
        self.dollars = dollars
        self.spent = spent
        self._highest = highest
        self._unknown = unknown
        self._lost = 0.0
        self._lost_unknown = 0
        self._surplus = 0.0
        self._surplus_unknown = 0
        """The two `_surplus` values: by how much the total that all processes share exceeded the last recount."""
        self._is_recounted = False
        """Whether the last recount showed that the budget is used up; then there is no further recount."""
        self.read_total: Callable[[], tuple[float, float, int]] | None = None
        """Returns what all processes of the run have spent, including lost calls; None if only one process writes the
        run."""
        self.recount: Callable[[], tuple[tuple[float, float, int], tuple[float, int]]] | None = None
        """Returns all recorded costs, and estimated costs of lost calls: see RunWriter.recount_spending."""
        self.estimate: Callable[[], float] = lambda: 0.0
        """Returns an estimate of the cost of a call, which counts until the first cost is known; 0 if there is none."""

    def add_lost_calls(self, cost: float, unknown: int) -> None:
        """Add what calls of ended processes may have cost: the values that RunReader.costs_of_lost_calls returns."""
        self._lost += cost
        self._lost_unknown += unknown

    def allow(self) -> None:
        """Raise Blocked if the budget is used up, or cannot be enforced because no cost is known."""
        if self.dollars is not None:
            self.refresh()
        if self.dollars is None or not self.exhausted:
            return
        unknown = self._unknown + self._lost_unknown
        if unknown and not self._price():
            raise Blocked(
                "the budget cannot be enforced: the cost of a paid call is unknown; resume with --budget none"
            )
        lost = f", ${self._lost:.4f} possibly charged for lost calls" if self._lost else ""
        reserved = f", {unknown} calls of unknown cost" if unknown else ""
        raise Blocked(
            f"the budget of ${self.dollars:g} is used up (${self.spent:.4f} spent{lost}{reserved});"
            " resume with a larger --budget"
        )

    def refresh(self) -> None:
        """Read what other processes have spent. If the budget then seems to be used up, recount all costs once."""
        if self.read_total is not None:
            spent, self._highest, unknown = self.read_total()
            self.spent, self._unknown = spent - self._surplus, unknown - self._surplus_unknown
            self._lost, self._lost_unknown = 0.0, 0
        if self.exhausted and not self._is_recounted and self.recount is not None:
            (spent, _, unknown), (self._lost, self._lost_unknown) = self.recount()
            # without `read_total`, this process knows best: some of its costs are not committed yet
            if self.read_total is not None:
                self._surplus += self.spent - spent - self._lost
                self._surplus_unknown += self._unknown - unknown - self._lost_unknown
                self.spent, self._unknown = spent, unknown
            self._is_recounted = self.exhausted

    def take(self, spent: Spending) -> None:
        """Add what a step, or a failed attempt at one, has spent."""
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
        unknown = self._unknown + self._lost_unknown
        if unknown and not self._price():
            return True
        return self.spent + self._lost + (unknown * self._price() if unknown else 0.0) >= self.dollars

    def _price(self) -> float:
        """Return how many dollars a call of unknown cost counts; 0 if no cost is known and there is no estimate."""
        return self._highest or self.estimate()
