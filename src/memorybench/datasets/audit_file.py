"""The keys of an audit file, and the line of each conversation in it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct
from pydantic import StrictInt

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.files.json_text import load_json
from memorybench.files.located import Document
from memorybench.files.reading import read_lines
from memorybench.files.rows import decode_line, row_document
from memorybench.files.validation import problems
from memorybench.text.sanitize import preview


class TurnOnFile(Record):
    role: Literal["user", "assistant", "system"]
    content: str
    timestamp: str | None = None
    speaker: str | None = None
    """The speaker's name, if the role does not identify the speaker."""


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


class AbsentFact(Record):
    """Something to ask for that the conversation does not state, according to the author of the dataset."""

    id: str
    subject: str | None = None
    attribute: str | None = None
    question: str | None = None
    """A question that asks for the attribute. Needed if none can be generated from subject and attribute."""


class ConversationOnFile(Record):
    id: str
    turns: tuple[TurnOnFile, ...]
    facts: tuple[FactOnFile, ...]
    absent: tuple[AbsentFact, ...] = ()


class _DatasetOnFile(Record):
    id: str
    conversations: tuple[ConversationOnFile, ...]


class AuditFile(Struct, frozen=True):
    path: Path
    id: str | None
    """The id of the dataset; None if it is missing, which is then one of `problems`."""
    conversations: tuple[Document, ...]
    """The conversations of the file, without values that are not mappings, which are in `problems`."""
    problems: tuple[BadInput, ...]
    """One error for each invalid JSON text, wrong type, unknown key and missing key."""
    dataset: Document | None = None
    """The whole document of a JSON file; None for a JSONL file."""

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
    return AuditFile(path, id if isinstance(id, str) else None, conversations, found, document)


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
