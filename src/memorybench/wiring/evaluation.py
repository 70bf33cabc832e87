"""Bench runs that go on: what a run was started with, and the recorded answers of one that are judged anew."""

from __future__ import annotations

from pathlib import Path

from memorybench.files.names import safe_run_id
from memorybench.journal.run_reader import RunReader

from .bench import BenchSpec, Prepared, prepare
from .recorded import Recorded
from .running import saved_run, saved_spec


def prepare_again(run_id: str, output: Path) -> Prepared:
    """What a run was started with, provided that there is something left to do."""
    return _prepared(saved_spec(BenchSpec, saved_run(run_id, output, "bench")), output)


def prepare_scoring(run_id: str, output: Path, judge_model: str, judge_prompt: str | None) -> Prepared:
    """A new run over the recorded answers of an old one, with another judge."""
    safe_run_id(run_id, "run")
    with RunReader.open(output) as run_reader:
        saved = run_reader.run(run_id)
    changed = {"judge_model": judge_model, "judge_prompt": judge_prompt, "reuse": run_id, "answers_of": run_id}
    return _prepared(saved_spec(BenchSpec, saved, **changed), output)


def _prepared(spec: BenchSpec, output: Path) -> Prepared:
    if spec.answers_of is None:
        return prepare(spec, Path())
    with RunReader.open(output, thorough=False) as run_reader:
        recorded = Recorded.of(run_reader, spec.answers_of)
    return prepare(spec, Path(), recorded=recorded)
