"""Arguments that several verbs take."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def add_list(parser: argparse.ArgumentParser, *names: str, **options: str) -> None:
    """A list: blanks, commas and repeats all do."""
    parser.add_argument(*names, nargs="+", action="extend", default=None, **options)  # type: ignore[arg-type]


def flat(values: Sequence[str] | None) -> tuple[str, ...]:
    found = (part.strip() for value in values or () for part in value.split(","))
    return tuple(part for part in found if part)


def named_files(values: Sequence[str] | None, flag: str) -> dict[str, str]:
    """NAME=PATH, each name once; paths may hold commas."""
    found: dict[str, str] = {}
    for value in values or ():
        name, equals, path = value.partition("=")
        if not equals or not name or not path or name in found:
            from memorybench.core.errors import BadInput

            raise BadInput(flag, f"{value!r} is no file of a benchmark", expected="NAME=PATH, each name once")
        found[name] = path
    return found


def positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is too small; expected 1 or more")
    return number


def dollars(text: str) -> float:
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of dollars") from None
    if not 0 <= amount < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of dollars; expected 0 or more")
    return amount


def add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results",
        metavar="DIR",
        nargs="+",
        action="extend",
        type=Path,
        default=[],
        help="folders to look in (default: ./results)",
    )


def folders(args: argparse.Namespace) -> list[Path]:
    return args.results or [Path("results")]


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document, and nothing else, on stdout")
