"""Parts that charts share: sizes, values to draw, and parts of Vega-Lite specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from memorybench.text.sanitize import printable, shorten

from .look import CONFIG, LIGHT

Spec = dict[str, Any]
"""A Vega-Lite spec."""
WIDTH = 420
HEIGHT = 220
ROW = 24
"""In pixels: WIDTH and HEIGHT of the axes of a chart; ROW is the height of a row in a chart with one row per name."""
NARROW = 190
"""The width of the axes on a page of 360 pixels."""
NARROW_PAGE = 290
NARROW_NAME = 110
"""On a page of 360 pixels: NARROW_PAGE is the width of a chart, NARROW_NAME the least width of its axes. In pixels."""
LABEL_GAP = 15
"""The least distance between two labels, in pixels."""
LEADER = 22
"""The length in pixels of the line that joins a point to its label, if other points are near."""
BESIDE: Mapping[str, Any] = {"value": WIDTH + 12}
"""The horizontal position of the figures of rows: right of the axes."""
SHARES: Mapping[str, Any] = {"format": "%", "tickCount": 5}
NO_AXIS: Mapping[str, Any] = {"title": None, "grid": False}
SLIM = "slim"
"""The key, in the `usermeta` of a spec, of the spec for narrow pages."""
_LONGEST_NAME = 60
_GREY = "grey marks are baselines"
_OPEN = "no mark: undecided, somewhere on the line"
_NO_CAPTIONS: Mapping[str, Sequence[str]] = {}


class Estimate(Struct, frozen=True):
    """A value with its interval."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    text: str = ""
    is_baseline: bool = False
    is_ideal: bool = False
    """Whether the subject is given the gold evidence.

    Its value is an upper bound, so no line joins it to other points.
    """
    is_range: bool = False
    """Whether undecided verdicts leave only a range, `low` to `high`.

    `value` is the middle of the range, and is not drawn.
    """
    line: int = 0
    """In a trend: the number of the line to which this value belongs. Values with different numbers are not joined."""

    def plain(self) -> dict[str, Any]:
        return {
            "name": shown_name(self.name),
            "value": None if self.is_range else self.value,
            "low": self.value if self.low is None else self.low,
            "high": self.value if self.high is None else self.high,
            "text": shown_name(self.text),
            "tone": LIGHT["muted"] if self.is_baseline else LIGHT["accent"],
        }


class Spread(Struct, frozen=True):
    """Percentiles of many values, drawn as a box."""

    name: str
    p5: float
    p25: float
    p50: float
    p75: float
    p95: float
    text: str = ""


class Change(Struct, frozen=True):
    """The values of the first and the second side for one type of question."""

    name: str
    first: float
    second: float


def captions_of(estimates: Sequence[Estimate]) -> list[str]:
    """Return captions that explain grey marks (baselines) and lines without a mark (undecided), if there are any."""
    has_baselines, has_ranges = any(one.is_baseline for one in estimates), any(one.is_range for one in estimates)
    return [_GREY] * has_baselines + [_OPEN] * has_ranges


def layer(mark: Mapping[str, Any], **channels: Any) -> Spec:
    """Return a layer whose mark has the colour in the data's field `tone`; with `color=None`, the default colour."""
    tone = {"field": "tone", "type": "nominal", "scale": None}
    encoding = {"color": tone, **channels}
    return {"mark": dict(mark), "encoding": {name: one for name, one in encoding.items() if one is not None}}


def rows_of(data: Sequence[Mapping[str, Any]], layers: Sequence[Spec]) -> Spec:
    """Return a chart with one row per name."""
    y = {"field": "name", "type": "nominal", "sort": None, "axis": NO_AXIS}
    return {
        "width": WIDTH,
        "height": {"step": ROW},
        "data": {"values": list(data)},
        "encoding": {"y": y},
        "layer": list(layers),
    }


def stacked(parts: Mapping[str, Spec], captions: Mapping[str, Sequence[str]] = _NO_CAPTIONS, **more: Any) -> Spec:
    """Return charts below each other, with their titles and captions. `more` are further keys of the spec."""
    titled = [{"title": _title(title, captions.get(title, ())), **part} for title, part in parts.items()]
    return whole({"vconcat": titled, **more} if len(titled) > 1 else titled[0])


def _title(text: str, captions: Sequence[str]) -> str | Spec:
    return {"text": shown_name(text), "subtitle": list(captions)} if captions else shown_name(text)


def whole(spec: Spec) -> Spec:
    """Return a spec with a background, colours and fonts. Only the outermost spec may have them."""
    return {"config": dict(CONFIG), "background": LIGHT["panel"], "padding": 8, **spec}


def with_slim(spec: Spec, slim: Spec) -> Spec:
    """Return a spec that also contains `slim`, the spec for narrow pages, in `usermeta`, which Vega-Lite ignores."""
    return {**spec, "usermeta": {SLIM: slim}}


def shown_name(text: str, longest: int = _LONGEST_NAME) -> str:
    """Return a text without control characters and with at most `longest` characters."""
    return shorten(printable(text), longest)


def label_places(
    values: Sequence[float], height: float, domain: tuple[float, float], pixels: int = LABEL_GAP
) -> list[float]:
    """Return the place of each value's label, in the unit of the values.

    Labels that would overlap, with less than `pixels` between them, are spread around the mean of their values.
    `height` is that of the axis in pixels, `domain` its ends.
    """
    low, high = domain
    gap = pixels / height * (high - low)
    order = sorted(range(len(values)), key=lambda place: values[place])
    blocks: list[tuple[float, int]] = []
    """Groups of labels that touch, as (sum, number of labels).

    Each label adds to the sum the place of the group's first label that would put this label at its own value.
    """

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
