"""Cuts sessions into chunks that know the turns they cover.

A token is taken for 4 bytes of UTF-8, which is near the mark for English with the tokenizers of today's models and
needs none of them. What a chunk shows beside what was said (dates, speakers) comes on top of its size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memorybench.core.contracts import Embedder
from memorybench.core.conversation import Session, Turn

from .config import Chunking
from .dense import normalised
from .turn_store import storable

BYTES_PER_TOKEN = 4

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")
_BLANK_LINE = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class Chunk:
    text: str
    turns: tuple[str, ...]
    """Ids of the turns that it holds something of."""


def tokens(text: str) -> int:
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


async def chunked(session: Session, chunking: Chunking, embedder: Embedder) -> Sequence[Chunk]:
    """The chunks of a session, in order; none where nothing was said. Only `semantic` asks the embedder."""
    script = Script.of(session)
    topics: Sequence[Sequence[Span]]
    size, overlap = chunking.size * BYTES_PER_TOKEN, chunking.overlap * BYTES_PER_TOKEN
    match chunking.strategy:
        case "fixed":
            topics = [_spans(script.text, _word_ends(script.text, chunking.size))]
        case "paragraph":
            topics = [_small_enough(script.text, _paragraphs(script), chunking.size)]
        case "semantic":
            sentences = _spans(script.text, [end.end() for end in _SENTENCE_END.finditer(script.text)])
            vectors = await embedder.embed([_of(script.text, span) for span in sentences]) if sentences else []
            parted = _parted(sentences, vectors)
            topics = [_small_enough(script.text, topic, chunking.size) for topic in parted]
    return [
        script.chunk(units[first].start, units[last - 1].end)
        for units in topics
        for first, last in _packed([len(_of(script.text, unit).encode()) for unit in units], size, overlap)
    ]


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Line:
    """A turn, and where its words stand in the script."""

    turn: str
    speaker: str
    date: str
    span: Span


@dataclass(frozen=True, slots=True)
class Script:
    """A session written down, one turn after the other."""

    text: str
    """What was said, without the speakers: what is cut."""
    lines: Sequence[_Line]

    @classmethod
    def of(cls, session: Session) -> Script:
        written, lines, start = [], [], 0
        for place, turn in enumerate(session.turns, start=1):
            if not turn.content.strip():
                continue
            said = f"{storable(turn.content.strip())}\n"
            name = turn.id if turn.id is not None else f"{session.id}:{place}"
            speaker = storable(turn.speaker or turn.role)
            lines.append(_Line(name, speaker, _date(session, turn), Span(start, start + len(said))))
            written.append(said)
            start += len(said)
        return cls("".join(written), lines)

    def chunk(self, start: int, end: int) -> Chunk:
        """What stands there, with its speakers, and a date wherever it changes."""
        shown, turns, date = [], [], ""
        for line in self.lines:
            first, last = max(start, line.span.start), min(end, line.span.end)
            if first >= last:
                continue
            if line.date and line.date != date:
                date = line.date
                shown.append(f"[{date}] ")
            shown.append(f"{line.speaker}: {'… ' if first > line.span.start else ''}{self.text[first:last]}")
            turns.append(line.turn)
        return Chunk("".join(shown).strip(), tuple(turns))


def _date(session: Session, turn: Turn) -> str:
    at = turn.at or session.at
    return at.date().isoformat() if at else ""


def _of(text: str, span: Span) -> str:
    return text[span.start : span.end]


def _spans(text: str, ends: Sequence[int], start: int = 0) -> list[Span]:
    """What lies between one end and the next; together they are the whole text."""
    borders = [start, *ends, len(text)]
    return [Span(first, last) for first, last in pairwise(borders) if first < last]


def _word_ends(text: str, size: int) -> list[int]:
    """A word longer than `size` characters (a link, a sentence without blanks) is cut like any other text."""
    return [word.end() for word in re.finditer(rf"\S{{1,{size}}}\s*", text)]


def _paragraphs(script: Script) -> Sequence[Span]:
    """A turn is one, and so is each part of it that blank lines set apart."""
    ends = {line.span.end for line in script.lines} | {blank.end() for blank in _BLANK_LINE.finditer(script.text)}
    return _spans(script.text, sorted(ends))


def _parted(sentences: Sequence[Span], vectors: Sequence[Sequence[float]]) -> Sequence[Sequence[Span]]:
    """The sentences by topic. A new one begins where a sentence is less like the one before it than neighbours in
    this session usually are, by more than a standard deviation."""
    import numpy as np

    if len(sentences) < 2:
        return [sentences] if sentences else []
    directions = normalised(np.asarray(vectors, np.float32))
    likeness = (directions[1:] * directions[:-1]).sum(axis=1)
    breaks = np.flatnonzero(likeness < likeness.mean() - likeness.std()) + 1
    borders = [0, *(int(row) for row in breaks), len(sentences)]
    return [sentences[first:last] for first, last in pairwise(borders)]


def _small_enough(text: str, spans: Sequence[Span], size: int) -> Sequence[Span]:
    """The spans, with the words of each that does not fit into a chunk in its place."""
    return [unit for span in spans for unit in (_words(text, span, size) if _too_large(text, span, size) else [span])]


def _too_large(text: str, span: Span, size: int) -> bool:
    return tokens(_of(text, span)) > size


def _words(text: str, span: Span, size: int) -> Iterator[Span]:
    part = _of(text, span)
    return (Span(span.start + word.start, span.start + word.end) for word in _spans(part, _word_ends(part, size)))


def _packed(costs: Sequence[int], size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """First unit and end of each chunk: as many units as fit, after those of the chunk before that make the overlap.

    The overlap gives way where the next unit would not fit beside it: every chunk brings something new.
    """
    first, end = 0, 0
    while end < len(costs):
        held = sum(costs[first:end])
        while end < len(costs) and (held + costs[end] <= size or not held):
            held += costs[end]
            end += 1
        yield first, end
        if end < len(costs):
            room = min(overlap, size - costs[end])
            back = end
            while back - 1 > first and costs[back - 1] <= room:
                back -= 1
                room -= costs[back]
            first = back
