"""Charts of runs: Vega-Lite specs as plain dicts, and their rendering. Needs vl-convert-python (the extra `view`).

specs.py       one function per kind of chart, from plain values to a spec
frontier.py    the chart of shares against a cost
slope.py       the chart of two sides
parts.py       what the charts share
label_places.py  computes the places of labels, so that none covers another
narrow.py      charts on a page of 360 pixels, and their sizes
run_charts.py  the charts of a run, of a comparison and of several runs
rendering.py   from a spec to SVG, PNG, PDF, or SVG that has the colours of the page around it
look.py        colours and fonts
page.py        the charts of a page, and the HTML report with them
run_page.py    the page that every run writes
"""

from __future__ import annotations

from importlib.util import find_spec

MISSING = "missing vl-convert-python; pip install 'memorybench[view]'"


def is_installed() -> bool:
    return find_spec("vl_convert") is not None
