"""`results --watch`: follows a run that another process performs. Nothing is written."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from .arguments import folders

_SECONDS_BETWEEN_LOOKS = 0.5


def watch_run(args: argparse.Namespace, show: Callable[[argparse.Namespace], int]) -> int:
    """Show progress until the run ends, then its results."""
    from memorybench.core.errors import BadInput
    from memorybench.journal.lock import is_held
    from memorybench.journal.places import results_folder
    from memorybench.reporting.progress import read_progress
    from memorybench.reporting.progress_view import follow_progress
    from memorybench.reporting.typed_commands import as_typed
    from memorybench.suites.registry import suite_of
    from memorybench.suites.run_list import find_run
    from memorybench.suites.stored_run import LATEST
    from memorybench.suites.suite import resume_command

    if len(args.runs) > 1:
        raise BadInput("--watch", f"{len(args.runs)} runs are named", expected="one run")
    name = args.runs[0] if args.runs else LATEST
    # a run that has just been started has a lock, but may not be recorded yet
    own = next((place for folder in folders(args) if is_held(place := folder / name)), None)
    if own is None:
        row = find_run(name, folders(args))
        own = row.folder / row.run.id
    with follow_progress(lambda: read_progress(own)):
        while is_held(own):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    results = results_folder(own.parent, args.journal)
    run = find_run(own.name, [results]).run
    code = show(argparse.Namespace(**{**vars(args), "runs": [own.name], "results": [own.parent]}))
    if run.status == "complete":
        return code
    ended = "stopped before its end" if run.finished else "was killed"
    command = as_typed(resume_command(suite_of(run).command_of(run), results, own.name))
    print(f"Run {own.name} {ended}; continue with: {command}", file=sys.stderr if args.json else sys.stdout)
    return 1
