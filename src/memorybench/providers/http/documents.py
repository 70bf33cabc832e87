"""Splits sessions into the documents that a service stores: one per session or message, or parts of long ones.

The service never sees the ids of a benchmark, because some of them reveal the answer. It gets other ids, which
memorybench makes and which are the same in every process. The ids in results are translated back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec import Struct

from memorybench.core.contracts import Scope
from memorybench.core.conversation import Session, Turn
from memorybench.core.records import digest
from memorybench.providers.storage.turns import replace_surrogates

from .requests import render

_SPLIT_POINTS = (re.compile(r"\n"), re.compile(r"[.!?。！？][\"')\]]*\s"), re.compile(r"\s"))
"""Where a text may be split, in order of preference: after a line, a sentence, a word."""

Sources = dict[str, tuple[str, ...]]
"""Maps each id that the service knows to the benchmark's ids of the sessions and turns that it stands for."""


class Message(NamedTuple):
    """A turn of a session, or a part of a long turn, as it is sent to the service."""

    turn: str
    service_id: str
    """The turn's id as it is sent to the service; empty if none is sent."""
    role: str
    speaker: str
    content: str
    at: datetime | None

    @property
    def line(self) -> str:
        return f"{self.speaker}: {self.content}"


class SentDocument(Struct, frozen=True):
    """A document that is sent to the service."""

    id: str
    session: str
    """The session's id as it is sent to the service."""
    content: str
    messages: tuple[Message, ...]
    """The messages of the document; empty if the service gets text, which may begin or end within a message."""
    at: datetime | None
    sources: tuple[str, ...]
    """The benchmark's id of the session; if the document is from a single turn, also the id of this turn."""


class SessionSplitter(Struct, frozen=True):
    """Splits sessions into documents."""

    unit: str
    by_messages: bool
    """Whether documents are lists of messages; otherwise, they are text."""
    message: Any = None
    """The template of one message, for `render`; None: a message has `role`, `content` and `at`."""
    sends_turn_ids: bool = False
    """Whether the template of a message contains the turn id, so that results may name it."""
    max_messages: int | None = None
    max_characters: int | None = None

    def split(self, scope: Scope, session: Session) -> list[SentDocument]:
        """Return the documents of a session; an empty session has none."""
        key = digest([scope.run, scope.benchmark, scope.provider, scope.haystack, session.id])[:20]
        messages = [
            part
            for n, (id, turn) in enumerate(session.named_turns(), 1)
            for part in self._split_turn(id, f"t{key}-{n}" if self.sends_turn_ids else "", session, turn)
        ]
        session_at = session.at or next((message.at for message in messages), None)
        return [
            SentDocument(
                id=f"d{key}-{n}",
                session=f"s{key}",
                content=replace_surrogates(content),
                messages=part,
                at=part[0].at if self.unit == "message" else session_at,
                sources=_sources(session, part or messages),
            )
            for n, (content, part) in enumerate(self._split_messages(session, messages))
        ]

    def variables(self, document: SentDocument) -> dict[str, Any]:
        """Return the values of the variables of a request that stores the document, such as `content` and `date`."""
        date = _date(document.at)
        metadata = {"documentId": document.id, "sessionId": document.session}
        return {
            "documentId": document.id,
            "sessionId": document.session,
            "content": document.content,
            "messages": [self._render_message(message) for message in document.messages] if self.by_messages else [],
            "date": date,
            "epoch": _epoch(document.at),
            "metadata": metadata if date is None else {**metadata, "date": date},
        }

    def _split_messages(
        self, session: Session, messages: Sequence[Message]
    ) -> Iterator[tuple[str, tuple[Message, ...]]]:
        if self.unit == "message":
            for message in messages:
                yield message.line, (message,)
        elif self.by_messages:
            size = self.max_messages or max(1, len(messages))
            for start in range(0, len(messages), size):
                group = tuple(messages[start : start + size])
                text = session.text if len(group) == len(messages) else None
                yield text or _dialogue(group), group
        else:
            text = session.text if session.text is not None else _dialogue(messages)
            for piece in split_text(text, self.max_characters):
                yield piece, ()

    def _split_turn(self, id: str, service_id: str, session: Session, turn: Turn) -> list[Message]:
        speaker, at = replace_surrogates(turn.speaker or turn.role), turn.at or session.at
        limit = self.max_characters if self.by_messages or self.unit == "message" else None
        if limit is not None:
            limit = max(limit - len(f"{speaker}: "), limit // 2, 1)
        pieces = split_text(replace_surrogates(turn.content), limit)
        return [Message(id, service_id, turn.role, speaker, piece, at) for piece in pieces]

    def _render_message(self, message: Message) -> Any:
        date = _date(message.at)
        if self.message is None:
            plain = {"role": message.role, "content": message.content}
            return plain if date is None else {**plain, "at": date}
        variables = {
            "role": message.role,
            "speaker": message.speaker,
            "content": message.content,
            "date": date,
            "epoch": _epoch(message.at),
            "turnId": message.service_id,
        }
        return render(self.message, variables)


def sources_by_our_ids(documents: Sequence[SentDocument]) -> Sources:
    """Return the sources of every id that memorybench sent with documents: ids of documents, sessions and messages."""
    sources: Sources = {}
    for document in documents:
        session = document.sources[0]
        sources[document.id] = document.sources
        sources[document.session] = (session,)
        sources |= {message.service_id: (session, message.turn) for message in document.messages if message.service_id}
    return sources


def merge_sources(parts: Iterable[Mapping[str, Sequence[str]]], into: Sources | None = None) -> Sources:
    """Merge mappings from an id to its sources into `into` (None: a new mapping), and return it.

    An id that is in several mappings gets all their sources, because the service may have merged documents.
    """
    merged = {} if into is None else into
    for part in parts:
        for id, sources in part.items():
            merged[id] = tuple(dict.fromkeys((*merged.get(id, ()), *sources)))
    return merged


def sources_by_assigned_ids(ids: Sequence[str], documents: Sequence[SentDocument]) -> Sources | None:
    """Return the sources of each of `ids`, which the service assigned to the documents of one request.

    Several documents need one id each; if there are more or fewer ids, return None. For a single document, one id per
    message stands for that message; any other number of ids all stand for the document.
    """
    if len(documents) > 1:
        if len(ids) != len(documents):
            return None
        return merge_sources({id: document.sources} for id, document in zip(ids, documents, strict=True))
    [document] = documents
    if len(ids) == len(document.messages):
        session = document.sources[0]
        return merge_sources({id: (session, message.turn)} for id, message in zip(ids, document.messages, strict=True))
    return dict.fromkeys(ids, document.sources)


def split_text(text: str, longest: int | None) -> list[str]:
    """Split a text into pieces of at most `longest` characters (None: no limit). Blank pieces are left out."""
    if longest is None or len(text) <= longest:
        return [text] if text and not text.isspace() else []
    pieces = []
    while len(text) > longest:
        end = _split_point(text, longest)
        pieces.append(text[:end].strip())
        text = text[end:].lstrip()
    return [piece for piece in (*pieces, text) if piece.strip()]


def shorten(text: str, longest: int | None) -> str:
    """Return the beginning of a text, at most `longest` characters and cut after a word; None: the whole text."""
    if longest is None or len(text) <= longest:
        return text
    blank = max((match.start() for match in re.finditer(r"\s", text[: longest + 1])), default=0)
    return text[: blank or longest].rstrip()


def _split_point(text: str, longest: int) -> int:
    for pattern in _SPLIT_POINTS:
        # one character more, because the space at the end does not count
        end = max((match.end() for match in pattern.finditer(text[: longest + 1])), default=0)
        if end > longest // 2:
            return end
    return longest


def _dialogue(messages: Sequence[Message]) -> str:
    return "\n".join(message.line for message in messages)


def _sources(session: Session, messages: Sequence[Message]) -> tuple[str, ...]:
    turns = list(dict.fromkeys(message.turn for message in messages))
    return (session.id, *turns) if len(turns) == 1 else (session.id,)


def _date(at: datetime | None) -> str | None:
    return None if at is None else _with_zone(at).isoformat()


def _epoch(at: datetime | None) -> int | None:
    return None if at is None else int(_with_zone(at).timestamp())


def _with_zone(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)
