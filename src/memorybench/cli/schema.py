"""Prints the JSON Schema of a config file, so that editors complete its keys, of a run's spec, or of a comparison."""

from __future__ import annotations

import argparse
import json

CONFIGS = ("provider", "benchmark", "extractor", "store", "agent", "model")
COMPARISON = "comparison"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind",
        metavar="KIND",
        help=f"Choose {', '.join(CONFIGS)}, {COMPARISON}, or a command with hyphens, such as eval or hygiene-run",
    )


def run(args: argparse.Namespace) -> int:
    from memorybench.core.errors import BadInput
    from memorybench.suites.registry import suites
    from memorybench.text.spelling import suggestion

    if args.kind in CONFIGS:
        from memorybench.catalog.schemas import json_schema

        print(json.dumps(json_schema(args.kind), indent=2))
        return 0
    if args.kind == COMPARISON:
        from memorybench.suites.run_comparison import RunComparison

        print(json.dumps(RunComparison.model_json_schema(mode="serialization"), indent=2))
        return 0
    specs = {command.name.replace(" ", "-"): command.spec for suite in suites() for command in suite.commands}
    if args.kind not in specs:
        known = [*CONFIGS, COMPARISON, *specs]
        raise BadInput(
            "KIND", f'unknown kind "{args.kind}"', expected=", ".join(known), remedy=suggestion(args.kind, known)
        )
    print(json.dumps(specs[args.kind].model_json_schema(), indent=2))
    return 0
