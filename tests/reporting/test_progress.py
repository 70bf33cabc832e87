"""How far a run is, counted from the events of the engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from memorybench.core.plans import Adding
from memorybench.reporting.progress import FILE_NAME, Block, RunProgress, Snapshot, published, read_progress
from memorybench.reporting.progress_view import ProgressLines


def test_a_resumed_run_expects_no_more_sessions_once_its_trials_are_done() -> None:
    """It adds only the haystacks of its remaining trials, here one of two."""
    block = ("starter", "bm25")
    progress = RunProgress(totals={block: 16}, done={block: 16})
    progress.add_sessions(Adding(*block, haystack="second", done=48, total=48, haystacks=2))
    (seen,) = progress.snapshot().blocks
    assert seen.state == "done"
    assert (seen.added, seen.to_add) == (48, 48)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(59.4, "59s"), (59.7, "1m 00s"), (119.7, "2m 00s"), (3599.4, "59m 59s"), (3599.7, "1h 00m"), (7260.0, "2h 01m")],
)
def test_an_estimate_has_at_most_59_seconds_and_59_minutes(
    capsys: pytest.CaptureFixture[str], seconds: float, text: str
) -> None:
    block = Block(benchmark="starter", subject="bm25", state="working", done=1, total=9, eta=seconds)
    ProgressLines(first=0.0).show(Snapshot(blocks=(block,), done=1, total=9))
    assert capsys.readouterr().err == f"starter × bm25: 1/9 (11%) | ETA: {text}\n"


def test_progress_is_not_written_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(work: Callable[[], None]) -> AbstractContextManager[None]:
        work()
        return nullcontext()

    monkeypatch.setattr("memorybench.reporting.progress.every_second", at_once)
    private, folder = tmp_path / "private", tmp_path / "run"
    private.write_text("mine")
    folder.mkdir()
    (folder / f"{FILE_NAME}.part").symlink_to(private)
    with published(RunProgress(totals={("starter", "bm25"): 16}, done={}), folder):
        assert read_progress(folder) is not None
    assert private.read_text() == "mine"
