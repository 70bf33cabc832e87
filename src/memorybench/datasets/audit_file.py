"""An audit dataset as it is written: its keys, and where each conversation of a file stands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import StrictInt

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.files.json_text import decode, load_json
from memorybench.files.located import Document
from memorybench.files.reading import read_lines
from memorybench.files.validation import problems
from memorybench.text.sanitize import preview


class TurnOnFile(Record):
    role: Literal["user", "assistant", "system"]
    content: str
    timestamp: str | None = None
    speaker: str | None = None
    """A name, where roles alone do not tell who speaks."""


class FactOnFile(Record):
    id: str
    content: str
    timestamp: str | None = None
    supersedes: str | None = None
    category: Literal["personal", "preference", "event", "relationship"] | None = None
    subject: str | None = None
    attribute: str | None = None
    value: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    question: str | None = None
    turn: StrictInt | str | None = None


class ConversationOnFile(Record):
    id: str
    turns: tuple[TurnOnFile, ...]
    facts: tuple[FactOnFile, ...]


class _DatasetOnFile(Record):
    id: str
    conversations: tuple[ConversationOnFile, ...]


@dataclass(frozen=True, slots=True)
class AuditFile:
    path: Path
    id: str | None
    """None: it is missing, and so among the problems."""
    conversations: tuple[Document, ...]
    """Those that are mappings at least."""
    problems: tuple[BadInput, ...]
    """Broken JSON, wrong types, unknown and missing keys."""
    dataset: Document | None = None
    """What holds the conversations; None: they are rows."""

    def line_of(self, bad: BadInput) -> int:
        number = bad.where.removeprefix(f"{self.path}:").partition(":")[0]
        return int(number) if number.isdigit() else 0


def read_audit_file(path: Path) -> AuditFile:
    """Reads on after what is wrong, so that all of it can be told."""
    stem, _, kind = path.name.removesuffix(".gz").rpartition(".")
    try:
        match kind.lower():
            case "json":
                return _dataset(path)
            case "jsonl" | "ndjson":
                return _rows(path, stem)
    except BadInput as bad:  # nothing of the file can be read
        return AuditFile(path, None, (), (bad,))
    unknown = BadInput(
        str(path),
        "is of a kind unknown here",
        expected="a name ending in .json (one dataset) or .jsonl (one conversation a line), or these with .gz",
        remedy="rename it",
    )
    return AuditFile(path, None, (), (unknown,))


def turn_id(turn: int | str) -> str:
    """`t3`, for the third turn of a conversation."""
    return turn if isinstance(turn, str) else f"t{turn}"


def members(document: Document, key: str) -> list[Document]:
    """The mappings in the list at `key`; what else stands there was complained of already."""
    listed = document.value.get(key)
    items = enumerate(listed if isinstance(listed, list) else ())
    return [document.at(key, index) for index, item in items if isinstance(item, dict)]


def named(document: Document) -> str:
    """`"c2"`, a conversation or fact as messages call it."""
    return preview(document.value.get("id"))


def _dataset(path: Path) -> AuditFile:
    document = load_json(path)
    wrong = _misfits(document, _DatasetOnFile)
    if not isinstance(document.value, dict):
        return AuditFile(path, None, (), wrong)
    id = document.value.get("id")
    conversations = tuple(members(document, "conversations"))
    return AuditFile(path, id if isinstance(id, str) else None, conversations, wrong, document)


def _rows(path: Path, id: str) -> AuditFile:
    conversations: list[Document] = []
    wrong: list[BadInput] = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            document = _row(path, decode(line, str(path), number), number)
        except BadInput as bad:
            wrong.append(bad if line.endswith("\n") else _torn(bad))
            continue
        wrong += _misfits(document, ConversationOnFile)
        if isinstance(document.value, dict):
            conversations.append(document)
    return AuditFile(path, id, tuple(conversations), tuple(wrong))


def _misfits(document: Document, record: type[Record]) -> tuple[BadInput, ...]:
    """Wrong types and keys, each with a remedy."""
    return tuple(
        BadInput(bad.where, bad.problem, expected=bad.expected, remedy=bad.remedy or "correct it")
        for bad in problems(document, record)
    )


def _row(path: Path, value: Any, number: int) -> Document:
    return Document(str(path), value, lambda _: number)


def _torn(bad: BadInput) -> BadInput:
    """Only a last line has no end: a writer was stopped, or a download."""
    return BadInput(
        bad.where,
        f"the last line is torn: {bad.problem}",
        expected="one conversation",
        remedy="complete or remove the line",
    )
