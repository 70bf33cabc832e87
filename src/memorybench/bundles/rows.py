"""The rows of a run as a bundle stores them: those of the journal, but with JSON objects instead of JSON in texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from memorybench.core.records import Record
from memorybench.core.trials import Outcome
from memorybench.journal.rows import Fingerprint, RunStatus

_TEXT = 1_000_000
_COUNT = 2**63 - 1


class RunRow(Record):
    id: str = Field(max_length=64)
    suite: str = Field(max_length=200)
    spec: Mapping[str, Any]
    fingerprints: Mapping[str, Fingerprint]
    program: str = Field(max_length=_TEXT)
    planned: int = Field(ge=0, le=_COUNT)
    status: RunStatus
    created: str = Field(max_length=100)
    finished: str | None = Field(max_length=100)


class CaseRow(Record):
    benchmark: str
    id: str
    body: Mapping[str, Any]
    """The case; in a public bundle, without its texts."""
    digest: str | None = None
    """In a public bundle, the digest of the complete case; otherwise None."""


class _Spent(Record):
    tries: int = Field(ge=0, le=_COUNT)
    uncertain: int = Field(ge=0, le=_COUNT)
    calls: int = Field(ge=0, le=_COUNT)
    input_tokens: int = Field(ge=0, le=_COUNT)
    output_tokens: int = Field(ge=0, le=_COUNT)
    cost: float | None = Field(ge=0)


class StepRow(_Spent):
    key: str
    name: str
    subject: str
    inputs: Any
    result: Any
    """The result. In a public bundle, `inputs` and `result` are None, except for results that the report needs."""
    digests: tuple[str, str] | None = None
    """In a public bundle, the digests of inputs and result; otherwise None."""
    started: str
    seconds: float = Field(ge=0)
    reused_from: str | None
    reused_cost: tuple[Annotated[float, Field(ge=0)] | None] | None = None
    """For a reused step, a tuple with its cost in the run that performed it: (None,) if the cost is unknown. None if
    that run was not in the journal, and for steps that were not reused."""
    attempt: int | None = Field(ge=0, le=_COUNT)
    shared: bool


class AttemptRow(_Spent):
    id: int = Field(ge=0, le=_COUNT)
    key: str
    name: str
    subject: str
    started: str
    ended: str | None
    error: str | None


class OutcomeRow(Record):
    trial: str
    ordinal: int = Field(ge=0, le=_COUNT)
    finished: str
    body: Outcome
    digest: str | None = None
    """In a public bundle, the digest of the complete outcome; otherwise None."""


class NoteRow(Record):
    kind: str
    text: str
