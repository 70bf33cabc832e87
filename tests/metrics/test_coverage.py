"""Does a 95 % interval hold the truth 95 times in 100? Simulated where we know it; `pytest -s` prints the figures."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from memorybench.metrics.agreement import Confusion
from memorybench.metrics.comparison import compare
from memorybench.metrics.intervals import SHARE, Interval, interval, ratio_interval
from memorybench.suites.extraction.scores import f1
from memorybench.suites.judge_check import correct_scores
from memorybench.suites.summary import mean_row

UNEVEN = (3, 4, 5, 6, 8, 10, 14, 20, 28, 40)
CONVERSATIONS = (24, 13, 24, 32, 30, 19, 23, 29, 24, 25)  # LoCoMo's ten in proportion, an eighth of the questions
QUESTIONS = (1, 1, 1, 1, 1, 2, 2, 3, 3, 5)


CLUSTERS = {
    "10 uneven clusters": (UNEVEN, 2500),
    "10 conversations": (CONVERSATIONS, 2500),
    "30 clusters": (UNEVEN * 3, 2000),
    "500 clusters": (QUESTIONS * 50, 1000),
}
RATES = ((0.3, 0.05), (0.6, 0.1), (0.9, 0.2))
IN_EVERY_TEST_RUN = {("10 uneven clusters", 0.3), ("10 conversations", 0.9), ("30 clusters", 0.6)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "runs", "rate", "correlation"),
    [
        pytest.param(
            *clusters,
            *rate,
            id=f"{name}, {rate[0]}",
            marks=() if (name, rate[0]) in IN_EVERY_TEST_RUN else pytest.mark.slow,
        )
        for name, clusters in CLUSTERS.items()
        for rate in RATES
    ],
)
def test_rates_in_clusters(sizes: tuple[int, ...], runs: int, rate: float, correlation: float) -> None:
    draw = np.random.default_rng(7)
    strength = 1 / correlation - 1
    easiness = draw.beta(rate * strength, (1 - rate) * strength, (runs, len(sizes)))
    right = (draw.random((runs, sum(sizes))) < np.repeat(easiness, sizes, axis=1)).astype(float)
    clusters = [str(place) for place, size in enumerate(sizes) for _ in range(size)]
    covered = _coverage(
        f"{len(sizes)} clusters, rate {rate}, correlation {correlation}",
        rate,
        [interval(values, clusters) for values in right.tolist()],
    )
    assert 0.93 <= covered <= 0.97


@pytest.mark.parametrize("items", [30, 100, 400])
def test_independent_rates(items: int) -> None:
    """Exact, not simulated: the chance of every count whose interval holds the rate, over rates from 0.3 to 0.9."""
    found = [interval([1] * right + [0] * (items - right), [""] * items) for right in range(items + 1)]
    rates = np.linspace(0.3, 0.9, 121)
    coverage = np.array(
        [sum(binom.pmf(right, items, rate) for right, one in enumerate(found) if _holds(one, rate)) for rate in rates]
    )
    print(f"\n{items} independent items: {coverage.mean():.1%} on average, {coverage.min():.1%} at worst")
    assert 0.94 < coverage.mean() < 0.96
    assert coverage.min() > 0.92


def test_independent_numbers() -> None:
    draw = np.random.default_rng(11)
    covered = _coverage(
        "12 normal values", 3.0, [interval(values, [""] * 12) for values in draw.normal(3, 2, (2500, 12)).tolist()]
    )
    assert 0.93 <= covered <= 0.97


@pytest.mark.slow
def test_independent_shares() -> None:
    """Recall of several gold ids: mostly all, sometimes half, seldom none."""
    draw = np.random.default_rng(13)
    shares = draw.choice([0.0, 0.5, 1.0], p=[0.1, 0.25, 0.65], size=(2000, 60))
    covered = _coverage("60 shares", 0.775, [interval(values, [""] * 60, bounds=SHARE) for values in shares.tolist()])
    assert 0.93 <= covered <= 0.97


@pytest.mark.slow
def test_numbers_in_ten_clusters() -> None:
    draw = np.random.default_rng(17)
    own = np.repeat(draw.normal(0, 0.4, (2500, 10)), UNEVEN, axis=1)
    clusters = [str(place) for place, size in enumerate(UNEVEN) for _ in range(size)]
    values = (draw.normal(5, 1, own.shape) + own).tolist()
    covered = _coverage("normal values in 10 clusters", 5.0, [interval(row, clusters) for row in values])
    assert 0.93 <= covered <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize(("clusters", "size"), [(5, 10), (8, 5), (12, 4)])
@pytest.mark.parametrize("correlation", [0.0, 0.1])
@pytest.mark.parametrize("truth", [0.0, 0.2])
def test_differences_of_few_clusters(clusters: int, size: int, correlation: float, truth: float) -> None:
    """No least width is needed: clusters that are alike by chance make no more than 5 % of the intervals too narrow."""
    draw, runs, strength = np.random.default_rng(29), 500, 1 / max(correlation, 1e-6) - 1
    names = {str(item): str(item // size) for item in range(clusters * size)}
    found = []
    for _ in range(runs):
        luck = draw.random(len(names))  # half of the questions are equally hard for both sides
        sides = []
        for rate in (0.5 + truth / 2, 0.5 - truth / 2):
            easy = np.repeat(draw.beta(rate * strength, (1 - rate) * strength, clusters), size)
            own = np.where(draw.random(len(names)) < 0.5, luck, draw.random(len(names)))
            sides.append(dict(zip(names, (own < easy).astype(float).tolist(), strict=True)))
        found.append(compare(*sides, names, len(names)))
    what = f"difference {truth} in {clusters} clusters of {size}, correlation {correlation}"
    covered = _coverage(what, truth, [Interval(one.difference, one.low, one.high) for one in found])
    assert 0.94 <= covered <= 0.995
    if not truth:
        excluded = [one.low is not None and one.high is not None and not one.low <= 0 <= one.high for one in found]
        assert sum(one.significant for one in found) <= 0.06 * runs
        assert sum(one.significant != other for one, other in zip(found, excluded, strict=True)) <= 0.05 * runs


@pytest.mark.slow
@pytest.mark.parametrize(("rates", "average", "worst"), [((0.3, 0.5, 0.7, 0.9), 0.95, 0.92), ((0.05, 0.1), 0.92, 0.8)])
def test_differences_from_a_baseline_that_scores_0(rates: tuple[float, ...], average: float, worst: float) -> None:
    """The shares are those of docs/statistics.md."""
    draw, runs, covered = np.random.default_rng(31), 400, []
    for (people, size), correlation, rate in product([(5, 10), (5, 20), (8, 5), (10, 10)], [1e-6, 0.1, 0.3], rates):
        names = {str(item): str(item // size) for item in range(people * size)}
        strength, found = 1 / correlation - 1, []
        for _ in range(runs):
            easy = np.repeat(draw.beta(rate * strength, (1 - rate) * strength, people), size)
            right = (draw.random(len(names)) < easy).astype(float).tolist()
            found.append(compare(dict(zip(names, right, strict=True)), dict.fromkeys(names, 0.0), names, len(names)))
        what = f"difference {rate} from 0, {people} people with {size} questions, correlation {correlation:.1f}"
        covered.append(_coverage(what, rate, [Interval(one.difference, one.low, one.high) for one in found]))
    assert average - 0.01 <= np.mean(covered) <= 0.98
    assert worst - 0.02 <= min(covered) < average


@pytest.mark.parametrize("sizes", [pytest.param(UNEVEN, id="10 clusters"), pytest.param(UNEVEN * 3, id="30 clusters")])
@pytest.mark.parametrize(("found", "invented"), [(0.7, 0.3), (0.9, 0.1)])
def test_micro_f1_in_clusters(sizes: tuple[int, ...], found: float, invented: float) -> None:
    draw = np.random.default_rng(19)
    runs, strength = 1500, 9  # a correlation of 0.1
    wanted = draw.poisson(np.array(sizes) * 5.0, (runs, len(sizes))) + 1
    tp = draw.binomial(wanted, draw.beta(found * strength, (1 - found) * strength, wanted.shape))
    fp = draw.binomial(wanted, draw.beta(invented * strength, (1 - invented) * strength, wanted.shape))
    rows = np.stack([tp, fp, wanted - tp], axis=-1).astype(float)
    truth = 2 * found / (2 * found + invented + 1 - found)
    clusters = [str(place) for place in range(len(sizes))]
    covered = _coverage(
        f"micro F1 {truth:.2f} in {len(sizes)} clusters",
        truth,
        [ratio_interval(run, clusters, lambda sums: f1(*sums)) for run in rows.tolist()],
    )
    assert 0.93 <= covered <= 0.97


def _coverage(what: str, truth: float, intervals: list[Interval]) -> float:
    """The share of the intervals that hold the truth."""
    coverage = sum(_holds(found, truth) for found in intervals) / len(intervals)
    print(f"\n{what}: {coverage:.1%} of {len(intervals)}")
    return coverage


def _holds(found: Interval, truth: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "runs", "rate", "repeats"),
    [
        pytest.param(UNEVEN, 800, 0.6, 3, id="10 clusters"),
        pytest.param(UNEVEN * 3, 2000, 0.9, 2, id="30 clusters, nearly all right", marks=pytest.mark.slow),
        pytest.param(UNEVEN * 3, 2000, 0.3, 5, id="30 clusters, 5 repeats", marks=pytest.mark.slow),
        pytest.param((1,) * 60, 2000, 0.7, 3, id="60 independent questions", marks=pytest.mark.slow),
    ],
)
def test_repeated_answers(sizes: tuple[int, ...], runs: int, rate: float, repeats: int) -> None:
    """The questions of a cluster are alike, and the answers to one question still more."""
    draw = np.random.default_rng(23)
    clusters = [str(place) for place, size in enumerate(sizes) for _ in range(size)]
    found = []
    for _ in range(runs):
        cluster = np.repeat(draw.beta(rate * 9, (1 - rate) * 9, len(sizes)), sizes)
        question = draw.beta(np.maximum(2 * cluster, 1e-9), np.maximum(2 - 2 * cluster, 1e-9))
        answers = (draw.random((repeats, len(question))) < question).astype(float)
        rows = [mean_row([(value,) for value in column]) for column in answers.T.tolist()]
        found.append(interval([row[0] for row in rows if row], clusters, bounds=SHARE))
    assert 0.93 <= _coverage(f"{len(sizes)} clusters, {repeats} repeats", rate, found) <= 0.97


def judged_coverage(
    sizes: tuple[int, ...], rate: float, sens: float, spec: float, canaries: tuple[int, int], by_code: float, runs: int
) -> tuple[float, float]:
    """The coverage of the corrected accuracy, and the share of runs that the canaries allow to correct.

    Both the canaries and the questions are drawn anew each time; an undecided correction is not counted.
    """
    draw = np.random.default_rng([round(100 * part) for part in (rate, sens, spec)])
    rights, wrongs = canaries
    clusters = [str(place) for place, size in enumerate(sizes) for _ in range(size)]
    found = []
    for _ in range(runs):
        right = draw.random(len(clusters)) < np.repeat(draw.beta(rate * 9, (1 - rate) * 9, len(sizes)), sizes)
        called = draw.random(len(clusters)) < np.where(right, sens, 1 - spec)
        decided = draw.random(len(clusters)) < by_code
        scores = np.where(decided, right, called).astype(float)
        hits, passes = int(draw.binomial(rights, sens)), int(draw.binomial(wrongs, spec))
        confusion = Confusion(both_yes=hits, person_yes=rights - hits, both_no=passes, judge_yes=wrongs - passes)
        rows = np.stack((scores, scores * decided, 1.0 - decided), axis=1).tolist()
        found.append(correct_scores(rows, clusters, confusion)[0])
    known = [one for one in found if one.value is not None]
    what = f"rate {rate}, sensitivity {sens}, specificity {spec}, {rights + wrongs} canaries"
    return _coverage(what, rate, known), len(known) / runs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "canaries", "by_code", "runs"),
    [
        pytest.param((1,) * 100, (12, 12), 0.0, 25, id="24 canaries"),
        pytest.param((1,) * 100, (12, 12), 0.0, 400, id="24 canaries, more runs", marks=pytest.mark.slow),
        pytest.param((1,) * 200, (40, 80), 0.0, 400, id="120 canaries", marks=pytest.mark.slow),
        pytest.param((1,) * 200, (40, 80), 0.4, 25, id="40 % decided by code"),
        pytest.param((1,) * 200, (40, 80), 0.4, 400, id="40 % decided by code, more runs", marks=pytest.mark.slow),
        pytest.param(UNEVEN, (24, 48), 0.0, 400, id="10 clusters", marks=pytest.mark.slow),
        pytest.param(UNEVEN * 3, (40, 80), 0.0, 400, id="30 clusters", marks=pytest.mark.slow),
    ],
)
def test_accuracy_corrected_for_the_judge(
    sizes: tuple[int, ...], canaries: tuple[int, int], by_code: float, runs: int
) -> None:
    """On average over judges and rates, without those that the canaries leave undecided in a tenth of the runs."""
    points = [
        judged_coverage(sizes, rate, sens, spec, canaries, by_code, runs)
        for sens, spec in ((0.9, 0.8), (0.8, 0.95), (0.95, 0.9), (0.9, 0.7))
        for rate in (0.1, 0.3, 0.5, 0.7, 0.9)
    ]
    covered = [held for held, known in points if known > 0.9]
    print(f"\ncorrected: {np.mean(covered):.1%} on average over {len(covered)} points, at least {min(covered):.1%}")
    assert len(covered) >= 15
    assert 0.93 <= np.mean(covered) <= 0.97
    assert min(covered) > 0.9 or runs < 400
