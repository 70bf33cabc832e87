"""What a person is told about how clean a memory stays: the verdict, each scenario, then what the checks are worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybench.core.trials import Outcome
from memorybench.text.sanitize import sanitize

from . import figures
from .markdown import cell, listed, stages, table
from .summary import Summary
from .terminal import accounting, caveats

if TYPE_CHECKING:
    from rich.console import Console

_PHASES = ("well_behaved", "violation", "real_model")
_BAD = frozenset({"violated", "missed", "failed"})
MEANINGS = {
    "passed": "phases that came out as they should",
    "caught": "declared violations that were defended or detected",
    "mutation_score": "automatic mutants that a check killed",
    "adoption": "what should be stored and was",
    "restraint": "what should not be stored and was not",
}


def scenario_rows(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """One row a scenario: what came of each phase, and how many mutants were killed."""
    rows = [["scenario", "well-behaved", "violation", "mutants killed"]]
    attempts = any(outcome.trial.labels.get("phase") == "real_model" for outcome in outcomes)
    if attempts:
        rows[0] = ["scenario", "agent"]
    for scenario in dict.fromkeys(outcome.trial.case_id for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.trial.case_id == scenario]
        if attempts:
            rows.append([scenario, _tally(own, "real_model")])
            continue
        mutants = [outcome for outcome in own if outcome.trial.labels.get("phase") == "mutant"]
        killed = sum(outcome.score("killed") == 1 for outcome in mutants)
        counted = sum(outcome.score("killed") is not None for outcome in mutants)
        told = f"{killed} of {counted}" if counted else figures.ABSENT
        rows.append([scenario, _tally(own, "well_behaved"), _tally(own, "violation"), told])
    return rows


def _tally(outcomes: Iterable[Outcome], phase: str) -> str:
    """`compliant`; with repeats `compliant 3, violated 2`."""
    words = Counter(
        outcome.shown.got if outcome.status == "scored" else outcome.status
        for outcome in outcomes
        if outcome.trial.labels.get("phase") == phase
    )
    if not words:
        return figures.ABSENT
    return next(iter(words)) if sum(words.values()) == 1 else ", ".join(f"{word} {n}" for word, n in words.items())


def measure_rows(summary: Summary) -> list[list[str]]:
    rows = [["measure", "value [95%]", "n", "what it tells"]]
    for result in summary.results:
        if result.group:
            continue
        for name, meaning in MEANINGS.items():
            measure = result.measure(name)
            if measure is not None and measure.planned:
                rows.append([name, figures.with_interval(measure), f"{measure.n}/{measure.planned}", meaning])
    return rows


def findings(outcomes: Iterable[Outcome]) -> list[str]:
    """What was found, one line each: phases that did not come out well, and why."""
    lines = []
    for outcome in outcomes:
        phase = outcome.trial.labels.get("phase", "")
        if phase not in _PHASES:
            continue
        if outcome.status == "blocked":
            return [outcome.failure.message if outcome.failure else "blocked"]  # the same for all of them
        if outcome.status in ("failed", "unscored", "skipped", "blocked"):
            why = outcome.failure.message if outcome.failure else ""
            lines.append(f"{outcome.trial.case_id}, {_spoken(phase)}: {outcome.status}: {why}")
        elif outcome.shown.got in _BAD or outcome.score("passed") == 0:
            lines.append(f"{outcome.trial.case_id}, {_spoken(phase)}: {outcome.shown.got}: {outcome.shown.reason}")
    return lines


def _spoken(phase: str) -> str:
    return {"well_behaved": "well-behaved", "real_model": "agent"}.get(phase, phase)


def could_not_look(checks: Sequence[str]) -> list[str]:
    """Checks that the store gave nothing to look at: never green, so they are told."""
    return [f"{len(checks)} checks could not look:", *(f"  {check}" for check in checks)] if checks else []


def idle_agents(outcomes: Iterable[Outcome]) -> list[str]:
    """How many scenarios convict an agent that does nothing, stores everything, or stores nothing."""
    played: dict[str, list[bool]] = {}
    for outcome in outcomes:
        convicted = outcome.score("convicted")
        if convicted is not None:
            played.setdefault(outcome.trial.variant, []).append(convicted == 1)
    return [
        f"the {name} agent is convicted by {sum(found)} of {len(found)} scenarios" for name, found in played.items()
    ]


def instrument(dead: Sequence[str], survivors: Sequence[tuple[str, str, str]]) -> list[str]:
    """What the checks themselves are worth."""
    lines = [f"dead assertion, it catches nothing: {claim}" for claim in dead]
    holes = [(scenario, mutant) for scenario, mutant, reason in survivors if not reason]
    lines += [f"hole: {scenario} lets the mutant {mutant} live" for scenario, mutant in holes]
    equivalent = len(survivors) - len(holes)
    if equivalent:
        lines.append(f"{equivalent} mutants survive because they do no harm (report.md lists them)")
    return lines


def show_hygiene(out: Console, summary: Summary, outcomes: Sequence[Outcome], checks: Sequence[str]) -> None:
    from rich import box
    from rich.table import Table

    for title, rows in (("SCENARIOS", scenario_rows(outcomes)), ("FIGURES", _narrow(measure_rows(summary), out.width))):
        head, *body = rows
        drawn = Table(box=box.ROUNDED, title=title, title_justify="left", title_style="bold")
        for heading in head:
            drawn.add_column(heading, no_wrap=True)
        for row in body:
            drawn.add_row(
                *map(sanitize, row), style="red" if _BAD & {word.split()[0] for word in row[1:] if word} else ""
            )
        out.print()
        out.print(drawn)
    out.print()
    for line in (*findings(outcomes), *checks, accounting(summary)):
        out.print(sanitize(line))
    for line in caveats(summary):
        out.print(line, style="yellow")


def _narrow(rows: list[list[str]], width: int) -> list[list[str]]:
    return rows if width >= 100 else [row[:-1] for row in rows]


def hygiene_markdown(
    summary: Summary,
    facts: Mapping[str, str],
    spec: Mapping[str, Any],
    outcomes: Sequence[Outcome],
    checks: Sequence[str],
    survivors: Sequence[tuple[str, str, str]],
    kills: Sequence[tuple[str, str, str]],
) -> str:
    titles = spec.get("titles", {})
    parts = [f"# Memory hygiene: {cell(', '.join(spec['subjects']))}"]
    parts += [f"> {line}" for line in caveats(summary)]
    parts += [table(measure_rows(summary)), "## Scenarios", table(_titled(scenario_rows(outcomes), titles))]
    found = findings(outcomes)
    parts += ["## Findings", "\n".join(f"- {cell(line)}" for line in found) if found else "None."]
    if kills:
        rows = [["scenario", "assertion", "kills"], *map(list, kills)]
        parts += ["## What each check is worth", *(cell(line) for line in checks), table(rows)]
    if survivors:
        rows = [["scenario", "mutant", "why it does no harm"]]
        rows += [[scenario, mutant, reason or "**a hole**"] for scenario, mutant, reason in survivors]
        parts += ["### Mutants that survive", table(rows)]
    parts += ["## How it was made", listed(facts)]
    if summary.stages:
        parts += ["## Time and money", stages(summary)]
    parts.append(accounting(summary))
    return "\n\n".join(parts) + "\n"


def _titled(rows: list[list[str]], titles: Mapping[str, str]) -> list[list[str]]:
    head, *body = rows
    return [[*head, ""], *([*row, titles.get(row[0], "")] for row in body)]
