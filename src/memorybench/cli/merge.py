"""Merges the shards that were run with `--shard I/N`, on one or several machines, into one run."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .arguments import add_json, add_list, split_list


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "shards",
        metavar="DIR",
        nargs="+",
        help="Merge all shards in this results folder, or the one shard that FOLDER/RUN or RUN names",
    )
    parser.add_argument("--run-id", metavar="ID", required=True, help="Name the merged run (required)")
    parser.add_argument(
        "--results",
        metavar="DIR",
        type=Path,
        help="Write to this folder (default: ./results; for audit, ./audit-results)",
    )
    parser.add_argument(
        "--journal",
        metavar="URL",
        help="Store rows in this Postgres database, postgresql://USER@HOST/DATABASE (default: a SQLite file)",
    )
    parser.add_argument("--allow-partial", action="store_true", help="Accept missing and unfinished shards")
    add_list(parser, "--tag", metavar="TAG", help="Add tags to those of the shards")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.charts.run_page import make_page
    from memorybench.reporting.terminal import console
    from memorybench.suites.merging import merge, shard_names
    from memorybench.wiring.live import LiveWiring

    merged = merge(
        args.shards,
        args.run_id,
        LiveWiring(),
        args.results,
        journal=args.journal,
        allow_partial=args.allow_partial,
        tags=split_list(args.tag),
        make_page=make_page,
        command_line=args.command_line,
    )
    summary, place = merged.summary, merged.place
    if args.json:
        document = {
            "run_id": place.run_id,
            "results_folder": str(place.results),
            "status": summary.status,
            "counts": dict(summary.counts),
            "known_cost": summary.known_cost,
            "calls_of_unknown_cost": summary.calls_of_unknown_cost,
            "shards": list(merged.shards),
            "is_new": merged.is_new,
            "differing_trials": merged.differing_trials,
            "files": [str(file) for file in merged.files],
        }
        print(json.dumps(document, indent=2))
        return 0
    out = console()
    done = "merged" if merged.is_new else "was already merged"
    out.print(f"Run {place.run_id} is {summary.status}: {done} from the shards {shard_names(merged.shards)}.")
    out.print(f"{summary.counts['scored']} of {summary.counts['planned']} trials are scored.")
    if merged.differing_trials:
        trials = "1 trial is" if merged.differing_trials == 1 else f"{merged.differing_trials} trials are"
        out.print(f"{trials} left out: a step has another result in an earlier shard, and that one counts.")
        out.print(f"Perform these again, with its result: {merged.resume}")
    out.print(f"Results saved to: {place.folder}/ ({', '.join(file.name for file in merged.files)})")
    return 0
