"""One function per kind of chart, from plain values to a Vega-Lite spec.

Names and values of the user are only in the data of a spec, so that they are never evaluated as expressions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from msgspec.structs import asdict

from .look import LIGHT
from .parts import (
    BESIDE,
    NARROW_NAME,
    NARROW_PAGE,
    NO_AXIS,
    ROW,
    SHARES,
    WIDTH,
    Estimate,
    Spec,
    Spread,
    captions_of,
    layer,
    rows_of,
    shown_name,
    stacked,
    whole,
    with_slim,
)

_NARROW_COLUMNS = 5
_NARROW_CELL = 42
_NARROW_RUNS = 6
"""On a page of 360 pixels: the most columns of a heat map, the most pixels of a cell, and the most runs of a trend."""
_REASON_COLORS = {
    "failed": LIGHT["series-1"],
    "unscored": LIGHT["series-8"],
    "blocked": LIGHT["series-3"],
    "not-retrieved": LIGHT["series-5"],
    "not-used": LIGHT["series-6"],
    "stale": LIGHT["series-7"],
    "invented": LIGHT["series-4"],
    "wrong": LIGHT["series-2"],
}
"""Each reason has a colour of its own. `skipped` is missing: it is not a failure, and not drawn."""
_SECONDS = "datum.value < 1 ? format(1000 * datum.value, '~g') + ' ms' : format(datum.value, '~g') + ' s'"


def forest(panels: Mapping[str, Sequence[Estimate]]) -> Spec:
    """Return a chart of shares with their intervals, one row each."""
    x = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {**SHARES, "title": None}}
    layers = [
        layer({"type": "rule", "strokeWidth": 2}, x={**x, "field": "low"}, x2={"field": "high"}),
        layer({"type": "point", "filled": True, "size": 70, "opacity": 1}, x={**x, "field": "value"}),
        layer({"type": "text", "align": "left"}, x=BESIDE, text={"field": "text"}, color=None),
    ]
    parts = {title: rows_of([one.plain() for one in rows], layers) for title, rows in panels.items()}
    return stacked(parts, {title: captions_of(rows) for title, rows in panels.items()})


def heat_map(panels: Mapping[str, Mapping[tuple[str, str], Estimate]]) -> Spec:
    """Return a heat map of shares by row and column; higher is darker.

    The narrow version has vertical headings and fewer columns.
    """
    parts, slim = {}, []
    for title, cells in panels.items():
        data = [
            {**one.plain(), "row": shown_name(row), "column": shown_name(column)}
            for (row, column), one in cells.items()
        ]
        columns = list(dict.fromkeys(one["column"] for one in data))
        width = max(72, min(190, 7 * max(map(len, columns)) + 16))
        parts[title] = _heat_part(data, width, {"labelAngle": 0, "labelLimit": width - 6}, {})
        most = min(len(columns), _NARROW_COLUMNS)
        step = min(_NARROW_CELL, (NARROW_PAGE - NARROW_NAME) // most)
        names = {"labelLimit": NARROW_PAGE - step * most}
        for first in range(0, len(columns), _NARROW_COLUMNS):
            shown = columns[first : first + _NARROW_COLUMNS]
            part = _heat_part(
                [one for one in data if one["column"] in shown],
                step,
                {"labelAngle": -90, "labelLimit": NARROW_NAME, "labelAlign": "left"},
                names,
            )
            # vertical names of columns take room below the title, which Vega-Lite does not reserve
            slim.append({"title": {"text": shown_name(title), "offset": 14}, **part} if not first else part)
    independent = {"scale": {"x": "independent"}}
    return with_slim(stacked(parts, resolve=independent), {"vconcat": slim, "resolve": independent})


def _heat_part(
    data: Sequence[Mapping[str, Any]], width: int, x_axis: Mapping[str, Any], y_axis: Mapping[str, Any]
) -> Spec:
    y = {"field": "row", "type": "nominal", "sort": None, "axis": {**NO_AXIS, **y_axis}}
    x = {"field": "column", "type": "nominal", "sort": None, "axis": {**NO_AXIS, "orient": "top", **x_axis}}
    scale = {"domain": [0, 1], "range": [0.04, 0.55], "clamp": True}
    shade = {"field": "value", "type": "quantitative", "legend": None, "scale": scale}
    mark = {"type": "rect", "color": LIGHT["accent"], "stroke": LIGHT["panel"], "strokeWidth": 2, "cornerRadius": 4}
    return {
        "width": {"step": width},
        "height": {"step": ROW + 4},
        "data": {"values": list(data)},
        "encoding": {"x": x, "y": y},
        "layer": [
            {"mark": mark, "encoding": {"fillOpacity": shade}},
            {"mark": {"type": "text", "limit": width}, "encoding": {"text": {"field": "text"}}},
        ],
    }


def latency(panels: Mapping[str, Sequence[Spread]]) -> Spec:
    """Return a box plot of durations on a logarithmic axis: median, middle half, and 5th to 95th percentile."""
    shown = [one for rows in panels.values() for one in rows]
    first, last = floor(log10(min(one.p5 for one in shown))), ceil(log10(max(one.p95 for one in shown)))
    last = max(last, first + 1)
    ticks = [10.0**power for power in range(first, last + 1)]
    axis = {"values": ticks, "labelExpr": _SECONDS, "title": None}
    x = {"type": "quantitative", "scale": {"type": "log", "domain": [ticks[0], ticks[-1]]}, "axis": axis}
    layers = [
        layer({"type": "rule"}, x={**x, "field": "p5"}, x2={"field": "p95"}),
        layer({"type": "bar", "height": 10, "opacity": 0.35}, x={**x, "field": "p25"}, x2={"field": "p75"}),
        layer({"type": "tick", "thickness": 3, "height": 14, "opacity": 1}, x={**x, "field": "p50"}),
        layer({"type": "text", "align": "left"}, x=BESIDE, text={"field": "text"}, color=None),
    ]
    parts = {}
    for title, rows in panels.items():
        texts = [{"name": shown_name(one.name), "text": shown_name(one.text), "tone": LIGHT["accent"]} for one in rows]
        parts[title] = rows_of([{**asdict(one), **text} for one, text in zip(rows, texts, strict=True)], layers)
    return stacked(parts)


def failures(counts: Mapping[tuple[str, str], int], reasons: Sequence[str]) -> Spec:
    """Return a chart of the failures of each provider by reason."""
    used = [reason for reason in reasons if any(found == reason for _, found in counts)]
    data = [
        {"name": shown_name(subject), "reason": reason, "place": reasons.index(reason), "count": number}
        for (subject, reason), number in counts.items()
    ]
    totals: Counter[str] = Counter()
    for (subject, _), number in counts.items():
        totals[subject] += number
    scale = {"domain": used, "range": [_REASON_COLORS[reason] for reason in used]}
    return whole(
        {
            "width": WIDTH,
            "height": {"step": ROW},
            "data": {"values": data},
            "mark": {"type": "bar", "height": 14},
            "encoding": {
                "y": {"field": "name", "type": "nominal", "sort": None, "axis": NO_AXIS},
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


def trend(panels: Mapping[str, Sequence[Estimate]]) -> Spec:
    """Return a chart of a share over runs, the oldest first. A line joins runs that differ only in their version.

    The narrow version shows only the newest runs, with vertical names and without dates.
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
    return with_slim(stacked(parts, resolve=independent), stacked(slim, notes, resolve=independent))


def _trend_part(rows: Sequence[Estimate], step: int, label: Mapping[str, Any]) -> Spec:
    y = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {**SHARES, "title": None}}
    # a number before each name makes the names distinct; the labels of the axis leave it out
    names = ["\n".join(map(shown_name, one.name.split("\n"))) for one in rows]
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
            layer({"type": "rule", "strokeWidth": 2}, y={**y, "field": "low"}, y2={"field": "high"}),
            layer({"type": "point", "filled": True, "size": 70, "opacity": 1}, y={**y, "field": "value"}),
            layer(
                {"type": "text", "align": "left", "dx": 6, "dy": -8},
                y={**y, "field": "value"},
                text={"field": "text"},
                color=None,
            ),
        ],
    }
