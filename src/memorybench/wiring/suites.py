"""What reports must know about the runs of each suite. The saved spec tells it: no dataset and no subject is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memorybench.core.errors import BadInput
from memorybench.core.measures import Metric
from memorybench.journal.rows import Run

if TYPE_CHECKING:
    from rich.console import Console

    from memorybench.reporting.summary import Summary

    from .results import Found


@dataclass(frozen=True, slots=True)
class Suite:
    command: str
    """Which command makes such runs."""
    metrics: Callable[[Run], tuple[Metric, ...]]
    facts: Callable[..., dict[str, str]]
    """From a run, or the shards of one, to what a header says."""
    document: Callable[[Found, Summary], dict[str, Any]]
    """What --json prints and report.json holds."""
    markdown: Callable[[Found, Summary, Mapping[str, str]], str]
    show: Callable[[Console, Found, Summary], None]


def suite_of(run: Run) -> Suite:
    if run.suite == "bench":
        from .bench_results import BENCH

        return BENCH
    if run.suite == "audit":
        from .audit_results import AUDIT

        return AUDIT
    if run.suite == "extraction":
        from .extraction_results import EXTRACTION

        return EXTRACTION
    if run.suite == "hygiene":
        from .hygiene_results import HYGIENE

        return HYGIENE
    raise BadInput(run.id, f"is a run of the suite {run.suite}", expected="a run of eval, audit, extraction or hygiene")
