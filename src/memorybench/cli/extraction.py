"""Does an extractor write down what was said, and nothing else? On labelled cases, or over traces of what it did."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .runs import add_run, chosen_id, refuse_changes, results_flag, run_and_show
from .shared import add_list, flat, positive

if TYPE_CHECKING:
    from memorybench.suites.summary import Summary
    from memorybench.wiring.extraction import ExtractionSpec
    from memorybench.wiring.online import OnlineSpec
    from memorybench.wiring.thresholds import Threshold

_SPEC_FLAGS = {
    "cases": "CASES",
    "extractor": "--extractor",
    "extractor_command": "--extractor-command",
    "extractor_model": "--extractor-model",
    "judge_model": "--judge-model",
    "scenario": "--scenario",
    "limit": "--limit",
    "config_dir": "--config-dir",
    "reuse": "--reuse",
    "run_id": "--run-id",
}

_ONLINE_FLAGS = {
    **{name: f"--{name.replace('_', '-')}" for name in ("source", "project", "tag", "since", "limit", "feedback")},
    **{name: f"--{name.replace('_', '-')}" for name in ("judge_model", "baseline", "reuse", "run_id")},
    **{f"{role}_path": f"--{role}-path" for role in ("id", "conversation", "existing", "output")},
}


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    offline = actions.add_parser("run", help="on labelled cases", allow_abbrev=False)
    offline.add_argument("cases", metavar="CASES", nargs="?", help="JSON or JSONL (default: our own)")
    offline.add_argument(
        "--extractor", metavar="NAME", help="a config, a provider that can list, or module:function with --allow-code"
    )
    offline.add_argument(
        "--extractor-command", metavar="LINE", help="a program: JSON on stdin, the new memory on stdout"
    )
    offline.add_argument("--extractor-model", metavar="MODEL", help="who works for the reference extractor")
    offline.add_argument("--judge-model", metavar="MODEL", help="decides what code can not (default: nobody)")
    add_list(offline, "--scenario", metavar="NAME", help="only cases of these scenarios")
    offline.add_argument("--limit", metavar="N", type=positive, help="at most N cases")
    offline.add_argument("--no-targets", action="store_true", help="do not hold the figures to the usual targets")
    add_run(offline)
    online = actions.add_parser("online", help="over traces of what an extractor did", allow_abbrev=False)
    online.add_argument("--source", nargs="+", metavar="SOURCE", help="langsmith, or: jsonl FILE")
    online.add_argument("--project", metavar="NAME", help="langsmith: whose runs")
    online.add_argument("--tag", help="langsmith: runs with this tag (default: memory_extraction)")
    online.add_argument("--since", metavar="TIME", help="as 24h, 7d or a date (default: from the beginning)")
    online.add_argument("--limit", metavar="N", type=positive, help="at most N traces")
    online.add_argument("--feedback", action="store_true", help="langsmith: write the scores back, once a run")
    online.add_argument("--judge-model", metavar="MODEL", help="lists the facts (default: $MEMORYBENCH_JUDGE, gpt-4o)")
    online.add_argument("--baseline", metavar="RUN", help="an earlier run: is today worse? exit 3 where it is")
    for role in ("id", "conversation", "existing", "output"):
        online.add_argument(f"--{role}-path", metavar="JSONPATH", help=f"where a trace has its {role}")
    add_run(online)


def run(args: argparse.Namespace) -> int:
    return _run_online(args) if args.action == "online" else _run_offline(args)


def _run_offline(args: argparse.Namespace) -> int:
    from memorybench.suites.extraction.measures import measures
    from memorybench.wiring.estimates import check_prices
    from memorybench.wiring.extraction import extraction_again, prepare_extraction
    from memorybench.wiring.thresholds import checked

    thresholds = _thresholds(args)
    if args.resume is None:
        prepared = prepare_extraction(_spec(args), Path())
    else:
        refuse_changes(args, _SPEC_FLAGS)
        prepared = extraction_again(args.resume, args.output)
    thresholds = checked(thresholds, measures(), [prepared.extractor.name])
    check_prices(prepared.models, args.budget)
    if args.dry_run:
        print(
            f"{prepared.planned} cases of {prepared.name} would be put to {prepared.extractor.name}; nothing was done"
        )
        return 0
    return run_and_show(
        args,
        prepared,
        title="MEMORY EXTRACTION",
        command="memorybench extraction run",
        thresholds=thresholds,
        hints=partial(_hints, args),
    )


def _run_online(args: argparse.Namespace) -> int:
    from memorybench.suites.extraction.measures import measures
    from memorybench.wiring.estimates import check_prices
    from memorybench.wiring.online import online_again, prepare_online, worse_than_baseline
    from memorybench.wiring.thresholds import checked, parse

    thresholds = parse(args.threshold)
    thresholds = checked(thresholds, measures(), ["traces"])
    if args.resume is None:
        run_id = args.run_id = chosen_id(args)
        prepared = prepare_online(_online_spec(args), args.output, run_id)
    else:
        refuse_changes(args, _ONLINE_FLAGS)
        run_id, prepared = args.resume, online_again(args.resume, args.output)
    check_prices(prepared.models, args.budget)
    if args.dry_run:
        print(f"{len(prepared.traces)} traces would be judged by {prepared.judge.name}, two calls each or more")
        prepared.discard()
        return 0
    code = run_and_show(
        args,
        prepared,
        title="MEMORY EXTRACTION, ONLINE",
        command="memorybench extraction online",
        thresholds=thresholds,
        hints=partial(_hints, args),
    )
    return 3 if code == 0 and worse_than_baseline(run_id, args.output) else code


def _online_spec(args: argparse.Namespace) -> OnlineSpec:
    from memorybench.core.errors import BadInput
    from memorybench.wiring.online import OnlineSpec

    source, *files = args.source or ("",)
    if source not in ("langsmith", "jsonl") or len(files) != (source == "jsonl"):
        raise BadInput(
            "--source", "where do the traces come from?", expected="--source langsmith, or --source jsonl FILE"
        )
    given = {role: getattr(args, f"{role}_path") for role in ("id", "conversation", "existing", "output")}
    told = {
        "source": source,
        "file": files[0] if files else None,
        "project": args.project,
        "tag": args.tag,
        "since": args.since,
        "limit": args.limit,
        "feedback": args.feedback,
        "judge_model": args.judge_model,
        "paths": {role: path for role, path in given.items() if path},
        "baseline": args.baseline,
        "reuse": args.reuse,
    }
    return OnlineSpec.model_validate({name: value for name, value in told.items() if value is not None})


def _thresholds(args: argparse.Namespace) -> list[Threshold]:
    from memorybench.suites.extraction.measures import AT_WORST, DEFAULT_THRESHOLDS
    from memorybench.wiring.thresholds import with_targets

    return with_targets(args.threshold, {} if args.no_targets else DEFAULT_THRESHOLDS, AT_WORST)


def _spec(args: argparse.Namespace) -> ExtractionSpec:
    from memorybench.wiring.extraction import ExtractionSpec

    return ExtractionSpec(
        cases=args.cases,
        extractor=args.extractor,
        extractor_command=args.extractor_command,
        extractor_model=args.extractor_model,
        judge_model=args.judge_model,
        scenarios=flat(args.scenario),
        limit=args.limit,
        config_dirs=flat(args.config_dir),
        allow_code=args.allow_code,
        reuse=args.reuse,
    )


def _hints(args: argparse.Namespace, summary: Summary) -> dict[str, str]:
    return {
        f"memorybench results {summary.run_id} --failures{results_flag(args)}": "what went wrong, case by case",
        "memorybench list --extractors": "what else can be tested",
    }
