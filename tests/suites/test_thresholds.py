"""Thresholds: a value that differs from its limit only by rounding meets it, whatever is compared."""

from __future__ import annotations

from typing import Any

import pytest

from memorybench.core.measures import Measure
from memorybench.metrics.rates import Rate
from memorybench.suites.summary import Result, Summary
from memorybench.suites.thresholds import Held, Threshold, threshold_checks

RECALLS = (1.0, 4 / 5, 1 / 2, 0.0, 1 / 2)  # their mean is 0.56, and 0.5599999999999999 in floating point


def check(*measures: Measure, on: Held = "value", **threshold: Any) -> tuple[bool, str]:
    result = Result(benchmark="b", subject="s", group={}, measures=measures)
    summary = Summary(run_id="r", suite="bench", status="complete", counts={}, results=(result,))
    (found,) = threshold_checks(summary, [Threshold(name=measures[0].name, **threshold)], on, ["s"])
    return found.missed, found.text


def measure(**values: Any) -> Measure:
    return Measure(**{"name": "m", "value": 0.3, "n": 5, "planned": 5, **values})


def test_a_mean_meets_a_threshold_that_it_equals() -> None:
    mean = Rate("m", "m").measure([(value,) for value in RECALLS], [""] * 5, 5)
    assert mean.value is not None
    assert mean.value < 0.56
    missed, text = check(mean, least=0.56)
    assert not missed
    assert "m 0.560, expected ≥ 0.56;" in text
    assert check(mean, least=0.56 + 1e-8)[0]


@pytest.mark.parametrize(
    ("measures", "on"),
    [
        ([measure(low=0.1 + 0.2 - 1e-16)], "lower"),
        ([measure(value=0.3 + 1e-16, higher_is_better=False)], "value"),
        ([measure(high=0.1 + 0.2, higher_is_better=False)], "lower"),
        ([measure(value=None, n=4, low=0.1, high=0.9), measure(name="worst", value=0.3 - 1e-16)], "value"),
    ],
    ids=["lower bound", "lower is better", "upper bound", "if undecided cases count against it"],
)
def test_so_do_the_other_figures_that_are_compared(measures: list[Measure], on: Held) -> None:
    assert check(*measures, on=on, least=0.3, lower_bound="worst")[0] is False
    beyond = 0.3 - 1e-8 if not measures[0].higher_is_better else 0.3 + 1e-8
    assert check(*measures, on=on, least=beyond, lower_bound="worst")[0] is True
