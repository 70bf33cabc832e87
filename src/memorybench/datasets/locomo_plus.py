"""Short dialogues in long conversations, in the format of Locomo-Plus.

Li et al., "Locomo-Plus: Beyond-factual cognitive memory evaluation framework for LLM agents", 2026. Each cue, a remark
of a few lines, becomes a session of one of LoCoMo's conversations, at the time that its gap to the question says. The
question is a later message that does not name the cue; a right reply takes the cue into account.

As in the authors' `unified_input.py`: the nth cue is put into the nth conversation, beginning again after the last; the
question is asked seven days after the last session; a month has 30 days and a year 365; a gap without a number is 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from memorybench.core.conversation import Haystack, Session, Turn
from memorybench.core.errors import BadInput
from memorybench.core.questions import EvidenceLevel, Question, RubricItem
from memorybench.core.records import digest
from memorybench.files.json_text import load_json
from memorybench.files.located import Document
from memorybench.text.sanitize import preview

from .config import BenchmarkConfig, Context, ItemSchema, Preprocessing
from .context import ContextReader

_CACHED_HAYSTACKS = 16
_DAYS = {"week": 7, "month": 30, "year": 365}
_NUMBERS = ("a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_GAP = re.compile(rf"\b(\d+|an|{'|'.join(_NUMBERS)})\b\s*(week|month|year)s?\b")
_LINE = re.compile(r"\s*([AB]):\s*(.+)")
_CONTEXT = Context(
    field="conversation",
    type="object",
    session_pattern="session_*",
    date_pattern="session_*_date_time",
    item_schema=ItemSchema(text="text", speaker="speaker"),
)
"""How to read LoCoMo's conversations."""
_REQUIREMENT = "The response takes into account, openly or not, what was said before:\n"


class _Conversation(NamedTuple):
    """One of LoCoMo's conversations."""

    id: str
    speakers: tuple[str, str]
    sessions: Sequence[Session]


class _Placement(NamedTuple):
    """A cue, the conversation that it is inserted into, and at what time."""

    conversation: _Conversation
    lines: Sequence[tuple[str, str]]
    """Speaker and text of each line of the cue."""
    at: datetime
    question: Question


class CueDataset:
    """A Dataset of LoCoMo's conversations, each with a cue inserted as one more session."""

    evidence: EvidenceLevel = "session"
    notes: tuple[str, ...] = ()

    def __init__(self, name: str, fingerprint: str, placements: Sequence[_Placement]) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.questions = tuple(placement.question for placement in placements)
        self._placements = {placement.question.id: placement for placement in placements}
        self._haystack = lru_cache(maxsize=_CACHED_HAYSTACKS)(self._make)

    def haystack(self, id: str) -> Haystack:
        return self._haystack(id)

    def _make(self, id: str) -> Haystack:
        placement = self._placements[id]
        sessions = list(placement.conversation.sessions)
        cue = Session("cue", _turns(placement.lines, "cue"), placement.at)
        sessions.insert(_position(placement.conversation, placement.at), cue)
        # ids would reveal the cue
        renamed = [_renamed(session, f"s{number}") for number, session in enumerate(sessions, 1)]
        return Haystack(id, tuple(renamed), fingerprint=digest([self.fingerprint, id]))


def open_cues(config: BenchmarkConfig, cues: Path, conversations: Path, checksum: str) -> CueDataset:
    """Read the cues and the conversations; raise BadInput at the first error."""
    options = config.cues
    assert options is not None
    haystacks = list(_read_conversations(load_json(conversations)))
    document = load_json(cues)
    placements = [
        _read_cue(document.at(index), index, haystacks[index % len(haystacks)], options.days_after)
        for index in range(len(_list(document, "cues")))
    ]
    return CueDataset(config.name, digest([checksum, options.model_dump(mode="json")]), placements)


def _read_cue(part: Document, index: int, conversation: _Conversation, days_after: int) -> _Placement:
    lines = _dialogue(part, "cue_dialogue", conversation)
    asked_at = _dated(conversation.sessions[-1]) + timedelta(days=days_after)
    gap = _text(part, "time_gap")
    at = asked_at - timedelta(days=days_of(gap))
    place = f"s{_position(conversation, at) + 1}"
    cue = "\n".join(f"{speaker}: {text}" for speaker, text in lines)
    id = f"cue-{index + 1}"
    question = Question(
        id=id,
        labels={"question_type": _text(part, "relation_type"), "time_gap": gap},
        haystack=id,
        cluster=conversation.id,
        question="\n".join(f"{speaker}: {text}" for speaker, text in _dialogue(part, "trigger_query", conversation)),
        rubric=(RubricItem(_REQUIREMENT + cue),),
        asked_at=asked_at,
        gold_sessions=(place,),
        gold_turns=tuple(f"{place}:{number}" for number in range(1, len(lines) + 1)),
    )
    return _Placement(conversation, lines, at, question)


def days_of(gap: str) -> int:
    """Return the days in a text such as `about two months later`; 0 if it has no number, as in `several months`."""
    match = _GAP.search(gap.lower())
    if match is None:
        return 0
    number = {"an": 1, "a": 1, **{word: value for value, word in enumerate(_NUMBERS) if value}}.get(match[1])
    return (int(match[1]) if number is None else number) * _DAYS[match[2]]


def _position(conversation: _Conversation, at: datetime) -> int:
    """Return the number of sessions before the cue; a session at the same time counts as before it."""
    dates = sorted(_dated(session) for session in conversation.sessions)
    return sum(date <= at for date in dates)


def _read_conversations(document: Document) -> Iterator[_Conversation]:
    reader = ContextReader(_CONTEXT, Preprocessing(), None, "cues")
    for index in range(len(_list(document, "conversations"))):
        part = document.at(index)
        sessions = reader.read(part).sessions
        for session in sessions:
            if session.at is None:
                key = f"{session.id}_date_time"
                raise BadInput(
                    part.where("conversation", key), f'"{key}" is missing', expected="the date of the session"
                )
        inner = part.at("conversation")
        speakers = (_text(inner, "speaker_a"), _text(inner, "speaker_b"))
        # by date: the cue is inserted between two sessions
        yield _Conversation(_text(part, "sample_id"), speakers, sorted(sessions, key=_dated))


def _turns(lines: Sequence[tuple[str, str]], session: str) -> tuple[Turn, ...]:
    return tuple(
        Turn(role="user", content=text, speaker=speaker, id=f"{session}:{number}")
        for number, (speaker, text) in enumerate(lines, 1)
    )


def _renamed(session: Session, id: str) -> Session:
    return Session(id, _turns([(turn.speaker or "", turn.content) for turn in session.turns], id), session.at)


def _dated(session: Session) -> datetime:
    assert session.at is not None
    return session.at


def _dialogue(part: Document, key: str, conversation: _Conversation) -> list[tuple[str, str]]:
    """Return speaker and text of each line such as `A: …`; A and B are replaced by the conversation's speakers."""
    lines = []
    for line in _text(part, key).splitlines():
        match = _LINE.fullmatch(line)
        if match is None and line.strip():
            raise BadInput(
                part.where(key), f"invalid line {preview(line)}", expected='a line that begins with "A:" or "B:"'
            )
        if match is not None:
            lines.append((conversation.speakers["AB".index(match[1])], match[2].strip()))
    return lines


def _list(document: Document, noun: str) -> list[Any]:
    if not isinstance(document.value, list) or not document.value:
        raise BadInput(document.where(), f"the file contains no {noun}", expected="a JSON array that is not empty")
    return document.value


def _text(part: Document, key: str) -> str:
    value = part.value.get(key) if isinstance(part.value, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise BadInput(part.where(), f'"{key}" is missing or not a text', expected="a text", remedy="check the file")
    return value
