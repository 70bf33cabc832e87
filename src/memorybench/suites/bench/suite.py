"""The bench suite: how well does a memory system store and find what was said?"""

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
            "judge the recorded answers of a run again",
            ScoreSpec,
            f"{_PREPARE}:prepare_scoring",
            "MEMORYBENCH SCORING",
        ),
    ),
    report_module="memorybench.suites.bench.report",
)
