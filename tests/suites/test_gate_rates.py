"""How often the gate fails by chance, and how often it notices a real drop, in simulated runs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from memorybench.core.measures import Metric
from memorybench.core.trials import Outcome, Score, Subject, Trial
from memorybench.metrics.rates import Pooled, Rate
from memorybench.suites.comparison import CaseScores, adjust, compare_measure
from memorybench.suites.gate import Gate, check_comparison
from memorybench.suites.run_comparison import RunComparison

METRICS: Sequence[Metric] = (
    Rate("accuracy", "correct"),
    Rate("answer_f1", "answer_f1"),
    Pooled("precision", ("tp", "fp"), lambda sums: sums[0] / (sums[0] + sums[1]) if sums[0] + sums[1] else None),
)
SUBJECTS = ("a", "b", "c")


def simulated_gate(seed: int, clusters: int, drop: float = 0.0) -> Gate:
    """Two runs of three subjects on the same questions. Histories and questions differ in difficulty, runs in luck.

    The new run of the first subject answers fewer questions correctly by `drop`.
    """
    random = Random(seed)
    pairs = []
    sizes = [random.randint(5, 40) for _ in range(clusters)]
    for subject in SUBJECTS:
        histories = [random.gauss(0, 0.15) for _ in sizes]
        sides: tuple[dict[str, CaseScores], dict[str, CaseScores]] = ({}, {})
        for place, size in enumerate(sizes):
            for number in range(size):
                chance = min(max(random.betavariate(1.2, 0.8) + histories[place], 0.02), 0.98)
                for side, cases in enumerate(sides):
                    worse = drop if side == 0 and subject == "a" else 0.0
                    key = f"{place}-{number}"
                    cases[key] = _case(random, key, str(place), subject, max(chance - worse, 0.0))
        for metric in METRICS:
            pairs.append(
                compare_measure(metric, *sides, benchmark="quiz", names=(subject, subject), runs=("new", "old"))
            )
    adjusted = tuple(adjust(pairs))
    comparison = RunComparison(suite="bench", sides=(), settings=(), tests=len(adjusted), comparisons=adjusted)
    return check_comparison(comparison, "old", {})


def _case(random: Random, key: str, cluster: str, subject: str, chance: float) -> CaseScores:
    found = sum(random.random() < chance for _ in range(4))
    scores = {
        "correct": float(random.random() < chance),
        "answer_f1": min(max(random.gauss(chance, 0.25), 0.0), 1.0),
        "tp": float(found),
        "fp": float(4 - found),
    }
    trial = Trial(
        suite="bench", benchmark="quiz", case_id=key, subject=Subject(role="provider", name=subject), cluster=cluster
    )
    outcome = Outcome(
        trial=trial, status="scored", scores=tuple(Score(name=name, value=value) for name, value in scores.items())
    )
    return CaseScores.of([outcome], METRICS)


def rate(pairs: int, clusters: int, drop: float = 0.0) -> float:
    """The share of pairs in which the gate fails."""
    return sum(not simulated_gate(seed, clusters, drop).passed for seed in range(pairs)) / pairs


@pytest.mark.slow
def test_the_gate_is_quiet_without_a_difference_and_notices_a_drop() -> None:
    assert rate(6, clusters=12) <= 1 / 6  # seed by seed the same; the full sweep bounds the rate
    assert rate(6, clusters=12, drop=0.10) >= 0.5


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("clusters", [12, 30])
def test_over_200_pairs_the_false_alarm_rate_is_at_most_7_percent(clusters: int) -> None:
    assert rate(200, clusters) <= 0.07
    assert rate(40, clusters, drop=0.10) >= 0.9
