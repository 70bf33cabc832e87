"""Does a store, or an agent, keep memory clean: no noise, no secrets, no duplicates, real recall?"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .runs import add_run, refuse_changes, results_flag, run_and_show
from .shared import add_json, add_list, flat, positive

if TYPE_CHECKING:
    from memorybench.suites.stored_run import StoredRun
    from memorybench.suites.summary import Summary
    from memorybench.wiring.hygiene import HygieneSpec

_SPEC_FLAGS = {
    "scenario": "SCENARIO",
    "store": "--store",
    "scenarios": "--scenarios",
    "seed": "--seed",
    "no_mutants": "--no-mutants",
    "agent": "--agent",
    "model": "--model",
    "repeats": "--repeats",
    "config_dir": "--config-dir",
    "reuse": "--reuse",
    "run_id": "--run-id",
}


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    run_ = actions.add_parser("run", help="play scenarios on a store, or put them to an agent", allow_abbrev=False)
    run_.add_argument("scenario", metavar="SCENARIO", nargs="*", default=None, help="ids (default: all)")
    run_.add_argument("--store", metavar="NAME", help="default: reference, our own")
    add_list(run_, "--scenarios", metavar="DIR", help="more folders with scenarios, beside ./scenarios")
    run_.add_argument("--seed", type=int, help="what is planted grows from it (default: 0)")
    run_.add_argument("--no-mutants", action="store_true", help="only the two declared phases")
    run_.add_argument("--agent", metavar="NAME", help="put the prompts to an agent instead of playing scripts")
    run_.add_argument("--model", help="what the agent thinks with")
    run_.add_argument("--repeats", metavar="N", type=positive, help="attempts a scenario (default: 1)")
    run_.add_argument("--agent-turn", action="store_true", help="yes, let the agent act")
    run_.add_argument("--i-understand-model-cost", action="store_true", help="yes, that may cost money")
    add_run(run_)
    recording = actions.add_parser("record", help="write what an agent does as a scenario draft", allow_abbrev=False)
    recording.add_argument("--store", metavar="NAME", default="reference", help="default: reference, our own")
    recording.add_argument("--name", metavar="ID", default="recorded", help="the scenario's id (default: recorded)")
    recording.add_argument("--to", metavar="FILE", type=Path, help="default: scenarios/ID.json")
    recording.add_argument(
        "--shows",
        choices=("violation", "well_behaved"),
        default="violation",
        help="whether it shows how it should not be done, or how it should (default: violation)",
    )
    recording.add_argument("--allow-code", action="store_true", help="run code that configs name")
    add_list(recording, "--config-dir", metavar="DIR", help="more folders with configs")
    recording.add_argument("command", metavar="-- COMMAND", nargs=argparse.REMAINDER, help="the agent, as you start it")
    listing = actions.add_parser("list", help="which scenarios there are", allow_abbrev=False)
    add_list(listing, "--scenarios", metavar="DIR", help="more folders with scenarios")
    add_json(listing)


def run(args: argparse.Namespace) -> int:
    return {"list": _list, "record": _record, "run": _run}[args.action](args)


def _run(args: argparse.Namespace) -> int:
    from memorybench.suites.hygiene.attempts import NEEDS_CONSENT
    from memorybench.suites.hygiene.measures import MEASURES
    from memorybench.wiring.estimates import check_prices
    from memorybench.wiring.hygiene import hygiene_again, prepare_hygiene
    from memorybench.wiring.thresholds import checked, parse

    thresholds = parse(args.threshold)
    consent = args.agent_turn and args.i_understand_model_cost
    if args.resume is None:
        prepared = prepare_hygiene(_spec(args), Path(), consent=consent)
    else:
        refuse_changes(args, _SPEC_FLAGS)
        prepared = hygiene_again(args.resume, args.output, consent=consent)
    thresholds = checked(thresholds, MEASURES, [prepared.subject])
    check_prices(prepared.models, args.budget)
    if args.dry_run:
        print(
            f"{len(prepared.scenarios)} scenarios, {prepared.planned} plays on {prepared.store.name}; nothing was done"
        )
        return 0
    code = run_and_show(
        args,
        prepared,
        title="MEMORY HYGIENE",
        command="memorybench hygiene run",
        thresholds=thresholds,
        hints=partial(_hints, args),
        missed=_missed,
    )
    if prepared.blocked:
        print(f"memorybench: {NEEDS_CONSENT}", file=sys.stderr)
        return 2
    return code


def _missed(stored: StoredRun, summary: Summary) -> bool:
    """Whether a phase did not come out as it should, or a check can not do its work."""
    from memorybench.suites.hygiene.report import has_check_faults

    if has_check_faults(list(stored.outcomes())):
        return True
    for result in summary.results:
        for name in ("passed", "caught"):
            measure = result.measure(name)
            if not result.group and measure is not None and measure.value is not None and measure.value < 1:
                return True
    return False


def _spec(args: argparse.Namespace) -> HygieneSpec:
    from memorybench.core.errors import BadInput
    from memorybench.wiring.hygiene import REFERENCE, HygieneSpec

    if args.agent is None and (args.agent_turn or args.i_understand_model_cost):
        raise BadInput("--agent-turn", "whose turn?", expected="--agent NAME beside it")
    return HygieneSpec(
        scenarios=flat(args.scenario),
        folders=flat(args.scenarios),
        store=args.store or REFERENCE,
        seed=args.seed or 0,
        mutants=not args.no_mutants,
        agent=args.agent,
        model=args.model,
        repeats=args.repeats or 1,
        config_dirs=flat(args.config_dir),
        allow_code=args.allow_code,
        reuse=args.reuse,
    )


def _hints(args: argparse.Namespace, summary: Summary) -> dict[str, str]:
    if summary.status == "blocked":
        return {}
    return {
        f"memorybench results {summary.run_id} --failures{results_flag(args)}": "what went wrong, one by one",
        "memorybench list --stores": "which other memories can be driven",
    }


def _record(args: argparse.Namespace) -> int:
    from memorybench.catalog.catalog import Catalog
    from memorybench.core.errors import BadInput
    from memorybench.wiring.hygiene import record

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise BadInput("COMMAND", "is missing", expected="memorybench hygiene record --store NAME -- COMMAND")
    to = args.to or Path("scenarios") / f"{args.name}.json"
    to.parent.mkdir(parents=True, exist_ok=True)
    catalog = Catalog(Path(), [Path(place) for place in flat(args.config_dir)])
    calls, credential = record(
        args.name, command, args.store, to, shows=args.shows, catalog=catalog, allow_code=args.allow_code
    )
    print(f"{to}: {calls} calls, as a draft; say in it what matters, then: memorybench hygiene run {args.name}")
    if credential is not None:
        print(f"{to}: holds what looks like a credential ({credential}); replace it before you share the file")
    return 0


def _list(args: argparse.Namespace) -> int:
    import json

    from memorybench.wiring.hygiene import find_scenarios

    scenarios = find_scenarios((), flat(args.scenarios), Path())
    if args.json:
        rows = [{"id": one.id, "title": one.title, "contract": one.contract} for one in scenarios]
        print(json.dumps(rows, indent=2))
        return 0
    width = max(len(scenario.id) for scenario in scenarios)
    for scenario in scenarios:
        print(f"{scenario.id:<{width}}  {scenario.title}")
    return 0
