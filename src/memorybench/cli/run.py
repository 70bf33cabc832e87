"""The verbs that run a suite: `eval`, `score`, `audit`, `extraction …`, `hygiene run`, and those of plug-ins."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybench.text.quantities import quantity

from .arguments import add_action, add_fields, add_json, given_fields
from .output import print_wrapped

if TYPE_CHECKING:
    from memorybench.suites.finished import FinishedRun
    from memorybench.suites.spec import RunOptions
    from memorybench.suites.starting import Start
    from memorybench.suites.suite import Command, PreparedRun, RunPlace, Suite
    from memorybench.suites.summary import Summary

_OF_EVERY_START = ("ray", "workers", "cpus_per_worker", "ray_files", "ray_env", "otel", "otel_content")
"""Options that are not saved with the run, so that the suggested command to continue the run has to repeat them."""
NAMES = "`memorybench list` shows the names of benchmarks, providers, models, extractors, stores and agents."
"""Says in the help, and in the reference, where to find the names that flags take."""
_EPILOGS = {
    "audit": "`audit probes DATASET` lists the probes of a dataset, or writes them to a file.",
    "online": "`online receive --output FOLDER` stores spans that agents send by OTLP/HTTP.",
}


def configure(parser: argparse.ArgumentParser, verb: str) -> None:
    """Add the arguments of a verb; if the verb has several commands, add an action for each."""
    from memorybench.suites.registry import commands

    found = commands(verb)
    if [command.name for _, command in found] == [verb]:
        _configure(parser, *found[0])
        if verb in _EPILOGS:
            parser.epilog = f"{_EPILOGS[verb]} {NAMES}"
        return
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for suite, command in found:
        name = command.name.split()[1]
        _configure(add_action(actions, name, command.help), suite, command)
    if verb == "hygiene":
        from .hygiene import add_actions

        add_actions(actions)


def _configure(parser: argparse.ArgumentParser, suite: Suite, command: Command) -> None:
    from memorybench.suites.spec import RunOptions, own_options

    add_fields(parser, command.spec)
    add_fields(parser, RunOptions, {"output": f"./{command.output}"}, without=own_options(command.spec))
    parser.add_argument("--dry-run", action="store_true", help="Show what would be done and stop")
    parser.add_argument(
        "--threshold",
        metavar="MEASURE=VALUE",
        action="append",
        default=[],
        help="Exit with 3 if MEASURE is worse than VALUE, such as recall@5=0.4 (repeatable)",
    )
    parser.add_argument(
        "--threshold-on",
        choices=("value", "lower"),
        default="value",
        help="Compare thresholds with the value, or with the worse end of its interval (default: value)",
    )
    add_json(parser)
    parser.set_defaults(handler=partial(_run, suite, command))
    parser.epilog = NAMES


def _run(suite: Suite, command: Command, args: argparse.Namespace) -> int:
    from memorybench.charts.run_page import make_page
    from memorybench.core.errors import DatabaseLost
    from memorybench.reporting.json_document import to_json
    from memorybench.reporting.progress_view import show_progress
    from memorybench.reporting.terminal import console, show_header
    from memorybench.suites.finished import find_finished
    from memorybench.suites.spec import RunOptions, make_spec, own_options
    from memorybench.suites.starting import start_run
    from memorybench.wiring.environment import first_variable
    from memorybench.wiring.live import LiveWiring
    from memorybench.workers import placement as workers

    given = given_fields(args, command.spec)
    own = own_options(command.spec)
    options_given = {name: value for name, value in given_fields(args, RunOptions).items() if name not in own}
    summary = first_variable("GITHUB_STEP_SUMMARY")
    defaults = {"step_summary": summary} if summary else {}
    options = make_spec(RunOptions, {**defaults, **options_given, "command_line": args.command_line})
    wiring = LiveWiring(need_keys=not args.dry_run)
    if not args.dry_run:
        complete = find_finished(
            suite, command, given, options, args.threshold, wiring.redact, args.threshold_on, make_page
        )
        if complete is not None:
            return _show_finished(complete, options, args)
    start = start_run(suite, command, given, options, wiring, args.threshold, args.threshold_on)
    if args.dry_run:
        _show_plan(start, [f"{error.where}: {error.problem}" for error in wiring.missing], args.json)
        return 0
    try:
        finished = workers.run(
            start,
            announce=lambda facts: None if args.json else show_header(console(), command.title, facts),
            show=show_progress,
            last_words=f"continue with: {_resume_command(start)}",
        )
    except KeyboardInterrupt:
        print(f"memorybench: interrupted; continue with: {_resume_command(start)}", file=sys.stderr)
        raise
    except DatabaseLost as error:
        raise DatabaseLost(f"{error}; continue with: {_resume_command(start)}") from error
    if args.json:
        sys.stdout.write(to_json(finished.report))
    else:
        _show(start, finished, args)
    return _end(finished, options, args)


def _end(finished: FinishedRun, options: RunOptions, args: argparse.Namespace) -> int:
    """Print how the run ended, write the files of --junit and --step-summary, and return the exit code."""
    from memorybench.suites.finished import exit_code, write_ci_files
    from memorybench.wiring.environment import redactor

    messages = sys.stderr if args.json else sys.stdout
    code = exit_code(finished, lambda line: print_wrapped(line, messages))
    write_ci_files(finished, options, redactor().clean)
    if finished.ending.paused:
        print(f"memorybench: {finished.ending.paused}; start the service, then --resume the run", file=sys.stderr)
    if finished.blocked:
        print(f"memorybench: {finished.blocked}", file=sys.stderr)
    return code


def _show_finished(finished: FinishedRun, options: RunOptions, args: argparse.Namespace) -> int:
    """Show a run that was already complete when --resume was called; return the exit code."""
    from memorybench.reporting.json_document import to_json
    from memorybench.reporting.terminal import console, show_report, whole_in

    if args.json:
        sys.stdout.write(to_json(finished.report))
    else:
        out = console()
        show_report(out, finished.report, whole_in(finished.place.folder), _place_flags(finished.place))
        out.print(f"\nRun {finished.place.run_id} is complete; nothing was repeated. Results: {finished.place.folder}/")
    return _end(finished, options, args)


def _show_plan(start: Start, missing: list[str], as_json: bool) -> None:
    from memorybench.reporting.terminal import console
    from memorybench.suites.starting import estimates

    prepared = start.prepared
    rows = [row.model_dump() for row in estimates(start)]
    unknown = list(dict.fromkeys(f"{row['subject']}: {row['stage']}" for row in rows if row["cost"] is None))
    if as_json:
        cost = {"known": sum(row["cost"] or 0 for row in rows), "unknown": unknown}
        samples = prepared.details.get("samples", {})
        notes = prepared.details.get("data_notes", {})
        plan = {
            "planned": prepared.planned,
            "samples": samples,
            "data_notes": notes,
            "expected": rows,
            "cost": cost,
            "missing": missing,
        }
        print(json.dumps(plan, indent=2))
    elif rows:
        _show_estimates(rows, prepared.planned, unknown)
    else:
        trials = ", ".join(f"{n} of {benchmark} × {name}" for (benchmark, name), n in prepared.totals.items())
        print(f"{quantity(prepared.planned, 'trial')} planned ({trials}); nothing was done")
    if not as_json:
        _show_samples(prepared)
        for line in dict.fromkeys(missing):
            console().print(f"missing for a run: {line}", markup=False, highlight=False)
    if prepared.discard is not None and not start.resuming:
        prepared.discard()


def _show_estimates(rows: Sequence[Mapping[str, Any]], planned: int, unknown: Sequence[str]) -> None:
    """Print the table of --dry-run. `unknown` are the stages whose cost is unknown."""
    from memorybench.core.report_sections import Column, Table, columns_and_rows, text_column
    from memorybench.reporting.formatting import about
    from memorybench.reporting.terminal import console, show_table

    # shown if they have any value; a narrow terminal shows only the first ones
    amounts = {"reused": "reused", "tokens in": "input_tokens", "tokens out": "output_tokens"}
    columns, cells = columns_and_rows(
        rows,
        (text_column("benchmark", wrap=True), lambda row: row["benchmark"]),
        (text_column("provider", wrap=True), lambda row: row["subject"]),
        (text_column("stage", wrap=True), lambda row: row["stage"]),
        (Column("calls"), lambda row: row["calls"]),
        *(
            (Column(heading, priority=place), lambda row, key=key: row[key] or None)
            for place, (heading, key) in enumerate(amounts.items(), 1)
            if any(row[key] for row in rows)
        ),
        (Column("cost"), lambda row: "?" if row["cost"] is None else about(row["cost"])),
    )
    out = console()
    show_table(out, Table("DRY RUN: nothing was called", columns, cells))
    more = f" + ? (unknown prices: {', '.join(unknown)})" if unknown else ""
    out.print(f"{quantity(planned, 'trial')} planned; cost about {about(sum(row['cost'] or 0 for row in rows))}{more}")


def _show_samples(prepared: PreparedRun) -> None:
    """Print how many histories the questions need, which may be all even for a few questions, and notes on the data."""
    from memorybench.reporting.terminal import console
    from memorybench.suites.sampling import sample_text

    out = console()
    for benchmark, sample in prepared.details.get("samples", {}).items():
        print(f"{benchmark}: {sample_text(sample)}")
        if getattr(prepared.spec, "limit", None) and 1 < sample["clusters"] < sample["cases_available"]:
            out.print("To add fewer histories, take the first questions of the file, such as --end 20.")
            out.print("They may be easier or harder than others.")
    for benchmark, notes in prepared.details.get("data_notes", {}).items():
        if notes:
            out.print(f"Quirks of {benchmark}: {'; '.join(notes)}")
    if getattr(prepared.spec, "answering_model", None) and not getattr(prepared.spec, "judge_model", None):
        out.print("Accuracy is not measured; name a judge, such as --judge-model ollama/llama3.2.")


def _show(start: Start, finished: FinishedRun, args: argparse.Namespace) -> None:
    from memorybench.charts.run_page import missing_extra
    from memorybench.reporting.report_files import FORMATS, HTML_FILE
    from memorybench.reporting.terminal import console, show_hints, show_report, whole_in

    out, summary, place = console(), finished.summary, start.place
    show_report(out, finished.report, whole_in(place.folder), _place_flags(place))
    names = [FORMATS[name][0] for name in reversed(start.prepared.formats)]
    files = ", ".join([*names, *([HTML_FILE] if (place.folder / HTML_FILE).exists() else [])])
    out.print(f"\nResults saved to: {place.folder}/ ({files})")
    if missing := missing_extra():
        out.print(missing, markup=False, highlight=False, soft_wrap=True)
    if finished.ending.interrupted or summary.status == "partial":
        out.print(f"Continue with: {_resume_command(start, _larger_budget(start, summary))}")
    elif not start.prepared.blocked:
        results = shlex.join(_place_flags(place))
        out.print("What to try next:")
        show_hints(
            out,
            {
                **_comparison_hint(start, finished, results),
                f"memorybench results {place.run_id} --failures {results}".rstrip(): "wrong and failed trials",
                **_variation_hints(start, args),
                **start.prepared.hints,
            },
        )


def _variation_hints(start: Start, args: argparse.Namespace) -> dict[str, str]:
    """Return commands that repeat this run with some settings changed, each with its purpose."""
    from memorybench.suites.spec import flag_options, flag_words
    from memorybench.suites.suite import output_words
    from memorybench.text.sanitize import sanitize

    command, spec = _own_command(start), start.prepared.spec
    texts = [name for name, field in type(spec).model_fields.items() if flag_options(field).get("file_or_text")]
    typed = {name: getattr(args, name) for name in texts if hasattr(args, name)}  # not the text of the file
    output = output_words(command, start.place.results)
    hints = {}
    for variation in start.prepared.variations:
        words = flag_words(spec.model_copy(update=variation.changes), typed=typed)
        line = shlex.join(["memorybench", *command.name.split(), *words, *output, *variation.words])
        if sanitize(line) == line:  # else it would be shown without some characters
            hints[line] = variation.purpose
    return hints


def _own_command(start: Start) -> Command:
    """Return the command that continues the run, which may not be the one that began it."""
    return next(one for one in start.suite.commands if one.marks == start.command.marks)


def _place_flags(place: RunPlace) -> list[str]:
    """Return the flags that a command needs to find the run; none if its results folder is the default one."""
    from memorybench.journal.places import journal_words
    from memorybench.suites.suite import RESULTS

    other = [] if place.results == Path(RESULTS) else ["--results", str(place.results)]
    return [*other, *journal_words(place.results)]


def _comparison_hint(start: Start, finished: FinishedRun, results: str) -> dict[str, str]:
    """Return a hint with the command that lists the questions that got worse than in the baseline run.

    Return {} if no check against the baseline run failed.
    """
    baseline, place = start.baseline, start.place
    if baseline is None or not any(check.missed and check.name.startswith("baseline") for check in finished.checks):
        return {}
    name = f"{baseline.run}:{baseline.subject}" if baseline.subject else baseline.run
    other = baseline.locate(place.results)[0] if baseline.folder else name
    command = f"memorybench compare {place.run_id} {shlex.quote(other)} --only losses {results}"
    return {command.rstrip(): "questions that got worse"}


def _larger_budget(start: Start, summary: Summary) -> float | None:
    """Return twice the budget, or twice the amount spent if that is more; None if the budget blocked no trial."""
    if start.budget is None or not summary.counts["blocked"]:
        return None
    return 2 * max(start.budget, (summary.spent.cost or 0.0) + summary.possibly_spent) or 1.0


def _resume_command(start: Start, larger_budget: float | None = None) -> str:
    from memorybench.reporting.typed_commands import as_typed
    from memorybench.suites.spec import flag_words, unsaved_values
    from memorybench.suites.suite import resume_command

    place, spec = start.place, start.prepared.spec
    words = [] if larger_budget is None else ["--budget", f"{larger_budget:g}"]
    words += flag_words(spec, unsaved_values(spec))  # such as consent
    words += flag_words(start.options, _OF_EVERY_START)
    return as_typed(f"{resume_command(_own_command(start), place.results, place.run_id)} {shlex.join(words)}".rstrip())
