"""The crash sweep: kill a run at its n-th commit, resume it, kill it again, then check the invariants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from memorybench.core.trials import STATUSES
from memorybench.journal.run_reader import RunReader

from .workload import RUN, Ledger, committed, in_child, killer, plan, report, run_once

CONCURRENCY = 4


def crash_and_resume(folder: Path, kills: Sequence[int], expected: str) -> bool:
    """Kill the run at each place in turn, then let it finish. Return False if it ended before the first kill."""
    ledger = Ledger(folder.with_suffix(".ledger"))
    crashes = 0
    for place in kills:
        safe = committed(folder)
        seen = len(ledger.read())
        ended = in_child(lambda at=place: run_once(folder, plan(ledger), fault=killer(at), concurrency=CONCURRENCY))
        _assert_nothing_repeated(safe, ledger.read()[seen:])
        if ended == 0:
            break
        assert ended is None, f"the child failed instead of being killed at {place}"
        crashes += 1
    safe, seen = committed(folder), len(ledger.read())
    ended = in_child(lambda: run_once(folder, plan(ledger), concurrency=CONCURRENCY))
    assert ended == 0, f"not resumable after kills at {list(kills)}"
    _assert_nothing_repeated(safe, ledger.read()[seen:])
    _assert_invariants(folder, ledger, crashes, expected)
    return crashes > 0


def _assert_nothing_repeated(safe: set[str], calls: list[str]) -> None:
    repeated = safe & set(calls)
    assert not repeated, f"I2: recorded calls were repeated: {sorted(repeated)}"


def _assert_invariants(folder: Path, ledger: Ledger, crashes: int, expected: str) -> None:
    with RunReader.open(folder) as run_reader:
        for table, key in (("steps", "key"), ("outcomes", "trial")):
            twice = run_reader.connection.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM {table} GROUP BY run, {key} HAVING count(*) > 1) AS twice"
            ).fetchone()
            assert twice == (0,), f"I1: {table} holds a row twice"
        counts = run_reader.counts(RUN.id)
        assert sum(counts[status] for status in STATUSES) == RUN.planned == 40, f"I4: {counts}"
        calls = Counter(call for call in ledger.read() if call.startswith(("answer", "judge")))
        repeats = sum(n - 1 for n in calls.values())
        assert repeats <= CONCURRENCY * crashes, f"I2: {repeats} calls repeated after {crashes} crashes"
        flagged = run_reader.possibly_charged_twice(RUN.id)
        assert repeats <= flagged, f"I2: {repeats} calls repeated, only {flagged} reported"
        assert flagged <= CONCURRENCY * crashes, f"I2: {flagged} reported after {crashes} crashes"
    assert report(folder) == expected, "I3: the report differs from the uninterrupted run's"
