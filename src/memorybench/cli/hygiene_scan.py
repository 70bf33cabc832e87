"""`hygiene scan`: a read-only scan of a memory that people already have."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybench.text.quantities import quantity

from .arguments import add_action, add_budget, add_config_dir, add_consent, given_budget, refuse_flags, split_list

if TYPE_CHECKING:
    from memorybench.suites.hygiene.scan import ModelReader
    from memorybench.wiring.live import LiveWiring


_RESULTS = Path("hygiene-results")


def add_scan(actions: Any) -> None:
    scan = add_action(actions, "scan", "scan a memory for secrets, personal data, injections and stale facts")
    scan.add_argument("paths", metavar="PATH", nargs="*", help="Read these files and folders")
    scan.add_argument("--store", metavar="NAME", help="Read the facts that this store lists")
    scan.add_argument("--user", metavar="NAME", help="With --store: list the facts of this user (default: user)")
    scan.add_argument(
        "--format", choices=("text", "json", "sarif"), default="text", help="Choose the format (default: text)"
    )
    scan.add_argument("--json", action="store_const", const="json", dest="format", help="Same as --format json")
    scan.add_argument(
        "--output", metavar="FILE", type=Path, help="Write the findings to this file (default: standard output)"
    )
    scan.add_argument(
        "--baseline", metavar="FILE", type=Path, help="Accept the findings in this file of --write-baseline"
    )
    scan.add_argument(
        "--write-baseline",
        metavar="FILE",
        type=Path,
        help="Write all findings to this file, for --baseline, and exit with 0",
    )
    scan.add_argument(
        "--fail-on",
        choices=("low", "medium", "high", "never"),
        default="high",
        help="Exit with 3 on findings of this severity or more (default: high)",
    )
    scan.add_argument(
        "--model", metavar="NAME", help="Also let this model look for problems; sends it the texts of the memory"
    )
    scan.add_argument(
        "--results",
        metavar="DIR",
        type=Path,
        help=f"With --model: record its replies in this folder (default: ./{_RESULTS})",
    )
    add_budget(scan, needed="--model")
    scan.add_argument("--dry-run", action="store_true", help="With --model: only show how often it would be asked")
    add_consent(scan)
    add_config_dir(scan)
    scan.set_defaults(handler=_scan)


def _scan(args: argparse.Namespace) -> int:
    from msgspec.structs import replace

    from memorybench import __version__
    from memorybench.core.errors import BadInput
    from memorybench.suites.hygiene.scan import scan
    from memorybench.suites.hygiene.scan_output import as_json, as_sarif, as_text, baseline_text, read_baseline
    from memorybench.wiring.live import LiveWiring

    from .arguments import given_consent

    if args.store is None:
        refuse_flags(args, ("--user",), "--store", "add --store NAME")
    if args.model is None:
        refuse_flags(args, ("--results", "--budget", "--dry-run"), "--model", "add --model NAME")
    # only `list` is called, so no private scope is needed
    consent = replace(given_consent(args), reads_only=True)
    wiring = LiveWiring(split_list(args.config_dir), consent, need_keys=not args.dry_run)
    accepted = read_baseline(args.baseline) if args.baseline else []
    reader = _reader(args, wiring) if args.model else None
    user = args.user or "user"
    try:
        report = scan(args.paths, store=args.store, user=user, baseline=accepted, wiring=wiring, reader=reader)
    except KeyboardInterrupt:
        print("memorybench: interrupted; repeat the command to continue", file=sys.stderr)
        raise
    if reader is not None and reader.dry_run:
        if args.format == "json":
            print(json.dumps({"expected": {"model": args.model, "calls": report.prompts}}, indent=2))
        else:
            times = quantity(report.prompts, "time")
            print(f"{args.model} would be asked {times}, and again about what it finds; nothing was sent")
        return 0
    if args.format == "sarif":
        text = as_sarif(report, __version__)
    else:
        text = as_json(report) if args.format == "json" else as_text(report)
    text = wiring.redact(text)
    try:
        if args.write_baseline:
            args.write_baseline.write_text(baseline_text(report, accepted), encoding="utf-8")
        if args.output:
            args.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(
            str(error.filename), error.strerror or "the file cannot be written", remedy="name another file"
        ) from None
    if args.output:
        print(f"{args.output}: {len(report.findings)} findings")
    else:
        print(text, end="")
    fails = args.fail_on != "never" and not args.write_baseline and report.at_least(args.fail_on)
    return 3 if fails else 0


def _reader(args: argparse.Namespace, wiring: LiveWiring) -> ModelReader:
    from memorybench.suites.hygiene.scan import ModelReader

    return ModelReader(wiring.model(args.model), args.results or _RESULTS, given_budget(args), dry_run=args.dry_run)
