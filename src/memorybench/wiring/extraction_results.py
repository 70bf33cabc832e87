"""What reports say about extraction runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memorybench.core.measures import Metric
from memorybench.journal.rows import Run
from memorybench.reporting.documents import document
from memorybench.reporting.extraction import extraction_markdown, show_extraction
from memorybench.reporting.summary import Summary
from memorybench.suites.extraction.measures import measures

from .suites import Suite

if TYPE_CHECKING:
    from rich.console import Console

    from .results import Found


def _metrics(run: Run) -> tuple[Metric, ...]:
    return measures()


def _facts(*runs: Run) -> dict[str, str]:
    run, spec = runs[0], runs[0].spec
    asked = ", ".join(f"{name} ({n})" for name, n in spec["questions"].items())
    model = f" over {spec['reader']}" if spec.get("reader") else ""
    return {
        "Run ID": run.id,
        "Traces" if spec["mode"] == "online" else "Cases": asked,
        "Extractor": f"{', '.join(spec['subjects'])}{model}",
        "Judge": spec["judge"] or "none: what code can not decide stays undecided",
        "Started": run.created.replace("T", " ")[:19] + " UTC",
    }


def _document(found: Found, summary: Summary) -> dict[str, Any]:
    return document(summary)


def _markdown(found: Found, summary: Summary, facts: Mapping[str, str]) -> str:
    return extraction_markdown(summary, facts, (outcome for _, _, outcome in found.settled()), _remarks(found))


def _show(out: Console, found: Found, summary: Summary) -> None:
    show_extraction(out, summary, _remarks(found))


def _remarks(found: Found) -> list[str]:
    """Whether it is worse than the baseline it was started with."""
    from .online import against_baseline

    return [drift.sentence() for drift in against_baseline(*found.parts[0])]


EXTRACTION = Suite("memorybench extraction run", _metrics, _facts, _document, _markdown, _show)
