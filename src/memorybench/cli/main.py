"""`memorybench VERB …` and `memaudit VERB …`: finds the verb, runs it, and prints an error as one line."""

from __future__ import annotations

import argparse
import atexit
import gc
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

from memorybench import __version__
from memorybench.core.errors import MemorybenchError, Refusal
from memorybench.suites.registry import BUILT_IN, commands, suites
from memorybench.wiring.environment import learn_journal, redactor
from memorybench.wiring.output import redacted_output

from .arguments import Parser, add_aliases
from .streams import OutputLost, output_failure, prepare_streams, stop_when_output_is_lost

PURPOSE = "Measures how good an AI agent's memory is."
RUN_VERBS = {verb: help for verbs in BUILT_IN.values() for verb, help in verbs.items()}
"""Verbs that run a suite, with their help. cli/run.py creates their arguments from the suite's spec."""
VERBS = {
    **RUN_VERBS,
    "results": "show the results of a run, or list runs",
    "show": "show one question of a run: memories, prompt, answer and verdict",
    "compare": "compare runs or providers, question by question",
    "view": "look at runs in a browser",
    "worker": "perform trials of a run in a Postgres journal",
    "merge": "merge shards into one run",
    "runs": "list, tag, rename, delete and prune runs",
    "report": "write the report files of a run again",
    "plot": "draw a chart of a run for a paper or a page",
    "export": "write rows, tables, JUnit XML or Inspect logs of a run",
    "bundle": "write a run into one file that others can check",
    "verify": "recompute and check a bundle",
    "keygen": "make keys to sign bundles with",
    "leaderboard": "build a static page from verified bundles",
    "list": "list providers, benchmarks, extractors, stores, agents, models and suites",
    "describe": "describe a provider, benchmark, extractor, store, agent or model",
    "data": "pull, list, verify, preview and convert datasets",
    "judge": "calibrate a judge against human labels",
    "schema": "print the JSON Schema of a config, run spec or comparison",
    "doctor": "check what is installed and which keys are set",
    "init": "write starting files for a provider, benchmark, scenario or extractor",
    "validate": "check a config, a dataset or a results file",
    "completion": "print a script that completes commands in your shell",
}
ACTIONS = {
    "audit": ("probes", "list the probes of a dataset, or write them to a file"),
    "online": ("receive", "store spans that agents send by OTLP/HTTP"),
}
"""Actions that have their own command, such as `audit probes`: the word after the verb and its help, by verb."""
VERB_ALIASES = {"bench": "eval"}
"""Other names of verbs: the suite of the verb `eval` is called bench."""
MEMAUDIT_VERBS = {"audit": VERBS["audit"], "validate": "check a dataset and count its probes"}
_PRINTING_VERBS = frozenset(
    {"results", "show", "compare", "runs", "export", "list", "describe", "schema", "doctor", "validate", "completion"}
)
_READING_VERBS = frozenset({"results", "show", "compare", "view", "export", "plot"})
"""Verbs that take a bundle in place of a run."""
BUNDLE_SUFFIX = ".mbz"
FIRST_STEPS = """
First steps, without an API key:
  memorybench eval --limit 60              compare memory providers
  memorybench results latest --failures    see what they missed
  memorybench view                         look at runs in a browser

memorybench --help lists all commands.
memorybench eval --help explains one of them.
The tutorial is docs/tutorial.md in the repository."""
"""Is shown, after the purpose of the program, if no verb is given."""
_PLUGINS = "Suites of installed packages add verbs; `memorybench list --suites` shows them."

EXIT_FAILED = 1
EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    return _run("memorybench", PURPOSE, VERBS, arguments, _PLUGINS)


def memaudit(arguments: Sequence[str] | None = None) -> int:
    return _run("memaudit", "Audits what a model or a memory system remembers.", MEMAUDIT_VERBS, arguments)


def verb_parser(program: str, verb: str, action: str = "") -> argparse.ArgumentParser:
    """Return the parser of one verb, for the generated reference; `action` is one of ACTIONS."""
    verbs = VERBS if program == "memorybench" else MEMAUDIT_VERBS
    parser = _parser(program, "", verbs, [verb, action], "")
    actions = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    verb_parser: argparse.ArgumentParser = actions.choices[verb]
    return verb_parser


def whole_parser(program: str) -> argparse.ArgumentParser:
    """Return the parser of all verbs with all their arguments, for shell completion."""
    verbs = dict(VERBS if program == "memorybench" else MEMAUDIT_VERBS)
    if program == "memorybench":
        every = [command for suite in suites() for command in suite.commands]
        verbs = {**{command.name.split()[0]: command.help for command in every}, **verbs}
    return _parser(program, "", verbs, list(verbs), "", whole=True)


def _run(
    program: str, purpose: str, verbs: Mapping[str, str], arguments: Sequence[str] | None, epilog: str = ""
) -> int:
    if arguments is None:  # the whole process is this command
        _collect_garbage_rarely()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and program == "memorybench":
        given[0] = VERB_ALIASES.get(given[0], given[0])
    debug = "--debug" in given
    prepare_streams(as_json="--json" in given)
    if not given and program == "memorybench":
        return _show_first_steps()
    try:
        args = _parser(program, purpose, verbs, given, epilog).parse_args(given)
        args.command_line = (program, *given)
        if args.verb in _PRINTING_VERBS:
            stop_when_output_is_lost()
        with redacted_output(), _opened_bundles(args):
            learn_journal(getattr(args, "journal", None))
            code: int = args.handler(args)
        failure = output_failure()
    except OutputLost:
        code, failure = 0, output_failure()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:
        return _explain(program, error, debug, given)
    if failure is not None:
        print(f"{program}: standard output: cannot be written ({failure.strerror})", file=sys.stderr)
    return code or (EXIT_FAILED if failure is not None else 0)


def _show_first_steps() -> int:
    from memorybench.reporting.typed_commands import as_typed

    print(PURPOSE, as_typed(FIRST_STEPS), sep="\n", file=sys.stderr)
    return EXIT_REFUSED


def _opened_bundles(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Open the bundles on the command line of a verb that reads runs. Does nothing for other verbs."""
    if args.verb not in _READING_VERBS or not any(BUNDLE_SUFFIX in word for word in args.command_line):
        return nullcontext()
    from .opened_bundles import opened_bundles

    return opened_bundles(args)


def _collect_garbage_rarely() -> None:
    """Make the garbage collector run rarely, because the objects of imported modules are never garbage.

    With the default threshold, the collector takes a fifth of the time of a short command.
    """
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)


def _parser(
    program: str, purpose: str, verbs: Mapping[str, str], given: Sequence[str], epilog: str, *, whole: bool = False
) -> argparse.ArgumentParser:
    parser = Parser(prog=program, description=purpose, epilog=epilog, allow_abbrev=False)
    parser.given = given
    parser.add_argument("--version", action="version", version=f"{program} {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    actions = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    chosen = next((word for word in given if not word.startswith("-")), "")
    if program == "memorybench" and chosen and chosen not in verbs:
        verbs = {**verbs, **{command.name.split()[0]: command.help for _, command in commands(chosen)[:1]}}
    if chosen in verbs and chosen == given[0] and not whole:
        verbs = {chosen: verbs[chosen]}  # only `memorybench --help` and an unknown verb list the others
    for verb, help in verbs.items():
        sub = actions.add_parser(verb, help=help, description=help, allow_abbrev=False)
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        if verb != chosen and not whole:
            continue  # its name is enough
        if verb in ACTIONS and is_action(given, ACTIONS[verb][0]):
            action, description = ACTIONS[verb]
            module = import_module(f"memorybench.cli.{verb}_{action}")
            sub.prog, sub.description = f"{sub.prog} {action}", description
            module.configure(sub)
            sub.set_defaults(handler=module.run)
        elif verb in RUN_VERBS or verb not in (*VERBS, *MEMAUDIT_VERBS):
            import_module("memorybench.cli.run").configure(sub, verb)
        else:
            own_validate = program == "memaudit" and verb == "validate"
            module = import_module(f"memorybench.cli.{'audit_validate' if own_validate else verb}")
            module.configure(sub)
            sub.set_defaults(handler=module.run)
        add_aliases(sub)
    return parser


def is_action(given: Sequence[str], action: str) -> bool:
    """Return whether the word after the verb is this action. Words that begin with `-` are skipped."""
    return [word for word in given if not word.startswith("-")][1:2] == [action]


def _explain(program: str, error: Exception, debug: bool, given: Sequence[str]) -> int:
    from memorybench.journal.places import hide_passwords_of
    from memorybench.reporting.typed_commands import as_typed

    def redact(text: str) -> str:
        for word in given:
            if "://" in word:  # an address where none is expected, such as after a misspelled --journal
                learn_journal(word)
                text = hide_passwords_of(word, text)  # the redactor ignores short ones
        return redactor().clean(text)

    if debug:
        import traceback

        print(redact("".join(traceback.format_exception(error))), file=sys.stderr)
    text = as_typed(redact(" ".join(str(error).split())))
    if isinstance(error, MemorybenchError):
        print(f"{program}: {text}", file=sys.stderr)
        return EXIT_REFUSED if isinstance(error, Refusal) else EXIT_FAILED
    hint = "" if debug else "; run again with --debug to see where"
    print(f"{program}: unexpected {type(error).__name__}: {text}{hint}; please report it", file=sys.stderr)
    return EXIT_FAILED
