"""What went wrong, one by one: trials without a score first, then wrong answers and empty-handed searches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from memorybench.core.trials import Outcome
from memorybench.text.sanitize import sanitize

if TYPE_CHECKING:
    from rich.console import Console

_VERDICTS = ("correct", "passed", "recall@10")
_LINES = 4


def failures(outcomes: Iterable[Outcome], subjects: Iterable[str] = ()) -> Iterator[Outcome]:
    """Trials that were not scored, or whose first verdict is 0; of these subjects, or of all."""
    wanted = frozenset(subjects)
    for outcome in outcomes:
        if wanted and outcome.trial.subject.name not in wanted:
            continue
        verdict = next((value for name in _VERDICTS if (value := outcome.score(name)) is not None), None)
        if outcome.status != "scored" or verdict == 0:
            yield outcome


def show_failures(out: Console, found: Iterable[Outcome]) -> int:
    shown = 0
    for outcome in found:
        _show(out, outcome)
        shown += 1
    out.print(f"{shown} trials" if shown else "Nothing was missed.")
    return shown


def _show(out: Console, outcome: Outcome) -> None:
    trial, exhibit = outcome.trial, outcome.shown
    kind = trial.labels.get("question_type", "")
    out.print(f"{sanitize(trial.subject.name)}  {sanitize(trial.case_id)}  {kind}  {outcome.status}", style="bold")
    if outcome.failure:
        out.print(f"  why       {sanitize(outcome.failure.message)}", style="yellow")
    for name, text in (("question", exhibit.asked), ("expected", exhibit.expected), ("got", exhibit.got)):
        if text:
            out.print(f"  {name:<9} {sanitize(text)}")
    remembered = [line for line in sanitize(exhibit.context).splitlines() if line.strip()]
    for place, line in enumerate(remembered[:_LINES]):
        out.print(f"  {'found' if not place else '':<9} {line}", style="dim")
    if exhibit.reason:
        out.print(f"  reason    {sanitize(exhibit.reason)}")
    out.print()
