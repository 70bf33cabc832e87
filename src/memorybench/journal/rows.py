"""The rows of the tables, as records."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import Field

from memorybench.core.records import Record, digest
from memorybench.core.spending import NOTHING, Spending

RunStatus = Literal["running", "complete", "partial", "blocked"]


class Fingerprint(Record):
    """The digest of something that a run depends on, with its text if that is small, to show what changed."""

    digest: str
    text: str | None = None

    @classmethod
    def of(cls, text: str) -> Fingerprint:
        return cls(digest=digest(text), text=text if len(text) <= 100_000 else None)


class Run(Record):
    id: str
    suite: str
    spec: Mapping[str, Any]
    fingerprints: Mapping[str, Fingerprint] = Field(default_factory=dict)
    program: str = ""
    planned: int = 0
    status: RunStatus = "running"
    created: str = ""
    finished: str | None = None


class Step(NamedTuple):
    """One recorded step. Not a Record: it is created too often to be validated."""

    key: str
    name: str
    subject: str
    inputs: str
    result: str
    started: str
    seconds: float
    tries: int = 1
    uncertain: int = 0
    spent: Spending = NOTHING
    reused_from: str | None = None
    attempt: int | None = None
    """The id of its attempt, if the work was paid."""
    shared: bool = False
    """Whether any run of the folder may reuse it."""


def storable(text: str) -> str:
    """Escape lone surrogates, which cannot be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def differences(old: Mapping[str, Fingerprint], new: Mapping[str, Fingerprint]) -> list[str]:
    """Describe each fingerprint that changed, one line each."""
    lines = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            lines.append(f"{name} was {'added' if before is None else 'removed'}")
        elif before.digest != after.digest:
            lines.append(f"{name} changed: {_describe_change(before, after)}")
    return lines


def _describe_change(before: Fingerprint, after: Fingerprint) -> str:
    if before.text is None or after.text is None:
        return f"was {before.digest[:12]}, is {after.digest[:12]}"
    diff = difflib.unified_diff(before.text.splitlines(), after.text.splitlines(), lineterm="", n=0)
    lines = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    short = [line if len(line) <= 120 else line[:119] + "…" for line in lines[:4]]
    return " ".join(short) + (" …" if len(lines) > 4 else "")
