"""Audit datasets: conversations and the facts that they state.

A JSON file contains one dataset; a JSONL file contains one conversation per line, and its name is the dataset's id.
`turn` of a fact names the turn that states it, by number or id: turns are numbered from 1, and the third has the id t3.
`timestamp` of a fact is when it was stated, `validFrom` when it became true or when the event happened.
A date without a time of day is in UTC if other dates of the conversation have time zones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any

from msgspec import Struct
from pydantic import TypeAdapter

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput
from memorybench.core.packed import PackedSequence
from memorybench.core.records import Record, array_parts, canonical, iso_date
from memorybench.files.json_stream import NotStreamable, stream_members
from memorybench.files.located import Document
from memorybench.files.rows import numbered_jsonl
from memorybench.files.validation import first_of, validated

from .audit_checks import conversation_faults, dataset_faults
from .audit_file import AbsentFact, AuditFile, ConversationOnFile, FactOnFile, read_audit_file, stem_and_kind, turn_id
from .dates import any_zoned, read_moment


@dataclass(frozen=True, slots=True)
class AuditFact:
    """One fact that a conversation states. A dataclass, not a Record, because a dataset may have very many facts."""

    id: str
    content: str
    at: datetime | None = None
    supersedes: str | None = None
    category: str | None = None
    subject: str | None = None
    attribute: str | None = None
    value: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    question: str | None = None
    """The question about `value` that the dataset gives; None if it gives none. `audit` checks it like the questions
    that it makes itself."""
    turn: str | None = None
    """The id of the turn that states the fact; None: unknown."""

    def plain(self) -> dict[str, Any]:
        """Return JSON-compatible data."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {name: iso_date(value) if isinstance(value, datetime) else value for name, value in fields.items()}


class AuditConversation(Record):
    id: str
    turns: tuple[Turn, ...]
    facts: tuple[AuditFact, ...]
    absent: tuple[AbsentFact, ...] = ()


class AuditDataset(Struct, frozen=True):
    id: str
    conversations: Sequence[AuditConversation]
    """The conversations. If they were read from a file, they are compressed in memory and each is unpacked when it is
    read, so do not make a list of all."""

    @property
    def fact_count(self) -> int:
        return sum(len(conversation.facts) for conversation in self.conversations)

    def canonical_parts(self) -> Iterator[str]:
        """Yield the canonical JSON in parts, because the whole text takes several times the memory of the dataset."""
        yield '{"conversations":'
        yield from array_parts(self.conversations)
        yield f',"id":{canonical(self.id)}}}'


def read_canonical_audit(text: str) -> AuditDataset:
    """Read the canonical JSON of a dataset; raise ValueError if it is not one."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.keys() != {"conversations", "id"}:
        raise ValueError("not an audit dataset")
    conversations = TypeAdapter(tuple[AuditConversation, ...]).validate_python(document["conversations"])
    return AuditDataset(id=str(document["id"]), conversations=conversations)


def load_audit(path: Path | str) -> AuditDataset:
    """Read an audit dataset; if it has problems, raise BadInput with the first one and the number of the others."""
    dataset = _stream(Path(path))
    if dataset is not None:
        return dataset
    file = read_audit_file(Path(path))
    problems = _problems(file)
    if problems:
        raise first_of(problems[0], len(problems)) if len(problems) > 1 else problems[0]
    assert file.id is not None  # a missing id is one of the problems
    return AuditDataset(id=file.id, conversations=tuple(_conversation(part) for part in file.conversations))


def problems_of(path: Path | str) -> list[BadInput]:
    """Return all problems of an audit dataset, sorted by line."""
    return _problems(read_audit_file(Path(path)))


def _problems(file: AuditFile) -> list[BadInput]:
    problems = [*file.problems, *dataset_faults(file)]
    for conversation in file.conversations:
        problems += conversation_faults(conversation)
    return sorted(problems, key=file.line_of)


def _stream(path: Path) -> AuditDataset | None:
    """Read a file, one conversation at a time, to save memory; return None if the file has problems.

    The caller then reads the file as a whole, to find the line numbers of the problems. A whole parsed JSON file takes
    several times the memory of the conversations made from it.
    """
    id: Any = None
    ids: set[str] = set()
    has_facts = False

    def conversations() -> Iterator[AuditConversation]:
        nonlocal id, has_facts
        for name, value in _members(path):
            if name == "id":
                id = value
                continue
            part = Document(str(path), value)
            conversation = _conversation(part)
            if name != CONVERSATIONS or conversation.id in ids or any(conversation_faults(part)):
                raise NotStreamable
            ids.add(conversation.id)
            has_facts = has_facts or bool(conversation.facts)
            yield conversation

    try:
        packed = PackedSequence(conversations(), per_chunk=1)
    except (BadInput, NotStreamable):
        return None
    is_valid = isinstance(id, str) and id.strip() and has_facts
    return AuditDataset(id=id, conversations=packed) if is_valid else None


def _members(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield pairs of a key and a value: `id` with the dataset's id, and `conversations` with each single conversation.

    Of a JSON file, other keys are yielded, too. A file of another type yields nothing.
    """
    stem, kind = stem_and_kind(path)
    if kind == "json":
        yield from stream_members(path, CONVERSATIONS)
    elif kind == "jsonl":
        yield "id", stem
        yield from ((CONVERSATIONS, value) for _, value in numbered_jsonl(path))


CONVERSATIONS = "conversations"


def _conversation(document: Document) -> AuditConversation:
    conversation = validated(document, ConversationOnFile)
    fact_dates = [date for fact in conversation.facts for date in (fact.timestamp, fact.valid_from, fact.valid_to)]
    in_utc = any_zoned([*(turn.timestamp for turn in conversation.turns), *fact_dates])
    turns = (
        Turn(
            role=intern(turn.role),
            content=turn.content,
            speaker=_shared(turn.speaker),
            at=_parse(turn.timestamp, in_utc),
            id=intern(turn_id(number)),
        )
        for number, turn in enumerate(conversation.turns, 1)
    )
    facts = (_fact(fact, in_utc) for fact in conversation.facts)
    return AuditConversation(id=conversation.id, turns=tuple(turns), facts=tuple(facts), absent=conversation.absent)


def _fact(fact: FactOnFile, in_utc: bool) -> AuditFact:
    return AuditFact(
        id=intern(fact.id),
        content=fact.content,
        at=_parse(fact.timestamp, in_utc),
        supersedes=_shared(fact.supersedes),
        category=_shared(fact.category),
        subject=_shared(fact.subject),
        attribute=_shared(fact.attribute),
        value=fact.value,
        valid_from=_parse(fact.valid_from, in_utc),
        valid_to=_parse(fact.valid_to, in_utc),
        question=fact.question,
        turn=None if fact.turn is None else intern(turn_id(fact.turn)),
    )


def _shared(text: str | None) -> str | None:
    """Return one object for all equal texts, to save memory, because ids, subjects and attributes are repeated."""
    return None if text is None else intern(text)


@lru_cache(maxsize=4096)
def _parse(text: str | None, in_utc: bool) -> datetime | None:
    moment = None if text is None else read_moment(text)
    if moment is None:
        return None
    return moment.at.replace(tzinfo=UTC) if moment.whole_day and in_utc else moment.at
