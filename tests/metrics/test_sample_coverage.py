"""Does the interval of a `--limit` sample hold the truth 95 times in 100? `pytest -s` prints the figures.

The target is the mean over people like those of the file, with the file's mix of question types: in each repetition
people and answers are drawn anew, then the sample is taken from the file without replacement. Rates are drawn between
0.3 and 0.9, because the coverage of a few yes/no answers jumps up and down from one rate to the next.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from memorybench.core.trials import Case
from memorybench.metrics.intervals import SHARE, UNBOUNDED, interval
from memorybench.suites.sampling import sample

UNEVEN = (6, 8, 10, 12, 16, 20, 28, 40, 56, 80)
TYPES = {"a": 0.06, "b": 0.0, "c": -0.08}
Draw = Callable[[np.random.Generator, int, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From people and the effect of each question's type to the answers of many repetitions, and the truth of each."""


class Asked(Case):
    person: str
    kind: str


def file_of(people: int, *, even: bool) -> list[Asked]:
    sizes = (
        [30] * people if even else [UNEVEN[(2 * n + 1) % 10] if people < 10 else UNEVEN[n % 10] for n in range(people)]
    )
    return [
        Asked(id=f"{person}-{n}", person=str(person), kind="abcabcabca"[n % 10])
        for person, size in enumerate(sizes)
        for n in range(size)
    ]


def rates(draw: np.random.Generator, runs: int, people: int, correlation: float) -> tuple[np.ndarray, np.ndarray]:
    """How easy each person's questions are, around a rate that differs between repetitions."""
    rate = draw.uniform(0.3, 0.9, (runs, 1))
    strength = 1 / correlation - 1
    return draw.beta(rate * strength, (1 - rate) * strength, (runs, people)), rate[:, 0]


def yes_or_no(draw: np.random.Generator, runs: int, person: np.ndarray, effect: np.ndarray) -> tuple[np.ndarray, ...]:
    easiness, rate = rates(draw, runs, person.max() + 1, 0.1)
    shift = effect * np.minimum(easiness, 1 - easiness)[:, person] * 4  # no probability leaves 0 to 1
    typical = draw.beta(*(np.array([[9], [9]]) * np.stack([rate, 1 - rate])), (4000, runs))
    truth = rate + effect.mean() * 4 * np.minimum(typical, 1 - typical).mean(axis=0)
    return (draw.random((runs, len(person))) < easiness[:, person] + shift).astype(float), truth


def shares(draw: np.random.Generator, runs: int, person: np.ndarray, effect: np.ndarray) -> tuple[np.ndarray, ...]:
    """Recall of three gold sessions."""
    easiness, rate = rates(draw, runs, person.max() + 1, 0.1)
    return draw.binomial(3, easiness[:, person]) / 3, rate


def numbers(draw: np.random.Generator, runs: int, person: np.ndarray, effect: np.ndarray) -> tuple[np.ndarray, ...]:
    own = draw.normal(0, 0.4, (runs, person.max() + 1))
    return draw.normal(5 + 4 * (effect - effect.mean()), 1, (runs, len(person))) + own[:, person], np.full(runs, 5.0)


KINDS: dict[str, tuple[Draw, tuple[float, float]]] = {
    "yes/no": (yes_or_no, SHARE),
    "shares": (shares, SHARE),
    "numbers": (numbers, UNBOUNDED),
}
IN_EVERY_TEST_RUN = {("yes/no", 12, 20), ("shares", 12, 50), ("numbers", 8, 20)}


@pytest.mark.parametrize(
    ("kind", "people", "limit"),
    [
        pytest.param(
            *cell,
            id="{}, {} people, limit {}".format(*cell),
            marks=() if cell in IN_EVERY_TEST_RUN else pytest.mark.slow,
        )
        for cell in (
            (kind, people, limit)
            for kind in KINDS
            for people in (5, 8, 12, 30, 60)
            for limit in (10, 20, 50, 100, 200)
            if limit < 30 * people
        )
    ],
)
def test_intervals_of_samples(kind: str, people: int, limit: int) -> None:
    draw_values, bounds = KINDS[kind]
    held = total = 0
    for even in (True, False):
        questions = file_of(people, even=even)
        if limit > len(questions):
            continue
        places = {question.id: place for place, question in enumerate(questions)}
        person = np.array([int(question.person) for question in questions])
        effect = np.array([TYPES[question.kind] for question in questions])
        draw = np.random.default_rng(people * 1000 + limit)
        for seed in range(10):
            chosen = sample(questions, limit, seed, cluster=lambda one: one.person, kind=lambda one: one.kind)
            where = [places[question.id] for question in chosen]
            clusters = [question.person for question in chosen]
            values, truths = draw_values(draw, 100, person, effect)
            for row, truth in zip(values[:, where].tolist(), truths.tolist(), strict=True):
                _, low, high = interval(row, clusters, bounds=bounds)
                held += low is not None and high is not None and low <= truth <= high
                total += 1
    print(f"\n{kind}, {people} people, limit {limit}: {held / total:.1%} of {total}")
    # a little too wide for ten questions, and for five people: documented in docs/statistics.md
    assert 0.93 <= held / total <= (0.985 if limit == 10 or people == 5 else 0.97)
