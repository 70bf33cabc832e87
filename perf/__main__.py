"""`python -m perf [NAME…]`: print each measure of this machine as a ratio or a size, and whether it meets its goal.

Ratios compare runs of the same minute, because machines are noisy. Exit code 3 means that a goal was missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from perf import (
    audit,
    command_line,
    embedded,
    hygiene,
    ingest,
    instant,
    large_file,
    latency,
    online,
    operations,
    proxy,
    start,
    view,
    workers,
)
from perf.measuring import Line, Setup, Skipped

MEASURES: Mapping[str, Callable[[Setup], Iterator[Line]]] = {
    "latency": latency.measure,
    "ingest": ingest.measure,
    "size": instant.measure,
    "embedded": embedded.measure,
    "file": large_file.measure,
    "start": start.measure,
    "help": command_line.measure,
    "audit": audit.measure,
    "hygiene": hygiene.measure,
    "online": online.measure,
    "operations": operations.measure,
    "proxy": proxy.measure,
    "view": view.measure,
    "workers": workers.measure,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf", description="Measure the cost of the engine and suites.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"measures to run (default: all): {', '.join(MEASURES)}"
    )
    parser.add_argument(
        "--histories",
        type=int,
        default=Setup.histories,
        metavar="N",
        help="histories of the measures embedded and file (default: %(default)s)",
    )
    parser.add_argument(
        "--base",
        default=Setup.base,
        metavar="COMMIT",
        help="commit that the measure start compares with (default: %(default)s)",
    )
    parsed = parser.parse_args(arguments)
    names = parsed.names or list(MEASURES)
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        parser.error(f"unknown measure: {', '.join(unknown)}; expected {', '.join(MEASURES)}")
    all_met = True
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            setup = Setup(Path(folder), histories=parsed.histories, base=parsed.base)
            try:
                for line in MEASURES[name](setup):
                    print(line, flush=True)
                    all_met = all_met and line.is_met
            except Skipped as reason:
                print(f"{name} skipped: {reason}", flush=True)
    return 0 if all_met else 3


if __name__ == "__main__":
    sys.exit(main())
