"""The slope chart: compares two sides, with one rising or falling line per type of question."""

from __future__ import annotations

from collections.abc import Sequence

from .look import LIGHT
from .parts import LABEL_GAP, LEADER, SHARES, Change, Spec, label_places, layer, shown_name, whole, with_slim

_NARROW_SIDE = 80
"""The distance between the two sides on a page of 360 pixels, in pixels."""


def slope_spec(first: str, second: str, changes: Sequence[Change], title: str) -> Spec:
    """Return the chart of the shares of two sides by type, with one colour for rising and one for falling lines.

    In the narrow version, values are below the name of their type.
    """
    wide = _slope(first, second, changes, 240, LABEL_GAP, "  ")
    slim = _slope(first, second, changes, _NARROW_SIDE, 2 * LABEL_GAP, "\n")
    return with_slim(whole({"title": shown_name(title), **wide}), {"title": shown_name(title), **slim})


def _slope(first: str, second: str, changes: Sequence[Change], step: int, gap: int, between: str) -> Spec:
    height = max(240, (gap + 3) * len(changes))
    domain = (0.0, 1.0)
    places = label_places([one.second for one in changes], height, domain, gap)
    sides = [f"1 {shown_name(first)}", f"2 {shown_name(second)}"]
    lines, labels = [], []
    for number, (one, place) in enumerate(zip(changes, places, strict=True)):
        tone = LIGHT["accent"] if one.second > one.first else LIGHT["series-1"]
        tone = LIGHT["muted"] if one.second == one.first else tone
        lines += [
            {"line": number, "side": side, "value": value, "tone": tone}
            for side, value in zip(sides, (one.first, one.second), strict=True)
        ]
        text = f"{shown_name(one.name)}{between}{one.first:.1%} → {one.second:.1%}"
        labels.append({"side": sides[1], "value": one.second, "place": place, "text": text})
    label = {"labelAngle": 0, "title": None, "labelExpr": "substring(datum.value, 2)", "orient": "top"}
    x = {"field": "side", "type": "ordinal", "axis": {**label, "labelLimit": min(step + 30, 200)}}
    y = {"type": "quantitative", "scale": {"domain": domain}, "axis": {**SHARES, "title": None}}
    detail = {"detail": {"field": "line", "type": "nominal"}}
    leader = {"type": "rule", "xOffset": 5, "x2Offset": LEADER, "strokeWidth": 1, "color": LIGHT["muted"]}
    led = layer(leader, y={**y, "field": "value"}, x2={"field": "side"}, y2={"field": "place"}, color=None)
    text_mark = {
        "type": "text",
        "align": "left",
        "dx": LEADER + 3,
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
                    layer({"type": "line", "strokeWidth": 2}, y={**y, "field": "value"}, **detail),
                    layer({"type": "point", "filled": True, "size": 55, "opacity": 1}, y={**y, "field": "value"}),
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
