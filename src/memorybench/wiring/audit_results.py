"""What reports say about audits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from memorybench.core.measures import Metric
from memorybench.core.trials import Outcome
from memorybench.journal.rows import Run
from memorybench.reporting.audit import audit_document, audit_markdown, show_audit
from memorybench.reporting.summary import Summary
from memorybench.suites.audit.measures import measures

from .suites import Suite

if TYPE_CHECKING:
    from rich.console import Console

    from .results import Found


def _metrics(run: Run) -> tuple[Metric, ...]:
    return measures()


def _facts(*runs: Run) -> dict[str, str]:
    run, spec = runs[0], runs[0].spec
    judged = spec["judge"] or "none: code looks for the expected words"
    through = f"{', '.join(spec['providers'])}, read by {spec['reader']}" if spec["providers"] else spec["reader"]
    return {
        "Run ID": run.id,
        "Dataset": f"{spec['dataset']} ({spec['conversations']} conversations, {spec['facts']} facts)",
        "Audited": through,
        "Probes": ", ".join(f"{n} {kind}" for kind, n in spec["probes"].items()),
        "Judge": judged,
        "Conflicts": {"latest": "the latest value is right", "flag": "pointing out the change is right"}[
            spec["policy"]
        ],
        "Started": run.created.replace("T", " ")[:19] + " UTC",
    }


def _cases(found: Found, outcome: Outcome) -> Mapping[str, Any]:
    (run_reader, run) = found.parts[0]
    return run_reader.case(run.id, outcome.trial.benchmark, outcome.trial.case_id) or {}


def _outcomes(found: Found) -> Iterator[Outcome]:
    return (outcome for _, _, outcome in found.settled())


def _document(found: Found, summary: Summary) -> dict[str, Any]:
    spec = found.parts[0][1].spec
    return audit_document(summary, spec, _outcomes(found), lambda outcome: _cases(found, outcome))


def _markdown(found: Found, summary: Summary, facts: Mapping[str, str]) -> str:
    spec = found.parts[0][1].spec
    return audit_markdown(summary, facts, spec, _outcomes(found), lambda outcome: _cases(found, outcome))


def _show(out: Console, found: Found, summary: Summary) -> None:
    show_audit(out, summary, found.parts[0][1].spec)


AUDIT = Suite("memorybench audit", _metrics, _facts, _document, _markdown, _show)
