"""Joins a run that another process started, on this or another machine, and works until all trials are done."""

from __future__ import annotations

import argparse

from memorybench.text.quantities import quantity

from .arguments import add_consent, add_fields, add_json, given_fields, positive, split_list

_MORE_CONSENT = ("store_is_disposable", "agent_turn", "i_understand_model_cost")
"""Further flags of consent, besides --allow-code and --allow-env. They are not saved with a run, so each worker needs
them."""


def configure(parser: argparse.ArgumentParser) -> None:
    from memorybench.suites.hygiene.spec import HygieneSpec
    from memorybench.suites.spec import RunOptions

    parser.add_argument(
        "--journal",
        metavar="URL",
        required=True,
        help="Join a run of this Postgres database, postgresql://USER@HOST/DATABASE (required)",
    )
    parser.add_argument("--run", metavar="RUN", help="Join this run (default: the newest unfinished one)")
    parser.add_argument(
        "--concurrency", metavar="N", type=positive, help="Make at most N calls at the same time (default: the run's)"
    )
    add_consent(parser)
    for name in _MORE_CONSENT:
        field = HygieneSpec.model_fields[name]
        help_text = (field.description or "").rstrip(".")
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=help_text)
    add_fields(parser, RunOptions, without=RunOptions.model_fields.keys() - {"otel", "otel_content"})
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    import json
    import sys

    from memorybench.reporting.progress_view import show_progress
    from memorybench.suites.spec import RunOptions
    from memorybench.workers.joining import join_run

    given = {"allow_code": args.allow_code, "allow_env": split_list(args.allow_env)}
    given |= {name: getattr(args, name) for name in _MORE_CONSENT}
    joined = join_run(
        args.journal,
        args.run,
        {name: value for name, value in given.items() if value},
        show=show_progress,
        options=given_fields(args, RunOptions),
    )
    ending = joined.ending
    facts = {"run": joined.run_id, "performed": ending.performed, "status": ending.status}
    if args.json:
        print(json.dumps(facts))
    else:
        print(f"Run {joined.run_id}: {quantity(ending.performed, 'trial')} performed here; the run is {ending.status}")
    if ending.interrupted:
        return 130
    if ending.paused:
        print(f"memorybench: {ending.paused}", file=sys.stderr)
    if ending.is_blocked:
        remedy = f"continue with --resume {joined.run_id} and a larger --budget"
        print(f"memorybench: run {joined.run_id}: the budget is used up; {remedy}", file=sys.stderr)
    return 0 if joined.is_good else 1
