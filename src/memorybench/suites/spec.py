"""Declares what a run depends on, once. Flags, saved spec, JSON Schema and Python arguments are derived from it.

class ToySpec(Spec):
    size: int = flag(3, help="Set the number of cases.", metavar="N", ge=1)
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, field_validator
from pydantic.fields import FieldInfo

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.core.uses import Consent, Use
from memorybench.journal.places import hide_password
from memorybench.text.spelling import suggestion

from .shards import parse_shard

SpecT = TypeVar("SpecT", bound=Record)


def flag(
    default: Any = ...,
    *,
    help: str,
    name: str | None = None,
    metavar: str | None = None,
    usage: str | None = None,
    default_text: str | None = None,
    file_or_text: bool = False,
    several_words: bool = False,
    saved: bool = True,
    is_program: bool = False,
    **limits: Any,
) -> Any:
    """Declare a field that is also a command-line flag.

    `name` replaces the name derived from the field; one without leading hyphens is a positional argument.
    `usage` replaces what --help shows after the flag, such as `SOURCE [FILE]`.
    `default_text` describes a default that is not a constant. `file_or_text`: the value may name a file with the text.
    `several_words`: the flag takes several words, which the spec parses. `saved=False`: the value is not saved with the
    run and must be given at every start. `is_program`: the value is a command line; a resumed run may only start it
    with --allow-code. `limits` are constraints of pydantic, such as `ge=1`.
    """
    extra: dict[str, Any] = {
        "flag": name,
        "metavar": metavar,
        "usage": usage,
        "default_text": default_text,
        "file_or_text": file_or_text,
        "several_words": several_words,
        "is_program": is_program,
    }
    kept = {key: value for key, value in extra.items() if value}
    if callable(default):
        return Field(default_factory=default, description=help, json_schema_extra=kept, exclude=not saved, **limits)
    return Field(default, description=help, json_schema_extra=kept, exclude=not saved, **limits)


def flag_options(field: FieldInfo) -> Mapping[str, Any]:
    extra = field.json_schema_extra
    return extra if isinstance(extra, dict) else {}


def flag_name(spec: type[Record], field: str) -> str:
    """Return what the user types for a field: `--limit`, or the metavar of a positional argument."""
    options = flag_options(spec.model_fields[field])
    name = options.get("flag") or f"--{field.replace('_', '-')}"
    return str(name if name.startswith("-") else options.get("metavar") or name)


def flag_words(spec: Record, names: Collection[str] | None = None, typed: Mapping[str, str] | None = None) -> list[str]:
    """Return the words of a command line that give a spec its values. Defaults are left out.

    `names` are the fields to include; None: all. `typed` are words by field that replace the value, such as the name of
    the file that a text was read from. A field with `several_words` cannot be included.
    """
    kind, positional, words = type(spec), list[str](), list[str]()
    for name, field in kind.model_fields.items():
        value = getattr(spec, name)
        unset = value is None or value == field.get_default(call_default_factory=True)
        if not is_flag(field) or (names is not None and name not in names) or unset:
            continue
        flag = flag_name(kind, name)
        if isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
            continue
        if isinstance(value, Mapping):
            own = [f"{key}={path}" for key, path in value.items()]
        else:
            own = [str(one) for one in value] if isinstance(value, tuple) else [(typed or {}).get(name, str(value))]
        if not flag.startswith("-"):
            positional += own
        elif own[0].startswith("-"):  # as a word of its own, the value would be read as the next flag
            words += [f"{flag}={one}" for one in own]
        else:
            words += [flag, *own]
    return [*positional, *words]


def with_folders(command: Sequence[str], spec: "Spec", *, consent: bool = False) -> str:
    """Return a command line with the --config-dir flags of a spec; with `consent`, also with its flags of consent."""
    names = [name for name in Spec.model_fields if name != "reuse"] if consent else ["config_dirs"]
    return shlex.join([*command, *flag_words(spec, names)])


def is_flag(field: FieldInfo) -> bool:
    return field.description is not None


class Spec(Record):
    """The base class of every suite's spec. It is saved with the run, so that `--resume` needs only the run's name.

    Fields with `saved=False`, such as consent to run code, are not saved and must be given again.
    """

    config_dirs: tuple[str, ...] = flag(
        (), help="Also read configs from these folders.", name="--config-dir", metavar="DIR"
    )
    allow_code: bool = flag(False, help="Let your configs run programs, Python, containers and SQL.", saved=False)
    allow_env: tuple[str, ...] = flag(
        (),
        help="Let configs send these environment variables, besides their own key.",
        name="--allow-env",
        metavar="NAME",
        saved=False,
    )
    store_is_disposable: bool = flag(False, help="Let the run change or delete data in existing memories.", saved=False)
    reuse: str | None = flag(None, help="Reuse unchanged steps, such as answers, of RUN in --output.", metavar="RUN")

    @property
    def consent(self) -> Consent:
        return Consent(self.allow_code, frozenset(self.allow_env), self.store_is_disposable)

    @classmethod
    def migrate(cls, saved: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return saved values with the field names of today; an older version may have used others."""
        return saved


class JudgedSpec(Spec):
    """Adds the flag `--canaries`, for suites in which a model can judge the answers."""

    canaries: int | Literal["off"] | None = flag(
        None,
        help="First test the judge on N bundled answers; `off`: none.",
        metavar="N|off",
        default_text="at most a tenth of its calls",
    )

    @field_validator("canaries", mode="before")
    @classmethod
    def _read_canaries(cls, value: Any) -> Any:
        if value in (None, "off") or str(value).isdecimal():
            return value
        raise ValueError("a number of canaries, or off")

    def check_canaries(self, *, has_judge: bool) -> None:
        """Raise BadInput if `--canaries` is given without a judge."""
        if self.canaries not in (None, "off", 0) and not has_judge:
            raise BadInput(
                "--canaries",
                "canaries check a judge, but the run has no judge",
                remedy="add --judge-model MODEL, or leave out --canaries",
            )


class ShardedSpec(Spec):
    """The spec of a suite whose runs can be divided into shards."""

    shard: str | None = flag(None, help="Perform part I (from 1) of N; `merge` joins them.", metavar="I/N")

    @field_validator("shard")
    @classmethod
    def _check_shard(cls, value: str | None) -> str | None:
        return None if value is None else "{}/{}".format(*parse_shard(value))


class RepeatedSpec(ShardedSpec, JudgedSpec):
    """The spec of a suite that can ask each question several times, to measure how much answers vary."""

    repeats: int = flag(1, help="Answer and judge each question N times; search it once.", metavar="N", ge=1)
    detect: tuple[Annotated[float, Field(gt=0, le=100)], ...] = flag(
        (),
        help="With --repeats: report questions needed to detect these percentage-point differences.",
        metavar="POINTS",
        default_text="2 5 10",
    )


SavedT = TypeVar("SavedT", bound=Spec)


def _without_dollar_sign(value: object) -> object:
    return value.removeprefix("$") if isinstance(value, str) else value


Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RunOptions(Record):
    """How a run is performed. No option affects its figures."""

    output: Path | None = flag(None, help="Write results to this folder.", metavar="DIR")
    journal: str | None = flag(
        None,
        help="Store rows in this Postgres database, postgresql://USER@HOST/DATABASE.",
        metavar="URL",
        default_text="a SQLite file",
    )
    run_id: str | None = flag(None, help="Name the run.", name="--run-id", metavar="ID", default_text="random")
    resume: str | None = flag(None, help="Continue RUN in --output; scored trials are not repeated.", metavar="RUN")
    concurrency: int | None = flag(
        None,
        help="Make at most N calls at the same time.",
        metavar="N",
        default_text="10; with --resume: unchanged",
        ge=1,
    )
    budget: Annotated[Dollars | Literal["none"] | None, BeforeValidator(_without_dollar_sign)] = flag(
        None,
        help="Stop spending at this amount; `none` removes the limit.",
        metavar="DOLLARS",
        default_text="none; with --resume: unchanged",
    )
    ray: str | None = flag(None, help="Perform the run on this Ray cluster; needs --journal.", metavar="ADDRESS|local")
    workers: int | None = flag(None, help="With --ray: start N workers (required).", metavar="N", ge=1)
    cpus_per_worker: float = flag(
        1.0, help="With --ray: reserve C CPUs per worker.", metavar="C", default_text="1", gt=0, allow_inf_nan=False
    )
    ray_files: tuple[str, ...] = flag((), help="With --ray: copy these files to the workers.", metavar="PATH")
    ray_env: tuple[str, ...] = flag(
        (), help="With --ray: send these environment variables to the workers.", metavar="NAME"
    )
    baseline: str | None = flag(
        None,
        help="Compare main measures with RUN; exit 3 if significantly worse.",
        metavar="RUN",
        default_text="none; with --resume: unchanged",
    )
    max_drop: tuple[str, ...] = flag(
        (),
        help="Exit 3 if worse than --baseline by more percentage points.",
        metavar="[MEASURE=]POINTS",
    )
    tags: tuple[str, ...] = flag(
        (), help="Tag the run; `memorybench runs --tag` finds it.", name="--tag", metavar="TAG"
    )
    junit: Path | None = flag(None, help="Also write the outcomes as JUnit XML.", metavar="FILE")
    step_summary: Path | None = flag(
        None, help="Append the report as Markdown to this file.", metavar="FILE", default_text="$GITHUB_STEP_SUMMARY"
    )
    otel: str | None = flag(
        None, help="Send spans to this OTLP/HTTP endpoint, such as http://localhost:4318.", metavar="URL"
    )
    otel_content: bool = flag(False, help="With --otel: also send texts of questions and memories.")
    command_line: tuple[str, ...] = ()
    """The words of the command line that the user typed, for report.json."""


_NEED_RAY = ("workers", "cpus_per_worker", "ray_files", "ray_env")


def check_ray(options: RunOptions) -> None:
    """Raise BadInput if the options for Ray are incomplete or contradict each other."""
    if options.ray is None:
        for name in _NEED_RAY:
            if name in options.model_fields_set:
                raise BadInput(flag_name(RunOptions, name), "needs --ray", remedy="add --ray local or --ray ADDRESS")
        return
    if find_spec("ray") is None:
        raise BadInput("--ray", "ray is not installed", remedy='pip install "memorybench[ray]"')
    if options.journal is None:
        raise BadInput(
            "--ray",
            "workers on a Ray cluster need a journal in Postgres",
            remedy="add --journal postgresql://USER@HOST/DATABASE",
        )
    if hide_password(options.journal) != options.journal:
        raise BadInput(
            "--journal",
            "the address contains a password, which Ray would show",
            remedy="leave the password out, and add --ray-env PGPASSWORD; local workers also read ~/.pgpass",
        )
    if options.workers is None:
        raise BadInput("--workers", "missing", remedy="add --workers N, the number of workers")
    if options.cpus_per_worker > 1 and not options.cpus_per_worker.is_integer():
        raise BadInput(
            "--cpus-per-worker",
            f"invalid value {options.cpus_per_worker:g}",
            expected="a part of one CPU, such as 0.5, or a whole number",
        )


def check_otel(options: RunOptions) -> str | None:
    """Return the URL that spans are sent to; None without --otel. Raise BadInput if spans cannot be sent."""
    if options.otel is None:
        if options.otel_content:
            raise BadInput("--otel-content", "needs --otel", remedy="add --otel URL")
        return None
    if options.ray is not None:
        raise BadInput(
            "--otel",
            "not supported with --ray",
            remedy="start workers with `memorybench worker --otel URL` instead of --ray",
        )
    from memorybench.telemetry.sending import endpoint_of

    return endpoint_of(options.otel, with_content=options.otel_content)


def own_options(kind: type[Record]) -> frozenset[str]:
    """Return the names of RunOptions that a command does not get, because its spec has a field of the same name.

    A command with its own `baseline` does not get `max_drop`, either.
    """
    own = kind.model_fields.keys() & RunOptions.model_fields.keys()
    return frozenset(own | ({"max_drop"} if "baseline" in own else set()))


def check_not_empty(kind: type[Record], given: Mapping[str, Any]) -> None:
    """Raise BadInput for a flag with an empty value, such as --providers "" from an unset shell variable."""
    for name, value in given.items():
        if name in kind.model_fields and (value == () or (isinstance(value, str) and not value.strip())):
            flag = flag_name(kind, name)
            raise BadInput(flag, "empty value", remedy=f"give a value, or leave out {flag}")


_EXPECTED = {
    "greater_than_equal": "{ge:g} or more",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "{le:g} or less",
    "finite_number": "a finite number",
    "tuple_type": "a list",
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
}
"""By pydantic's error type: the text that says which value is expected."""


def make_spec(kind: type[SpecT], values: Mapping[str, Any]) -> SpecT:
    """Validate field values and return the spec. An error names the flag of the invalid field."""
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise BadInput(kind.__name__, first["msg"]) from error
        field = str(first["loc"][0])
        if field not in kind.model_fields:
            raise BadInput(field, "unknown option", remedy=suggestion(field, list(kind.model_fields))) from error
        where = flag_name(kind, field)
        if first["type"] == "missing":
            field_help = (
                (kind.model_fields[field].description or "").rstrip(".").removesuffix(" (needed unless --resume)")
            )
            name = where if where.startswith("-") else ""
            value = flag_options(kind.model_fields[field]).get("metavar") or field.upper()
            purpose = f"to {field_help[:1].lower()}{field_help[1:]}"
            raise BadInput(where, "missing", remedy=f"add {f'{name} {value}'.strip()} {purpose}") from error
        if first["type"] == "literal_error":
            allowed = first["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
            nearest = suggestion(str(first["input"]), allowed)
            raise BadInput(
                where, f'unknown value "{first["input"]}"', expected=", ".join(allowed), remedy=nearest
            ) from error
        if first["type"] in _EXPECTED:
            expected = _EXPECTED[first["type"]].format(**first.get("ctx", {}))
        else:
            expected = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
        raise BadInput(where, f"invalid value {first['input']!r}", expected=expected) from error


def saved_spec(kind: type[SavedT], saved: Mapping[str, Any], changes: Mapping[str, Any] | None = None) -> SavedT:
    """Return the spec of a saved run, with `changes`. Keys of `saved` that are not fields of the spec are left out.

    Fields that must be given at every start, such as consent, are never taken from a saved run.
    """
    fields = kind.model_fields
    known = {name: value for name, value in kind.migrate(saved).items() if name in fields and not fields[name].exclude}
    return make_spec(kind, {**known, **(changes or {})})


def unsaved_values(spec: Spec) -> dict[str, Any]:
    """Return the values of a spec that are not saved with the run, such as consent, unless they are the default."""
    fields = type(spec).model_fields
    return {
        name: value
        for name, field in fields.items()
        if field.exclude and (value := getattr(spec, name)) != field.get_default()
    }


def saved_programs(spec: Spec, given: Mapping[str, Any]) -> list[Use]:
    """Return the programs of a saved spec that the user did not give again. They need the user's consent to start."""
    fields = type(spec).model_fields
    return [
        Use(getattr(spec, name), flag_name(type(spec), name))
        for name, field in fields.items()
        if flag_options(field).get("is_program") and getattr(spec, name) and name not in given
    ]


def changed_flag(kind: type[Record], given: Mapping[str, Any]) -> str | None:
    """Return the first given flag that must not be given with --resume; None if there is none."""
    for name in given:
        if name in kind.model_fields and not kind.model_fields[name].exclude:
            return flag_name(kind, name)
    return None
