"""Puts memory providers to benchmarks and compares them. Without arguments: the starter benchmark, six arms, no key."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .shared import add_json, add_list, dollars, flat, positive

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
    from memorybench.compose.bench import BenchSpec, prepare
    from memorybench.compose.thresholds import Threshold
    from memorybench.documents.names import safe_run_id
    from memorybench.journal.shelf import Shelf
    from memorybench.vocabulary.errors import BadInput

    thresholds = [Threshold.parse(text) for text in args.threshold]
    if args.resume is None:
        spec = _spec(args)
        prepared = prepare(spec, Path())
        run_id = safe_run_id(args.run_id, "--run-id") if args.run_id else _new_id()
    else:
        given = [flag for name, flag in _SPEC_FLAGS if getattr(args, name) is not None]
        if given:
            raise BadInput("--resume", f"goes on with what was started, {given[0]} can not change it", remedy=_ANOTHER)
        run_id = safe_run_id(args.resume, "--resume")
        with Shelf.open(args.output) as shelf:
            saved = shelf.run(run_id)
            if shelf.counts(run_id)["scored"] == saved.planned:
                raise BadInput("--resume", f"run {run_id} is finished", remedy=f"memorybench results {run_id} shows it")
        known = BenchSpec.model_fields.keys()
        prepared = prepare(BenchSpec.model_validate({k: v for k, v in saved.spec.items() if k in known}), Path())
    if args.dry_run:
        _show_plan(prepared)
        return 0
    ending, summary = _perform(args, prepared, run_id)
    if args.json:
        from memorybench.reporting.documents import as_json

        sys.stdout.write(as_json(summary))
    return _exit_code(args, ending, summary, thresholds)


_ANOTHER = "start a new run; with --reuse RUN it takes over every step that is still the same"


def _spec(args: argparse.Namespace) -> BenchSpec:
    from memorybench.compose.bench import DEFAULT_ARMS, DEFAULT_BENCHMARKS, BenchSpec
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


def _new_id() -> str:
    import secrets

    return f"run_{secrets.token_hex(3)}"


def _perform(args: argparse.Namespace, prepared: Prepared, run_id: str) -> tuple[Ending, Summary]:
    from collections import Counter

    from memorybench.compose.bench import run as run_bench
    from memorybench.compose.environment import fault, redactor
    from memorybench.compose.results import facts_of, find, write_reports
    from memorybench.engine.budget import Budget
    from memorybench.journal.book import open_run, reopen_run
    from memorybench.journal.shelf import Shelf
    from memorybench.reporting.progress import progress
    from memorybench.reporting.terminal import console, show_header

    redact = redactor().clean
    done: Counter[tuple[str, str]] = Counter()
    spent = 0.0
    if args.resume:
        with Shelf.open(args.output, thorough=False) as shelf:
            scored = (outcome.trial for outcome in shelf.outcomes(run_id) if outcome.status == "scored")
            done.update((trial.benchmark, trial.subject.name) for trial in scored)
            spent = shelf.spent(run_id).cost or 0.0
        opened = reopen_run(args.output, run_id, fingerprints=prepared.fingerprints, redact=redact, fault=fault())
    else:
        row = prepared.row(run_id)
        opened = open_run(args.output, row, redact=redact, fault=fault(), reuse=prepared.spec.reuse)
    totals = {
        (dataset.name, arm.name): len(questions) for _, dataset, questions in prepared.benches for arm in prepared.arms
    }
    with opened as book:
        if not args.json:
            show_header(console(), "MEMORYBENCH EVALUATION", facts_of(book.run))
        with progress(totals, done) as watch:
            ending = asyncio.run(
                run_bench(
                    prepared,
                    book,
                    args.output,
                    concurrency=args.concurrency,
                    budget=Budget(args.budget, spent),
                    watch=watch,
                )
            )
        book.end(ending.status)
    with find([run_id], [args.output]) as found:
        summary = write_reports(found, args.output / run_id, facts_of(found.parts[0][1]))
    if not args.json:
        _show(args, summary, ending)
    return ending, summary


def _show(args: argparse.Namespace, summary: Summary, ending: Ending) -> None:
    from memorybench.reporting.terminal import console, show_hints, show_results

    out = console()
    show_results(out, summary)
    folder = args.output / summary.run_id
    out.print(f"\nResults saved to: {folder}/ (report.md, report.json)")
    where = "" if args.output == Path("results") else f" --results {args.output}"
    if ending.interrupted or summary.status == "partial":
        output = "" if args.output == Path("results") else f" --output {args.output}"
        out.print(f"Go on with: memorybench eval --resume {summary.run_id}{output}")
        return
    out.print("What to try next:")
    show_hints(
        out,
        {
            f"memorybench results {summary.run_id} --failures{where}": "what was missed, one by one",
            "memorybench eval --answering-model ollama/llama3.2": "answers, too, from any model",
            "memorybench list": "what else can be measured",
        },
    )


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


def _show_plan(prepared: Prepared) -> None:
    """Calls by stage and arm. What the memory of this process does costs nothing."""
    for config, dataset, questions in prepared.benches:
        haystacks = dict.fromkeys(question.haystack for question in questions)
        sessions = sum(len(dataset.haystack(haystack).sessions) for haystack in haystacks)
        print(f"{config.name}: {len(questions)} questions on {len(haystacks)} histories of {sessions} sessions")
        for arm in prepared.arms:
            calls = [] if arm.kind == "baseline" else [f"{sessions} add", f"{len(questions)} search"]
            if prepared.reader is not None:
                calls.append(f"{len(questions)} answer")
            print(f"  {arm.name}: {', '.join(calls) or 'no calls'}")
    paid = "no model is asked: $0" if prepared.reader is None else f"answers by {prepared.reader.name}"
    print(f"{prepared.planned} trials planned; {paid}; nothing was done")
