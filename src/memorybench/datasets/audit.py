"""Conversations and the facts they state: what an audit is made from.

A JSON file holds one dataset, a JSONL file one conversation a line; the name of a JSONL file is its dataset's id.
`turn` of a fact names the turn that states it, by number or id: turns are numbered from 1, and the third has the id t3.
A date without a time of day counts in UTC where the conversation's other dates have time zones.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memorybench.core.conversation import Fact, Turn
from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.files.located import Document
from memorybench.files.validation import validated

from .audit_checks import conversation_faults, dataset_faults
from .audit_dates import read_moment, zoned
from .audit_file import AuditFile, ConversationOnFile, FactOnFile, TurnOnFile, read_audit_file, turn_id


class AuditFact(Fact):
    turn: str | None = None
    """Id of the turn that states it; None: the dataset does not say."""


class AuditConversation(Record):
    id: str
    turns: tuple[Turn, ...]
    facts: tuple[AuditFact, ...]


class AuditDataset(Record):
    id: str
    conversations: tuple[AuditConversation, ...]


def load_audit(path: Path | str) -> AuditDataset:
    """Raises the first of the file's problems, and says how many more there are."""
    file = read_audit_file(Path(path))
    problems = _problems(file)
    if problems:
        first, *others = problems
        more = f"{first.remedy} (and {len(others)} more)".lstrip() if others else first.remedy
        raise BadInput(first.where, first.problem, expected=first.expected, remedy=more)
    assert file.id is not None  # or it would be among the problems
    return AuditDataset(id=file.id, conversations=tuple(_conversation(part) for part in file.conversations))


def problems_of(path: Path | str) -> list[BadInput]:
    """Everything that is wrong with a dataset, by line."""
    return _problems(read_audit_file(Path(path)))


def _problems(file: AuditFile) -> list[BadInput]:
    found = list(file.problems)
    found += dataset_faults(file)
    for conversation in file.conversations:
        found += conversation_faults(conversation, file.conversations)
    return sorted(found, key=file.line_of)


def _conversation(document: Document) -> AuditConversation:
    written = validated(document, ConversationOnFile)
    in_utc = zoned(_dates(written))
    return AuditConversation(
        id=written.id,
        turns=tuple(_turn(turn, n, in_utc) for n, turn in enumerate(written.turns, 1)),
        facts=tuple(_fact(fact, in_utc) for fact in written.facts),
    )


def _dates(written: ConversationOnFile) -> Sequence[str | None]:
    stated = [date for fact in written.facts for date in (fact.timestamp, fact.valid_from, fact.valid_to)]
    return [*(turn.timestamp for turn in written.turns), *stated]


def _turn(written: TurnOnFile, number: int, in_utc: bool) -> Turn:
    return Turn(
        role=written.role,
        content=written.content,
        speaker=written.speaker,
        at=_at(written.timestamp, in_utc),
        id=turn_id(number),
    )


def _fact(written: FactOnFile, in_utc: bool) -> AuditFact:
    plain: dict[str, Any] = written.model_dump(exclude={"timestamp", "valid_from", "valid_to", "turn"})
    return AuditFact(
        **plain,
        at=_at(written.timestamp, in_utc),
        valid_from=_at(written.valid_from, in_utc),
        valid_to=_at(written.valid_to, in_utc),
        turn=None if written.turn is None else turn_id(written.turn),
    )


def _at(text: str | None, in_utc: bool) -> datetime | None:
    moment = None if text is None else read_moment(text)
    if moment is None:
        return None
    return moment.at.replace(tzinfo=UTC) if moment.whole_day and in_utc else moment.at
