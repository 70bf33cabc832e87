"""Lists runs, and tags, renames, deletes and prunes them."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_args

from memorybench.core.errors import BadInput
from memorybench.suites.registry import suites, verb_of
from memorybench.text.spelling import suggestion

from .arguments import add_action, add_json, add_list, add_results, folders, positive, split_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memorybench.suites.run_list import ListedRun

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_STATUS_NOTES = {"partial": " (unfinished)", "blocked": " (consent to prompt agents is missing)"}
"""By status: an explanation for --help."""


def configure(parser: argparse.ArgumentParser) -> None:
    add_list(parser, "--tag", metavar="TAG", help="List only runs with one of these tags")
    _add_filters(parser, "List")
    add_results(parser)
    add_json(parser)
    parser.set_defaults(action=None)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=False)
    actions.usage = "[ACTION ...]"  # type: ignore[attr-defined]  # argparse shows it as required
    listing = _add_action(actions, "list", "list runs, as without an action")
    add_list(listing, "--tag", metavar="TAG", help="List only runs with one of these tags")
    _add_filters(listing, "List")
    tag = _add_action(actions, "tag", "add tags to a run, or remove them")
    tag.add_argument("run", metavar="RUN", help="Tag this run, FOLDER/RUN or `latest`")
    tag.add_argument("tags", metavar="TAG", nargs="+", help="Add this tag")
    tag.add_argument("--remove", action="store_true", help="Remove the tags instead")
    rename = _add_action(actions, "rename", "rename a finished run")
    rename.add_argument("run", metavar="RUN", help="Rename this run, FOLDER/RUN or `latest`")
    rename.add_argument("new", metavar="NEW", help="Set this name")
    delete = _add_action(actions, "delete", "delete runs with their files")
    delete.add_argument("runs", metavar="RUN", nargs="+", help="Delete this run, FOLDER/RUN or `latest`")
    prune = _add_action(actions, "prune", "delete old runs that have no tags")
    prune.add_argument(
        "--keep", metavar="N", type=positive, help="Keep the N newest untagged runs (this or --older-than is required)"
    )
    prune.add_argument(
        "--older-than", metavar="AGE", type=_age, help="Delete only runs older than this, such as 12h, 30d or 2w"
    )
    _add_filters(prune, "Delete", "prune")
    prune.add_argument("--dry-run", action="store_true", help="Show what would be deleted and stop")
    for action in (delete, prune):
        action.add_argument("--yes", action="store_true", help="Delete without asking")


def _add_filters(parser: argparse.ArgumentParser, verb: str, action: str | None = None) -> None:
    add_list(parser, "--suite", metavar="NAME", help=f"{verb} only runs of these suites, such as eval or audit")
    statuses = ", ".join(f"{name}{_STATUS_NOTES.get(name, '')}" for name in _statuses(action))
    add_list(parser, "--status", metavar="STATUS", help=f"{verb} only runs of this status: {statuses}")


def _statuses(action: str | None) -> list[str]:
    from memorybench.journal.rows import RunStatus

    return [status for status in get_args(RunStatus) if action != "prune" or status != "running"]


def _add_action(actions: Any, name: str, about: str) -> argparse.ArgumentParser:
    parser = add_action(actions, name, about)
    add_results(parser)
    add_json(parser)
    for flag in ("--results", "--journal", "--json"):  # may also come before the action
        parser._option_string_actions[flag].default = argparse.SUPPRESS
    return parser


def run(args: argparse.Namespace) -> int:
    from memorybench.suites.run_changes import repair
    from memorybench.suites.stored_run import folder_of

    names = [getattr(args, "run", ""), *getattr(args, "runs", ())]
    for folder in {*folders(args), *(own for name in names if (own := folder_of(name)) is not None)}:
        repair(folder)
    if args.action is None:
        return show_runs(args)
    return _ACTIONS[args.action](args)


def show_runs(args: argparse.Namespace) -> int:
    """List runs, for `runs list` and for `results` without a run."""
    from memorybench.core.report_sections import Column, Table, text_column
    from memorybench.reporting.terminal import console, show_table

    rows = _filtered(args, split_list(getattr(args, "tag", None)))
    if args.json:
        print(json.dumps([_document(row) for row in rows], indent=2))
        return 0
    columns = (
        text_column("run", wrap=True),
        text_column("suite", priority=3),
        text_column("status", priority=1),
        text_column("headline", wrap=True),
        Column("n"),
        Column("cost"),
        text_column("tags", wrap=True),
        text_column("started (UTC)", priority=2),
    )
    out = console()
    if rows:
        show_table(out, Table("RUNS", columns, tuple(_cells(row) for row in rows)))
    else:
        out.print("No runs.")
    return 0


def _filtered(args: argparse.Namespace, tags: Sequence[str] = ()) -> list[ListedRun]:
    from memorybench.suites.run_list import list_runs

    chosen = {name: split_list(getattr(args, name, None)) for name in ("suite", "status")}
    by_verb = {verb_of(one.name): one.name for one in suites()}
    chosen["suite"] = tuple(by_verb.get(name, name) for name in chosen["suite"])
    known = {
        "suite": [*dict.fromkeys((*by_verb, *by_verb.values())), "calibration"],
        "status": _statuses(getattr(args, "action", None)),
    }
    for name, values in chosen.items():
        for value in values:
            if value not in known[name]:
                raise BadInput(
                    f"--{name}",
                    f'unknown {name} "{value}"',
                    expected=", ".join(known[name]),
                    remedy=suggestion(value, known[name]),
                )
    return list_runs(folders(args), tags=tags, suites=chosen["suite"], statuses=chosen["status"])


def _cells(row: ListedRun) -> tuple[str, ...]:
    return (
        row.run.id,
        row.run.suite,
        row.run.status,
        row.headline_text or "–",
        f"{row.counts['scored']}/{row.run.planned}",
        row.costs.cell(),
        ", ".join(row.tags),
        row.run.created.replace("T", " ")[:16],
    )


def _document(row: ListedRun) -> dict[str, Any]:
    return {
        **row.run.model_dump(mode="json"),
        "counts": dict(row.counts),
        "tags": list(row.tags),
        "headlines": [headline.plain() for headline in row.headlines],
        **row.costs.plain(),
        "results_folder": str(row.folder),
    }


def _tag(args: argparse.Namespace) -> int:
    from memorybench.suites.run_changes import change_tags
    from memorybench.suites.run_list import find_run
    from memorybench.wiring.environment import fault, redactor

    row = find_run(args.run, folders(args))
    tags = change_tags(row, split_list(args.tags), redactor().clean, remove=args.remove, fault=fault())
    if args.json:
        print(json.dumps({"run_id": row.run.id, "tags": list(tags)}, indent=2))
    else:
        print(f"Run {row.run.id} is tagged {', '.join(tags)}." if tags else f"Run {row.run.id} has no tags.")
    return 0


def _rename(args: argparse.Namespace) -> int:
    from memorybench.charts.run_page import make_page
    from memorybench.suites.run_changes import rename
    from memorybench.suites.run_list import find_run
    from memorybench.wiring.environment import fault

    row = find_run(args.run, folders(args))
    has_files = (row.folder / row.run.id).is_dir()
    rename(row, args.new, fault(), make_page)
    if not has_files:
        place = f"no files of run {row.run.id} in {row.folder}/; if they are in another folder, rename it there"
        print(f"memorybench: {place}: mv {row.run.id} {args.new}", file=sys.stderr)
    if args.json:
        print(json.dumps({"run_id": args.new, "old_run_id": row.run.id}, indent=2))
    else:
        print(f"Run {row.run.id} is now {args.new}.")
    return 0


def _delete(args: argparse.Namespace) -> int:
    from memorybench.suites.run_changes import check_not_needed
    from memorybench.suites.run_list import find_run

    found = [find_run(name, folders(args)) for name in split_list(args.runs)]
    rows = list({(row.folder, row.run.id): row for row in found}.values())
    check_not_needed(rows)
    return _delete_rows(args, rows, {})


def _prune(args: argparse.Namespace) -> int:
    from memorybench.suites.run_changes import prunable

    if args.keep is None and args.older_than is None:
        raise BadInput(
            "runs prune",
            "--keep and --older-than are missing",
            remedy="add one of them, such as --keep 20 or --older-than 30d",
        )
    rows, kept = prunable(_filtered(args), args.keep or 0, args.older_than)
    return _delete_rows(args, rows, kept)


def _delete_rows(args: argparse.Namespace, rows: Sequence[ListedRun], kept: dict[str, str]) -> int:
    from memorybench.suites.run_changes import delete
    from memorybench.wiring.environment import fault

    names = [row.run.id for row in rows]
    freed = 0
    is_dry = getattr(args, "dry_run", False)
    if rows and not is_dry:
        if not args.yes and not _confirmed(rows):
            print("Nothing was deleted.", file=sys.stderr)
            return 1
        freed = delete(rows, fault())
    if args.json:
        document = {"deleted": [] if is_dry else names, "kept": kept, "freed_bytes": freed}
        print(json.dumps({**document, **({"would_delete": names} if is_dry else {})}, indent=2))
        return 0
    for run, reason in kept.items():
        print(f"Kept {run}: {reason}")
    if not rows:
        print("Nothing to delete.")
    elif is_dry:
        print(f"Would delete {', '.join(names)}.")
    else:
        print(f"Deleted {', '.join(names)}; freed {freed / 1e6:.1f} MB.")
    return 0


def _confirmed(rows: Sequence[ListedRun]) -> bool:
    """Ask the user on standard error whether to delete these runs; return whether the answer is yes."""
    if not sys.stdin or not sys.stdin.isatty():
        raise BadInput(
            "--yes",
            "missing; without a terminal, memorybench cannot ask you to confirm",
            remedy="add --yes to delete without asking",
        )
    for row in rows:
        tags = f", tagged {', '.join(row.tags)}" if row.tags else ""
        scored = f"{row.counts['scored']} of {row.run.planned} scored"
        print(
            f"  {row.run.id}: {row.run.suite}, {row.run.status}, {scored}, {row.costs.cell()}{tags}",
            file=sys.stderr,
        )
    print(f"Delete {len(rows)} run{'s' * (len(rows) > 1)} for good? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _age(text: str) -> timedelta:
    number, unit = text[:-1], _UNITS.get(text[-1:])
    if unit is None or not number.isdecimal() or len(number) > 6:
        expected = f'"{text}d"' if text.isdecimal() else "a number with h, d or w, such as 30d"
        raise argparse.ArgumentTypeError(f"invalid age {text!r}; expected {expected}")
    return timedelta(**{unit: int(number)})


_ACTIONS = {"list": show_runs, "tag": _tag, "rename": _rename, "delete": _delete, "prune": _prune}
