"""Charts of runs: Vega-Lite specs as plain dicts, and their rendering. Needs vl-convert-python (the extra `view`).

specs.py       one function per kind of chart, from plain values to a spec
run_charts.py  the charts of a run, of a comparison and of several runs
rendering.py   from a spec to SVG, PNG, PDF, or SVG that has the colours of the page around it
look.py        colours and fonts
"""
