"""Charts of runs: Vega-Lite specs as plain dicts, and their rendering. Needs vl-convert-python (the extra `view`).

specs.py         makes the spec of each kind of chart from plain values
frontier.py      the chart of shares against a cost
slope.py         the chart that compares two sides
parts.py         parts that several charts have in common
narrow.py        adapts charts to pages of 360 pixels, and computes their sizes
run_charts.py    chooses the values of charts from a run, a comparison or several runs
rendering.py     renders a spec as SVG, PNG, PDF, or as SVG with the colours of the page around it
look.py          colours and fonts
page.py          the charts of a page, and the HTML report with them
run_page.py      the page that every run writes
"""

from __future__ import annotations

from importlib.util import find_spec

MISSING = "missing vl-convert-python; pip install 'memorybench[view]'"


def is_installed() -> bool:
    return find_spec("vl_convert") is not None
