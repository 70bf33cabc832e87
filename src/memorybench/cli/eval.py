"""Puts memory providers to benchmarks and compares them. Without arguments: the starter benchmark, six arms, no key."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .shared import add_json, add_list, dollars, flat, named_files, positive

if TYPE_CHECKING:
    from memorybench.compose.bench import BenchSpec, Prepared
    from memorybench.compose.thresholds import Threshold
    from memorybench.engine.run import Ending
    from memorybench.reporting.summary import Summary

_SPEC_FLAGS = (
    ("benchmarks", "--benchmarks"),
    ("providers", "--providers"),
    ("limit", "--limit"),
    ("start", "--start"),
    ("end", "--end"),
    ("question_type", "--question-type"),
    ("seed", "--seed"),
    ("answering_model", "--answering-model"),
    ("judge_model", "--judge-model"),
    ("answer_prompt", "--answer-prompt"),
    ("judge_prompt", "--judge-prompt"),
    ("data_file", "--data-file"),
    ("errata", "--errata"),
    ("config_dir", "--config-dir"),
    ("reuse", "--reuse"),
    ("run_id", "--run-id"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_list(parser, "--benchmarks", metavar="NAME", help="default: starter")
    add_list(parser, "--providers", metavar="NAME", help="default: bm25 dense hybrid none full-context oracle")
    parser.add_argument("--limit", metavar="N", type=positive, help="at most N questions a benchmark")
    parser.add_argument("--start", metavar="N", type=positive, help="first question, counting from 1")
    parser.add_argument("--end", metavar="N", type=positive, help="last question, itself included")
    add_list(parser, "--question-type", metavar="TYPE", help="only questions of these types")
    parser.add_argument("--seed", type=int, help="for models; with --limit, draws a random sample instead of the first")
    parser.add_argument("--answering-model", metavar="MODEL", help='who answers, as gpt-4o; "none": retrieval only')
    parser.add_argument("--judge-model", metavar="MODEL", help="who judges the answers")
    parser.add_argument("--answer-prompt", metavar="PROMPT", help="a file or the text; replaces the benchmark's own")
    parser.add_argument("--judge-prompt", metavar="PROMPT", help="a file or the text; replaces the benchmark's own")
    add_list(parser, "--data-file", metavar="NAME=PATH", help="a benchmark's data, where it lies at hand")
    add_list(parser, "--errata", metavar="NAME=PATH", help="a corrected answer key; both scores are reported")
    parser.add_argument("--allow-code", action="store_true", help="run code that configs name")
    parser.add_argument("--concurrency", metavar="N", type=positive, default=10, help="jobs at once (default: 10)")
    parser.add_argument("--output", metavar="DIR", type=Path, default=Path("results"), help="default: ./results")
    parser.add_argument("--run-id", metavar="ID", help="name the run yourself")
    parser.add_argument("--resume", metavar="RUN", help="go on with a run: what is scored is not done again")
    parser.add_argument("--reuse", metavar="RUN", help="a new run that takes over the steps of an old one")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--budget", metavar="DOLLARS", type=dollars, help="stop paying beyond that")
    parser.add_argument(
        "--threshold", metavar="NAME=VALUE", action="append", default=[], help="exit 3 where a provider falls below"
    )
    parser.add_argument(
        "--threshold-on", choices=("value", "lower"), default="value", help="hold the estimate or its lower end to it"
    )
    add_list(parser, "--config-dir", metavar="DIR", help="more folders with provider and benchmark configs")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.compose.bench import prepare
    from memorybench.compose.estimates import check_budget
    from memorybench.compose.evaluation import prepare_again
    from memorybench.compose.running import new_run_id, run_prepared
    from memorybench.compose.thresholds import check_names, parse
    from memorybench.documents.names import safe_run_id
    from memorybench.reporting.documents import as_json
    from memorybench.reporting.progress import progress
    from memorybench.reporting.terminal import console, show_header

    thresholds = parse(args.threshold)
    if args.resume is None:
        prepared = prepare(_spec(args), Path())
        run_id = safe_run_id(args.run_id, "--run-id") if args.run_id else new_run_id()
    else:
        _refuse_changes(args)
        prepared, run_id = prepare_again(args.resume, args.output), args.resume
    check_names(thresholds, prepared.metrics(), [arm.name for arm in prepared.arms if arm.kind != "baseline"])
    check_budget(prepared, args.budget)
    if args.dry_run:
        _show_plan(prepared, args.json)
        return 0
    finished = run_prepared(
        prepared,
        args.output,
        run_id,
        resuming=args.resume is not None,
        concurrency=args.concurrency,
        budget=args.budget,
        announce=lambda facts: None if args.json else show_header(console(), "MEMORYBENCH EVALUATION", facts),
        watching=progress,
    )
    if args.json:
        sys.stdout.write(as_json(finished.document))
    else:
        _show(args, finished.summary, finished.ending)
    return _exit_code(args, finished.ending, finished.summary, thresholds)


def _refuse_changes(args: argparse.Namespace) -> None:
    from memorybench.vocabulary.errors import BadInput

    given = [flag for name, flag in _SPEC_FLAGS if getattr(args, name) is not None]
    if given:
        raise BadInput("--resume", f"goes on with what was started, {given[0]} can not change it", remedy=_ANOTHER)


_ANOTHER = "start a new run; with --reuse RUN it takes over every step that is still the same"


def _spec(args: argparse.Namespace) -> BenchSpec:
    from memorybench.compose.bench import DEFAULT_ARMS, DEFAULT_BENCHMARKS, BenchSpec
    from memorybench.compose.judging import prompt_text
    from memorybench.vocabulary.errors import BadInput

    if args.start and args.end and args.start > args.end:
        raise BadInput("--start", f"{args.start} comes after --end {args.end}", expected="--start ≤ --end")
    return BenchSpec(
        benchmarks=flat(args.benchmarks) or DEFAULT_BENCHMARKS,
        providers=flat(args.providers) or _default_arms(DEFAULT_ARMS),
        limit=args.limit,
        start=args.start,
        end=args.end,
        question_types=flat(args.question_type),
        seed=args.seed,
        answering_model=args.answering_model,
        judge_model=args.judge_model,
        answer_prompt=prompt_text(args.answer_prompt, "--answer-prompt") if args.answer_prompt is not None else None,
        judge_prompt=prompt_text(args.judge_prompt, "--judge-prompt") if args.judge_prompt is not None else None,
        data_files=named_files(args.data_file, "--data-file"),
        errata=named_files(args.errata, "--errata"),
        allow_code=args.allow_code,
        config_dirs=flat(args.config_dir),
        reuse=args.reuse,
    )


def _default_arms(arms: tuple[str, ...]) -> tuple[str, ...]:
    """Without the embeddings' package, what needs it is left out, and that is said."""
    from importlib.util import find_spec

    if find_spec("wordllama") is not None:
        return arms
    print('dense and hybrid are left out: pip install "memorybench[embed]" brings them', file=sys.stderr)
    return tuple(arm for arm in arms if arm not in ("dense", "hybrid"))


def _show(args: argparse.Namespace, summary: Summary, ending: Ending) -> None:
    from memorybench.reporting.terminal import console, show_hints, show_results

    out = console()
    show_results(out, summary)
    folder = args.output / summary.run_id
    out.print(f"\nResults saved to: {folder}/ (report.md, report.json)")
    where = "" if args.output == Path("results") else f" --results {args.output}"
    if ending.interrupted or summary.status == "partial":
        output = "" if args.output == Path("results") else f" --output {args.output}"
        budget = " --budget DOLLARS" if args.budget is not None else ""
        out.print(f"Go on with: memorybench eval --resume {summary.run_id}{output}{budget}")
        return
    out.print("What to try next:")
    hints = {f"memorybench results {summary.run_id} --failures{where}": "what was missed, one by one"}
    if not any(stage.name == "answer" for stage in summary.stages):
        hints["memorybench eval --answering-model ollama/llama3.2"] = "answers, too, from any model"
    show_hints(out, {**hints, "memorybench list": "what else can be measured"})


def _exit_code(args: argparse.Namespace, ending: Ending, summary: Summary, thresholds: list[Threshold]) -> int:
    from memorybench.catalog.entries import BASELINES
    from memorybench.compose.thresholds import hold

    if ending.interrupted:
        return 130
    exempt = [entry.name for entry in BASELINES]
    held = hold(summary, thresholds, args.threshold_on, exempt)
    for line in held:
        print(line.line, file=sys.stderr if args.json else sys.stdout)
    if any(line.missed for line in held):
        return 3
    counts = summary.counts
    return 1 if counts["failed"] or counts["unscored"] or summary.status != "complete" else 0


def _show_plan(prepared: Prepared, as_json: bool) -> None:
    import json

    from memorybench.compose.estimates import expected
    from memorybench.reporting.estimates import show_estimates
    from memorybench.reporting.terminal import console

    rows = [row.model_dump() for row in expected(prepared)]
    if as_json:
        print(json.dumps({"planned": prepared.planned, "expected": rows}, indent=2))
    else:
        show_estimates(console(), prepared.planned, rows)
