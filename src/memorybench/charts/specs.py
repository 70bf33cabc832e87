"""One function per kind of chart, from plain values to a Vega-Lite spec.

Values are in the data of a spec, and field names are our own: a provider's name is never an expression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

from memorybench.text.sanitize import printable

from .look import CONFIG, LIGHT

Spec = dict[str, Any]
_WIDTH = 420
_HEIGHT = 220
_NARROW = 190
"""The width of axes on a page of 360 pixels."""
_NARROW_COLUMNS = 5
_NARROW_PAGE = 290
_NARROW_NAME = 110
_NARROW_CELL = 42
_NARROW_SIDE = 80
_NARROW_RUNS = 6
"""What fits there: columns of a heat map, pixels in all, of a name and of a cell, and of a side of a slope; runs."""
_NARROW_TITLE: Mapping[str, Any] = {**CONFIG["title"], "frame": "bounds", "limit": _NARROW_PAGE}
"""It begins where the names of rows do."""
_SLIM = "slim"
_ROW = 24
_LABEL_GAP = 15
"""Pixels between the labels of two lines."""
_LABEL_WIDTH = 140
"""Pixels that the label of a point may take."""
_LEADER = 22
"""Pixels from a point to its label if others are near: a line joins the two."""
_BESIDE: Mapping[str, Any] = {"value": _WIDTH + 12}
"""Where figures stand: on the right of the axes."""
_LONGEST_NAME = 60
_SERIES = tuple(color for name, color in LIGHT.items() if name.startswith("series-"))
_SHARES: Mapping[str, Any] = {"format": "%", "tickCount": 5}
_NO_AXIS: Mapping[str, Any] = {"title": None, "grid": False}
_GREY = "grey marks are baselines"
_OPEN = "no mark: undecided, somewhere on the line"
NO_CAPTIONS: Mapping[str, Sequence[str]] = {}
_SECONDS = "datum.value < 1 ? format(1000 * datum.value, '~g') + ' ms' : format(datum.value, '~g') + ' s'"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    text: str = ""
    is_baseline: bool = False
    is_ideal: bool = False
    """Whether it is given the gold evidence, which no memory is: it does not count as a choice."""
    is_range: bool = False
    """Whether undecided pairs leave the value open from `low` to `high`: no mark is drawn. `value` is the middle."""
    line: int = 0
    """In a trend, the number of the line that it is part of."""

    def plain(self) -> dict[str, Any]:
        return {
            "name": _name(self.name),
            "value": None if self.is_range else self.value,
            "low": self.value if self.low is None else self.low,
            "high": self.value if self.high is None else self.high,
            "text": _name(self.text),
            "tone": LIGHT["muted"] if self.is_baseline else LIGHT["accent"],
        }


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles of many values, by which a box is drawn."""

    name: str
    p5: float
    p25: float
    p50: float
    p75: float
    p95: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A value of the first and of the second side."""

    name: str
    first: float
    second: float


def forest(panels: Mapping[str, Sequence[Estimate]]) -> Spec:
    """Shares with their intervals, one row each."""
    x = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {**_SHARES, "title": None}}
    layers = [
        _layer({"type": "rule", "strokeWidth": 2}, x={**x, "field": "low"}, x2={"field": "high"}),
        _layer({"type": "point", "filled": True, "size": 70, "opacity": 1}, x={**x, "field": "value"}),
        _layer({"type": "text", "align": "left"}, x=_BESIDE, text={"field": "text"}, color=None),
    ]
    parts = {title: _rows([one.plain() for one in rows], layers) for title, rows in panels.items()}
    return _stacked(parts, {title: _captions(rows) for title, rows in panels.items()})


def _captions(estimates: Sequence[Estimate]) -> list[str]:
    """Return what must be said about the marks of these rows."""
    has_baselines, has_ranges = any(one.is_baseline for one in estimates), any(one.is_range for one in estimates)
    return [_GREY] * has_baselines + [_OPEN] * has_ranges


def heat_map(panels: Mapping[str, Mapping[tuple[str, str], Estimate]]) -> Spec:
    """Shares by row and column; the darker, the higher. Narrow drawings have upright headings and fewer columns."""
    parts, slim = {}, []
    for title, cells in panels.items():
        data = [{**one.plain(), "row": _name(row), "column": _name(column)} for (row, column), one in cells.items()]
        columns = list(dict.fromkeys(one["column"] for one in data))
        width = max(72, min(190, 7 * max(map(len, columns)) + 16))
        parts[title] = _heat_part(data, width, {"labelAngle": 0, "labelLimit": width - 6}, {})
        most = min(len(columns), _NARROW_COLUMNS)
        step = min(_NARROW_CELL, (_NARROW_PAGE - _NARROW_NAME) // most)
        names = {"labelLimit": _NARROW_PAGE - step * most}
        for first in range(0, len(columns), _NARROW_COLUMNS):
            shown = columns[first : first + _NARROW_COLUMNS]
            part = _heat_part(
                [one for one in data if one["column"] in shown],
                step,
                {"labelAngle": -90, "labelLimit": _NARROW_NAME, "labelAlign": "left"},
                names,
            )
            # names of columns may be as high as their limit, which the title does not know
            slim.append({"title": {"text": _name(title), "offset": 14}, **part} if not first else part)
    independent = {"scale": {"x": "independent"}}
    return _with_slim(_stacked(parts, resolve=independent), {"vconcat": slim, "resolve": independent})


def _heat_part(
    data: Sequence[Mapping[str, Any]], width: int, x_axis: Mapping[str, Any], y_axis: Mapping[str, Any]
) -> Spec:
    y = {"field": "row", "type": "nominal", "sort": None, "axis": {**_NO_AXIS, **y_axis}}
    x = {"field": "column", "type": "nominal", "sort": None, "axis": {**_NO_AXIS, "orient": "top", **x_axis}}
    scale = {"domain": [0, 1], "range": [0.04, 0.55], "clamp": True}
    shade = {"field": "value", "type": "quantitative", "legend": None, "scale": scale}
    mark = {"type": "rect", "color": LIGHT["accent"], "stroke": LIGHT["panel"], "strokeWidth": 2, "cornerRadius": 4}
    return {
        "width": {"step": width},
        "height": {"step": _ROW + 4},
        "data": {"values": list(data)},
        "encoding": {"x": x, "y": y},
        "layer": [
            {"mark": mark, "encoding": {"fillOpacity": shade}},
            {"mark": {"type": "text", "limit": width}, "encoding": {"text": {"field": "text"}}},
        ],
    }


def frontier(
    points: Sequence[tuple[float, Estimate]],
    x_title: str,
    y_title: str,
    x_format: str,
    note: str = "",
    cost_text: Callable[[float], str] | None = None,
) -> Spec:
    """Shares against a cost; a line joins the choices that no other one beats in both.

    `cost_text` formats a cost for the label of its point; a narrow drawing has room for names only.
    """
    wide = _frontier(points, x_title, y_title, x_format, note, _WIDTH, cost_text)
    slim = _frontier(points, x_title, y_title, x_format, note, _NARROW, None)
    return _with_slim(_whole(wide), slim)


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
    for row in data:
        row["label"] = _name(f"{row['name']} {cost_text(row['cost'])}") if cost_text else row["name"]
    best: list[dict[str, Any]] = []
    own = [place for place, (_, one) in enumerate(points) if not one.is_ideal]
    for place in sorted(own, key=lambda place: (points[place][0], -points[place][1].value)):
        if not best or data[place]["value"] > best[-1]["value"]:
            best.append(data[place])
    y = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {**_SHARES, "title": _name(y_title)}}
    axis: dict[str, Any] = {"title": _name(x_title), "format": x_format, "tickCount": 6}
    axis |= {"labelOverlap": True, "labelSeparation": 10} if width < _WIDTH else {}
    scale, ticks = _cost_scale([cost for cost, _ in points])
    if ticks:
        axis |= {"title": _name(f"{x_title}, logarithmic"), "values": ticks}
        axis["labelExpr"] = f"format(datum.value, '{axis.pop('format')}')"  # else all ticks have one SI prefix
    x = {"field": "cost", "type": "quantitative", "scale": scale, "axis": axis}
    line = {"type": "line", "interpolate": "step-after", "strokeDash": [4, 3], "color": LIGHT["muted"]}
    for rows in _neighbours(data, ticks, _LABEL_WIDTH / width):
        for row, label_at in zip(rows, _spread([one["value"] for one in rows], _HEIGHT, (0, 1)), strict=True):
            row |= {"label_at": label_at, "is_led": len(rows) > 1}
    for row in data:
        row["is_before"] = not row["is_led"] and _has_room_before(row, data, ticks, _LABEL_WIDTH / width)
    leader = {"type": "rule", "xOffset": 5, "x2Offset": _LEADER, "strokeWidth": 1, "color": LIGHT["muted"]}
    led = _layer(leader, y={**y, "field": "value"}, x2={"field": "cost"}, y2={"field": "label_at"}, color=None)
    sides = [(is_before, is_led) for is_before, is_led in ((False, False), (True, False), (False, True))]
    return {
        **_frontier_title([printable(note)] * bool(note) + _captions([one for _, one in points]), width),
        "width": width,
        "height": _HEIGHT,
        "encoding": {"x": x},
        "layer": [
            {"data": {"values": best}, "mark": line, "encoding": {"y": {**y, "field": "value"}}},
            {
                "data": {"values": data},
                "layer": [
                    _layer({"type": "rule"}, y={**y, "field": "low"}, y2={"field": "high"}),
                    {"transform": [{"filter": "datum.is_led"}], **led},
                    *(_point_label(y, *side, halo=True) for side in sides),
                    # above the halos, which must not cover the points of others
                    _layer({"type": "point", "filled": True, "size": 80, "opacity": 1}, y={**y, "field": "value"}),
                    *(_point_label(y, *side, halo=False) for side in sides),
                ],
            },
        ],
    }


def _frontier_title(lines: Sequence[str], width: int) -> Spec:
    return (
        {
            "title": {
                "text": lines,
                "color": LIGHT["muted"],
                "fontWeight": "normal",
                "fontSize": 12,
                "limit": max(width, _NARROW_PAGE),
            }
        }
        if lines
        else {}
    )


def _cost_scale(costs: Sequence[float]) -> tuple[Spec, list[float]]:
    """Return the scale of an axis and, if logarithmic, its ticks. A far point must not press others together."""
    positive = [cost for cost in costs if cost > 0]
    if not positive or max(positive) <= 10 * min(positive):
        return {"zero": True}, []
    first, last = floor(log10(min(positive))), ceil(log10(max(positive)))
    powers = [10.0**power for power in range(first, last + 1)]
    if len(positive) == len(costs):
        return {"type": "log", "domain": [powers[0], powers[-1]]}, powers
    return {"type": "symlog", "constant": powers[0], "domain": [0, powers[-1]]}, [0.0, *powers]


def _place(cost: float, ticks: Sequence[float]) -> float:
    """Return where a cost is on the axis, from the left; `ticks` are those of a logarithmic one."""
    return log10(1 + cost / next(tick for tick in ticks if tick > 0)) if ticks else cost


def _neighbours(
    data: Sequence[dict[str, Any]], ticks: Sequence[float], label_width: float
) -> list[list[dict[str, Any]]]:
    """Group points whose labels may overlap: each is less than a label's part of the axis from the next."""
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
    """Whether a label would stick out of the chart, and there is room for it before the point."""
    end = max(_place(one["cost"], ticks) for one in data)
    place = _place(row["cost"], ticks)
    near = [
        one
        for one in data
        if one is not row
        and abs(one["label_at"] - row["label_at"]) < 2 * _LABEL_GAP / _HEIGHT
        and _place(one["cost"], ticks) > place - 2 * label_width * end  # its own label stands after it
    ]
    return place > 0.75 * end and not near


def _point_label(y: Mapping[str, Any], is_before: bool, is_led: bool, halo: bool) -> Spec:
    """The name of a point after or before it, or at the end of its leader; a halo keeps it readable on lines."""
    side = {"align": "right", "dx": -7} if is_before else {"align": "left", "dx": 7}
    place = {"align": "left", "dx": _LEADER + 3, "baseline": "middle"} if is_led else {"dy": -8, **side}
    stroke = {"stroke": LIGHT["panel"], "strokeWidth": 6, "strokeJoin": "round"} if halo else {}
    label = _layer(
        {"type": "text", **place, **stroke}, y={**y, "field": "label_at"}, text={"field": "label"}, color=None
    )
    chosen = f"datum.is_before === {str(is_before).lower()} && datum.is_led === {str(is_led).lower()}"
    return {"transform": [{"filter": chosen}], **label}


def latency(panels: Mapping[str, Sequence[Spread]]) -> Spec:
    """Durations on a logarithmic axis: median, middle half, and 5th to 95th percentile."""
    shown = [one for rows in panels.values() for one in rows]
    first, last = floor(log10(min(one.p5 for one in shown))), ceil(log10(max(one.p95 for one in shown)))
    last = max(last, first + 1)
    ticks = [10.0**power for power in range(first, last + 1)]
    axis = {"values": ticks, "labelExpr": _SECONDS, "title": None}
    x = {"type": "quantitative", "scale": {"type": "log", "domain": [ticks[0], ticks[-1]]}, "axis": axis}
    layers = [
        _layer({"type": "rule"}, x={**x, "field": "p5"}, x2={"field": "p95"}),
        _layer({"type": "bar", "height": 10, "opacity": 0.35}, x={**x, "field": "p25"}, x2={"field": "p75"}),
        _layer({"type": "tick", "thickness": 3, "height": 14, "opacity": 1}, x={**x, "field": "p50"}),
        _layer({"type": "text", "align": "left"}, x=_BESIDE, text={"field": "text"}, color=None),
    ]
    parts = {}
    for title, rows in panels.items():
        texts = [{"name": _name(one.name), "text": _name(one.text), "tone": LIGHT["accent"]} for one in rows]
        parts[title] = _rows([{**asdict(one), **text} for one, text in zip(rows, texts, strict=True)], layers)
    return _stacked(parts)


def failures(counts: Mapping[tuple[str, str], int], reasons: Sequence[str]) -> Spec:
    """Failures of each provider by reason."""
    used = [reason for reason in reasons if any(found == reason for _, found in counts)]
    data = [
        {"name": _name(subject), "reason": reason, "place": reasons.index(reason), "count": number}
        for (subject, reason), number in counts.items()
    ]
    totals: Counter[str] = Counter()
    for (subject, _), number in counts.items():
        totals[subject] += number
    scale = {"domain": used, "range": [_SERIES[reasons.index(reason) % len(_SERIES)] for reason in used]}
    return _whole(
        {
            "width": _WIDTH,
            "height": {"step": _ROW},
            "data": {"values": data},
            "mark": {"type": "bar", "height": 14},
            "encoding": {
                "y": {"field": "name", "type": "nominal", "sort": None, "axis": _NO_AXIS},
                "x": {
                    "field": "count",
                    "type": "quantitative",
                    "axis": {"title": "failures (trials)", "tickCount": min(max(totals.values()), 8), "format": "~s"},
                },
                "order": {"field": "place"},
                "color": {"field": "reason", "type": "nominal", "scale": scale},
            },
        }
    )


def slope(first: str, second: str, changes: Sequence[Change], title: str) -> Spec:
    """Shares of two sides by type: lines that rise have the accent, lines that fall the warning colour.

    In a narrow drawing, the values stand below the name of their type.
    """
    wide = _slope(first, second, changes, 240, _LABEL_GAP, "  ")
    slim = _slope(first, second, changes, _NARROW_SIDE, 2 * _LABEL_GAP, "\n")
    return _with_slim(_whole({"title": _name(title), **wide}), {"title": _name(title), **slim})


def _slope(first: str, second: str, changes: Sequence[Change], step: int, gap: int, between: str) -> Spec:
    height = max(240, (gap + 3) * len(changes))
    domain = (0.0, 1.0)
    places = _spread([one.second for one in changes], height, domain, gap)
    sides = [f"1 {_name(first)}", f"2 {_name(second)}"]
    lines, labels = [], []
    for number, (one, place) in enumerate(zip(changes, places, strict=True)):
        tone = LIGHT["accent"] if one.second > one.first else LIGHT["series-1"]
        tone = LIGHT["muted"] if one.second == one.first else tone
        lines += [
            {"line": number, "side": side, "value": value, "tone": tone}
            for side, value in zip(sides, (one.first, one.second), strict=True)
        ]
        text = f"{_name(one.name)}{between}{one.first:.1%} → {one.second:.1%}"
        labels.append({"side": sides[1], "value": one.second, "place": place, "text": text})
    label = {"labelAngle": 0, "title": None, "labelExpr": "substring(datum.value, 2)", "orient": "top"}
    x = {"field": "side", "type": "ordinal", "axis": {**label, "labelLimit": min(step + 30, 200)}}
    y = {"type": "quantitative", "scale": {"domain": domain}, "axis": {**_SHARES, "title": None}}
    detail = {"detail": {"field": "line", "type": "nominal"}}
    leader = {"type": "rule", "xOffset": 5, "x2Offset": _LEADER, "strokeWidth": 1, "color": LIGHT["muted"]}
    led = _layer(leader, y={**y, "field": "value"}, x2={"field": "side"}, y2={"field": "place"}, color=None)
    text_mark = {
        "type": "text",
        "align": "left",
        "dx": _LEADER + 3,
        "baseline": "middle",
        "lineBreak": "\n",
        "lineHeight": 14,
    }
    return {
        "width": {"step": step},
        "height": height,
        "encoding": {"x": x},
        "layer": [
            {
                "data": {"values": lines},
                "layer": [
                    _layer({"type": "line", "strokeWidth": 2}, y={**y, "field": "value"}, **detail),
                    _layer({"type": "point", "filled": True, "size": 55, "opacity": 1}, y={**y, "field": "value"}),
                ],
            },
            {
                "data": {"values": labels},
                "layer": [
                    led,
                    {"mark": text_mark, "encoding": {"y": {**y, "field": "place"}, "text": {"field": "text"}}},
                ],
            },
        ],
    }


def trend(panels: Mapping[str, Sequence[Estimate]]) -> Spec:
    """A share over runs, the oldest first. A line joins those that differ in nothing but their version.

    A narrow drawing has the newest runs, with upright names and without dates.
    """
    wide = {"labelExpr": "split(substring(datum.value, 4), '\\n')", "labelAngle": 0, "labelLimit": 90}
    upright = {"labelExpr": "split(substring(datum.value, 4), '\\n')[0]", "labelAngle": -90, "labelLimit": 110}
    independent = {"scale": {"x": "independent"}}
    newest = {title: rows[-_NARROW_RUNS:] for title, rows in panels.items()}
    notes = {
        title: [f"the newest {_NARROW_RUNS} of {len(rows)} runs"]
        for title, rows in panels.items()
        if len(rows) > _NARROW_RUNS
    }
    parts = {title: _trend_part(rows, 96, wide) for title, rows in panels.items()}
    slim = {title: _trend_part(rows, 230 // len(rows), upright) for title, rows in newest.items()}
    return _with_slim(_stacked(parts, resolve=independent), _stacked(slim, notes, resolve=independent))


def _trend_part(rows: Sequence[Estimate], step: int, label: Mapping[str, Any]) -> Spec:
    y = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {**_SHARES, "title": None}}
    # a place makes names distinct; the label of the axis leaves it out
    names = ["\n".join(map(_name, one.name.split("\n"))) for one in rows]
    data = [
        {**one.plain(), "name": f"{place:04}{name}", "line": one.line}
        for place, (one, name) in enumerate(zip(rows, names, strict=True))
    ]
    axis = {**label, "title": None, "grid": False}
    return {
        "width": {"step": step},
        "height": 180,
        "data": {"values": data},
        "encoding": {"x": {"field": "name", "type": "ordinal", "axis": axis}},
        "layer": [
            {
                "mark": {"type": "line", "color": LIGHT["accent"], "opacity": 0.5},
                "encoding": {"y": {**y, "field": "value"}, "detail": {"field": "line", "type": "nominal"}},
            },
            _layer({"type": "rule", "strokeWidth": 2}, y={**y, "field": "low"}, y2={"field": "high"}),
            _layer({"type": "point", "filled": True, "size": 70, "opacity": 1}, y={**y, "field": "value"}),
            _layer(
                {"type": "text", "align": "left", "dx": 6, "dy": -8},
                y={**y, "field": "value"},
                text={"field": "text"},
                color=None,
            ),
        ],
    }


def _with_slim(spec: Spec, slim: Spec) -> Spec:
    """Add a spec for narrow pages, which `narrow` returns; Vega-Lite ignores `usermeta`."""
    return {**spec, "usermeta": {_SLIM: slim}}


def without_slim(spec: Spec) -> Spec:
    """Return a spec to be read by others."""
    return {name: part for name, part in spec.items() if name != "usermeta"}


def narrow(spec: Spec) -> Spec:
    """Return the spec for a page of 360 pixels: its own, or one with figures above their rows."""
    if own := spec.get("usermeta", {}).get(_SLIM):
        return {**_whole(own), "config": {**CONFIG, "title": _NARROW_TITLE}}
    slim = [_narrow_part(part) for part in spec.get("vconcat", [spec])]
    config = {
        **CONFIG,
        "axisX": {"labelOverlap": True, "labelSeparation": 10},
        "axisY": {"labelLimit": 160},
        "legend": {**CONFIG["legend"], "columns": 2},
        "title": _NARROW_TITLE,
    }
    return {**spec, **({"vconcat": slim} if "vconcat" in spec else slim[0]), "config": config}


def _narrow_part(part: Spec) -> Spec:
    above = {"x": {"value": 0}}
    layers = [
        {**one, "mark": {**one["mark"], "dy": -14}, "encoding": {**one["encoding"], **above}}
        if one.get("encoding", {}).get("x") == _BESIDE
        else one
        for one in part.get("layer", ())
    ]
    has_rows = any(one.get("encoding", {}).get("x") == above["x"] for one in layers)
    names = [len(row["name"]) for row in part.get("data", {}).get("values", ()) if "name" in row]
    title = part.get("title")
    return {
        **part,
        **({"title": {**title, "limit": _NARROW_PAGE}} if isinstance(title, dict) else {}),
        "width": max(_NARROW_NAME, min(_NARROW, _NARROW_PAGE - 7 * max(names, default=0))),
        **({"layer": layers} if layers else {}),
        **({"height": {"step": _ROW + 16}} if has_rows else {}),
    }


def size(spec: Spec) -> tuple[int, int]:
    """Return about how wide and high a chart is, so that a page can leave room for it."""
    if "vconcat" in spec:
        sizes = [size(part) for part in spec["vconcat"]]
        return max(width for width, _ in sizes), sum(height for _, height in sizes)
    rows = spec.get("data", {}).get("values", ())
    names = {row.get("row", row.get("name")) for row in rows}
    columns = {row.get("column") for row in rows}
    width, height = (
        count * side["step"] if isinstance(side, dict) else side
        for side, count in ((spec["width"], len(columns)), (spec["height"], len(names)))
    )
    legend = 24 if "color" in spec.get("encoding", {}) else 0
    title = spec.get("title")
    lines = title.get("subtitle", title["text"]) if isinstance(title, dict) else ()
    captions = len(lines) if isinstance(lines, list) else 0
    axis = spec.get("encoding", {}).get("x", {}).get("axis") or {}
    upright = 60 if axis.get("labelAngle") else 0
    return width + 140, height + 50 + legend + 15 * captions + upright


def _layer(mark: Mapping[str, Any], **channels: Any) -> Spec:
    """A mark in the tone of its row; `color=None` leaves the colour to the look."""
    tone = {"field": "tone", "type": "nominal", "scale": None}
    encoding = {"color": tone, **channels}
    return {"mark": dict(mark), "encoding": {name: one for name, one in encoding.items() if one is not None}}


def _rows(data: Sequence[Mapping[str, Any]], layers: Sequence[Spec]) -> Spec:
    y = {"field": "name", "type": "nominal", "sort": None, "axis": _NO_AXIS}
    return {
        "width": _WIDTH,
        "height": {"step": _ROW},
        "data": {"values": list(data)},
        "encoding": {"y": y},
        "layer": list(layers),
    }


def _stacked(parts: Mapping[str, Spec], captions: Mapping[str, Sequence[str]] = NO_CAPTIONS, **more: Any) -> Spec:
    """Put charts below each other; captions stand below their titles."""
    titled = [
        {"title": {"text": _name(title), "subtitle": lines} if (lines := captions.get(title)) else _name(title), **part}
        for title, part in parts.items()
    ]
    return _whole({"vconcat": titled, **more} if len(titled) > 1 else titled[0])


def _whole(spec: Spec) -> Spec:
    return {"config": dict(CONFIG), "background": LIGHT["panel"], "padding": 8, **spec}


def _name(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def _spread(
    values: Sequence[float], height: float, domain: tuple[float, float], pixels: int = _LABEL_GAP
) -> list[float]:
    """Return places of labels beside these values: those that would overlap are around the middle of their values."""
    low, high = domain
    gap = pixels / height * (high - low)
    order = sorted(range(len(values)), key=lambda place: values[place])
    blocks: list[tuple[float, int]] = []
    """Of labels that touch: the sum of the places that each would give the first of them, and how many they are."""

    def first(block: tuple[float, int]) -> float:
        total, count = block
        return max(low, min(total / count, high - (count - 1) * gap))

    for place in order:
        blocks.append((values[place], 1))
        while len(blocks) > 1 and first(blocks[-2]) + blocks[-2][1] * gap > first(blocks[-1]):
            total, count = blocks.pop()
            before, others = blocks.pop()
            blocks.append((before + total - count * others * gap, others + count))
    found = [0.0] * len(values)
    places = (first(block) + n * gap for block in blocks for n in range(block[1]))
    for place, where in zip(order, places, strict=True):
        found[place] = where
    return found
