"""Shows progress on standard error: bars on a terminal, otherwise a line every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from memorybench.core.trials import Outcome

from .formatting import share

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_HEADLINE_SCORES = ("correct", "answer_f1", "recall@5")
_SECONDS_BETWEEN_LINES = 10.0


class Watching(Protocol):
    def __call__(self, outcome: Outcome) -> None: ...


class _Progress:
    def __init__(self, name: str, total: int, done: int) -> None:
        self.name = name
        self.total = total
        self.done = done
        self._resumed = done > 0
        self.begun = time.monotonic()
        self.settled = 0
        self.sums: dict[str, tuple[float, int]] = {}

    def add(self, outcome: Outcome) -> None:
        if not self.settled:
            self.begun = time.monotonic()
        self.done += 1
        self.settled += 1
        for score in _HEADLINE_SCORES:
            value = outcome.score(score)
            if value is not None:
                total, n = self.sums.get(score, (0.0, 0))
                self.sums[score] = (total + value, n + 1)

    @property
    def score(self) -> str:
        """The headline score so far; empty in a resumed run, whose earlier trials are not read again."""
        if self._resumed:
            return ""
        for score in _HEADLINE_SCORES:
            if score in self.sums:
                total, n = self.sums[score]
                return f"{score} {share(total / n)}"
        return ""

    @property
    def eta(self) -> str:
        passed = time.monotonic() - self.begun
        left = passed / self.settled * (self.total - self.done) if self.settled else 0.0
        return f"{left // 60:.0f}m {left % 60:02.0f}s" if left >= 60 else f"{left:.0f}s"


@contextmanager
def progress(totals: Mapping[tuple[str, str], int], done: Mapping[tuple[str, str], int]) -> Iterator[Watching]:
    """Shows progress while the context is open. `totals` and `done` are by benchmark and subject."""
    rows = {key: _Progress(f"{key[0]} × {key[1]}", total, done.get(key, 0)) for key, total in totals.items() if total}
    if sys.stderr.isatty():
        with _bars(rows) as watch:
            yield watch
    else:
        yield _lines(rows)


def _lines(rows: Mapping[tuple[str, str], _Progress]) -> Watching:
    last = time.monotonic()

    def watch(outcome: Outcome) -> None:
        nonlocal last
        row = rows[outcome.trial.benchmark, outcome.trial.subject.name]
        row.add(outcome)
        if row.done == row.total or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            eta = "" if row.done == row.total else f" | ETA: {row.eta}"
            figure = f" | {row.score}" if row.score else ""
            percent = f"{row.done / row.total:.0%}"
            with suppress(OSError):  # a closed pipe must not stop the run
                print(f"{row.name}: {row.done}/{row.total} ({percent}){eta}{figure}", file=sys.stderr, flush=True)

    return watch


@contextmanager
def _bars(rows: Mapping[tuple[str, str], _Progress]) -> Iterator[Watching]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn

    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True, highlight=False),
        refresh_per_second=8,
    )
    tasks: dict[tuple[str, str], TaskID] = {}
    with bars:

        def watch(outcome: Outcome) -> None:
            key = (outcome.trial.benchmark, outcome.trial.subject.name)
            row = rows[key]
            row.add(outcome)
            if key not in tasks:
                tasks[key] = _add(bars, row)
            eta = "" if row.done == row.total else f"ETA: {row.eta}  "
            bars.update(tasks[key], completed=row.done, note=f"{eta}{row.score}")

        yield watch


def _add(bars: Progress, row: _Progress) -> TaskID:
    from rich.markup import escape

    return bars.add_task(escape(row.name), total=row.total, completed=row.done, note="")
