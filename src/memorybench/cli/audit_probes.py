"""`memorybench audit probes DATASET`: lists the probes of a dataset, or writes them to a file to edit and share."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.text.quantities import quantity

from .arguments import add_budget, add_concurrency, add_fields, add_json, given_budget, given_fields, refuse_flags

if TYPE_CHECKING:
    from memorybench.suites.audit.probes import Probe
    from memorybench.suites.audit.spec import AuditSpec
    from memorybench.suites.estimates import Estimate

ACTION = "probes"
_FIELDS = ("dataset", "kinds", "policy", "limit", "sample_seed", "probe_model", "probe_file", "config_dirs")


def configure(parser: argparse.ArgumentParser) -> None:
    from memorybench.suites.audit.spec import AuditSpec

    parser.add_argument("action", choices=(ACTION,), metavar=ACTION, help=argparse.SUPPRESS)
    without = [name for name in AuditSpec.model_fields if name not in _FIELDS]
    add_fields(parser, AuditSpec, without=without)
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="Write the probes to this JSONL file, for `audit --probes` (default: only list them)",
    )
    parser.add_argument(
        "--results",
        metavar="DIR",
        type=Path,
        default=Path("audit-results"),
        help="With --probe-model: record its replies in this folder (default: ./audit-results)",
    )
    add_concurrency(parser)
    add_budget(parser, needed="--probe-model")
    parser.add_argument(
        "--dry-run", action="store_true", help="With --probe-model: only show how often it would be asked"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.datasets.audit import load_audit
    from memorybench.suites.audit.plan import Transcripts
    from memorybench.suites.audit.prepare import make_probes, probe_calls
    from memorybench.suites.audit.probe_file import probe_line, write_probes
    from memorybench.suites.audit.probing import verify_all
    from memorybench.suites.audit.spec import AuditSpec
    from memorybench.suites.estimates import check_prices
    from memorybench.suites.spec import make_spec
    from memorybench.text.sanitize import sanitize
    from memorybench.wiring.live import LiveWiring

    spec = make_spec(AuditSpec, given_fields(args, AuditSpec))
    _check_flags(args, spec)
    dataset = load_audit(spec.dataset)
    made = make_probes(spec, dataset)
    probes, failed, problem, costs = made.probes, 0, "", None
    rejected = Counter({name: n for name, n in made.gates.items() if n and name != "made"})
    if spec.probe_model is not None:
        wiring = LiveWiring(spec.config_dirs, spec.consent, need_keys=not args.dry_run)
        model = wiring.model(spec.probe_model)
        if args.dry_run:
            return _show_estimate(probe_calls(dataset.id, model, Transcripts(dataset), probes), args.json)
        budget = given_budget(args)
        check_prices((model,), budget)
        try:
            verified = verify_all(dataset, probes, model, args.results, wiring, args.concurrency, budget)
        except KeyboardInterrupt:
            print("memorybench: interrupted; repeat the command to continue", file=sys.stderr)
            raise
        probes, failed, problem, costs = verified.probes, verified.failed, verified.problem, verified.costs
        rejected.update(verified.rejected)
    is_kept = failed > 0 and args.output is not None and args.output.exists()  # it may be complete, or edited
    if args.output is not None and not is_kept:
        write_probes(args.output, probes)
    if args.json:
        lines = [probe_line(probe) for probe in probes]
        found = {"probes": lines, "rejected": rejected, "failed": failed, "problem": problem or None}
        print(json.dumps({"dataset": spec.dataset, **found, **(costs.plain() if costs else {})}, indent=2))
    else:
        _show(probes, rejected, failed, args.output, is_kept=is_kept)
        if costs is not None:
            print(f"cost: {costs.text()}")
    if failed:
        number = f"{failed} probe{'s' if failed > 1 else ''}"
        state = "was not replaced" if is_kept else "is partial"
        partial = f"{args.output} {state}; " if args.output is not None else ""
        why = sanitize(problem).rstrip(".") or "unknown reason"
        print(f"memorybench: {number} could not be checked: {why}; {partial}repeat the command", file=sys.stderr)
    return 1 if failed else 0


def _check_flags(args: argparse.Namespace, spec: AuditSpec) -> None:
    """Raise BadInput for a flag without effect, and if the output would replace a file that is read."""
    from memorybench.core.errors import BadInput

    if spec.probe_model is None:
        refuse_flags(args, ("--dry-run", "--budget"), "--probe-model", "add --probe-model MODEL")
    read = [Path(name).resolve() for name in (spec.dataset, *spec.probe_file)]
    if args.output is not None and args.output.resolve() in read:
        raise BadInput(
            "--output", f"{args.output} is read by this command and would be replaced", remedy="name another file"
        )


def _show_estimate(estimate: Estimate, as_json: bool) -> int:
    row = estimate.model_dump()
    if as_json:
        print(json.dumps({"expected": [row]}, indent=2))
    else:
        cost = "unknown cost" if estimate.cost is None else f"${estimate.cost:.4f}"
        print(f"{quantity(estimate.calls, 'call')} of the probe model, {cost}; nothing was done")
    return 0


def _show(
    probes: Sequence[Probe], rejected: dict[str, int], failed: int, output: Path | None, *, is_kept: bool
) -> None:
    if output is None:
        for probe in probes:
            print(f"{probe.id}\n  {probe.question}\n  expected: {probe.expected_answer}")
    counts = Counter(probe.type for probe in probes)
    made = ", ".join(f"{n} {kind}" for kind, n in counts.items())
    partial = f" (partial, {failed} more could not be checked)" if failed else ""
    number = quantity(len(probes), "probe")
    print(f"{f'{output}: ' if output and not is_kept else ''}{number}{f': {made}' if made else ''}{partial}")
    if rejected:
        print(f"not asked: {', '.join(f'{n} {reason}' for reason, n in rejected.items())}")
