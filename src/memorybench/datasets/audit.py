"""Audit datasets: conversations and the facts that they state.

A JSON file contains one dataset; a JSONL file contains one conversation per line, and its name is the dataset's id.
`turn` of a fact names the turn that states it, by number or id: turns are numbered from 1, and the third has the id t3.
`timestamp` of a fact is when it was stated, `validFrom` when it became true or when the event happened.
A date without a time of day is in UTC if other dates of the conversation have time zones.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from memorybench.core.conversation import Fact, Turn
from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.files.located import Document
from memorybench.files.validation import validated

from .audit_checks import conversation_faults, dataset_faults
from .audit_file import AuditFile, ConversationOnFile, read_audit_file, turn_id
from .dates import any_zoned, read_moment


class AuditFact(Fact):
    turn: str | None = None
    """Id of the turn that states it; None: unknown."""


class AbsentFact(Record):
    """Something that the conversation does not tell, as the author of the dataset declares."""

    id: str
    subject: str | None = None
    attribute: str | None = None
    question: str | None = None
    """The question that asks for it, if the attribute has no good template."""


class AuditConversation(Record):
    id: str
    turns: tuple[Turn, ...]
    facts: tuple[AuditFact, ...]
    absent: tuple[AbsentFact, ...] = ()


class AuditDataset(Record):
    id: str
    conversations: tuple[AuditConversation, ...]


def load_audit(path: Path | str) -> AuditDataset:
    """Read an audit dataset; raise BadInput with the first problem and the number of the others."""
    file = read_audit_file(Path(path))
    problems = _problems(file)
    if problems:
        first, *others = problems
        more = f"{first.remedy} (and {len(others)} more)".lstrip() if others else first.remedy
        raise BadInput(first.where, first.problem, expected=first.expected, remedy=more)
    assert file.id is not None  # a missing id is one of the problems
    return AuditDataset(id=file.id, conversations=tuple(_conversation(part) for part in file.conversations))


def problems_of(path: Path | str) -> list[BadInput]:
    """Return all problems of an audit dataset, sorted by line."""
    return _problems(read_audit_file(Path(path)))


def _problems(file: AuditFile) -> list[BadInput]:
    problems = [*file.problems, *dataset_faults(file)]
    for conversation in file.conversations:
        problems += conversation_faults(conversation, file.conversations)
    return sorted(problems, key=file.line_of)


def _conversation(document: Document) -> AuditConversation:
    conversation = validated(document, ConversationOnFile)
    fact_dates = [date for fact in conversation.facts for date in (fact.timestamp, fact.valid_from, fact.valid_to)]
    in_utc = any_zoned([*(turn.timestamp for turn in conversation.turns), *fact_dates])

    def parse(text: str | None) -> datetime | None:
        moment = None if text is None else read_moment(text)
        if moment is None:
            return None
        return moment.at.replace(tzinfo=UTC) if moment.whole_day and in_utc else moment.at

    turns = (
        Turn(role=turn.role, content=turn.content, speaker=turn.speaker, at=parse(turn.timestamp), id=turn_id(number))
        for number, turn in enumerate(conversation.turns, 1)
    )
    facts = (
        AuditFact(
            **fact.model_dump(exclude={"timestamp", "valid_from", "valid_to", "turn"}),
            at=parse(fact.timestamp),
            valid_from=parse(fact.valid_from),
            valid_to=parse(fact.valid_to),
            turn=None if fact.turn is None else turn_id(fact.turn),
        )
        for fact in conversation.facts
    )
    absent = tuple(AbsentFact(**entry.model_dump()) for entry in conversation.absent)
    return AuditConversation(id=conversation.id, turns=tuple(turns), facts=tuple(facts), absent=absent)
