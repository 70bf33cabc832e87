import pytest

from memorybench.metrics.sets import f1, macro, micro, precision, recall


def test_counts_make_precision_recall_and_f1() -> None:
    counts = (6, 2, 4)
    assert precision(counts) == 0.75
    assert recall(counts) == 0.6
    assert f1(counts) == pytest.approx(2 * 0.75 * 0.6 / (0.75 + 0.6))


def test_a_quotient_of_nothing_is_undefined() -> None:
    assert precision((0, 0, 3)) is None
    assert recall((0, 3, 0)) is None
    assert f1((0, 0, 0)) is None


def test_f1_of_only_mistakes_is_zero_although_precision_or_recall_is_undefined() -> None:
    assert f1((0, 0, 3)) == 0
    assert f1((0, 3, 0)) == 0


def test_micro_weighs_items_and_macro_weighs_cases() -> None:
    cases = [(9, 1, 0), (0, 1, 0)]
    assert micro(precision, cases) == pytest.approx(9 / 11)
    assert macro(precision, cases) == pytest.approx((0.9 + 0) / 2)


def test_macro_leaves_out_cases_where_it_is_undefined() -> None:
    cases = [(1, 0, 1), (0, 2, 0)]
    assert macro(recall, cases) == 0.5
    assert micro(recall, cases) == 0.5
    assert macro(recall, [(0, 2, 0)]) is None
    assert micro(recall, [(0, 2, 0)]) is None
    assert micro(f1, []) is None
    assert macro(f1, []) is None
