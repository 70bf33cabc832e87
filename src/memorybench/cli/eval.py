"""Puts memory providers to benchmarks and compares them. Without arguments: the starter benchmark, six arms, no key."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .runs import add_run, refuse_changes, results_flag, run_and_show
from .shared import add_list, flat, named_files, positive

if TYPE_CHECKING:
    from memorybench.suites.summary import Summary
    from memorybench.wiring.bench import BenchSpec, Prepared

_SPEC_FLAGS = {
    "benchmarks": "--benchmarks",
    "providers": "--providers",
    "limit": "--limit",
    "start": "--start",
    "end": "--end",
    "question_type": "--question-type",
    "seed": "--seed",
    "answering_model": "--answering-model",
    "judge_model": "--judge-model",
    "answer_prompt": "--answer-prompt",
    "judge_prompt": "--judge-prompt",
    "data_file": "--data-file",
    "errata": "--errata",
    "config_dir": "--config-dir",
    "reuse": "--reuse",
    "run_id": "--run-id",
}


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
    add_run(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.catalog.entries import BASELINES
    from memorybench.wiring.bench import prepare
    from memorybench.wiring.estimates import check_prices
    from memorybench.wiring.evaluation import prepare_again
    from memorybench.wiring.thresholds import checked, parse

    thresholds = parse(args.threshold)
    if args.resume is None:
        prepared = prepare(_spec(args), Path())
    else:
        refuse_changes(args, _SPEC_FLAGS)
        prepared = prepare_again(args.resume, args.output)
    thresholds = checked(thresholds, prepared.metrics(), [arm.name for arm in prepared.arms if arm.kind != "baseline"])
    check_prices((prepared.reader, prepared.judge), args.budget)
    if args.dry_run:
        _show_plan(prepared, args.json)
        return 0
    return run_and_show(
        args,
        prepared,
        title="MEMORYBENCH EVALUATION",
        command="memorybench eval",
        thresholds=thresholds,
        exempt=[entry.name for entry in BASELINES],
        hints=partial(_hints, args),
    )


def _spec(args: argparse.Namespace) -> BenchSpec:
    from memorybench.core.errors import BadInput
    from memorybench.wiring.bench import DEFAULT_ARMS, DEFAULT_BENCHMARKS, BenchSpec
    from memorybench.wiring.judging import prompt_text

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


def _hints(args: argparse.Namespace, summary: Summary) -> dict[str, str]:
    hints = {f"memorybench results {summary.run_id} --failures{results_flag(args)}": "what was missed, one by one"}
    if not any(stage.name == "answer" for stage in summary.stages):
        hints["memorybench eval --answering-model ollama/llama3.2"] = "answers, too, from any model"
    return {**hints, "memorybench list": "what else can be measured"}


def _show_plan(prepared: Prepared, as_json: bool) -> None:
    import json

    from memorybench.reporting.estimates import show_estimates
    from memorybench.reporting.terminal import console
    from memorybench.wiring.bench_estimates import expected

    rows = [row.model_dump() for row in expected(prepared)]
    if as_json:
        print(json.dumps({"planned": prepared.planned, "expected": rows}, indent=2))
    else:
        show_estimates(console(), prepared.planned, rows)
