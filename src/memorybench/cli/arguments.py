"""Command-line arguments: those that are made from the fields of a spec, and those that several verbs share."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args, get_origin

from memorybench.core.errors import BadInput
from memorybench.text.spelling import join_choices, suggestion

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from memorybench.core.records import Record
    from memorybench.core.uses import Consent


_ALIASES = (
    ("--provider", "--providers"),
    ("--benchmark", "--benchmarks"),
    ("--model", "--answering-model"),
    ("--question-type", "--question-types"),
    ("--measure", "--measures"),
)
"""Pairs of flags that mean the same. A verb that has one of them also accepts the other."""


class _HelpFormatter(argparse.HelpFormatter):
    """A HelpFormatter that shows the attribute `usage` of an action, if set, in place of argparse's own text."""

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        return getattr(action, "usage", None) or super()._format_args(action, default_metavar)


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises BadInput for an invalid command line and suggests the most similar argument."""

    given: Sequence[str] = ()
    """The words on the command line, which the suggestions depend on."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_HelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        where, separator, problem = message.removeprefix("argument ").partition(": ")
        if message.startswith("the following arguments are required"):
            where, problem = problem, "missing"
            allowed = next((list(one.choices) for one in self._actions if one.metavar == where and one.choices), [])
            if len(allowed) > 1:
                problem += f"; expected {join_choices(allowed)}"
        elif message.startswith("unrecognized arguments"):
            where, problem = problem.split()[0], "unknown argument"
        elif not separator:
            where, problem = "", message
        word, _, choices = problem.removeprefix("invalid choice: ").rstrip(")").partition(" (choose from ")
        names = choices.replace("'", "").split(", ") if choices else self._option_names()
        unknown = (word if choices else where).strip("'")
        is_name = bool(choices) or unknown.startswith("-")  # another word, such as a file name, is not a flag
        is_misspelled = is_name and unknown not in names and not problem.startswith("missing")
        close = suggestion(unknown, names) if is_misspelled else ""
        expected = ""
        if choices:
            problem, expected = f"invalid value {word}", f"one of {', '.join(names)}"
        raise BadInput(
            where,
            problem,
            expected=expected,
            remedy=close or f"`{self._named_parser().prog} --help` shows all arguments",
        )

    def _named_parser(self) -> argparse.ArgumentParser:
        """Return the parser of the verb, or of the action of a verb, that the command line names; else this one."""
        parser: argparse.ArgumentParser = self
        for word in self.given:
            inner = next((one for one in parser._actions if isinstance(one, argparse._SubParsersAction)), None)
            if inner is not None and word in inner.choices:
                parser = inner.choices[word]
        return parser

    def _option_names(self) -> list[str]:
        """Return the flags of the verb that the command line names; if it names none, those of all verbs."""
        parsers: list[argparse.ArgumentParser] = [self]
        for parser in parsers:  # grows by the parsers of its verbs
            for action in parser._actions:
                if isinstance(action, argparse._SubParsersAction):
                    chosen = [action.choices[word] for word in self.given if word in action.choices]
                    parsers += chosen[:1] or action.choices.values()
        return [name for parser in parsers for name in parser._option_string_actions if name.startswith("--")]


def add_aliases(parser: argparse.ArgumentParser) -> None:
    """Accept the other name of each flag in _ALIASES, without showing it in --help."""
    known = parser._option_string_actions
    for names in _ALIASES:
        for name, other in (names, names[::-1]):
            if other in known:
                known.setdefault(name, known[other])
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                add_aliases(inner)


def add_fields(
    parser: argparse.ArgumentParser,
    spec: type[Record],
    defaults: Mapping[str, str] | None = None,
    without: Collection[str] = (),
) -> None:
    """Add a flag or positional argument for each field of the spec that is marked as one, except those in `without`.

    `defaults` has the default that --help shows for a field, if it is not the default of the spec.
    """
    from memorybench.suites.spec import Spec, flag_options, is_flag

    own_first = sorted(
        spec.model_fields.items(), key=lambda item: (item[0] in Spec.model_fields, item[0] not in spec.__annotations__)
    )
    for name, field in own_first:
        if not is_flag(field) or name in without:
            continue
        options = flag_options(field)
        default = (defaults or {}).get(name) or options.get("default_text") or _default_text(field)
        help_text = f"{(field.description or '').rstrip('.')}{f' (default: {default})' if default else ''}"
        shape = _shape(field, options)
        flag = options.get("flag") or f"--{'no-' if field.default is True else ''}{name.replace('_', '-')}"
        if flag.startswith("-"):
            action = parser.add_argument(flag, dest=name, default=argparse.SUPPRESS, help=help_text, **shape)
            action.usage = options.get("usage")  # type: ignore[attr-defined]
        else:
            nargs = "*" if shape.get("nargs") else "?"
            parser.add_argument(
                name, metavar=options.get("metavar"), nargs=nargs, default=argparse.SUPPRESS, help=help_text
            )


def _shape(field: FieldInfo, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return argparse options for a field; its type decides whether it is a switch, a choice, a list or one word."""
    kind = field.annotation
    if kind is bool:
        return {"action": "store_false" if field.default is True else "store_true"}
    shape: dict[str, Any] = {"metavar": options["metavar"]} if "metavar" in options else {}
    if options.get("several_words"):
        return {**shape, "nargs": "+"}
    if get_origin(kind) is Literal:
        return {"choices": get_args(kind)}
    if get_origin(kind) is tuple or _is_mapping(field):
        return {**shape, "nargs": "+", "action": "extend"}
    return shape


def _is_mapping(field: FieldInfo) -> bool:
    origin = get_origin(field.annotation)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _default_text(field: FieldInfo) -> str:
    default = field.default
    if isinstance(default, tuple):
        return " ".join(default)
    return str(default) if isinstance(default, (str, int)) and not isinstance(default, bool) else ""


def given_fields(args: argparse.Namespace, spec: type[Record]) -> dict[str, Any]:
    """Return the fields of the spec that the command line sets, with their words converted to the fields' types."""
    from memorybench.suites.spec import check_not_empty, flag_name, flag_options

    given: dict[str, Any] = {}
    for name, field in spec.model_fields.items():
        if not hasattr(args, name):
            continue
        value = getattr(args, name)
        if flag_options(field).get("file_or_text"):
            from memorybench.suites.judge_prompts import prompt_text

            value = prompt_text(value, flag_name(spec, name))
        elif _is_mapping(field):
            value = named_files(value, flag_name(spec, name))
        elif get_origin(field.annotation) is tuple:
            value = split_list(value)
        given[name] = value
    check_not_empty(spec, given)
    return given


def named_files(values: Sequence[str], flag: str) -> dict[str, str]:
    """Parse values of the form NAME=PATH into a dict. Raise BadInput if one is malformed or a name occurs twice."""
    files: dict[str, str] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if not equals or not name or not path or name in files:
            raise BadInput(flag, f"invalid value {value!r}", expected="NAME=PATH, with each name at most once")
        files[name] = path
    return files


def add_action(actions: Any, name: str, about: str) -> argparse.ArgumentParser:
    """Add an action, such as `list` in `data list`, to the result of `add_subparsers`; return its parser."""
    parser: argparse.ArgumentParser = actions.add_parser(name, help=about, description=about, allow_abbrev=False)
    return parser


def add_concurrency(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--concurrency",
        metavar="N",
        type=positive,
        default=10,
        help="Make at most N calls at the same time (default: 10)",
    )


def add_budget(parser: argparse.ArgumentParser, needed: str) -> None:
    """Add --budget. `needed` is the flag without which nothing is spent."""
    from memorybench.suites.spec import RunOptions

    others = [name for name in RunOptions.model_fields if name != "budget"]
    add_fields(parser, RunOptions, {"budget": "none"}, without=others)
    for action in parser._actions:
        if action.dest == "budget":
            action.help = f"With {needed}: {(action.help or '').replace('Stop', 'stop', 1)}"


def given_budget(args: argparse.Namespace) -> float | None:
    """Return the limit of --budget in dollars; None without --budget or with `--budget none`."""
    from memorybench.suites.spec import RunOptions, make_spec

    given = given_fields(args, RunOptions)
    budget = make_spec(RunOptions, {name: given[name] for name in given if name == "budget"}).budget
    return None if budget in (None, "none") else float(budget)


def refuse_flags(args: argparse.Namespace, flags: Sequence[str], needed: str, remedy: str) -> None:
    """Raise BadInput if one of `flags` is given. They are valid only with `needed`, which the command line lacks."""
    for flag in flags:
        value = given_budget(args) if flag == "--budget" else getattr(args, flag[2:].replace("-", "_"))
        if value is not None and value is not False:
            raise BadInput(flag, f"is valid only with {needed}", remedy=remedy)


def add_list(parser: argparse.ArgumentParser, *names: str, **options: str) -> None:
    """Add a flag for a list, whose items are separated by spaces or commas, or given by repeating the flag."""
    parser.add_argument(*names, nargs="+", action="extend", default=None, **options)  # type: ignore[arg-type]


def split_list(values: Sequence[str] | None) -> tuple[str, ...]:
    from memorybench.files.expressions import split_names

    return tuple(name for value in values or () for name in split_names(value))


def positive(text: str) -> int:
    return _number(text, 1)


def zero_or_more(text: str) -> int:
    return _number(text, 0)


def _number(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid number {text!r}") from None
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is too small; expected {least} or more")
    return number


def add_config_dir(parser: argparse.ArgumentParser) -> None:
    add_list(parser, "--config-dir", metavar="DIR", help="Also read configs from these folders")


def add_consent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-code", action="store_true", help="Let your configs run programs, Python, containers and SQL"
    )
    add_list(
        parser,
        "--allow-env",
        metavar="NAME",
        help="Let configs send these environment variables, besides their own key",
    )


def given_consent(args: argparse.Namespace) -> Consent:
    from memorybench.core.uses import Consent

    disposable = getattr(args, "store_is_disposable", False)
    return Consent(args.allow_code, frozenset(split_list(args.allow_env)), disposable)


def add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results",
        metavar="DIR",
        nargs="+",
        action="extend",
        type=Path,
        default=[],
        help="Look in these folders (default: ./results and ./audit-results)",
    )
    parser.add_argument(
        "--journal", metavar="URL", help="Read runs from this Postgres database, postgresql://USER@HOST/DATABASE"
    )


def folders(args: argparse.Namespace) -> list[Path]:
    from memorybench.suites.suite import default_folders

    found = list(args.results) or default_folders()
    if args.journal is None:
        return found
    from memorybench.journal.places import results_folder

    return [results_folder(found[0], args.journal)]


def place_words(args: argparse.Namespace) -> list[str]:
    """Return the flags, such as --results, that a suggested command needs to find the same runs."""
    typed: list[Path] = getattr(args, "typed_results", args.results)  # without the folder of opened bundles
    words = ["--results", *map(str, typed)] if typed else []
    if args.journal is not None:
        from memorybench.journal.places import hide_password

        words += ["--journal", hide_password(args.journal)]
    return words


def add_json(parser: argparse.ArgumentParser, help: str = "Print one JSON document on standard output") -> None:
    parser.add_argument("--json", action="store_true", help=help)
