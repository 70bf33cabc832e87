"""The chart of shares, such as the share of right answers, against a cost; and the places of its points' labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

from memorybench.text.sanitize import printable

from .look import LIGHT
from .parts import (
    HEIGHT,
    LABEL_GAP,
    LEADER,
    NARROW,
    NARROW_PAGE,
    SHARES,
    WIDTH,
    Estimate,
    Spec,
    captions_of,
    label_places,
    layer,
    shown_name,
    whole,
    with_slim,
)

_LABEL_WIDTH = 140
"""The assumed width of the label of a point, in pixels."""
_TITLE = {"color": LIGHT["muted"], "fontWeight": "normal", "fontSize": 12}
_LONGEST_NAME, _LONGEST_NARROW_NAME = 40, 26
"""The most characters of a name beside its point, in wide and narrow charts, so that it leaves room for the chart."""


def frontier_spec(
    points: Sequence[tuple[float, Estimate]],
    x_title: str,
    y_title: str,
    x_format: str,
    note: str = "",
    cost_text: Callable[[float], str] | None = None,
) -> Spec:
    """Return a chart of shares against a cost. A line joins the points that no other point beats in share and cost.

    `points` are pairs of a cost and a share. `cost_text` formats a cost for the label of its point; None: labels have
    names only, as in narrow charts.
    """
    wide = _frontier(points, x_title, y_title, x_format, note, WIDTH, cost_text)
    slim = _frontier(points, x_title, y_title, x_format, note, NARROW, None)
    return with_slim(whole(wide), slim)


def _frontier(
    points: Sequence[tuple[float, Estimate]],
    x_title: str,
    y_title: str,
    x_format: str,
    note: str,
    width: int,
    cost_text: Callable[[float], str] | None,
) -> Spec:
    data = [{**one.plain(), "cost": cost} for cost, one in points]
    for (cost, one), row in zip(points, data, strict=True):
        name = shown_name(one.name, _LONGEST_NAME if width == WIDTH else _LONGEST_NARROW_NAME)
        row["label"] = f"{name} {printable(cost_text(cost))}" if cost_text else name
    height = max(HEIGHT, LABEL_GAP * len(points))  # the labels of many points may be below each other
    best: list[dict[str, Any]] = []
    own = [place for place, (_, one) in enumerate(points) if not one.is_ideal]
    for place in sorted(own, key=lambda place: (points[place][0], -points[place][1].value)):
        if not best or data[place]["value"] > best[-1]["value"]:
            best.append(data[place])
    y = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {**SHARES, "title": shown_name(y_title)}}
    axis: dict[str, Any] = {"title": shown_name(x_title), "format": x_format, "tickCount": 6}
    axis |= {"labelOverlap": True, "labelSeparation": 10} if width < WIDTH else {}
    scale, ticks = _cost_scale([cost for cost, _ in points])
    if ticks:
        axis |= {"title": shown_name(f"{x_title}, logarithmic"), "values": ticks}
        axis["labelExpr"] = f"format(datum.value, '{axis.pop('format')}')"  # otherwise all ticks get the same SI prefix
    x = {"field": "cost", "type": "quantitative", "scale": scale, "axis": axis}
    line = {"type": "line", "interpolate": "step-after", "strokeDash": [4, 3], "color": LIGHT["muted"]}
    for rows in _neighbours(data, ticks, _LABEL_WIDTH / width):
        for row, label_at in zip(rows, label_places([one["value"] for one in rows], height, (0, 1)), strict=True):
            row |= {"label_at": label_at, "is_led": len(rows) > 1}
    for row in data:
        row["is_before"] = not row["is_led"] and _has_room_before(row, data, ticks, _LABEL_WIDTH / width)
    leader = {"type": "rule", "xOffset": 5, "x2Offset": LEADER, "strokeWidth": 1, "color": LIGHT["muted"]}
    led = layer(leader, y={**y, "field": "value"}, x2={"field": "cost"}, y2={"field": "label_at"}, color=None)
    sides = ((False, False), (True, False), (False, True))  # (is_before, is_led)
    lines = [printable(note)] * bool(note) + captions_of([one for _, one in points])
    return {
        **({"title": {"text": lines, **_TITLE, "limit": max(width, NARROW_PAGE)}} if lines else {}),
        "width": width,
        "height": height,
        "encoding": {"x": x},
        "layer": [
            {"data": {"values": best}, "mark": line, "encoding": {"y": {**y, "field": "value"}}},
            {
                "data": {"values": data},
                "layer": [
                    layer({"type": "rule"}, y={**y, "field": "low"}, y2={"field": "high"}),
                    {"transform": [{"filter": "datum.is_led"}], **led},
                    *(_point_label(y, *side, halo=True) for side in sides),
                    # above the halos, which must not cover the points of others
                    layer({"type": "point", "filled": True, "size": 80, "opacity": 1}, y={**y, "field": "value"}),
                    *(_point_label(y, *side, halo=False) for side in sides),
                ],
            },
        ],
    }


def _cost_scale(costs: Sequence[float]) -> tuple[Spec, list[float]]:
    """Return the scale of the cost axis and its ticks.

    The scale is logarithmic if costs differ by more than a factor of 10. For a linear scale, the list of ticks is
    empty, and Vega-Lite chooses them.
    """
    positive = [cost for cost in costs if cost > 0]
    if not positive or max(positive) <= 10 * min(positive):
        return {"zero": True}, []
    first, last = floor(log10(min(positive))), ceil(log10(max(positive)))
    powers = [10.0**power for power in range(first, last + 1)]
    if len(positive) == len(costs):
        return {"type": "log", "domain": [powers[0], powers[-1]]}, powers
    return {"type": "symlog", "constant": powers[0], "domain": [0, powers[-1]]}, [0.0, *powers]


def _place(cost: float, ticks: Sequence[float]) -> float:
    """Return the position of a cost on the axis, 0 at the left end. `ticks` is empty for a linear axis.

    The position is in the unit of the cost, or on a logarithmic axis in powers of ten.
    """
    return log10(1 + cost / next(tick for tick in ticks if tick > 0)) if ticks else cost


def _neighbours(
    data: Sequence[dict[str, Any]], ticks: Sequence[float], label_width: float
) -> list[list[dict[str, Any]]]:
    """Return groups of points whose labels may overlap. `label_width` is a share of the axis' width."""
    ordered = sorted(data, key=lambda row: float(row["cost"]))
    width = _place(ordered[-1]["cost"], ticks) * label_width
    groups = [[ordered[0]]]
    for before, row in pairwise(ordered):
        if _place(row["cost"], ticks) - _place(before["cost"], ticks) >= width > 0:
            groups.append([])
        groups[-1].append(row)
    return groups


def _has_room_before(
    row: Mapping[str, Any], data: Sequence[Mapping[str, Any]], ticks: Sequence[float], label_width: float
) -> bool:
    """Return whether a label must be left of its point: right of it, the chart ends, and left of it, there is room."""
    end = max(_place(one["cost"], ticks) for one in data)
    place = _place(row["cost"], ticks)
    near = [
        one
        for one in data
        if one is not row
        and abs(one["label_at"] - row["label_at"]) < 2 * LABEL_GAP / HEIGHT
        and _place(one["cost"], ticks)
        > place - 2 * label_width * end  # near enough that its label, on its right, needs the room
    ]
    return place > 0.75 * end and not near


def _point_label(y: Mapping[str, Any], is_before: bool, is_led: bool, halo: bool) -> Spec:
    """Return the layer with labels right or left of their points, or at the end of a leader line.

    A halo keeps them readable on top of lines.
    """
    side = {"align": "right", "dx": -7} if is_before else {"align": "left", "dx": 7}
    place = {"align": "left", "dx": LEADER + 3, "baseline": "middle"} if is_led else {"dy": -8, **side}
    stroke = {"stroke": LIGHT["panel"], "strokeWidth": 6, "strokeJoin": "round"} if halo else {}
    label = layer(
        {"type": "text", **place, **stroke}, y={**y, "field": "label_at"}, text={"field": "label"}, color=None
    )
    chosen = f"datum.is_before === {str(is_before).lower()} && datum.is_led === {str(is_led).lower()}"
    return {"transform": [{"filter": chosen}], **label}
