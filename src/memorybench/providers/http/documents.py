"""Splits sessions into the documents that a service stores: one per session or message, or parts of long ones.

The service never sees the ids of a benchmark, because some of them reveal the answer. It gets ids of ours, which are
the same in every process, and results are translated back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memorybench.core.contracts import Scope
from memorybench.core.conversation import Session, Turn
from memorybench.core.records import digest
from memorybench.providers.storage.turns import replace_surrogates

from .requests import Filling

_ENDS = (re.compile(r"\n"), re.compile(r"[.!?。！？][\"')\]]*\s"), re.compile(r"\s"))
"""Where a text may be split, in order of preference: after a line, a sentence, a word."""


class Said(NamedTuple):
    """A message: a turn, or a part of a long one."""

    turn: str
    outside: str
    """The id of the turn that the service gets; empty if it gets none."""
    role: str
    speaker: str
    content: str
    at: datetime | None

    @property
    def line(self) -> str:
        return f"{self.speaker}: {self.content}"


@dataclass(frozen=True, slots=True)
class Portion:
    """The content of one document."""

    id: str
    session: str
    """The id of the session that the service gets."""
    content: str
    messages: tuple[Said, ...]
    """Empty if documents are text, whose parts may end within a message."""
    at: datetime | None
    sources: tuple[str, ...]
    """The id of the session, and of the turn if there is only one."""


@dataclass(frozen=True, slots=True)
class Portioning:
    """How sessions are split into documents."""

    unit: str
    by_messages: bool
    """Whether documents are lists of messages; otherwise, they are text."""
    message: Filling | None
    names_turns: bool
    """Whether the template of a message contains the turn id, so that results may name it."""
    max_messages: int | None
    max_characters: int | None

    def portions(self, scope: Scope, session: Session) -> list[Portion]:
        """Return the documents of a session; an empty session has none."""
        outside = digest([scope.run, scope.benchmark, scope.provider, scope.haystack, session.id])[:20]
        said = [part for n, turn in enumerate(session.turns, 1) for part in self._said(outside, session, n, turn)]
        begun = session.at or next((part.at for part in said), None)
        return [
            Portion(
                id=f"d{outside}-{n}",
                session=f"s{outside}",
                content=replace_surrogates(content),
                messages=messages,
                at=messages[0].at if self.unit == "message" else begun,
                sources=_sources(session, messages or said),
            )
            for n, (content, messages) in enumerate(self._parts(session, said))
        ]

    def variables(self, portion: Portion) -> dict[str, Any]:
        date = _date(portion.at)
        metadata = {"documentId": portion.id, "sessionId": portion.session}
        return {
            "documentId": portion.id,
            "sessionId": portion.session,
            "content": portion.content,
            "messages": [self._message(said) for said in portion.messages] if self.by_messages else [],
            "date": date,
            "epoch": _epoch(portion.at),
            "metadata": metadata if date is None else {**metadata, "date": date},
        }

    def _parts(self, session: Session, said: Sequence[Said]) -> Iterator[tuple[str, tuple[Said, ...]]]:
        if self.unit == "message":
            for part in said:
                yield part.line, (part,)
        elif self.by_messages:
            size = self.max_messages or max(1, len(said))
            for start in range(0, len(said), size):
                group = tuple(said[start : start + size])
                whole = session.text if len(group) == len(said) else None
                yield whole or _dialogue(group), group
        else:
            text = session.text if session.text is not None else _dialogue(said)
            for piece in split(text, self.max_characters):
                yield piece, ()

    def _said(self, outside: str, session: Session, n: int, turn: Turn) -> list[Said]:
        id = turn.id if turn.id is not None else f"{session.id}:{n}"
        speaker, at = replace_surrogates(turn.speaker or turn.role), turn.at or session.at
        limit = self.max_characters if self.by_messages or self.unit == "message" else None
        if limit is not None:
            limit = max(limit - len(f"{speaker}: "), limit // 2, 1)
        named = f"t{outside}-{n}" if self.names_turns else ""
        return [
            Said(id, named, turn.role, speaker, part, at) for part in split(replace_surrogates(turn.content), limit)
        ]

    def _message(self, said: Said) -> Any:
        date = _date(said.at)
        if self.message is None:
            plain = {"role": said.role, "content": said.content}
            return plain if date is None else {**plain, "at": date}
        values = {
            "role": said.role,
            "speaker": said.speaker,
            "content": said.content,
            "date": date,
            "epoch": _epoch(said.at),
            "turnId": said.outside,
        }
        return self.message(values)


def sources_of(portions: Sequence[Portion]) -> dict[str, tuple[str, ...]]:
    """Return the sources of each id that the service got."""
    named: dict[str, tuple[str, ...]] = {}
    for portion in portions:
        session = portion.sources[0]
        named[portion.id] = portion.sources
        named[portion.session] = (session,)
        named |= {said.outside: (session, said.turn) for said in portion.messages if said.outside}
    return named


def sources_by_id(ids: Sequence[str], portions: Sequence[Portion]) -> dict[str, tuple[str, ...]] | None:
    """Return the sources of each id that the service assigned; None if they cannot be matched."""
    if len(portions) > 1:
        if len(ids) != len(portions):
            return None
        return {id: portion.sources for id, portion in zip(ids, portions, strict=True)}
    [portion] = portions
    if len(ids) == len(portion.messages):
        return {id: (portion.sources[0], said.turn) for id, said in zip(ids, portion.messages, strict=True)}
    return dict.fromkeys(ids, portion.sources)


def split(text: str, longest: int | None) -> list[str]:
    """Split a text into pieces of at most `longest` characters, without blank ones."""
    if longest is None or len(text) <= longest:
        return [text] if text and not text.isspace() else []
    pieces = []
    while len(text) > longest:
        cut = _cut(text, longest)
        pieces.append(text[:cut].strip())
        text = text[cut:].lstrip()
    return [piece for piece in (*pieces, text) if piece.strip()]


def shortened(text: str, longest: int | None) -> str:
    """Return the first words of a text that fit."""
    if longest is None or len(text) <= longest:
        return text
    blank = max((match.start() for match in re.finditer(r"\s", text[: longest + 1])), default=0)
    return text[: blank or longest].rstrip()


def _cut(text: str, longest: int) -> int:
    for end in _ENDS:
        # one character more, because the space at the end does not count
        cut = max((match.end() for match in end.finditer(text[: longest + 1])), default=0)
        if cut > longest // 2:
            return cut
    return longest


def _dialogue(said: Sequence[Said]) -> str:
    return "\n".join(part.line for part in said)


def _sources(session: Session, messages: Sequence[Said]) -> tuple[str, ...]:
    turns = list(dict.fromkeys(said.turn for said in messages))
    return (session.id, *turns) if len(turns) == 1 else (session.id,)


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _date(at: datetime | None) -> str | None:
    return None if at is None else _aware(at).isoformat()


def _epoch(at: datetime | None) -> int | None:
    return None if at is None else int(_aware(at).timestamp())
