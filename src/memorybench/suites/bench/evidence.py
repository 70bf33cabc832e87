"""The gold evidence of a question as text, recorded once per question so that a report needs no dataset."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from memorybench.core.conversation import Haystack, Session, Turn
from memorybench.core.questions import Question
from memorybench.core.records import Record
from memorybench.journal.rows import storable

_LONGEST_TURN = 4000
_MOST_TURNS = 40
"""Turns that are recorded where a benchmark names only the gold sessions."""


class GoldTurn(Record):
    session: str
    id: str
    at: datetime | None
    speaker: str
    content: str


class RecordedQuestion(Question):
    """A question as the journal stores it."""

    evidence: tuple[GoldTurn, ...] = ()
    """The gold turns; the turns of the gold sessions where a benchmark names only these."""


def with_evidence(question: Question, haystack: Haystack) -> RecordedQuestion:
    turns = [gold for gold in _turns(haystack) if gold[1] in question.gold_turns]
    if not question.gold_turns:
        turns = [gold for gold in _turns(haystack) if gold[0].id in question.gold_sessions][:_MOST_TURNS]
    evidence = (_gold_turn(*gold) for gold in turns)
    return RecordedQuestion(**{**dict(question), "evidence": tuple(evidence)})


def _turns(haystack: Haystack) -> Iterator[tuple[Session, str, Turn]]:
    for session in haystack.sessions:
        for n, turn in enumerate(session.turns, 1):
            yield session, turn.id or f"{session.id}:{n}", turn


def _gold_turn(session: Session, id: str, turn: Turn) -> GoldTurn:
    text = turn.content if len(turn.content) <= _LONGEST_TURN else turn.content[: _LONGEST_TURN - 1] + "…"
    speaker = storable(turn.speaker or turn.role)
    return GoldTurn(session=session.id, id=id, at=turn.at or session.at, speaker=speaker, content=storable(text))
