"""Adapts charts to pages of 360 pixels, and computes the size of charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .look import CONFIG
from .parts import BESIDE, NARROW, NARROW_NAME, NARROW_PAGE, ROW, SLIM, Spec, whole

_NARROW_TITLE: Mapping[str, Any] = {**CONFIG["title"], "frame": "bounds", "limit": NARROW_PAGE}
"""The style of titles on narrow pages, where they are aligned with the names of rows."""


def without_slim(spec: Spec) -> Spec:
    """Return a spec for export, without the spec for narrow pages that `with_slim` adds."""
    return {name: part for name, part in spec.items() if name != "usermeta"}


def narrow(spec: Spec) -> Spec:
    """Return a spec for a page of 360 pixels: the one that `with_slim` added, else one with figures above the rows."""
    if own := spec.get("usermeta", {}).get(SLIM):
        return {**whole(own), "config": {**CONFIG, "title": _NARROW_TITLE}}
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
        if one.get("encoding", {}).get("x") == BESIDE
        else one
        for one in part.get("layer", ())
    ]
    has_rows = any(one.get("encoding", {}).get("x") == above["x"] for one in layers)
    names = [len(row["name"]) for row in part.get("data", {}).get("values", ()) if "name" in row]
    title = part.get("title")
    return {
        **part,
        **({"title": {**title, "limit": NARROW_PAGE}} if isinstance(title, dict) else {}),
        "width": max(NARROW_NAME, min(NARROW, NARROW_PAGE - 7 * max(names, default=0))),
        **({"layer": layers} if layers else {}),
        **({"height": {"step": ROW + 16}} if has_rows else {}),
    }


def size(spec: Spec) -> tuple[int, int]:
    """Return the approximate width and height of a chart in pixels, so that a page can reserve space for it."""
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
