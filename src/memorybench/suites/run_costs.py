"""What a run cost, for commands that show it. Calls without a recorded reply are never left out."""

from memorybench.core.records import Record
from memorybench.journal.rows import Run
from memorybench.journal.run_reader import RunReader
from memorybench.reporting import formatting


class RunCosts(Record):
    """Dollars and calls, under the names that report.json has."""

    known_cost: float
    """Calls of unknown cost are not included."""
    calls_of_unknown_cost: int
    possibly_spent: float = 0.0
    """What calls without a recorded reply may have cost."""
    possibly_charged_twice: int = 0

    @classmethod
    def of(cls, run_reader: RunReader, run: Run) -> "RunCosts":
        in_flight = run.status == "running"
        known, _, unknown = run_reader.costs(run.id)
        return cls(
            known_cost=known,
            calls_of_unknown_cost=unknown,
            possibly_spent=run_reader.costs_of_lost_calls(run.id, in_flight=in_flight)[0],
            possibly_charged_twice=run_reader.possibly_charged_twice(run.id, in_flight=in_flight),
        )

    def text(self) -> str:
        """Return a line such as `$0.2000, possibly $0.1000 more; 5 paid calls may have been charged …`."""
        known = None if self.calls_of_unknown_cost else self.known_cost
        spent = formatting.spent(known, self.known_cost, self.calls_of_unknown_cost, self.possibly_spent)
        lost = formatting.lost_calls(self.possibly_charged_twice)
        return f"{spent}; {lost}" if lost else spent

    def cell(self) -> str:
        """Return the costs for a table, such as `$0.20 to $0.30` if lost calls may have cost $0.10."""
        return formatting.total_cost(self.known_cost, self.calls_of_unknown_cost, self.possibly_spent)
