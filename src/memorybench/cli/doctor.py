"""What is installed, which keys are set, and what to do about the rest."""

from __future__ import annotations

import argparse
import json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def run(args: argparse.Namespace) -> int:
    from memorybench.wiring.health import examine

    findings = examine()
    if args.json:
        print(json.dumps([finding.model_dump() for finding in findings], indent=2))
    else:
        from memorybench.reporting.health import show

        show(findings)
    return 0 if all(finding.found or not finding.needed for finding in findings) else 1
