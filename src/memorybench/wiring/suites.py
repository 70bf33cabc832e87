"""The suites' reports by name. A report needs the journal only: neither dataset nor subject is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.core.measures import Metric
from memorybench.core.report import Report
from memorybench.journal.rows import Run
from memorybench.suites.audit import report as audit
from memorybench.suites.bench import report as bench
from memorybench.suites.extraction import report as extraction
from memorybench.suites.hygiene import report as hygiene
from memorybench.suites.stored_run import StoredRun, open_runs


@dataclass(frozen=True, slots=True)
class Suite:
    command: str
    """The command that makes such runs."""
    metrics: Callable[[StoredRun], Sequence[Metric]]
    facts: Callable[[Sequence[Run]], dict[str, str]]
    """What the header says about a run, or the shards of one."""
    report: Callable[[StoredRun], Report]


SUITES = {
    "bench": Suite("memorybench eval", bench.metrics, bench.facts, bench.report),
    "audit": Suite("memorybench audit", audit.metrics, audit.facts, audit.report),
    "extraction": Suite("memorybench extraction run", extraction.metrics, extraction.facts, extraction.report),
    "hygiene": Suite("memorybench hygiene run", hygiene.metrics, hygiene.facts, hygiene.report),
}


def suite_of(run: Run) -> Suite:
    try:
        return SUITES[run.suite]
    except KeyError:
        raise BadInput(
            run.id, f'runs of "{run.suite}" have no report', expected="a run of eval, audit, extraction or hygiene"
        ) from None


def metrics_of(run: StoredRun) -> Sequence[Metric]:
    return suite_of(run.run).metrics(run)


def report_of(run: StoredRun) -> Report:
    return suite_of(run.run).report(run)


@contextmanager
def find(runs: Sequence[str], folders: Sequence[Path]) -> Iterator[StoredRun]:
    """Opens runs by id from these folders; several must be shards of one spec."""
    with open_runs(runs, folders, metrics_of) as stored:
        suite_of(stored.run)  # raises for a run without a report
        yield stored
