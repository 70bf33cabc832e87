"""While it runs: a bar with count, ETA and the figure so far; in a pipe or in CI plain lines, now and then."""

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

_HEADLINE_SCORES = (("correct", "correct"), ("answer_f1", "answer_f1"), ("recall@5", "recall@5"))
_SECONDS_BETWEEN_LINES = 10.0


class Watching(Protocol):
    def __call__(self, outcome: Outcome) -> None: ...


class _Arm:
    def __init__(self, name: str, total: int, done: int) -> None:
        self.name = name
        self.total = total
        self.done = done
        self._resumed = done > 0
        self.begun = time.monotonic()
        self.settled = 0
        self.sums: dict[str, tuple[float, int]] = {}

    def take(self, outcome: Outcome) -> None:
        if not self.settled:
            self.begun = time.monotonic()
        self.done += 1
        self.settled += 1
        for score, _ in _HEADLINE_SCORES:
            value = outcome.score(score)
            if value is not None:
                total, n = self.sums.get(score, (0.0, 0))
                self.sums[score] = (total + value, n + 1)

    @property
    def figure(self) -> str:
        """The headline so far; none in a resumed run, whose earlier trials are not looked at again."""
        if self._resumed:
            return ""
        for score, name in _HEADLINE_SCORES:
            if score in self.sums:
                total, n = self.sums[score]
                return f"{name} {share(total / n)}"
        return ""

    @property
    def eta(self) -> str:
        passed = time.monotonic() - self.begun
        left = passed / self.settled * (self.total - self.done) if self.settled else 0.0
        return f"{left // 60:.0f}m {left % 60:02.0f}s" if left >= 60 else f"{left:.0f}s"


@contextmanager
def progress(totals: Mapping[tuple[str, str], int], done: Mapping[tuple[str, str], int]) -> Iterator[Watching]:
    """`totals` and `done` by (benchmark, subject). Shown on standard error: standard output is for results."""
    arms = {key: _Arm(f"{key[0]} × {key[1]}", total, done.get(key, 0)) for key, total in totals.items() if total}
    if sys.stderr.isatty():
        with _bars(arms) as watch:
            yield watch
    else:
        yield _lines(arms)


def _lines(arms: Mapping[tuple[str, str], _Arm]) -> Watching:
    last = time.monotonic()

    def watch(outcome: Outcome) -> None:
        nonlocal last
        arm = arms[outcome.trial.benchmark, outcome.trial.subject.name]
        arm.take(outcome)
        if arm.done == arm.total or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            eta = "" if arm.done == arm.total else f" | ETA: {arm.eta}"
            figure = f" | {arm.figure}" if arm.figure else ""
            percent = f"{arm.done / arm.total:.0%}"
            with suppress(OSError):  # nobody reads any more: that is no reason to stop working
                print(f"{arm.name}: {arm.done}/{arm.total} ({percent}){eta}{figure}", file=sys.stderr, flush=True)

    return watch


@contextmanager
def _bars(arms: Mapping[tuple[str, str], _Arm]) -> Iterator[Watching]:
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
    shown: dict[tuple[str, str], TaskID] = {}
    with bars:

        def watch(outcome: Outcome) -> None:
            key = (outcome.trial.benchmark, outcome.trial.subject.name)
            arm = arms[key]
            arm.take(outcome)
            if key not in shown:
                shown[key] = _add(bars, arm)
            eta = "" if arm.done == arm.total else f"ETA: {arm.eta}  "
            bars.update(shown[key], completed=arm.done, note=f"{eta}{arm.figure}")

        yield watch


def _add(bars: Progress, arm: _Arm) -> TaskID:
    from rich.markup import escape

    return bars.add_task(escape(arm.name), total=arm.total, completed=arm.done, note="")
