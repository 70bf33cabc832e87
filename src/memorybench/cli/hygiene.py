"""`hygiene record`, `hygiene list` and `hygiene scan`. `hygiene run` is a command of the suite."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybench.text.quantities import quantity

from .arguments import add_action, add_config_dir, add_consent, add_json, add_list, given_consent, split_list
from .hygiene_scan import add_scan

if TYPE_CHECKING:
    from memorybench.suites.hygiene.recording import RecordedDraft


def add_actions(actions: Any) -> None:
    record = add_action(actions, "record", "record an agent as a scenario draft")
    record.add_argument(
        "--store", metavar="NAME", default="reference", help="Record on this store (default: reference)"
    )
    record.add_argument(
        "--tools",
        choices=("ours", "server"),
        help="Give the agent memorybench's tools, or the MCP server's own (default: server for an MCP store)",
    )
    record.add_argument(
        "--name", metavar="ID", help="Set the scenario's id (default: the name of the file of --to, or `recorded`)"
    )
    record.add_argument("--to", metavar="FILE", type=Path, help="Write to this file (default: scenarios/ID.json)")
    record.add_argument(
        "--shows",
        choices=("violation", "well_behaved"),
        default="violation",
        help="Say how the agent behaves in the recording (default: violation)",
    )
    add_consent(record)
    record.add_argument(
        "--store-is-disposable", action="store_true", help="Let the run change or delete data in existing memories"
    )
    add_config_dir(record)
    record.add_argument("--prompt", metavar="TEXT", help="Replace ${prompt} in COMMAND; save it in the draft")
    add_json(record)
    record.add_argument(
        "command", metavar="-- COMMAND", nargs=argparse.REMAINDER, help="Start the agent with this command"
    )
    record.set_defaults(handler=_record)
    listing = add_action(actions, "list", "list the scenarios")
    add_list(listing, "--scenarios", metavar="DIR", help="Also read scenario files from these folders")
    add_json(listing)
    listing.set_defaults(handler=_list)
    add_scan(actions)


def _record(args: argparse.Namespace) -> int:
    from memorybench.core.errors import BadInput
    from memorybench.files.names import safe_name
    from memorybench.reporting.typed_commands import as_typed
    from memorybench.suites.hygiene.recording import record
    from memorybench.wiring.live import LiveWiring

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise BadInput("COMMAND", "missing", expected="memorybench hygiene record --store NAME -- COMMAND")
    name = args.name or (args.to.stem if args.to else "recorded")
    file = args.to or Path("scenarios") / f"{name}.json"
    safe_name(name, "--name" if args.name else "--to")
    wiring = LiveWiring(split_list(args.config_dir), given_consent(args))
    is_good = args.shows == "well_behaved"
    draft = record(
        name,
        command,
        args.store,
        file,
        is_good=is_good,
        wiring=wiring,
        tools=args.tools,
        prompt=args.prompt,
        quiet=args.json,
    )
    if args.json:
        print(draft.model_dump_json(indent=2))
    else:
        _print_draft(draft, as_typed(f"memorybench hygiene run {name}"))
    return 0 if draft.is_proved else 3


def _print_draft(draft: RecordedDraft, next_step: str) -> None:
    calls = quantity(draft.calls, "call")
    print(f"{draft.file}: draft with {calls}, shows {draft.shows}; read its assertions, then: {next_step}")
    for replay in draft.replays:
        print(f"replayed on {replay.store}: {replay.verdict}")
        for reason in replay.reasons:
            print(f"  {reason}")
    if not draft.is_proved:
        print("not a regression test: no run of the draft is red where a fault is and green where none is")
    for remark in draft.for_a_person:
        print(f"for you: {remark}")
    if draft.credential is not None:
        print(
            f"{draft.file}: contains what looks like a credential ({draft.credential}); replace it before you share it"
        )


def _list(args: argparse.Namespace) -> int:
    import json

    from memorybench.suites.hygiene.prepare import find_scenarios
    from memorybench.wiring.live import LiveWiring

    scenarios = find_scenarios((), split_list(args.scenarios), LiveWiring())
    if args.json:
        rows = [{"id": one.id, "title": one.title, "contract": one.contract} for one in scenarios]
        print(json.dumps(rows, indent=2))
        return 0
    width = max(len(scenario.id) for scenario in scenarios)
    for scenario in scenarios:
        print(f"{scenario.id:<{width}}  {scenario.title}")
    return 0
