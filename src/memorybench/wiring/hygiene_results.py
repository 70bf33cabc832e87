"""What reports say about hygiene runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memorybench.core.measures import Metric
from memorybench.core.trials import Outcome
from memorybench.journal.rows import Run
from memorybench.reporting.documents import document
from memorybench.reporting.hygiene import (
    could_not_look,
    hygiene_markdown,
    idle_agents,
    instrument,
    scenario_rows,
    show_hygiene,
)
from memorybench.reporting.summary import Summary
from memorybench.suites.hygiene.kills import kill_matrix, survivors
from memorybench.suites.hygiene.measures import MEASURES
from memorybench.suites.hygiene.skips import skipped_checks

from .suites import Suite

if TYPE_CHECKING:
    from rich.console import Console

    from .results import Found


def _metrics(run: Run) -> tuple[Metric, ...]:
    return MEASURES


def _facts(*runs: Run) -> dict[str, str]:
    run, spec = runs[0], runs[0].spec
    agent = (
        {"Agent": spec["agent"] + (f" over {spec['model']}" if spec.get("model") else "")} if spec.get("agent") else {}
    )
    return {
        "Run ID": run.id,
        "Store": spec["store"],
        **agent,
        "Scenarios": f"{len(spec['titles'])}",
        "Started": run.created.replace("T", " ")[:19] + " UTC",
    }


def _outcomes(found: Found) -> list[Outcome]:
    return [outcome for _, _, outcome in found.settled()]


def checks_of(outcomes: list[Outcome]) -> list[str]:
    dead = [f"{kills.scenario}: {kills.claim}" for kills in kill_matrix(outcomes) if kills.dead]
    skipped = [f"{scenario}, {phase}: {claim}: {why}" for scenario, phase, claim, why in skipped_checks(outcomes)]
    return [*could_not_look(skipped), *idle_agents(outcomes), *instrument(dead, survivors(outcomes))]


def faults_of(found: Found) -> bool:
    """Whether the instrument itself has a fault: an assertion that catches nothing, or a mutant that does harm and
    lives."""
    outcomes = _outcomes(found)
    holes = [reason for _, _, reason in survivors(outcomes) if not reason]
    return bool(holes) or any(kills.dead for kills in kill_matrix(outcomes))


def _document(found: Found, summary: Summary) -> dict[str, Any]:
    outcomes = _outcomes(found)
    head, *rows = scenario_rows(outcomes)
    return {
        **document(summary),
        "scenarios": [dict(zip(head, row, strict=True)) for row in rows],
        "assertions": [
            {
                "scenario": kills.scenario,
                "claim": kills.claim,
                "killed": len(kills.by),
                "total": kills.total,
                "mutation_score": kills.score,
                "dead": kills.dead,
            }
            for kills in kill_matrix(outcomes)
        ],
        "could_not_look": [
            {"scenario": scenario, "phase": phase, "claim": claim, "why": why}
            for scenario, phase, claim, why in skipped_checks(outcomes)
        ],
        "survivors": [
            {"scenario": scenario, "mutant": mutant, "reason": reason}
            for scenario, mutant, reason in survivors(outcomes)
        ],
    }


def _markdown(found: Found, summary: Summary, facts: Mapping[str, str]) -> str:
    outcomes = _outcomes(found)
    kills = [
        (row.scenario, row.claim, f"{len(row.by)} of {row.total}{f' ({row.verdict})' if row.verdict else ''}")
        for row in kill_matrix(outcomes)
    ]
    return hygiene_markdown(
        summary, facts, found.parts[0][1].spec, outcomes, checks_of(outcomes), survivors(outcomes), kills
    )


def _show(out: Console, found: Found, summary: Summary) -> None:
    outcomes = _outcomes(found)
    show_hygiene(out, summary, outcomes, checks_of(outcomes))


HYGIENE = Suite("memorybench hygiene run", _metrics, _facts, _document, _markdown, _show)
