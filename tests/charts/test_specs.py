"""The specs of charts: their data is that of the report, and every field that they draw is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from memorybench.charts import specs
from memorybench.charts.frontier import frontier_spec
from memorybench.charts.look import DARK, LIGHT
from memorybench.charts.narrow import narrow, size
from memorybench.charts.page import page_specs
from memorybench.charts.parts import Change, Estimate, Spec, Spread
from memorybench.charts.rendering import render, render_inline
from memorybench.charts.run_charts import CHARTS, RunCharts, failure_chart, slope, value_range
from memorybench.charts.slope import slope_spec
from memorybench.core.measures import Measure
from memorybench.reporting.formatting import about, with_interval
from memorybench.suites.failures import FAILURE_REASONS
from memorybench.suites.gate import report_of
from memorybench.suites.run_comparison import compare_runs
from memorybench.suites.stored_run import StoredRun, open_stored_run
from tests.view.hostile import MARKER, STRINGS, Markup

RUNS = [("results", "first"), ("results", "second"), ("results", "h"), ("results", "e"), ("audit-results", "a")]
SHAPES = {"svg", "g", "path", "line", "text", "tspan"}


@pytest.fixture(params=RUNS, ids=lambda run: run[1])
def stored(request: pytest.FixtureRequest, recorded: Path) -> Iterator[StoredRun]:
    folder, run = request.param
    with open_stored_run([run], [recorded / folder]) as opened:
        yield opened


def test_every_suite_has_charts_whose_fields_are_in_their_data(stored: StoredRun) -> None:
    found = {name: make(RunCharts(stored)) for name, (_, make) in CHARTS.items()}
    assert found["forest"] is not None
    for spec in found.values():
        if spec is not None:
            check_fields(spec)


def test_the_forest_plot_has_the_figures_of_the_report(recorded: Path) -> None:
    with open_stored_run(["first"], [recorded / "results"]) as stored:
        spec = CHARTS["forest"][1](RunCharts(stored))
        assert spec is not None
        results = {one.subject: one.measure("recall@5") for one in stored.summary.overall("starter")}
    rows = {row["name"]: row for row in spec["data"]["values"]}
    assert set(rows) == {"bm25", "oracle", "none"}
    for name, row in rows.items():
        measure = results[name]
        assert measure is not None
        low, high = (measure.value if end is None else end for end in (measure.low, measure.high))
        assert (row["value"], row["low"], row["high"], row["text"]) == (
            measure.value,
            low,
            high,
            with_interval(measure),
        )
    assert rows["oracle"]["tone"] == LIGHT["muted"]
    assert rows["bm25"]["tone"] == LIGHT["accent"]


def test_failures_are_those_of_the_outcomes(recorded: Path) -> None:
    with open_stored_run(["second"], [recorded / "results"]) as stored:
        charts = RunCharts(stored)
        spec = CHARTS["failures"][1](charts)
        assert spec is not None
        assert sum(row["count"] for row in spec["data"]["values"]) == sum(charts.failures.values()) > 0


def test_each_reason_of_a_failure_has_its_own_colour() -> None:
    drawn = [reason for reason in FAILURE_REASONS if reason != "skipped"]
    spec = failure_chart({("bm25", reason): 1 for reason in FAILURE_REASONS})
    assert spec is not None
    scale = spec["encoding"]["color"]["scale"]
    assert scale["domain"] == drawn
    assert len(set(scale["range"])) == len(drawn)


def test_two_sides_are_compared_by_type(recorded: Path) -> None:
    compared = compare_runs(["first:bm25", "first:oracle"], [recorded / "results"])
    spec = slope(compared)
    assert spec is not None
    check_fields(spec)


def test_the_frontier_leaves_out_what_another_provider_beats() -> None:
    points = [(1.0, Estimate("cheap", 0.4)), (2.0, Estimate("beaten", 0.3)), (3.0, Estimate("good", 0.8))]
    ideal = Estimate("oracle", 1.0, is_baseline=True, is_ideal=True)
    spec = frontier_spec([*points, (0.5, ideal)], "cost", "score", "~s")
    line = spec["layer"][0]["data"]["values"]
    assert [(row["cost"], row["name"]) for row in line] == [(1.0, "cheap"), (3.0, "good")]


def test_a_baseline_that_anyone_can_choose_is_part_of_the_frontier() -> None:
    points = [(1.0, Estimate("cheap", 0.4)), (9.0, Estimate("full-context", 0.8, is_baseline=True))]
    line = frontier_spec(points, "cost", "score", "~s")["layer"][0]["data"]["values"]
    assert [row["name"] for row in line] == ["cheap", "full-context"]


@pytest.mark.parametrize("has_baselines", [True, False])
def test_a_chart_with_baselines_says_which_marks_they_are(has_baselines: bool) -> None:
    pytest.importorskip("vl_convert")
    one, other = Estimate("bm25", 0.4), Estimate("oracle", 1.0, is_baseline=has_baselines)
    for spec in (specs.forest({"a": [one, other]}), frontier_spec([(1.0, one), (2.0, other)], "cost", "score", "~s")):
        drawings = render_inline(spec, "t").split("<svg")[1:]
        assert ["baselines" in drawing for drawing in drawings] == [has_baselines] * 2


def test_a_range_that_is_undecided_is_drawn_without_a_mark() -> None:
    pytest.importorskip("vl_convert")
    undecided = Measure(name="precision", value=None, n=3, planned=4, low=0.2, high=0.9)
    found = value_range(undecided, "precision")
    assert found is not None
    spec = specs.forest({"a": [found, Estimate("recall", 0.5, 0.4, 0.6)]})
    assert [row["value"] for row in spec["data"]["values"]] == [None, 0.5]
    svg = render_inline(spec, "t").split("<svg")[1]
    assert svg.count("20.0 to 90.0%") == 1
    assert "undecided" in svg
    marks = [part for part in svg.split("<path") if 'd="M4' in part]
    assert len(marks) == 1, "only the decided one has a mark"
    assert value_range(Measure(name="recall", value=0.5, n=4, planned=4, low=0.4, high=0.6), "recall") is None
    assert value_range(Measure(name="recall", value=None, n=0, planned=4), "recall") is None


def test_a_lone_label_at_the_end_of_the_axis_is_before_its_point() -> None:
    points = [(10.0, Estimate("a", 0.4)), (95.0, Estimate("b", 0.5)), (100.0, Estimate("c", 0.5))]
    for costs, sides in ((points, [False, False, False]), (points[::2], [False, True])):
        rows = frontier_spec(costs, "cost", "score", "~s")["layer"][1]["data"]["values"]
        assert [row["is_before"] for row in rows] == sides


@pytest.mark.parametrize(
    ("costs", "scale"),
    [
        ((100.0, 900.0), "linear"),
        ((100.0, 200.0, 90_000.0), "log"),
        ((0.0, 0.002, 0.5), "symlog"),
        ((0.0, 0.0), "linear"),
    ],
)
def test_costs_that_differ_much_are_on_a_logarithmic_axis(costs: tuple[float, ...], scale: str) -> None:
    spec = frontier_spec([(cost, Estimate(str(cost), 0.5)) for cost in costs], "tokens", "score", "~s")
    x = spec["encoding"]["x"]
    assert x["scale"].get("type", "linear") == scale
    assert ("logarithmic" in x["axis"]["title"]) == (scale != "linear")
    if scale != "linear":
        assert x["axis"]["values"][0] <= min(costs)
        assert x["axis"]["values"][-1] >= max(costs)


def test_labels_of_points_that_are_far_apart_stay_beside_them() -> None:
    spec = frontier_spec([(cost, Estimate(str(cost), 0.2)) for cost in (0.0, 500.0, 9000.0)], "tokens", "score", "~s")
    assert [row["label_at"] for row in spec["layer"][1]["data"]["values"]] == [0.2, 0.2, 0.2]


def test_a_label_before_its_point_does_not_meet_one_after_another_point() -> None:
    for value, is_before in ((0.82, False), (0.3, True)):
        points = [(1.4, Estimate("dense", 0.83)), (2.8, Estimate("hybrid", value))]
        spec = frontier_spec(points, "milliseconds", "score", "~s", cost_text="{:.1f} ms".format)
        dense, hybrid = spec["layer"][1]["data"]["values"]
        assert (dense["is_before"], hybrid["is_before"]) == (False, is_before)


@pytest.mark.parametrize("values", [(0.364, 0.306, 0.289), (0.02, 0.01, 0.0), (1.0, 0.99, 0.98)])
def test_labels_of_points_that_are_near_are_joined_to_them_by_lines(values: tuple[float, ...]) -> None:
    points = [(0.00025, Estimate(str(value), value)) for value in values]
    spec = frontier_spec([*points, (0.1, Estimate("far", 0.5))], "dollars", "score", "$~g", cost_text=about)
    for one in (spec, narrow(spec)):
        *near, far = one["layer"][1]["data"]["values"]
        places = [row["label_at"] for row in near]
        gaps = [later - earlier for earlier, later in pairwise(sorted(places))]
        assert min(gaps) * one["height"] > 12
        assert [row["is_led"] for row in (*near, far)] == [True, True, True, False]
        assert all(0 <= place <= 1 for place in places)
        if 0.1 < values[0] < 0.9:  # away from the ends, labels are around the points
            assert abs(sum(places) - sum(values)) < 1e-9
    assert ["$" in row["label"] for row in spec["layer"][1]["data"]["values"]] == [True] * 4


def test_labels_of_many_points_with_long_names_leave_room_for_the_chart() -> None:
    points = [(1.0 + place / 100, Estimate(f"{place} {'long' * 20}", 0.1)) for place in range(24)]
    spec = frontier_spec(points, "milliseconds", "score", "~s", cost_text="{:.2f} ms".format)
    for one in (spec, narrow(spec)):
        rows = one["layer"][1]["data"]["values"]
        assert all(0 <= row["label_at"] <= 1 for row in rows)
        gaps = [later - earlier for earlier, later in pairwise(sorted(row["label_at"] for row in rows))]
        assert min(gaps) * one["height"] > 12
        assert max(len(row["label"]) for row in rows) <= 50
    assert all(row["label"].endswith(" ms") for row in spec["layer"][1]["data"]["values"])


def test_labels_of_a_slope_chart_do_not_overlap() -> None:
    spec = slope_spec("a", "b", [Change(str(place), 0.5, 0.99) for place in range(12)], "t")
    places = sorted(row["place"] for row in spec["layer"][1]["data"]["values"])
    gaps = [later - earlier for earlier, later in pairwise(places)]
    assert min(gaps) * spec["height"] > 12
    assert places[-1] <= 1


def test_a_value_that_was_not_measured_is_not_drawn(recorded: Path) -> None:
    with open_stored_run(["first"], [recorded / "results"]) as stored:
        assert CHARTS["score-cost"][1](RunCharts(stored)) is None


@pytest.mark.parametrize("name", sorted({"forest", "heat-map", "score-context", "latency", "failures", "trend"}))
def test_charts_are_drawn_in_the_colours_of_the_page(recorded: Path, name: str) -> None:
    pytest.importorskip("vl_convert")
    with open_stored_run(["first" if name == "trend" else "second"], [recorded / "results"]) as stored:
        spec = CHARTS[name][1](RunCharts(stored))
    assert spec is not None
    svg = render_inline(spec, "title")
    assert "var(--ink)" in svg
    assert not [color for color in LIGHT.values() if color in svg]
    for word in ("http", "style", "url(", "<image", "<script"):
        assert word not in svg


def test_a_dark_file_has_the_dark_colours(recorded: Path) -> None:
    pytest.importorskip("vl_convert")
    with open_stored_run(["first"], [recorded / "results"]) as stored:
        spec = CHARTS["forest"][1](RunCharts(stored))
    assert spec is not None
    dark = render(spec, "svg", "dark").decode()
    assert DARK["accent"] in dark
    assert LIGHT["accent"] not in dark


@pytest.mark.slow
def test_hostile_names_stay_text() -> None:
    pytest.importorskip("vl_convert")
    estimates = [Estimate(text, 0.5, text=text) for text in STRINGS]
    changes = [Change(text, 0.2, 0.7) for text in STRINGS]
    made = [
        specs.forest(dict.fromkeys(STRINGS[:3], estimates)),
        specs.heat_map({STRINGS[0]: {(text, STRINGS[1]): estimates[0] for text in STRINGS}}),
        frontier_spec([(1.0, one) for one in estimates], STRINGS[0], STRINGS[1], "~s"),
        specs.latency({STRINGS[0]: [Spread(text, 0.1, 0.2, 0.3, 0.4, 0.5, text) for text in STRINGS]}),
        specs.failures({(text, "wrong"): 1 for text in STRINGS}, ("wrong",)),
        slope_spec(STRINGS[0], STRINGS[1], changes, STRINGS[2]),
        specs.trend({STRINGS[0]: estimates}),
    ]
    for spec in made:
        svg = render_inline(spec, STRINGS[0])
        assert MARKER in svg
        markup = Markup(svg)
        assert markup.tags <= SHAPES
        assert not [name for name in markup.attributes if name.startswith("on") or name in ("href", "src", "style")]
        assert "\x1b" not in svg
        assert "\u202e" not in svg


def test_a_page_leaves_about_the_room_of_a_chart(stored: StoredRun) -> None:
    pytest.importorskip("vl_convert")
    for spec in page_specs(stored, report_of(stored)).values():
        drawn = re.search(r'height="([\d.]+)"', render_inline(spec, "t"))
        assert drawn is not None
        assert abs(size(spec)[1] - float(drawn[1])) < 30


def check_narrow(name: str, spec: Spec) -> None:
    widths = [float(width) for width in re.findall(r'<svg[^>]* width="([\d.]+)"', render_inline(spec, "t"))]
    assert len(widths) == 2, name
    assert widths[1] <= 345, name  # the card has 310: the text becomes 10 % smaller at most


def test_a_chart_fits_a_page_of_360_pixels(stored: StoredRun) -> None:
    pytest.importorskip("vl_convert")
    for name, spec in page_specs(stored, report_of(stored)).items():
        check_narrow(name, spec)


def test_charts_with_a_width_per_column_fit_as_well() -> None:
    pytest.importorskip("vl_convert")
    long = "memory-correction-of-correction"
    cells = {
        (f"{long}-{row}", f"conflict_resolution-{n}"): Estimate("", 1, text="100.0%")
        for row in (1, 2)
        for n in range(8)
    }
    check_narrow("heat map", specs.heat_map({"scenarios × reference by scenario": cells}))
    changes = [Change("single-session-assistant", 0.1, 0.2), Change("temporal", 0.15, 0.25)]
    check_narrow("slope", slope_spec("bm25(around_weight=0)", "hybrid", changes, "starter: accuracy by question type"))
    runs = [Estimate(f"nightly-run-of-the-store-{n}\n2026-11-16", 0.5, 0.4, 0.6, "50.0%") for n in range(20)]
    check_narrow("trend", specs.trend({"accuracy of hybrid": runs}))


def test_a_narrow_trend_says_how_many_runs_it_leaves_out() -> None:
    pytest.importorskip("vl_convert")
    runs = [Estimate(f"run{n}\n2026-11-16", 0.5) for n in range(9)]
    wide, slim = render_inline(specs.trend({"a": runs}), "t").split("<svg")[1:]
    assert (">run0<" in wide, ">run0<" in slim, ">run8<" in slim) == (True, False, True)
    assert "of 9 runs" in slim
    assert "of 9 runs" not in wide


def test_a_narrow_forest_plot_keeps_its_figures(recorded: Path) -> None:
    pytest.importorskip("vl_convert")
    with open_stored_run(["first"], [recorded / "results"]) as stored:
        spec = CHARTS["forest"][1](RunCharts(stored))
    assert spec is not None
    slim = render_inline(spec, "t").split("<svg")[2]
    assert "slim" in slim.split(">")[0]
    assert all(row["text"] in slim for row in spec["data"]["values"])


def test_a_page_has_no_heat_map_beside_that_of_its_tables(recorded: Path) -> None:
    with open_stored_run(["first"], [recorded / "results"]) as stored:
        assert "heat-map" not in page_specs(stored, report_of(stored))


def check_fields(spec: Spec, inherited: tuple[set[str], tuple[Any, ...]] | None = None) -> None:
    """Check that every field of an encoding is in the data that its mark draws."""
    fields, encodings = inherited or (set(), ())
    if "data" in spec:
        values = spec["data"]["values"]
        assert values
        fields = set.intersection(*(set(row) for row in values))
    encodings = (*encodings, spec.get("encoding", {}))
    if "mark" in spec:
        used = {one["field"] for encoding in encodings for one in encoding.values() if "field" in one}
        assert used
        assert used <= fields
    for part in (*spec.get("layer", ()), *spec.get("vconcat", ())):
        check_fields(part, (fields, encodings))


def test_a_narrow_chart_has_the_whole_names_of_types() -> None:
    name = "single-session-assistant"
    svg = render_inline(specs.forest({"accuracy": [Estimate(name, 0.5), Estimate("temporal", 0.4)]}), "Results")
    assert svg.count(f">{name}<") == 2
