"""Reports errors in recorded data that does not have the structure that memorybench writes.

Checksums detect rows that were changed. They do not detect rows that another program or another version wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal

from pydantic import ValidationError

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.journal.rows import Run
from memorybench.text.sanitize import preview, printable

ERRORS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError, StopIteration)
"""Exceptions that code may raise when it reads data with an unexpected structure."""
_LONGEST = 200


class _SavedSpec(Record, extra="ignore"):
    """The parts of a saved spec that reports of any suite read. Each part may be missing."""

    benchmarks: tuple[str, ...] | None = None
    subjects: tuple[str, ...] | None = None
    providers: tuple[str, ...] | None = None
    questions: Mapping[str, int] | None = None
    samples: Mapping[str, Mapping[str, int]] | None = None
    selected: Mapping[str, int] | None = None
    evidence: Mapping[str, Literal["turn", "session"]] | None = None
    methods: Mapping[str, str] | None = None
    timing: str | None = None
    titles: Mapping[str, str] | None = None
    targets: Mapping[str, float] | None = None
    lower_bounds: Mapping[str, str] | None = None
    probes: Mapping[str, int] | None = None
    skipped: Mapping[str, int] | None = None
    gates: Mapping[str, int] | None = None
    chosen: Mapping[str, tuple[str, ...]] | None = None
    default_settings: Mapping[str, Mapping[str, Any]] | None = None
    started_with: Mapping[str, Any] | None = None
    repeats: int | None = None
    shard: str | None = None


@contextmanager
def explain_form(*runs: Run, part: str = "") -> Iterator[None]:
    """Turn an error about the structure of recorded data into a BadInput that names the runs.

    Used as a context manager around code that reads runs. `part` names what is read, such as a question.
    """
    try:
        yield
    except (*ERRORS, RecursionError) as error:
        raise form_error(error, *runs, part=part) from error


def form_error(error: Exception, *runs: Run, part: str = "") -> BadInput:
    """Return a BadInput that says which runs have recorded data with a wrong structure, and what is wrong."""
    wrong = [(run, problem) for run in runs if (problem := _spec_problem(run))]
    names = [run.id for run, _ in wrong] or [run.id for run in runs]
    where = f"run{'s' * (len(names) > 1)} {' and '.join(names)}{f', {part}' * bool(part and not wrong)}"
    problem = f"saved spec: {wrong[0][1]}" if wrong else _describe(error)
    return BadInput(
        where,
        f"recorded data is invalid ({problem})",
        remedy="restore a copy of the results; if only memorybench has written them, please report this message",
    )


def _spec_problem(run: Run) -> str:
    """Return what is invalid in the saved spec; "" if nothing is. Missing parts are valid, an empty spec is not."""
    try:
        _SavedSpec.model_validate(dict(run.spec))
    except ValidationError as error:
        return _describe(error)
    return "" if run.spec else "it is empty"


def _describe(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        return f"{place}: {first['msg'].lower().replace('input should be', 'must be')}, not {preview(first['input'])}"
    frames = extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    if isinstance(error, KeyError):
        return f"{preview(error.args[0] if error.args else '')} is missing or unknown{place}"
    return f"{type(error).__name__}: {printable(str(error))[:_LONGEST]}{place}"
