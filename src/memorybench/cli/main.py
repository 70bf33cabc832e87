"""`memorybench VERB …` and `memaudit VERB …`: finds the verb, calls it, and puts every error into one line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from memorybench import __version__

VERBS = {
    "eval": "put memory providers to benchmarks and compare them",
    "audit": "ask a model or a memory what was said: recall, inventions, conflicts, time",
    "extraction": "test what a memory extractor writes down: precision, recall, F1",
    "hygiene": "catch a memory being soiled: noise, secrets, duplicates, lost facts",
    "score": "judge the recorded answers of a run anew",
    "results": "show, compare and dig into results",
    "export": "write one row a question to a file",
    "list": "which providers, benchmarks, extractors, stores and agents there are",
    "describe": "all about one of them",
    "data": "datasets: pull, list, verify, convert",
    "judge": "calibrate a judge against human labels",
    "schema": "JSON Schema of a config file, for editors",
    "doctor": "what is installed, which keys are set, and what to do about the rest",
    "validate": "check a config, a dataset or a results file",
}
MEMAUDIT_VERBS = {"audit": VERBS["audit"], "validate": "check a dataset, and tell which probes it would give"}
MODULES = {("memaudit", "validate"): "audit_validate"}
"""Verbs whose module has another name."""

EXIT_FAILED = 1
EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    return _run("memorybench", "Tells how good an AI agent's memory is.", VERBS, arguments)


def memaudit(arguments: Sequence[str] | None = None) -> int:
    return _run("memaudit", "Audits what a model or a memory system remembers.", MEMAUDIT_VERBS, arguments)


def _run(program: str, purpose: str, verbs: dict[str, str], arguments: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(program, purpose, verbs, given)
    args = parser.parse_args(given)
    try:
        code: int = import_module(f"memorybench.cli.{args.module}").run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader went away, as `head` does
        return 0
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:
        return _explain(program, error, args.debug)


def _parser(program: str, purpose: str, verbs: dict[str, str], given: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description=purpose, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"{program} {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    chosen = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, purpose_of_verb in verbs.items():
        sub = chosen.add_parser(verb, help=purpose_of_verb, description=purpose_of_verb, allow_abbrev=False)
        module = MODULES.get((program, verb), verb)
        sub.set_defaults(module=module)
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        if verb in given:  # the arguments of other verbs are nobody's business now
            import_module(f"memorybench.cli.{module}").configure(sub)
    return parser


def _explain(program: str, error: Exception, debug: bool) -> int:
    from memorybench.core.errors import MemorybenchError, Refusal
    from memorybench.wiring.environment import redactor

    redact = redactor().clean
    if debug:
        import traceback

        print(redact("".join(traceback.format_exception(error))), file=sys.stderr)
    if isinstance(error, MemorybenchError):
        print(f"{program}: {redact(' '.join(str(error).split()))}", file=sys.stderr)
        return EXIT_REFUSED if isinstance(error, Refusal) else EXIT_FAILED
    hint = "" if debug else "; run again with --debug to see where"
    said = redact(" ".join(str(error).split()))
    print(f"{program}: unexpected {type(error).__name__}: {said}{hint}; please report it", file=sys.stderr)
    return EXIT_FAILED
