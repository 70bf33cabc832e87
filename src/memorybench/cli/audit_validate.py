"""Checks an audit dataset: prints its problems or, if it has none, counts its probes and lists facts without one."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

from msgspec.structs import asdict

from memorybench.text.quantities import quantity

from .arguments import add_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DATASET", help="Check these conversations and facts (JSON, JSONL)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.core.errors import BadInput
    from memorybench.datasets.audit import load_audit, problems_of
    from memorybench.suites.audit.generation import generate
    from memorybench.suites.audit.probes import PROBE_TYPES

    try:
        dataset = load_audit(args.dataset)
    except BadInput:
        problems = problems_of(args.dataset)
        if args.json:
            print(json.dumps({"dataset": args.dataset, "problems": [str(problem) for problem in problems]}, indent=2))
        else:
            for problem in problems:
                print(problem)
            print(f"{args.dataset}: {len(problems)} problem{'s' * (len(problems) > 1)}", file=sys.stderr)
        return 2
    made = generate(dataset, PROBE_TYPES)
    counts = Counter(probe.type for probe in made.probes)
    facts = dataset.fact_count
    if args.json:
        left_out = [asdict(skipped) for skipped in made.skipped]
        found = {"probes": dict(counts), "gates": dict(made.gates), "skipped": left_out}
        print(json.dumps({"dataset": args.dataset, "problems": [], "facts": facts, **found}, indent=2))
        return 0
    conversations = quantity(len(dataset.conversations), "conversation")
    print(f"{args.dataset}: valid; {conversations}, {quantity(facts, 'fact')}")
    print(f"probes: {', '.join(f'{counts[kind]} {kind}' for kind in PROBE_TYPES)}")
    rejected = ", ".join(f"{n} {name}" for name, n in made.gates.items() if n)
    print(f"gates: {rejected or 'no probe was rejected'}")
    if made.gates.get("not English"):
        print("facts that are not in English, or too short to tell, need --probe-model, or a question of their own")
    for skipped in made.skipped:
        print(f"no probe: {skipped.conversation} {skipped.fact}: {skipped.reason}")
    return 0
