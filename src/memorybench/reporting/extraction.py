"""What is told about an extractor: the figures, then what went wrong case by case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from memorybench.core.trials import Outcome
from memorybench.text.sanitize import sanitize

from . import figures
from .markdown import cell, listed, stages
from .scorecard import Card, card_markdown, show_card
from .summary import Result, Summary
from .terminal import accounting, caveats

if TYPE_CHECKING:
    from rich.console import Console

_MOST_FAILURES = 15
_FIGURES = ("precision", "recall", "f1", "conflict_resolution", "minimalism")
_COUNTS = ("hallucinated", "unlisted", "contradiction", "misfiled", "violations", "undecided")
CARD = Card(
    rows={
        "precision": "of what was written, what should have been (strict, one to one)",
        "recall": "of what should have been written, what was",
        "f1": "both together",
        "conflict_resolution": "the new value is there and the old one gone",
        "minimalism": "unchanged where nothing was said that is worth keeping",
        "must_not_store": "cases in which nothing forbidden was written",
        "coverage_precision": "of what was written, what is part of a true fact, however split",
        "coverage_recall": "of what should have been written, what is covered, however split",
        "coverage_f1": "both together",
        "macro_precision": "the mean over cases",
        "macro_recall": "the mean over cases",
        "macro_f1": "the mean over cases",
        "add_done": "facts to be added that were",
        "update_done": "facts to be replaced that were",
        "delete_done": "facts to be removed that were",
        "keep_done": "facts to be kept that were",
        "duplicates": "facts that say again what another says",
    },
    by={"scenario": _FIGURES, "domain": _FIGURES},
    short={"precision": "prec.", "conflict_resolution": "conflicts", "minimalism": "minimal"},
)


def show_extraction(out: Console, summary: Summary, remarks: Sequence[str]) -> None:
    show_card(out, summary, CARD)
    out.print()
    for line in (*counted(summary), *remarks, accounting(summary)):
        out.print(sanitize(line))
    for line in caveats(summary):
        out.print(line, style="yellow")


def counted(summary: Summary) -> list[str]:
    """What was written and should not have been, by kind; and how far undecided pairs could move the figures."""
    lines = []
    for result in summary.results:
        if result.group:
            continue
        counts = {name: measure.value for name in _COUNTS if (measure := result.measure(name)) and measure.value}
        if counts:
            told = ", ".join(f"{value:.0f} {name.replace('_', ' ')}" for name, value in counts.items() if value)
            lines.append(f"{result.subject}: {told}")
        lines += _bounds(result)
    return lines


def _bounds(result: Result) -> list[str]:
    ranges = []
    for name in ("precision", "recall", "f1"):
        least, most = result.measure(f"{name}_least"), result.measure(f"{name}_most")
        if least and most and least.value is not None and most.value is not None:
            ranges.append(f"{name} {figures.share(least.value)} to {figures.share(most.value)}")
    if not ranges:
        return []
    return [f"undecided pairs leave open: {', '.join(ranges)}; --judge-model decides them"]


def extraction_markdown(
    summary: Summary, facts: Mapping[str, str], outcomes: Iterable[Outcome], remarks: Sequence[str]
) -> str:
    parts = [f"# Extraction: {cell(', '.join(summary.benchmarks))}"]
    parts += [f"> {line}" for line in caveats(summary)]
    parts += [cell(line) for line in (*counted(summary), *remarks)]
    parts += card_markdown(summary, CARD)
    parts += ["## Where it went wrong", *_failures(outcomes)]
    parts += ["## How it was made", listed(facts)]
    if summary.stages:
        parts += ["## Time and money", stages(summary)]
    parts.append(accounting(summary))
    return "\n\n".join(parts) + "\n"


def _failures(outcomes: Iterable[Outcome]) -> list[str]:
    wrong = [outcome for outcome in outcomes if outcome.score("correct") == 0 or outcome.status != "scored"]
    if not wrong:
        return ["Nowhere: every case came out as it should."]
    parts = []
    for outcome in wrong[:_MOST_FAILURES]:
        shown = outcome.shown
        why = outcome.failure.message if outcome.failure else shown.reason
        parts.append(
            "\n".join(
                (
                    f"**{cell(outcome.trial.case_id)}** ({outcome.trial.labels.get('scenario', outcome.status)})",
                    f"- said: {cell(shown.asked)}",
                    f"- expected: {cell(shown.expected)}",
                    f"- written: {cell(shown.got)}",
                    f"- why: {cell(why)}",
                )
            )
        )
    if len(wrong) > len(parts):
        parts.append(f"… and {len(wrong) - len(parts)} more: `memorybench results RUN --failures`")
    return parts
