"""What reports say about bench runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybench.catalog.catalog import Catalog
from memorybench.core.measures import Metric
from memorybench.journal.rows import Run
from memorybench.reporting.documents import document
from memorybench.reporting.markdown import as_markdown
from memorybench.reporting.summary import Summary
from memorybench.reporting.terminal import show_results

from .bench import bench_metrics, plugin_metrics
from .suites import Suite

if TYPE_CHECKING:
    from rich.console import Console

    from .results import Found


def _metrics(run: Run) -> tuple[Metric, ...]:
    return bench_metrics(run.spec, plugin_metrics(Catalog(Path())))


def _facts(*runs: Run) -> dict[str, str]:
    run, spec = runs[0], runs[0].spec
    asked: Counter[str] = Counter()
    for shard in runs:
        asked.update(shard.spec["questions"])
    methods = ", ".join(dict.fromkeys(spec["methods"].values()))
    unjudged = (
        "not judged: no judge is named, or its key is not set" if methods == "llm-judge" else f"scored by {methods}"
    )
    judged = f"judged by {spec['judge']}" if spec["judge"] else unjudged
    return {
        "Run ID": " + ".join(shard.id for shard in runs),
        "Benchmarks": ", ".join(f"{name} ({n} questions)" for name, n in asked.items()),
        "Providers": ", ".join(spec["providers"]),
        "Answering model": f"{spec['reader']}, {judged}" if spec["answered"] else "none: retrieval only",
        **{f"Quirks of {name}": "; ".join(notes) for name, notes in spec.get("data_notes", {}).items() if notes},
        **({"Errata": ", ".join(spec["errata"])} if spec.get("errata") else {}),
        "Started": run.created.replace("T", " ")[:19] + " UTC",
    }


def _document(found: Found, summary: Summary) -> dict[str, Any]:
    return document(summary)


def _markdown(found: Found, summary: Summary, facts: Mapping[str, str]) -> str:
    return as_markdown(summary, facts)


def _show(out: Console, found: Found, summary: Summary) -> None:
    show_results(out, summary)


BENCH = Suite("memorybench eval", _metrics, _facts, _document, _markdown, _show)
