"""Counts the progress of a run from the events of the engine, for displays in this or another process."""

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memorybench.core.plans import Adding
from memorybench.core.reasons import Reasons
from memorybench.core.records import Record
from memorybench.core.trials import STATUSES, Outcome
from memorybench.files.reading import read_inside

if TYPE_CHECKING:
    from memorybench.engine.budget import Budget

FILE_NAME = ".progress"
"""The progress file in the folder of a run, while a process performs the run; `results --watch` reads it."""
_HEADLINE_SCORES = ("correct", "rubric_score", "answer_f1", "recall@5")
_WINDOW = 120.0
"""Rates are measured over this many seconds only, because the beginning of a resumed run is faster."""
_LONGEST_REASON = 200
_REQUEST = re.compile(r"\b[A-Z]+ https?://\S+: ")
"""The method and address of a request in an error, which are removed to leave room for the reason."""


class Block(Record):
    """The progress of one subject, such as a provider, on one benchmark."""

    benchmark: str
    subject: str
    state: Literal["waiting", "working", "done"]
    done: int
    """The number of trials with an outcome."""
    total: int
    added: int = 0
    """The number of sessions or turns (see `unit`) that were added to the memory."""
    to_add: int = 0
    """The number of sessions or turns of all haystacks."""
    is_estimate: bool = False
    """Whether `to_add` is estimated, because some haystacks were not read yet."""
    unit: str = "sessions"
    problems: Mapping[str, int] = {}
    """The number of trials without a score, by status."""
    reason: str = ""
    """The most frequent reason why trials have no score."""
    score: float | None = None
    score_name: str = ""
    score_n: int = 0
    """The number of trials that `score` is the mean of; trials that are not scored or not decided are left out."""
    eta: float | None = None
    """Estimated seconds until the block is done; None: unknown."""
    eta_of_adds: float | None = None

    @property
    def name(self) -> str:
        return f"{self.benchmark} × {self.subject}"


class Snapshot(Record):
    """The progress of a run at one moment."""

    blocks: tuple[Block, ...]
    done: int
    total: int
    per_second: float | None = None
    """Trials per second."""
    eta: float | None = None
    cost: float = 0.0
    calls_of_unknown_cost: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The number of trials by status."""
        problems = {str(status): sum(block.problems.get(status, 0) for block in self.blocks) for status in STATUSES}
        return {**problems, "scored": self.done - sum(problems.values())}


class _Rate:
    """Measures the seconds per event over the last two minutes. Events within half a second are stored as one."""

    def __init__(self) -> None:
        self._events: deque[tuple[float, int]] = deque()
        self._begun: float | None = None
        self._ended: float | None = None

    def begin(self) -> None:
        if self._begun is None:
            self._begun = time.monotonic()

    def add(self, number: int = 1) -> None:
        self.begin()
        now, self._ended = time.monotonic(), None
        if self._events and now - self._events[-1][0] < 0.5:
            at, before = self._events.pop()
            self._events.append((at, before + number))
        else:
            self._events.append((now, number))
        while self._events[0][0] < now - _WINDOW:
            self._begun, _ = self._events.popleft()

    def end(self) -> None:
        """Stop the clock, because no more events are expected; a later event restarts it."""
        self._ended = time.monotonic()

    @property
    def seconds_each(self) -> float | None:
        """Seconds per event; None if there were no events."""
        number = sum(number for _, number in list(self._events))
        if not number or self._begun is None:
            return None
        return ((self._ended or time.monotonic()) - self._begun) / number


class _Counts:
    """Counts the trials and adds of one subject on one benchmark."""

    def __init__(self, benchmark: str, subject: str, total: int, done: int) -> None:
        self.benchmark, self.subject, self.total, self.done = benchmark, subject, total, done
        self.is_resumed = done > 0
        self.trials, self.adds = _Rate(), _Rate()
        self.added, self.unit, self.haystacks = 0, "sessions", 0
        self._haystacks: dict[str, tuple[int, int]] = {}
        self._known_to_add = 0
        self.problems: Counter[str] = Counter()
        self._reasons = Reasons()
        self._sums: dict[str, tuple[float, int]] = {}

    def add_outcome(self, outcome: Outcome) -> None:
        self.done += 1
        self.trials.add()
        if self.done == self.total:
            self.trials.end()
        if outcome.status != "scored":
            self.problems[outcome.status] += 1
            self._reasons.add(outcome.failure.message if outcome.failure else outcome.status)
        for name in _HEADLINE_SCORES:
            value = outcome.score(name)
            if value is not None:
                total, n = self._sums.get(name, (0.0, 0))
                self._sums[name] = (total + value, n + 1)

    def add_sessions(self, adding: Adding) -> None:
        done, total = self._haystacks.get(adding.haystack, (0, 0))
        self._haystacks[adding.haystack] = (adding.done, adding.total)
        self.adds.begin()
        if adding.done == adding.total:
            self.trials.begin()
        if adding.done > done:
            self.adds.add(adding.done - done)
        self.added += adding.done - done
        self._known_to_add += adding.total - total
        self.unit, self.haystacks = adding.unit, adding.haystacks
        if self.added == self.to_add:
            self.adds.end()

    @property
    def to_add(self) -> int:
        """The number of sessions of all haystacks. A haystack that was not read yet counts with the average length.

        When every trial is done, this is the number that was added: a resumed run does not add all haystacks.
        """
        if self.done >= self.total:
            return self.added
        read = len(self._haystacks)
        return round(self._known_to_add * max(self.haystacks, read) / read) if read else 0

    def block(self, redact: Callable[[str], str], trial: float | None = None, add: float | None = None) -> Block:
        """Return the progress of this subject on this benchmark.

        `trial` and `add` are seconds per trial and per add, used until those of this subject are measured.
        """
        score_name, score, score_n = self._score() or ("", None, 0)
        add_seconds = self.adds.seconds_each
        reason, _ = self._reasons.most_frequent
        started = self.trials.seconds_each is not None or bool(self._haystacks)
        return Block(
            benchmark=self.benchmark,
            subject=self.subject,
            state="done" if self.done >= self.total else "working" if started else "waiting",
            done=self.done,
            total=self.total,
            added=self.added,
            to_add=self.to_add,
            is_estimate=len(self._haystacks) < self.haystacks,
            unit=self.unit,
            problems={status: self.problems[status] for status in STATUSES if self.problems[status]},
            reason=_REQUEST.sub("", redact(" ".join(reason.split())), count=1)[:_LONGEST_REASON],
            score=score,
            score_name=score_name,
            score_n=score_n,
            eta=self.eta(trial, add),
            eta_of_adds=None if add_seconds is None else (self.to_add - self.added) * add_seconds,
        )

    def _score(self) -> tuple[str, float, int] | None:
        """Return the name and the mean of the headline score so far, and the number of trials that have it.

        None in a resumed run, whose earlier trials are not read again, and while some scored trials have no verdict.
        """
        scored = self.done - self.problems.total()
        if self.is_resumed or self._sums.get("correct", (0.0, scored))[1] < scored:
            return None
        name = next((name for name in _HEADLINE_SCORES if name in self._sums), None)
        if name is None:
            return None
        total, n = self._sums[name]
        return name, total / n, n

    def eta(self, trial: float | None, add: float | None) -> float | None:
        trial, add = self.trials.seconds_each or trial, self.adds.seconds_each or add
        left, left_to_add = self.total - self.done, max(0, self.to_add - self.added)
        if (left and trial is None) or (left_to_add and add is None):
            return None
        return left * (trial or 0.0) + left_to_add * (add or 0.0)


class RunProgress:
    """Counts the events of a run. The engine calls it; displays call `snapshot`, also from other threads."""

    def __init__(
        self,
        totals: Mapping[tuple[str, str], int],
        done: Mapping[tuple[str, str], int],
        budget: "Budget | None" = None,
        redact: Callable[[str], str] = str,
    ) -> None:
        """Start counting. `totals` and `done` are numbers of trials by benchmark and subject."""
        self._counts = {key: _Counts(*key, total, done.get(key, 0)) for key, total in totals.items() if total}
        self._budget = budget
        self._redact = redact
        self._trials = _Rate()
        self.on_stage_end: Callable[[Block], None] | None = None
        """Called twice per block: when all its sessions were added, and when all its trials have an outcome."""
        self.on_adding: Callable[[Adding], None] | None = None
        """Called when sessions were added."""

    def add_outcome(self, outcome: Outcome) -> None:
        counts = self._counts[outcome.trial.benchmark, outcome.trial.subject.name]
        self._trials.add()
        counts.add_outcome(outcome)
        if counts.done == counts.total:
            self._end_stage(counts)

    def add_sessions(self, adding: Adding) -> None:
        counts = self._counts[adding.benchmark, adding.subject]
        self._trials.begin()
        counts.add_sessions(adding)
        if self.on_adding is not None:
            self.on_adding(adding)
        if adding.done == adding.total and counts.added == counts.to_add:
            self._end_stage(counts)

    def _end_stage(self, counts: _Counts) -> None:
        if self.on_stage_end is not None:
            self.on_stage_end(counts.block(self._redact))

    def snapshot(self) -> Snapshot:
        every = list(self._counts.values())
        trial = _mean([counts.trials.seconds_each for counts in every])
        add = _mean([counts.adds.seconds_each for counts in every])
        left = [counts.eta(trial, add) for counts in every if counts.done < counts.total]
        each = self._trials.seconds_each
        return Snapshot(
            blocks=tuple(counts.block(self._redact, trial, add) for counts in every),
            done=sum(counts.done for counts in every),
            total=sum(counts.total for counts in every),
            per_second=1 / each if each else None,
            eta=None if None in left else sum(one for one in left if one is not None),
            cost=self._budget.spent if self._budget else 0.0,
            calls_of_unknown_cost=self._budget.calls_of_unknown_cost if self._budget else 0,
        )


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@contextmanager
def published(progress: RunProgress, folder: Path) -> Iterator[None]:
    """Write the progress to a file in the run's folder every second inside the `with` block, then delete the file.

    Other processes read the file. Errors in writing it are ignored.
    """
    path, draft = folder / FILE_NAME, folder / f"{FILE_NAME}.part"

    def publish() -> None:
        draft.unlink(missing_ok=True)  # it may be a link
        draft.touch(mode=0o600)
        draft.write_text(progress.snapshot().model_dump_json(), encoding="utf-8")
        draft.replace(path)

    try:
        with every_second(publish):
            yield
    finally:
        for file in (path, draft):
            with suppress(OSError):
                file.unlink(missing_ok=True)


@contextmanager
def every_second(work: Callable[[], None]) -> Iterator[None]:
    """Call `work` every second in a thread, inside the `with` block. Its errors are ignored."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(1.0):
            with suppress(Exception):  # an error in showing progress must not stop the run
                work()

    thread = threading.Thread(target=repeat, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def read_progress(folder: Path) -> Snapshot | None:
    """Return the progress that another process wrote; None if there is no progress file or it cannot be read."""
    try:
        return Snapshot.model_validate_json(read_inside(folder.parent, f"{folder.name}/{FILE_NAME}"))
    except (OSError, ValueError):
        return None
