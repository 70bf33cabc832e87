"""Splits sessions into chunks; each chunk has the ids of the turns in it.

Tokens are estimated without a tokenizer: 4 bytes of UTF-8 count as one token, which is about right for English text. A
chunk also contains dates and speakers, which do not count towards its size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from memorybench.core.contracts import Embedder
from memorybench.core.conversation import Session
from memorybench.providers.config.sections import Chunking

from .indexed import normalize
from .turns import replace_surrogates

BYTES_PER_TOKEN = 4

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")
_BLANK_LINE = re.compile(r"\n\s*\n")


class Chunk(Struct, frozen=True):
    text: str
    turns: tuple[str, ...]
    """The ids of the turns of which the chunk contains at least a part."""


def count_tokens(text: str) -> int:
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


class Span(NamedTuple):
    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


async def chunk_session(session: Session, chunking: Chunking, embedder: Embedder) -> Sequence[Chunk]:
    """Return the chunks of a session in order. Only the strategy `semantic` uses the embedder."""
    transcript = Transcript.of(session)
    text = transcript.text
    sections: Sequence[Sequence[Span]]
    match chunking.strategy:
        case "fixed":
            sections = [_spans(text, _word_ends(text, chunking.size))]
        case "paragraph":  # a paragraph ends with a turn or a blank line
            ends = {line.span.end for line in transcript.lines} | {m.end() for m in _BLANK_LINE.finditer(text)}
            sections = [_split_large(text, _spans(text, sorted(ends)), chunking.size)]
        case "semantic":
            sentences = _spans(text, [match.end() for match in _SENTENCE_END.finditer(text)])
            vectors = await embedder.embed([span.of(text) for span in sentences]) if sentences else []
            sections = [_split_large(text, topic, chunking.size) for topic in _split_topics(sentences, vectors)]
    size, overlap = chunking.size * BYTES_PER_TOKEN, chunking.overlap * BYTES_PER_TOKEN
    return [
        transcript.chunk(units[first].start, units[end - 1].end)
        for units in sections
        for first, end in _pack([len(unit.of(text).encode()) for unit in units], size, overlap)
    ]


class _Line(Struct, frozen=True):
    """The id, speaker and date of a turn, and the position of its text in the transcript."""

    turn: str
    speaker: str
    date: str
    span: Span


class Transcript(Struct, frozen=True):
    """The text of a session, with the position of each turn in it."""

    text: str
    """The text of all turns, without speakers and dates."""
    lines: Sequence[_Line]

    @classmethod
    def of(cls, session: Session) -> Transcript:
        texts, lines, start = [], [], 0
        for id, turn in session.named_turns():
            if not turn.content.strip():
                continue
            text = f"{replace_surrogates(turn.content.strip())}\n"
            at = turn.at or session.at
            date = at.date().isoformat() if at else ""
            span = Span(start, start + len(text))
            lines.append(_Line(id, replace_surrogates(turn.speaker or turn.role), date, span))
            texts.append(text)
            start = span.end
        return cls("".join(texts), lines)

    def chunk(self, start: int, end: int) -> Chunk:
        """Return the text from position `start` to `end` as a chunk.

        The name of the speaker is added before each turn, and the date before the first turn and where it changes.
        """
        parts, turns, date = [], [], ""
        for line in self.lines:
            first, last = max(start, line.span.start), min(end, line.span.end)
            if first >= last:
                continue
            if line.date and line.date != date:
                date = line.date
                parts.append(f"[{date}] ")
            parts.append(f"{line.speaker}: {'… ' if first > line.span.start else ''}{self.text[first:last]}")
            turns.append(line.turn)
        return Chunk("".join(parts).strip(), tuple(turns))


def _spans(text: str, ends: Sequence[int]) -> list[Span]:
    """Split a text at the positions `ends`, and return the positions of the parts that are not empty."""
    return [Span(first, last) for first, last in pairwise([0, *ends, len(text)]) if first < last]


def _word_ends(text: str, size: int) -> list[int]:
    """Return the positions after each word and the space behind it. Words longer than `size` characters are split."""
    return [word.end() for word in re.finditer(rf"\S{{1,{size}}}\s*", text)]


def _split_topics(sentences: Sequence[Span], vectors: Sequence[Sequence[float]]) -> Sequence[Sequence[Span]]:
    """Group sentences by topic.

    A new topic begins at a sentence whose cosine with the previous sentence is more than one standard deviation below
    the mean of these cosines in the session.
    """
    import numpy as np

    if len(sentences) < 2:
        return [sentences] if sentences else []
    directions = normalize(np.asarray(vectors, np.float32))
    similarity = (directions[1:] * directions[:-1]).sum(axis=1)
    breaks = np.flatnonzero(similarity < similarity.mean() - similarity.std()) + 1
    borders = [0, *(int(row) for row in breaks), len(sentences)]
    return [sentences[first:last] for first, last in pairwise(borders)]


def _split_large(text: str, spans: Sequence[Span], size: int) -> Sequence[Span]:
    """Return the spans, with each one of more than `size` tokens replaced by the spans of its words."""
    units: list[Span] = []
    for span in spans:
        part = span.of(text)
        if count_tokens(part) <= size:
            units.append(span)
        else:
            words = _spans(part, _word_ends(part, size))
            units += [Span(span.start + word.start, span.start + word.end) for word in words]
    return units


def _pack(costs: Sequence[int], size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield for each chunk the index of its first unit and the index after its last unit.

    A unit, such as a word, is never split; `costs` are the sizes of the units in bytes. A chunk begins with the last
    units of the chunk before, at most `overlap` bytes, and has as many new units as fit into `size` bytes, but at least
    one: if that does not fit, the overlap is shortened.
    """
    first, end = 0, 0
    while end < len(costs):
        used = sum(costs[first:end])
        while end < len(costs) and (used + costs[end] <= size or not used):
            used += costs[end]
            end += 1
        yield first, end
        if end < len(costs):
            room = min(overlap, size - costs[end])
            first, previous_first = end, first
            while first - 1 > previous_first and costs[first - 1] <= room:
                first -= 1
                room -= costs[first]
