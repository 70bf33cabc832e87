"""Asks a model, or a memory system, what was said: does it recall, invent, resolve conflicts, keep time?"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .runs import add_run, refuse_changes, results_flag, run_and_show
from .shared import add_list, flat, positive

if TYPE_CHECKING:
    from memorybench.suites.summary import Summary
    from memorybench.wiring.audit import AuditSpec, PreparedAudit

OUTPUT = "audit-results"
_SPEC_FLAGS = {
    "dataset": "DATASET",
    "model": "--model",
    "judge_model": "--judge-model",
    "provider": "--provider",
    "probes": "--probes",
    "conflicts": "--conflicts",
    "probe_model": "--probe-model",
    "verify_probes": "--verify-probes",
    "limit": "--limit",
    "seed": "--seed",
    "context_window": "--context-window",
    "config_dir": "--config-dir",
    "reuse": "--reuse",
    "run_id": "--run-id",
}
_FORMATS = {"all": ("json", "markdown"), "json": ("json",), "markdown": ("markdown",)}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DATASET", nargs="?", help="conversations and their facts, JSON or JSONL")
    parser.add_argument("--model", help="who is audited, or reads for a memory (default: $MEMAUDIT_MODEL, gpt-4o-mini)")
    parser.add_argument(
        "--judge-model", metavar="MODEL", help='default: $MEMORYBENCH_JUDGE, gpt-4o; "none": code compares the words'
    )
    add_list(parser, "--provider", metavar="NAME", help="through these memories instead of replaying what was said")
    add_list(parser, "--probes", metavar="KIND", help="recall, hallucination, conflict, temporal (default: all)")
    parser.add_argument(
        "--conflicts",
        choices=("latest", "flag"),
        help="what is right where facts changed: the latest value, or pointing out the change (default: latest)",
    )
    parser.add_argument("--probe-model", metavar="MODEL", help="writes the questions; they pass the same gates")
    parser.add_argument(
        "--verify-probes",
        action="store_true",
        help="ask each question without any context, too: what is known anyway tests no memory",
    )
    parser.add_argument(
        "--limit", metavar="N", type=positive, help="at most N probes, in turn from all kinds and conversations"
    )
    parser.add_argument("--seed", type=int, help="for models, and for drawing probes")
    parser.add_argument("--context-window", metavar="TOKENS", type=positive, help="what the model can read at once")
    parser.add_argument("--format", choices=tuple(_FORMATS), default="all", help="which reports (default: all)")
    add_run(parser, output=OUTPUT)
    parser.set_defaults(usual_output=OUTPUT)


def run(args: argparse.Namespace) -> int:
    from memorybench.suites.audit.measures import measures
    from memorybench.wiring.audit import audit_again, prepare_audit
    from memorybench.wiring.estimates import check_prices
    from memorybench.wiring.thresholds import checked, parse

    thresholds = parse(args.threshold)
    if args.resume is None:
        prepared = prepare_audit(_spec(args), Path())
    else:
        refuse_changes(args, _SPEC_FLAGS)
        prepared = audit_again(args.resume, args.output)
    thresholds = checked(thresholds, measures(), prepared.subjects)
    check_prices(prepared.models, args.budget)
    if args.dry_run:
        _show_plan(prepared, args.json)
        return 0
    return run_and_show(
        args,
        prepared,
        title="MEMORY AUDIT",
        command="memorybench audit",
        thresholds=thresholds,
        hints=partial(_hints, args),
        formats=_FORMATS[args.format],
    )


def _spec(args: argparse.Namespace) -> AuditSpec:
    from memorybench.core.errors import BadInput
    from memorybench.suites.audit.probes import PROBE_TYPES
    from memorybench.text.spelling import join_names, suggestion
    from memorybench.wiring.audit import AuditSpec

    if args.dataset is None:
        raise BadInput("DATASET", "is missing", remedy="memorybench audit data/sample-dataset.json, for one")
    kinds = flat(args.probes)
    for kind in kinds:
        if kind not in PROBE_TYPES:
            raise BadInput(
                "--probes",
                f'"{kind}" is no kind of probe',
                expected=join_names(PROBE_TYPES),
                remedy=suggestion(kind, PROBE_TYPES),
            )
    return AuditSpec(
        dataset=args.dataset,
        model=args.model,
        judge_model=args.judge_model,
        providers=flat(args.provider),
        kinds=tuple(kind for kind in PROBE_TYPES if kind in kinds) or PROBE_TYPES,
        policy=args.conflicts or "latest",
        probe_model=args.probe_model,
        verify_probes=args.verify_probes,
        limit=args.limit,
        seed=args.seed,
        context_window=args.context_window,
        config_dirs=flat(args.config_dir),
        allow_code=args.allow_code,
        reuse=args.reuse,
    )


def _hints(args: argparse.Namespace, summary: Summary) -> dict[str, str]:
    hints = {f"memorybench results {summary.run_id} --failures{results_flag(args)}": "what was missed, one by one"}
    if args.resume is None and not args.provider:
        hints[f"memorybench audit {args.dataset} --provider bm25 hybrid"] = "the same probes, through a memory"
    return hints


def _show_plan(prepared: PreparedAudit, as_json: bool) -> None:
    import json

    from memorybench.reporting.estimates import show_estimates
    from memorybench.reporting.terminal import console
    from memorybench.wiring.audit import expected

    rows = [row.model_dump() for row in expected(prepared)]
    if as_json:
        print(json.dumps({"planned": prepared.planned, "expected": rows}, indent=2))
    else:
        show_estimates(console(), prepared.planned, rows)
