"""Colours and fonts of charts (docs/plots.md). Specs use the colours of LIGHT; rendering replaces them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LIGHT: Mapping[str, str] = {
    "panel": "#fffffe",
    "ink": "#1c1e21",
    "muted": "#5f656b",
    "line": "#e2e3e0",
    "accent": "#2a57c4",
    "series-1": "#d55e00",
    "series-2": "#8c8c8c",
    "series-3": "#56b4e9",
    "series-4": "#009e73",
    "series-5": "#0072b2",
    "series-6": "#e69f00",
    "series-7": "#cc79a7",
    "series-8": "#f0e442",
}
"""Colours by name. The series colours are those of Okabe and Ito, which colour-blind people can distinguish."""
DARK: Mapping[str, str] = {
    **LIGHT,
    "panel": "#1b1d20",
    "ink": "#e8e9ea",
    "muted": "#a2a8ae",
    "line": "#2f3237",
    "accent": "#8fb0ff",
    "series-1": "#f0803c",
    "series-4": "#2fbf95",
    "series-5": "#3a9bd9",
}
THEMES = {"light": LIGHT, "dark": DARK}
FONT = "system-ui, -apple-system, 'Segoe UI', Inter, Roboto, 'Liberation Sans', 'DejaVu Sans', sans-serif"
_TEXT = {"labelColor": LIGHT["ink"], "titleColor": LIGHT["muted"], "labelFontSize": 12, "titleFontSize": 12}
CONFIG: Mapping[str, Any] = {
    "aria": False,
    "font": FONT,
    "view": {"stroke": None},
    "concat": {"spacing": 18},
    "title": {
        "color": LIGHT["ink"],
        "fontSize": 13,
        "fontWeight": 600,
        "anchor": "start",
        "frame": "group",
        "subtitleColor": LIGHT["muted"],
        "subtitleFontSize": 12,
    },
    "axis": {
        **_TEXT,
        "titleFontWeight": "normal",
        "gridColor": LIGHT["line"],
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
        "titlePadding": 8,
        "labelLimit": 260,
    },
    "legend": {**_TEXT, "orient": "bottom", "title": None, "columns": 4, "columnPadding": 24, "symbolType": "square"},
    "text": {"color": LIGHT["ink"], "fontSize": 12},
}
