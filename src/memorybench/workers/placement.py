"""Decides where a run is performed: in this process, or on a Ray cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout

from memorybench.charts.run_page import start_page
from memorybench.engine.stopping import Stop
from memorybench.suites import running
from memorybench.suites.finished import FinishedRun
from memorybench.suites.running import Show, show_nothing
from memorybench.suites.starting import Start


def run(
    start: Start,
    *,
    announce: Callable[[Mapping[str, str]], None] = lambda facts: None,
    show: Show = show_nothing,
    last_words: str = "",
) -> FinishedRun:
    """Perform a run, in this process or with `--ray` on a Ray cluster, and write its reports.

    `announce` gets the facts for the header, `show` the progress. `last_words` is printed at the second Ctrl-C, which
    stops the run at once.
    """
    stopping = Stop()
    stopping.last_words = last_words
    if start.options.ray is None:
        return running.run(start, announce=announce, show=show, stopping=stopping, start_page=start_page)
    from .ray_cluster import ray_workers

    output = sys.stdout

    def announce_here(facts: Mapping[str, str]) -> None:
        with redirect_stdout(output):
            announce(facts)

    # Ray prints messages on standard output, which must contain only the report
    with redirect_stdout(sys.stderr), ray_workers(start, stopping) as elsewhere:
        return running.run(
            start, announce=announce_here, show=show, stopping=stopping, elsewhere=elsewhere, start_page=start_page
        )
