"""What the tables hold, as records."""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import Field

from memorybench.core.records import Record, digest
from memorybench.core.spending import NOTHING, Spending

RunStatus = Literal["running", "complete", "partial", "blocked"]


class Fingerprint(Record):
    """What a run depends on. The text is kept where it is small, to show what changed."""

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
    """Made of our own values a hundred thousand times: not checked again, so no Record."""

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
    """The announcement it fulfils, where the work was paid."""


def crc(*columns: object) -> int:
    """A row's checksum: SQLite does not notice a bit that flips inside a value."""
    return zlib.crc32("\x1f".join(map(str, columns)).encode("utf-8", "surrogatepass"))


def storable(text: str) -> str:
    """Half a surrogate, which no file takes, is spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def differences(old: Mapping[str, Fingerprint], new: Mapping[str, Fingerprint]) -> list[str]:
    """One line for each thing that is no longer what it was."""
    lines = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            lines.append(f"{name} was {'added' if before is None else 'removed'}")
        elif before.digest != after.digest:
            lines.append(f"{name} changed: {_changed(before, after)}")
    return lines


def _changed(before: Fingerprint, after: Fingerprint) -> str:
    if before.text is None or after.text is None:
        return f"was {before.digest[:12]}, is {after.digest[:12]}"
    diff = difflib.unified_diff(before.text.splitlines(), after.text.splitlines(), lineterm="", n=0)
    shown = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    return " ".join(_short(line) for line in shown[:4]) + (" …" if len(shown) > 4 else "")


def _short(line: str) -> str:
    return line if len(line) <= 120 else line[:119] + "…"
