"""What the charts share: measures, values to draw, and parts of Vega-Lite specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memorybench.text.sanitize import printable

from .look import CONFIG, LIGHT

Spec = dict[str, Any]
"""A Vega-Lite spec."""
WIDTH = 420
HEIGHT = 220
ROW = 24
"""Pixels: of the axes, and of a row of a chart with one row per name."""
NARROW = 190
"""The width of axes on a page of 360 pixels."""
NARROW_PAGE = 290
NARROW_NAME = 110
"""Pixels on such a page: in all, and of a name."""
LABEL_GAP = 15
"""Pixels between the labels of two lines."""
LEADER = 22
"""Pixels from a point to its label if others are near: a line joins the two."""
BESIDE: Mapping[str, Any] = {"value": WIDTH + 12}
"""Where figures stand: on the right of the axes."""
SHARES: Mapping[str, Any] = {"format": "%", "tickCount": 5}
NO_AXIS: Mapping[str, Any] = {"title": None, "grid": False}
SLIM = "slim"
"""The key of `usermeta` that holds the spec for narrow pages."""
_LONGEST_NAME = 60
_GREY = "grey marks are baselines"
_OPEN = "no mark: undecided, somewhere on the line"
_NO_CAPTIONS: Mapping[str, Sequence[str]] = {}


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
            "name": shown_name(self.name),
            "value": None if self.is_range else self.value,
            "low": self.value if self.low is None else self.low,
            "high": self.value if self.high is None else self.high,
            "text": shown_name(self.text),
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


def captions_of(estimates: Sequence[Estimate]) -> list[str]:
    """Return what must be said about the marks of these rows."""
    has_baselines, has_ranges = any(one.is_baseline for one in estimates), any(one.is_range for one in estimates)
    return [_GREY] * has_baselines + [_OPEN] * has_ranges


def layer(mark: Mapping[str, Any], **channels: Any) -> Spec:
    """A mark in the tone of its row; `color=None` leaves the colour to the look."""
    tone = {"field": "tone", "type": "nominal", "scale": None}
    encoding = {"color": tone, **channels}
    return {"mark": dict(mark), "encoding": {name: one for name, one in encoding.items() if one is not None}}


def rows_of(data: Sequence[Mapping[str, Any]], layers: Sequence[Spec]) -> Spec:
    """A chart with one row per name."""
    y = {"field": "name", "type": "nominal", "sort": None, "axis": NO_AXIS}
    return {
        "width": WIDTH,
        "height": {"step": ROW},
        "data": {"values": list(data)},
        "encoding": {"y": y},
        "layer": list(layers),
    }


def stacked(parts: Mapping[str, Spec], captions: Mapping[str, Sequence[str]] = _NO_CAPTIONS, **more: Any) -> Spec:
    """Put charts below each other; captions stand below their titles."""
    titled = [{"title": _title(title, captions.get(title, ())), **part} for title, part in parts.items()]
    return whole({"vconcat": titled, **more} if len(titled) > 1 else titled[0])


def _title(text: str, captions: Sequence[str]) -> str | Spec:
    return {"text": shown_name(text), "subtitle": list(captions)} if captions else shown_name(text)


def whole(spec: Spec) -> Spec:
    """Add the look, which only the outermost spec may have."""
    return {"config": dict(CONFIG), "background": LIGHT["panel"], "padding": 8, **spec}


def with_slim(spec: Spec, slim: Spec) -> Spec:
    """Add a spec for narrow pages, which `narrow` returns; Vega-Lite ignores `usermeta`."""
    return {**spec, "usermeta": {SLIM: slim}}


def shown_name(text: str) -> str:
    """Return a text without control characters, cut if it is long."""
    text = printable(text)
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"
