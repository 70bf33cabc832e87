"""How far a run is, counted from the events of the engine."""

from __future__ import annotations

from memorybench.core.plans import Adding
from memorybench.reporting.progress import RunProgress


def test_a_resumed_run_expects_no_more_sessions_once_its_trials_are_done() -> None:
    """It adds only the haystacks of its remaining trials, here one of two."""
    block = ("starter", "bm25")
    progress = RunProgress(totals={block: 16}, done={block: 16})
    progress.add_sessions(Adding(*block, haystack="second", done=48, total=48, haystacks=2))
    (seen,) = progress.snapshot().blocks
    assert seen.state == "done"
    assert (seen.added, seen.to_add) == (48, 48)
