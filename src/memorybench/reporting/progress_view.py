"""Shows progress on standard error: bars on a terminal, otherwise lines every ten seconds and after each stage."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from memorybench.text.sanitize import PLAIN, sanitize

from .formatting import about, share
from .progress import Block, RunProgress, Snapshot, every_second

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_SECONDS_BETWEEN_LINES = 10.0
_REFRESHES_PER_SECOND = 4
_NARROW = 100


@contextmanager
def show_progress(progress: RunProgress) -> Iterator[None]:
    """Show the progress of a run of this process inside the `with` block."""
    lines = ProgressLines()
    if not sys.stderr.isatty():
        progress.on_stage_end = lines.end_stage
    with _shown(progress.snapshot, lines):
        yield


@contextmanager
def follow_progress(read: Callable[[], Snapshot | None]) -> Iterator[None]:
    """Show the progress of another process, which `read` returns, inside the `with` block."""
    latest = Snapshot(blocks=(), done=0, total=0)

    def read_latest() -> Snapshot:
        nonlocal latest
        latest = read() or latest
        return latest

    with _shown(read_latest, ProgressLines(time.monotonic())):
        yield


def _shown(read: Callable[[], Snapshot], lines: ProgressLines) -> AbstractContextManager[None]:
    return _live(read) if sys.stderr.isatty() else every_second(lambda: lines.show(read()))


class ProgressLines:
    """Prints progress as lines, for pipes, files and logs."""

    def __init__(self, first: float | None = None) -> None:
        """`first` is the time (of `time.monotonic`) from which `show` prints; None: ten seconds from now."""
        self._last = ""
        self._next = time.monotonic() + _SECONDS_BETWEEN_LINES if first is None else first

    def end_stage(self, block: Block) -> None:
        is_done = block.done == block.total
        _print(_line(block) if is_done else f"{block.name}: added {block.added} {block.unit}")

    def show(self, snapshot: Snapshot) -> None:
        """Print the blocks in progress and the total, at most every ten seconds and only if something changed."""
        if time.monotonic() < self._next:
            return
        lines = [_line(block) for block in snapshot.blocks if block.state == "working"]
        if len(snapshot.blocks) > 1:
            lines.append(" | ".join([f"total: {_count(snapshot)}", *_totals(snapshot, "ETA: "), *_waiting(snapshot)]))
        text = "\n".join(lines)
        if text and text != self._last:
            self._last, self._next = text, time.monotonic() + _SECONDS_BETWEEN_LINES
            _print(text)


def _print(text: str) -> None:
    with suppress(OSError):  # a closed pipe must not stop the run
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        print(_encodable(text, encoding), file=sys.stderr, flush=True)


def _encodable(text: str, encoding: str) -> str:
    text = sanitize(text)
    return text if encoding.lower().startswith("utf") else text.translate(PLAIN)


def _line(block: Block) -> str:
    """Return a line such as `starter × bm25: 40/90 (44%) | ETA: 12s | 2 failed: timed out | recall@5 81.2%`."""
    parts = [_count(block)] if block.done or not block.to_add else []
    if block.added < block.to_add:
        about = "about " if block.is_estimate else ""
        parts.append(f"adding {block.added}/{about}{block.to_add} {block.unit}{_left(block)}")
    return f"{block.name}: {' | '.join([*parts, *_notes(block, 'ETA: ')])}"


def _count(counted: Block | Snapshot) -> str:
    return f"{counted.done}/{counted.total} ({counted.done / counted.total:.0%})"


def _left(block: Block) -> str:
    return "" if block.eta_of_adds is None else f", {duration(block.eta_of_adds)} left"


def _notes(block: Block, eta: str = "ETA ") -> list[str]:
    notes = []
    if block.done < block.total and block.eta is not None:
        notes.append(f"{eta}{duration(block.eta)}")
    if block.problems:
        reason = f": {block.reason}" if block.reason else ""
        notes.append(f"{', '.join(f'{n} {status}' for status, n in block.problems.items())}{reason}")
    if block.score is not None:
        of = f" of {block.score_n}" if block.score_n < block.done else ""
        score = f"{block.score_name} {share(block.score)}{of}"
        notes.insert(0 if eta == "ETA " else len(notes), score)
    return notes


def _totals(snapshot: Snapshot, eta: str = "ETA ") -> list[str]:
    notes = [f"{snapshot.per_second:.1f}/s"] if snapshot.per_second else []
    if snapshot.done < snapshot.total:
        notes.append(f"{eta}{'?' if snapshot.eta is None else duration(snapshot.eta)}")
    unknown = " + ?" if snapshot.calls_of_unknown_cost else ""
    notes.append(f"{about(snapshot.cost)}{unknown}")
    problems = sum(sum(block.problems.values()) for block in snapshot.blocks)
    return [*notes, f"{problems} without a score"] if problems else notes


def _waiting(snapshot: Snapshot) -> list[str]:
    names = [block.name for block in snapshot.blocks if block.state == "waiting"]
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return [f"waiting: {', '.join(names[:6])}{more}"] if names else []


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60}h {minutes % 60:02}m"
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


@contextmanager
def _live(read: Callable[[], Snapshot]) -> Iterator[None]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True, highlight=False, emoji=False, markup=False)

    def render() -> RenderableType:
        try:
            return _bars(read(), console)
        except Exception:  # an error in showing progress must not stop the run
            return Text("")

    with Live(get_renderable=render, console=console, refresh_per_second=_REFRESHES_PER_SECOND, redirect_stdout=False):
        yield


def _bars(snapshot: Snapshot, console: Console) -> RenderableType:
    """Return one line per row, with name, bar, count and notes, that fits the terminal."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    def fit(text: str, width: int) -> str:
        text = _encodable(text, console.encoding)
        return text if len(text) <= width else text[: max(0, width - 3)] + "..."

    rows = _rows(snapshot, console.height)
    bar_width = 10 if console.width < _NARROW else 20
    counts = [f"{row.done}/{row.total}" if row.total else "" for row in rows]
    counts = [count.rjust(max(map(len, counts))) for count in counts]
    name_width = min(max(len(row.name) for row in rows), (console.width - bar_width) // 3)
    notes_width = console.width - name_width - bar_width - len(counts[0]) - 3
    grid = Table.grid(padding=(0, 1))
    for width in (name_width, bar_width, len(counts[0]), notes_width):
        grid.add_column(width=width, no_wrap=True)
    for row, count in zip(rows, counts, strict=True):
        bar = ProgressBar(total=row.total, completed=row.done) if row.total else Text("")
        notes = Text(fit(row.notes, notes_width), style="red" if row.is_bad else "")
        grid.add_row(Text(fit(row.name, name_width)), bar, Text(count), notes)
    return grid


class _Row(Struct, frozen=True):
    name: str
    notes: str
    done: int = 0
    total: int = 0
    """The length of the bar in trials or sessions; 0: the row has no bar."""
    is_bad: bool = False


def _rows(snapshot: Snapshot, height: int) -> list[_Row]:
    """Return the rows to show: finished blocks, adds and trials of blocks in progress, the total, and waiting blocks.

    If there are more finished blocks than lines of the terminal, only the last ones are shown, with a count of the
    others.
    """
    finished = [block for block in snapshot.blocks if block.state == "done"]
    working = [block for block in snapshot.blocks if block.state == "working"]
    room = max(1, height - 5 - 2 * len(working))
    rows = [_Row("", f"{len(finished) - room} more are done")] if len(finished) > room else []
    rows += [_trials_row(block, block.name) for block in finished[-room:]]
    for block in working:
        name = block.name
        if block.added < block.to_add:
            estimated = " (estimated)" if block.is_estimate else ""
            notes = f"adding {block.unit}{estimated}{_left(block)}"
            rows.append(_Row(name, notes, block.added, block.to_add))
            name = ""
        rows.append(_trials_row(block, name))
    if len(snapshot.blocks) > 1:
        rows.append(_Row("total", ", ".join(_totals(snapshot)), snapshot.done, snapshot.total))
    names = [block.name for block in snapshot.blocks if block.state == "waiting"]
    return [*rows, *([_Row("waiting", ", ".join(names))] if names else [])] or [_Row("", "starting")]


def _trials_row(block: Block, name: str) -> _Row:
    return _Row(name, ", ".join(_notes(block)) or "trials", block.done, block.total, bool(block.problems))
