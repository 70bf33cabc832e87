"""The bench suite: measures how well a memory system stores and finds the content of conversations."""

from __future__ import annotations

from memorybench.suites.suite import Command, Suite

from .spec import BenchSpec, ScoreSpec

_PREPARE = "memorybench.suites.bench.prepare"
SUITE = Suite(
    name="bench",
    commands=(
        Command(
            "eval", "compare memory providers on benchmarks", BenchSpec, f"{_PREPARE}:prepare", "MEMORYBENCH EVALUATION"
        ),
        Command(
            "score",
            "judge the recorded answers of an eval run again",
            ScoreSpec,
            f"{_PREPARE}:prepare_scoring",
            "MEMORYBENCH SCORING",
        ),
    ),
    report_module="memorybench.suites.bench.report",
    rescoring_module="memorybench.suites.bench.rescoring",
)
