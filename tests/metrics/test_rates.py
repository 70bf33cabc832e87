import pytest

from memorybench.core.measures import Measure, Metric
from memorybench.core.trials import Outcome, Score, Status, Subject, Trial
from memorybench.metrics.intervals import Interval, interval
from memorybench.metrics.rates import Mean, Pooled, Rate, Total, is_wide
from memorybench.suites.extraction.scores import f1

METRICS: list[Metric] = [
    Rate("accuracy", "correct"),
    Mean("context", "tokens", unit="tokens"),
    Pooled("f1", ("tp", "fp", "fn"), lambda sums: f1(*sums)),
    Total("cost", "cost"),
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_nothing_read_is_no_value_rather_than_zero(metric: Metric) -> None:
    measured = metric.measure([], [], 12)
    assert (measured.name, measured.value, measured.n, measured.planned) == (metric.name, None, 0, 12)
    assert (measured.low, measured.high) == (None, None)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_an_outcome_without_the_score_does_not_count(metric: Metric) -> None:
    assert metric.read(_outcome(status="failed")) is None
    assert metric.read(_outcome(other=1.0)) is None


def test_what_retrieval_found_counts_though_the_judge_was_unreadable() -> None:
    assert Rate("recall@5", "recall@5").read(_outcome(status="unscored", **{"recall@5": 0.5})) == (0.5,)


def test_a_score_of_zero_is_read() -> None:
    assert Rate("accuracy", "correct").read(_outcome(correct=0.0)) == (0.0,)


def test_a_rate_has_the_interval_of_its_clusters() -> None:
    values, clusters = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0], list("aabbcc")
    value, low, high = interval(values, clusters)
    assert Rate("accuracy", "correct").measure([(v,) for v in values], clusters, 9) == Measure(
        name="accuracy", value=value, n=6, planned=9, low=low, high=high, clusters=3, needed=410
    )


@pytest.mark.parametrize("wrong", [(1, 3, 5, 7), (1, 3, 5, 6, 7)], ids=["equal clusters", "nearly equal clusters"])
def test_clusters_that_are_alike_need_as_many_items_as_independent_ones(wrong: tuple[int, ...]) -> None:
    """The interval is never narrower than that of independent items, so no fewer items narrow it."""
    rows = [(float(place not in wrong),) for place in range(8)]
    alike, alone = (Rate("accuracy", "correct").measure(rows, clusters, 8) for clusters in ("aabbccdd", [""] * 8))
    assert alike.needed == alone.needed


def test_a_share_such_as_recall_stays_within_0_and_1() -> None:
    measured = Rate("recall@5", "recall@5").measure([(1.0,)] * 9 + [(0.5,)], [""] * 10, 10)
    assert measured.high is not None
    assert measured.high < 1


def test_a_mean_of_ones_is_no_proportion() -> None:
    assert Mean("calls", "calls").measure([(1.0,)] * 10, [""] * 10, 10).low is None


def test_an_amount_is_not_below_0() -> None:
    rows = [(0.0,), (0.0,), (0.0,), (7.0,)]
    found = Mean("found", "found", unit="memories").measure(rows, [""] * 4, 4)
    assert found.low == 0
    assert found.high is not None
    assert found.high > 7, "the other end stays"
    change = Mean("change", "change").measure([(-3.0,), *rows], [""] * 5, 5)
    assert change.low is not None
    assert change.low < 0


def test_which_way_is_better_is_kept() -> None:
    assert not Rate("hallucinated_memory_rate", "invented", higher_is_better=False).measure([], [], 0).higher_is_better
    assert not Total("cost", "cost").measure([], [], 0).higher_is_better


def test_pooled_counts_make_micro_f1() -> None:
    metric = Pooled("f1", ("tp", "fp", "fn"), lambda sums: f1(*sums))
    assert metric.read(_outcome(tp=3.0, fp=0.0)) is None
    rows = [row for tp in (3.0, 1.0, 4.0) if (row := metric.read(_outcome(tp=tp, fp=1.0, fn=0.0))) is not None]
    measured = metric.measure(rows, ["a", "b", "c"], 3)
    assert measured.value == pytest.approx(16 / 19)
    assert measured.low is not None
    assert 0 < measured.low < 16 / 19


def test_a_case_whose_counts_give_no_share_does_not_count() -> None:
    rows, clusters = [(3.0, 1.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)], ["a", "b", "b"]
    metric = Pooled("f1", ("tp", "fp", "fn"), lambda sums: f1(*sums))
    measured = metric.measure(rows, clusters, 4)
    assert (measured.value, measured.n, measured.planned, measured.clusters) == (6 / 8, 2, 4, 2)
    measured = metric.measure(rows[1:2], clusters[1:2], 4)
    assert (measured.value, measured.n, measured.clusters) == (None, 0, 0)


def test_totals_add_up_to_the_last_digit() -> None:
    measured = Total("cost", "cost").measure([(0.1,)] * 10, [""] * 10, 12)
    assert (measured.value, measured.n, measured.planned, measured.unit) == (1.0, 10, 12, "$")


def _outcome(status: Status = "scored", **scores: float) -> Outcome:
    subject = Subject(role="provider", name="bm25")
    return Outcome(
        trial=Trial(suite="bench", case_id="q1", subject=subject),
        status=status,
        scores=tuple(Score(name=name, value=value) for name, value in scores.items()),
    )


@pytest.mark.parametrize(
    ("value", "low", "high", "wide"),
    [
        (0.5, 0.39, 0.61, True),
        (0.5, 0.42, 0.58, False),
        (0.05, 0.01, 0.15, True),
        (0.95, 0.85, 0.99, True),
        (0.99, 0.97, 0.999, False),
        (0.0, 0.0, 0.13, True),
        (0.0, 0.0, 0.02, False),
    ],
)
def test_an_interval_is_wide_by_its_width_or_near_a_bound(value: float, low: float, high: float, wide: bool) -> None:
    assert is_wide(Interval(value, low, high)) is wide
