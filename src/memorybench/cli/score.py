"""Judges the recorded answers of a run anew, by another judge or another prompt. Nothing else is asked again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .shared import add_json, dollars, positive


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run with answers")
    parser.add_argument("--judge-model", metavar="MODEL", required=True, help="who judges")
    parser.add_argument("--judge-prompt", metavar="PROMPT", help="a file or the text; replaces the benchmark's own")
    parser.add_argument("--output", metavar="DIR", type=Path, default=Path("results"), help="default: ./results")
    parser.add_argument("--run-id", metavar="ID", help="name of the new run")
    parser.add_argument("--concurrency", metavar="N", type=positive, default=10, help="calls at once (default: 10)")
    parser.add_argument("--budget", metavar="DOLLARS", type=dollars, help="stop paying beyond that")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.files.names import safe_run_id
    from memorybench.reporting.json_document import to_json
    from memorybench.reporting.progress import progress
    from memorybench.reporting.terminal import console, show_header, show_report
    from memorybench.wiring.evaluation import prepare_scoring
    from memorybench.wiring.judging import prompt_text
    from memorybench.wiring.running import new_run_id, run_prepared

    prompt = None if args.judge_prompt is None else prompt_text(args.judge_prompt, "--judge-prompt")
    prepared = prepare_scoring(args.run, args.output, args.judge_model, prompt)
    finished = run_prepared(
        prepared,
        args.output,
        safe_run_id(args.run_id, "--run-id") if args.run_id else new_run_id(),
        concurrency=args.concurrency,
        budget=args.budget,
        announce=lambda facts: None if args.json else show_header(console(), "MEMORYBENCH SCORING", facts),
        watching=progress,
    )
    summary = finished.summary
    if args.json:
        sys.stdout.write(to_json(finished.report))
    else:
        show_report(console(), finished.report)
        console().print(f"\nResults saved to: {args.output / summary.run_id}/ (report.md, report.json)")
        if summary.status == "partial":
            console().print(f"Go on with: memorybench eval --resume {summary.run_id} --output {args.output}")
    if finished.ending.interrupted:
        return 130
    return 1 if summary.counts["failed"] or summary.counts["unscored"] or summary.status != "complete" else 0
