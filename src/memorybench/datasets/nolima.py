"""Needles in books, in the format of NoLiMa.

Modarressi et al., "NoLiMa: Long-context evaluation beyond literal matching", 2025. A history is the beginning of a book
with one needle, a sentence about a character, put between two sentences at a given depth. The questions share no words
with the needle: `onehop` asks by what follows from it, `twohop` by what follows from that.

Lengths are counted at four bytes a token, not by a model's own tokeniser. Characters are chosen by a generator seeded
with the seed and the needle, so that one haystack serves both questions about it.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from memorybench.core.conversation import Haystack, Session, Turn
from memorybench.core.errors import BadInput
from memorybench.core.questions import EvidenceLevel, Question
from memorybench.core.records import digest
from memorybench.files.json_text import load_json
from memorybench.files.located import Document
from memorybench.files.reading import read_text
from memorybench.text.sanitize import preview

from .config import BenchmarkConfig

_BYTES_PER_TOKEN = 4
_PASSAGE = 600
"""Characters after which a passage ends with its sentence: passages are the turns that a memory keeps and finds."""
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\n+")
_HELD = 16
_CHARACTER = "{CHAR}"
_SESSION = "s1"
_KEYS = ("id", "needle", "questions", "character_set", "tests")


class _Needle(NamedTuple):
    """One needle with its arguments filled in."""

    id: str
    text: str
    character: str
    questions: Mapping[str, str]


class _Spot(NamedTuple):
    """Which haystack: all that it is made of."""

    needle: _Needle
    book: int
    length: int
    depth: int

    @property
    def id(self) -> str:
        return f"{self.needle.id}-book{self.book + 1}-{self.length}-at{self.depth}"


class _Text(NamedTuple):
    """The beginning of a book, in passages of whole sentences."""

    passages: Sequence[Sequence[str]]
    starts: Sequence[int]
    """How many sentences stand before each passage."""
    sentences: int


class NeedleDataset:
    """A Dataset. Haystacks are made when they are asked for."""

    evidence: EvidenceLevel = "turn"
    notes: tuple[str, ...] = ()

    def __init__(self, name: str, fingerprint: str, spots: Sequence[_Spot], books: Sequence[str], depths: int) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._spots = {spot.id: spot for spot in spots}
        self._books = books
        self._depths = depths
        self._text = cache(self._cut)
        self._haystack = lru_cache(maxsize=_HELD)(self._make)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        return tuple(question for spot in self._spots.values() for question in self._asked(spot))

    def haystack(self, id: str) -> Haystack:
        return self._haystack(id)

    def _asked(self, spot: _Spot) -> Iterator[Question]:
        gold, _ = self._place(spot)
        for hop, text in spot.needle.questions.items():
            yield Question(
                id=f"{spot.id}-{hop}",
                labels={"question_type": hop, "length": str(spot.length)},
                haystack=spot.id,
                question=text,
                answers=(spot.needle.character,),
                gold_sessions=(_SESSION,),
                gold_turns=(_turn_id(gold),),
            )

    def _make(self, id: str) -> Haystack:
        spot = self._spots[id]
        passages = list(self._text(spot.book, spot.length).passages)
        place, within = self._place(spot)
        passages[place] = [*passages[place][:within], spot.needle.text, *passages[place][within:]]
        turns = tuple(Turn(role="user", content=" ".join(said), id=_turn_id(n)) for n, said in enumerate(passages))
        return Haystack(id=id, sessions=(Session(id=_SESSION, turns=turns),))

    def _place(self, spot: _Spot) -> tuple[int, int]:
        """The passage that gets the needle, and how many of its sentences stand before it."""
        text = self._text(spot.book, spot.length)
        before = round(spot.depth / (self._depths - 1) * text.sentences)
        passage = bisect_right(text.starts, before) - 1
        return passage, before - text.starts[passage]

    def _cut(self, book: int, length: int) -> _Text:
        beginning = self._books[book].encode()[: length * _BYTES_PER_TOKEN].decode(errors="ignore")
        # the last sentence is cut off in its middle
        sentences = [sentence.strip() for sentence in _SENTENCE_END.split(beginning) if sentence.strip()][:-1]
        passages: list[list[str]] = [[]]
        starts = [0]
        for index, sentence in enumerate(sentences):
            if sum(map(len, passages[-1])) >= _PASSAGE:
                passages.append([])
                starts.append(index)
            passages[-1].append(sentence)
        return _Text(passages, starts, len(sentences))


def open_needles(config: BenchmarkConfig, needles: Path, books: Sequence[Path], checksum: str) -> NeedleDataset:
    assert config.needles is not None
    told = config.needles
    texts = [read_text(book) for book in books]
    longest = max(told.lengths) * _BYTES_PER_TOKEN
    for book, text in zip(books, texts, strict=True):
        if len(text.encode()) < longest:
            raise BadInput(
                str(book), f"is shorter than {longest:,} bytes", remedy="name a longer book, or fewer lengths"
            )
    found = list(_needles(load_json(needles), told.seed))
    spots = [
        _Spot(needle, book, length, depth)
        for length in told.lengths
        for needle in found
        for book in range(len(books))
        for depth in range(told.depths)
    ]
    fingerprint = digest([checksum, told.model_dump(mode="json")])
    return NeedleDataset(config.name, fingerprint, spots, texts, told.depths)


def _needles(document: Document, seed: int) -> Iterator[_Needle]:
    if not isinstance(document.value, list) or not document.value:
        raise BadInput(document.where(), "holds no needles", expected="a JSON array of needle sets")
    seen: set[str] = set()
    for index in range(len(document.value)):
        part = document.at(index)
        _check(part, seen)
        for test, arguments in part.value["tests"].items():
            yield _filled(part, test, arguments, seed)


def _check(part: Document, seen: set[str]) -> None:
    lacking = [key for key in _KEYS if not (isinstance(part.value, dict) and part.value.get(key))]
    if lacking:
        raise BadInput(part.where(), f'"{lacking[0]}" is missing', expected=f"each of {', '.join(_KEYS)}")
    if _CHARACTER not in part.value["needle"]:
        raise BadInput(part.where("needle"), f"{preview(part.value['needle'])} has no place for a name: {_CHARACTER}")
    if part.value["id"] in seen:
        raise BadInput(part.where("id"), f"the id {preview(part.value['id'])} stands here again", remedy="rename one")
    seen.add(part.value["id"])


def _filled(part: Document, test: str, told: Any, seed: int) -> _Needle:
    needle = part.value
    arguments = told.get("input_args") if isinstance(told, dict) else None
    if not isinstance(arguments, list):
        raise BadInput(part.where("tests", test), "has no input_args", expected="a list of texts")
    id = f"{needle['id']}-{test}"
    character = random.Random(f"{seed} {id}").choice(needle["character_set"])

    def filled(text: str) -> str:
        for number, argument in enumerate(arguments, 1):
            text = text.replace(f"{{{number}}}", str(argument))
        return text

    questions = {hop: filled(text) for hop, text in needle["questions"].items()}
    text = filled(needle["needle"]).replace(_CHARACTER, character)
    return _Needle(id, text, character, questions)


def _turn_id(passage: int) -> str:
    return f"{_SESSION}:{passage + 1}"
