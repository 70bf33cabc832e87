from random import Random

import pytest

from memorybench.metrics.agreement import Confusion, agreement, correct_for_judge, kappa, sensitivity, specificity
from memorybench.metrics.intervals import Interval


def test_pairs_are_counted_by_who_said_what() -> None:
    pairs = [(True, True)] * 3 + [(True, False)] * 2 + [(False, True)] + [(False, False)] * 4
    assert Confusion.of(pairs) == Confusion(both_yes=3, person_yes=2, judge_yes=1, both_no=4)


def test_kappa_on_a_textbook_example() -> None:
    """20 both yes, 15 both no, 10 and 5 apart: 0.7 observed, 0.5 by chance. The large-sample limits of Fleiss, Cohen
    and Everitt (Psychological Bulletin 72, 1969) are 0.15 and 0.65."""
    found = kappa(Confusion(both_yes=20, judge_yes=5, person_yes=10, both_no=15))
    assert found.value == pytest.approx(0.4)
    assert found.low == pytest.approx(0.15, abs=0.06)
    assert found.high == pytest.approx(0.65, abs=0.06)


def test_agreement_by_chance_alone_is_zero() -> None:
    assert kappa(Confusion(both_yes=25, judge_yes=25, person_yes=25, both_no=25)).value == pytest.approx(0)


def test_perfect_agreement_on_a_few_is_no_proof() -> None:
    found = kappa(Confusion(both_yes=5, both_no=5))
    assert found.value == 1
    assert found.low == pytest.approx(2 * 0.7225 - 1, abs=1e-3)


def test_kappa_is_undefined_where_chance_explains_everything() -> None:
    assert kappa(Confusion(both_yes=9)) == Interval(None)
    assert kappa(Confusion()) == Interval(None)


def test_sensitivity_and_specificity_have_wilson_limits_and_none_without_cases() -> None:
    confusion = Confusion(both_yes=10, both_no=0)
    assert sensitivity(confusion).low == pytest.approx(0.7225, abs=5e-5)
    assert specificity(confusion) == Interval(None)
    assert agreement(Confusion()) == Interval(None)


def test_a_score_is_corrected_for_the_judges_errors() -> None:
    """A judge that finds 90 % of the right and passes 20 % of the wrong calls 62 % right where 60 % are."""
    confusion = Confusion(both_yes=900, person_yes=100, judge_yes=200, both_no=800)
    found = correct_for_judge(0.62, 1000, confusion)
    assert found.value == pytest.approx(0.6)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.6 < found.high
    exact = correct_for_judge(0.62, None, confusion)
    assert exact.low is not None
    assert exact.low > found.low, "a score taken as exact leaves only the judge in doubt"


def test_a_corrected_score_stays_a_share() -> None:
    confusion = Confusion(both_yes=90, person_yes=10, judge_yes=10, both_no=90)
    assert correct_for_judge(0.99, 100, confusion)[::2] == (1, 1)
    assert correct_for_judge(0.01, 100, confusion)[:2] == (0, 0)


def test_a_judge_that_tells_nothing_corrects_nothing() -> None:
    coin = Confusion(both_yes=5, person_yes=5, judge_yes=5, both_no=5)
    assert correct_for_judge(0.6, 100, coin) == Interval(None)
    assert correct_for_judge(0.6, 100, Confusion(both_yes=10)) == Interval(None)


@pytest.mark.parametrize(
    ("truth", "sens", "spec", "n", "tried"),
    [(0.6, 0.95, 0.9, 500, 100), (0.3, 0.9, 0.8, 200, 60), (0.9, 0.85, 0.9, 300, 40), (0.05, 0.95, 0.95, 300, 100)],
)
def test_the_interval_of_the_corrected_score_covers_the_truth(
    truth: float, sens: float, spec: float, n: int, tried: int
) -> None:
    """95 ± 3 % of 1,000 simulated calibrations."""
    random = Random(7)

    def hits(times: int, rate: float) -> int:
        return sum(random.random() < rate for _ in range(times))

    covered = 0
    for _ in range(1000):
        found, passed = hits(tried, sens), hits(tried, spec)
        confusion = Confusion(both_yes=found, person_yes=tried - found, both_no=passed, judge_yes=tried - passed)
        limits = correct_for_judge(hits(n, truth * sens + (1 - truth) * (1 - spec)) / n, n, confusion)
        covered += (limits.low or 0) <= truth <= (limits.high or 0)
    assert 920 <= covered <= 980


def test_the_interval_of_kappa_covers_the_truth() -> None:
    random = Random(7)
    covered = 0
    for _ in range(300):
        people = [random.random() < 0.5 for _ in range(100)]
        covered_by = kappa(Confusion.of((said, said == (random.random() < 0.8)) for said in people))
        covered += (covered_by.low or 0) <= 0.6 <= (covered_by.high or 0)
    assert 276 <= covered <= 297


def test_a_corrected_score_is_possible() -> None:
    """Code decided 40 % of the responses as wrong, so at most 60 % are right."""
    strict = Confusion(both_yes=10, person_yes=10, both_no=19, judge_yes=1)
    found = correct_for_judge(0.6, 50, strict, judged=0.6, right_by_code=0.0)
    assert found.value == pytest.approx(0.6)
    exact = correct_for_judge(0.6, None, strict, judged=0.6, right_by_code=0.0)
    assert exact.high == pytest.approx(0.6)
