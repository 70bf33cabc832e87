"""Merging runs whose steps have different results."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from memorybench.core.trials import Outcome, Score, Trial
from memorybench.journal.merging import write_merged
from memorybench.journal.rows import Step
from memorybench.journal.run_opening import open_run
from memorybench.journal.run_reader import RunReader
from tests.engine.workload import PROVIDER, RUN


def record(results: Path, run: str, steps: Mapping[str, str], asked: Sequence[str]) -> None:
    """Record a run with these results by step, and one trial that asked for the steps `asked`."""
    trial = Trial(suite="bench", case_id=f"case of {run}", subject=PROVIDER, benchmark="mini")
    scores = (Score(name="correct", value=1.0),)

    async def write() -> None:
        for key, result in steps.items():
            await run_writer.record_step(Step(key, "judge", "judge", "{}", f'"{result}"', "2026-01-01", 0.1))
        await run_writer.record_outcome(Outcome(trial=trial, status="scored", scores=scores, steps=tuple(asked)), 0)

    with open_run(results, RUN.model_copy(update={"id": run})) as run_writer:
        asyncio.run(write())
        run_writer.end("complete")


def test_a_trial_that_is_left_out_does_not_decide_that_its_failed_step_has_no_result(tmp_path: Path) -> None:
    """Otherwise the step of a later shard would be left out, too, and paid for again."""
    record(tmp_path, "first", {"shared": "yes"}, ["shared"])
    record(tmp_path, "second", {"shared": "no"}, ["failed", "shared"])
    record(tmp_path, "third", {"failed": "yes"}, ["failed"])
    with RunReader.open(tmp_path) as run_reader:
        parts = [(run_reader, run) for run in ("first", "second", "third")]
        write_merged(tmp_path, RUN.model_copy(update={"id": "all"}), parts)
        merged = {outcome.trial.case_id for outcome in run_reader.outcomes("all")}
        assert merged == {"case of first", "case of third"}
        assert set(run_reader.steps_by_key("all", ["failed", "shared"])) == {"failed", "shared"}
