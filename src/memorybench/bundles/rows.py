"""The rows of a run as a bundle stores them: what the journal has, with JSON as objects instead of texts."""

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
    """Of a public bundle, the case without its texts."""
    digest: str | None = None
    """Of a public bundle, the digest of the whole case."""


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
    """Both are null in a public bundle, except for results that the report needs and that contain no texts."""
    digests: tuple[str, str] | None = None
    """Of a public bundle, the digests of inputs and result."""
    started: str
    seconds: float = Field(ge=0)
    reused_from: str | None
    reused_cost: tuple[Annotated[float, Field(ge=0)] | None] | None = None
    """Of a reused step: what it cost in the run that made it, if that is known here."""
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
    """Of a public bundle, the digest of the whole outcome."""


class NoteRow(Record):
    kind: str
    text: str
