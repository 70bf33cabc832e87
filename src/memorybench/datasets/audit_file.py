"""Reads an audit file, and checks its keys and the types of its values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Struct
from pydantic import AfterValidator, StrictInt

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.files.json_text import load_json
from memorybench.files.located import Document
from memorybench.files.reading import read_lines
from memorybench.files.rows import decode_line, row_document
from memorybench.files.validation import problems
from memorybench.text.sanitize import preview

from .dates import read_moment


def _check_text(text: str) -> str:
    if not text.strip():
        raise ValueError("the text is empty; expected some text")
    return text


def _check_date(text: str) -> str:
    if read_moment(_check_text(text)) is None:
        raise ValueError(f"invalid date {preview(text)}; expected ISO 8601, such as 2024-03-01 or 2024-03-01T09:30:00Z")
    return text


def _check_turns(turns: tuple[TurnOnFile, ...]) -> tuple[TurnOnFile, ...]:
    if not turns:
        raise ValueError("the conversation has no turns; expected at least one")
    return turns


Text = Annotated[str, AfterValidator(_check_text)]
Date = Annotated[str, AfterValidator(_check_date)]


class TurnOnFile(Record):
    role: Literal["user", "assistant", "system"]
    content: Text
    timestamp: Date | None = None
    speaker: Text | None = None
    """The speaker's name, if the role does not identify the speaker."""


class FactOnFile(Record):
    id: Text
    content: Text
    timestamp: Date | None = None
    supersedes: Text | None = None
    category: Literal["personal", "preference", "event", "relationship"] | None = None
    subject: Text | None = None
    attribute: Text | None = None
    value: Text | None = None
    valid_from: Date | None = None
    valid_to: Date | None = None
    question: Text | None = None
    turn: StrictInt | str | None = None


class AbsentFact(Record):
    """Something to ask for that the conversation does not state, according to the author of the dataset."""

    id: Text
    subject: Text | None = None
    attribute: Text | None = None
    question: Text | None = None
    """A question that asks for the attribute. Needed if none can be generated from subject and attribute."""


class ConversationOnFile(Record):
    id: Text
    turns: Annotated[tuple[TurnOnFile, ...], AfterValidator(_check_turns)]
    facts: tuple[FactOnFile, ...]
    absent: tuple[AbsentFact, ...] = ()


class _DatasetOnFile(Record):
    id: Text
    conversations: tuple[ConversationOnFile, ...]


class AuditFile(Struct, frozen=True):
    path: Path
    id: str | None
    """The id of the dataset; None if it is missing, which is then one of `problems`."""
    conversations: tuple[Document, ...]
    """The conversations that are JSON objects; `problems` has an error for each that is not."""
    problems: tuple[BadInput, ...]
    """One error for each invalid JSON text, wrong type, invalid value, unknown key or missing key."""

    def line_of(self, bad: BadInput) -> int:
        number = bad.where.removeprefix(f"{self.path}:").partition(":")[0]
        return int(number) if number.isdigit() else 0


def read_audit_file(path: Path) -> AuditFile:
    """Read an audit file. Problems do not raise an error; they are collected in `problems`."""
    stem, kind = stem_and_kind(path)
    try:
        match kind:
            case "json":
                return _dataset(path)
            case "jsonl":
                return _rows(path, stem)
    except BadInput as bad:  # the file cannot be read at all
        return AuditFile(path, None, (), (bad,))
    unknown = BadInput(
        str(path),
        "unknown file type",
        expected="a name ending in .json (one dataset) or .jsonl (one conversation per line), or these with .gz",
        remedy="rename the file",
    )
    return AuditFile(path, None, (), (unknown,))


def stem_and_kind(path: Path) -> tuple[str, str]:
    """Return the file name without its suffixes, and its suffix: `json`, `jsonl` or another."""
    stem, _, kind = path.name.removesuffix(".gz").rpartition(".")
    return stem, kind.lower().replace("ndjson", "jsonl")


def turn_id(turn: int | str) -> str:
    """Return the id of a turn: `t3` for the number 3; an id is returned as it is."""
    return turn if isinstance(turn, str) else f"t{turn}"


def members(document: Document, key: str) -> list[Document]:
    """Return the mappings in the list at `key`. Other values are left out; the type check reports them."""
    items = document.value.get(key)
    indexed = enumerate(items if isinstance(items, list) else ())
    return [document.at(key, index) for index, item in indexed if isinstance(item, dict)]


def quoted_id(document: Document) -> str:
    """Return the id of a conversation or fact in quotes, for messages."""
    return preview(document.value.get("id"))


def _dataset(path: Path) -> AuditFile:
    document = load_json(path)
    found = _type_problems(document, _DatasetOnFile)
    if not isinstance(document.value, dict):
        return AuditFile(path, None, (), found)
    misplaced = ConversationOnFile.model_fields.keys() - _DatasetOnFile.model_fields.keys()
    places = {document.where(key) for key in misplaced}
    found = tuple(_with_remedy(bad, "move it into a conversation") if bad.where in places else bad for bad in found)
    id = document.value.get("id")
    conversations = tuple(members(document, "conversations"))
    return AuditFile(path, id if isinstance(id, str) else None, conversations, found)


def _rows(path: Path, id: str) -> AuditFile:
    conversations: list[Document] = []
    found: list[BadInput] = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            document = row_document(path, decode_line(line, str(path), number), number)
        except BadInput as bad:
            found.append(bad)
            continue
        found += _type_problems(document, ConversationOnFile)
        if isinstance(document.value, dict):
            conversations.append(document)
    return AuditFile(path, id, tuple(conversations), tuple(found))


def _type_problems(document: Document, record: type[Record]) -> tuple[BadInput, ...]:
    """Return an error with a remedy for each wrong type and each unknown or missing key."""
    return tuple(bad if bad.remedy else _with_remedy(bad, "correct it") for bad in problems(document, record))


def _with_remedy(bad: BadInput, remedy: str) -> BadInput:
    return BadInput(bad.where, bad.problem, expected=bad.expected, remedy=remedy)
