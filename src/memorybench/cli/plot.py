"""Draws a chart of a run into a file, or lists the charts that a run has data for."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.core.errors import BadInput
from memorybench.suites.stored_run import read_run
from memorybench.text.spelling import unknown_name

from .arguments import add_json, add_results, folders, place_words, split_list

if TYPE_CHECKING:
    from memorybench.charts.parts import Spec

_SLOPE = "slope"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="Draw this run, FOLDER/RUN or `latest`")
    parser.add_argument("chart", metavar="CHART", nargs="?", help="Draw this chart (default: list the available ones)")
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="Write to this .svg, .png or .pdf file (required for CHART, unless --spec)",
    )
    parser.add_argument(
        "--sides",
        metavar="SIDE",
        nargs="+",
        help="With slope: compare two providers, or the run with this one (default: the first two providers)",
    )
    parser.add_argument(
        "--theme", choices=("light", "dark"), default="light", help="Choose the colours (default: light)"
    )
    parser.add_argument("--spec", action="store_true", help="Print the Vega-Lite spec instead of drawing it")
    add_results(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.charts.narrow import without_slim
    from memorybench.charts.rendering import FORMS, check_installed, render
    from memorybench.files.writing import replacing_bytes

    if args.chart is None:
        flags = {"--output": args.output, "--sides": args.sides, "--spec": args.spec}
        if unused := [flag for flag, value in flags.items() if value]:
            raise BadInput("CHART", "missing", expected=f"a chart to use {unused[0]} for", remedy=_remedy(args))
        return _list(args)
    form = args.output.suffix.lstrip(".").lower() if args.output else ""
    if not args.spec:
        if form not in FORMS:
            raise BadInput(
                "--output",
                f"{args.output.name} has an unknown suffix" if args.output else "missing",
                expected="a file with .svg, .png or .pdf; or --spec, which prints the Vega-Lite data",
            )
        check_installed("plot")
    spec = _find(args)
    if args.spec:
        print(
            json.dumps({"$schema": "https://vega.github.io/schema/vega-lite/v5.json", **without_slim(spec)}, indent=2)
        )
        return 0
    with replacing_bytes(args.output) as file:
        file.write(render(spec, form, args.theme))
    if args.json:
        print(json.dumps({"chart": args.chart, "file": str(args.output)}, indent=2))
    else:
        print(f"{args.chart} written to {args.output}")
    return 0


def _list(args: argparse.Namespace) -> int:
    from memorybench.charts.run_charts import CHARTS, SLOPE, RunCharts

    with read_run([args.run], folders(args)) as stored:
        charts = RunCharts(stored)
        found = {name: text for name, (text, make) in CHARTS.items() if make(charts) is not None}
    found[_SLOPE] = f"{SLOPE}: --sides A B"
    if args.json:
        print(json.dumps({"charts": found}, indent=2))
        return 0
    for name, text in found.items():
        print(f"{name:14} {text}")
    return 0


def _find(args: argparse.Namespace) -> Spec:
    from memorybench.charts.run_charts import CHARTS, RunCharts

    if args.chart == _SLOPE:
        return _slope(args)
    if args.chart not in CHARTS:
        raise unknown_name("CHART", f'unknown chart "{args.chart}"', args.chart, (*CHARTS, _SLOPE))
    if args.sides:
        raise BadInput("--sides", f"not supported by the chart {args.chart}", expected=f"the chart {_SLOPE}")
    with read_run([args.run], folders(args)) as stored:
        spec = CHARTS[args.chart][1](RunCharts(stored))
    if spec is None:
        raise BadInput(
            "CHART",
            f"run {args.run} has no data for the chart {args.chart}",
            remedy=_remedy(args),
        )
    return spec


def _remedy(args: argparse.Namespace) -> str:
    words = ["memorybench", "plot", args.run, *place_words(args)]
    return f"list the charts of the run: {shlex.join(words)}"


def _slope(args: argparse.Namespace) -> Spec:
    """Return the slope chart that compares two providers of the run, or two runs."""
    from memorybench.charts.run_charts import RunCharts, slope
    from memorybench.suites.run_comparison import compare_runs

    with read_run([args.run], folders(args)) as stored:
        known = list(dict.fromkeys(result.subject for result in stored.summary.results))
        names = [name for name in known if name not in RunCharts(stored).baselines]
        run = f"{stored.folder / stored.run.id}"
    given = list(split_list(args.sides)) or names[:2]
    sides = [f"{run}:{name}" if name in known else name for name in given]
    if len(sides) == 1:
        sides = [run, *sides]
    if len(sides) != 2:
        raise BadInput("--sides", f"{len(sides)} sides are named", expected="two: providers of the run, or runs")
    spec = slope(compare_runs(sides, folders(args)))
    if spec is None:
        raise BadInput("CHART", "the sides share fewer than two types of questions", remedy="choose other sides")
    return spec
