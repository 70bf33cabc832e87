"""Needles in books, in the format of NoLiMa.

Modarressi et al., "NoLiMa: Long-context evaluation beyond literal matching", 2025. A history is the beginning of a book
with one needle, a sentence about a character, inserted between two sentences at a given depth. The questions share no
words with the needle: `onehop` needs one step of inference from it, `twohop` needs two.

A token counts as four bytes; no model's tokeniser is used. Characters are chosen by a random generator seeded with the
seed and the needle, so both questions about a needle use the same haystack.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import product
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
"""A passage ends with the sentence that reaches this many characters. Each passage is one turn."""
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\n+")
_CACHED_HAYSTACKS = 16
_CHARACTER = "{CHAR}"
_SESSION = "s1"
_REQUIRED_KEYS = ("id", "needle", "questions", "character_set", "tests")


class _Needle(NamedTuple):
    """One needle: the sentence and its questions, with a name and words in place of `{CHAR}`, `{1}`, `{2}` …"""

    id: str
    text: str
    character: str
    questions: Mapping[str, str]


class _Placement(NamedTuple):
    """What a haystack consists of: a needle, a book, the length in tokens, and the position of the needle."""

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
    """The number of sentences before each passage."""
    sentences: int


class NeedleDataset:
    """A Dataset that builds each haystack on demand."""

    evidence: EvidenceLevel = "turn"
    notes: tuple[str, ...] = ()

    def __init__(
        self, name: str, fingerprint: str, placements: Sequence[_Placement], books: Sequence[str], depths: int
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._placements = {placement.id: placement for placement in placements}
        self._books = books
        self._depths = depths
        self._text = cache(self._split)
        self._haystack = lru_cache(maxsize=_CACHED_HAYSTACKS)(self._make)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        return tuple(question for placement in self._placements.values() for question in self._questions(placement))

    def haystack(self, id: str) -> Haystack:
        return self._haystack(id)

    def _questions(self, placement: _Placement) -> Iterator[Question]:
        gold, _ = self._locate(placement)
        for hop, text in placement.needle.questions.items():
            yield Question(
                id=f"{placement.id}-{hop}",
                labels={"question_type": hop, "length": str(placement.length)},
                haystack=placement.id,
                question=text,
                answers=(placement.needle.character,),
                gold_sessions=(_SESSION,),
                gold_turns=(_turn_id(gold),),
            )

    def _make(self, id: str) -> Haystack:
        placement = self._placements[id]
        passages = [list(passage) for passage in self._text(placement.book, placement.length).passages]
        index, sentences_before = self._locate(placement)
        passages[index].insert(sentences_before, placement.needle.text)
        turns = tuple(Turn(role="user", content=" ".join(text), id=_turn_id(n)) for n, text in enumerate(passages))
        return Haystack(id=id, sessions=(Session(id=_SESSION, turns=turns),))

    def _locate(self, placement: _Placement) -> tuple[int, int]:
        """Return the index of the passage that gets the needle, and the number of its sentences before the needle."""
        text = self._text(placement.book, placement.length)
        before = round(placement.depth / (self._depths - 1) * text.sentences)
        passage = bisect_right(text.starts, before) - 1
        return passage, before - text.starts[passage]

    def _split(self, book: int, length: int) -> _Text:
        beginning = self._books[book].encode()[: length * _BYTES_PER_TOKEN].decode(errors="ignore")
        # the last sentence is incomplete
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
    """Read the needle sets and the books; raise BadInput at the first error."""
    options = config.needles
    assert options is not None
    texts = [read_text(book) for book in books]
    longest = max(options.lengths) * _BYTES_PER_TOKEN
    for book, text in zip(books, texts, strict=True):
        if len(text.encode()) < longest:
            raise BadInput(
                str(book),
                f"the book is shorter than {longest:,} bytes, which the largest of needles.lengths needs",
                remedy="use a longer book, or remove that length",
            )
    placements = [
        _Placement(needle, book, length, depth)
        for length, needle, book, depth in product(
            options.lengths,
            list(_read_needles(load_json(needles), options.seed)),
            range(len(books)),
            range(options.depths),
        )
    ]
    fingerprint = digest([checksum, options.model_dump(mode="json")])
    return NeedleDataset(config.name, fingerprint, placements, texts, options.depths)


def _read_needles(document: Document, seed: int) -> Iterator[_Needle]:
    if not isinstance(document.value, list) or not document.value:
        raise BadInput(document.where(), "the file contains no needles", expected="a JSON array of needle sets")
    ids: set[str] = set()
    for index in range(len(document.value)):
        part = document.at(index)
        needle_set = part.value
        missing = [key for key in _REQUIRED_KEYS if not (isinstance(needle_set, dict) and needle_set.get(key))]
        if missing:
            raise BadInput(part.where(), f'"{missing[0]}" is missing', expected=f"the keys {', '.join(_REQUIRED_KEYS)}")
        if _CHARACTER not in needle_set["needle"]:
            raise BadInput(
                part.where("needle"),
                f"{preview(needle_set['needle'])} does not contain {_CHARACTER}",
                expected=f"a sentence with {_CHARACTER} in place of a name",
            )
        if needle_set["id"] in ids:
            raise BadInput(
                part.where("id"), f"duplicate id {preview(needle_set['id'])}", remedy="change one of the two"
            )
        ids.add(needle_set["id"])
        for test, settings in needle_set["tests"].items():
            arguments = settings.get("input_args") if isinstance(settings, dict) else None
            if not isinstance(arguments, list):
                raise BadInput(part.where("tests", test), '"input_args" is missing', expected="a list of texts")
            yield _fill(needle_set, test, arguments, seed)


def _fill(needle_set: Mapping[str, Any], test: str, arguments: Sequence[Any], seed: int) -> _Needle:
    """Replace `{1}`, `{2}`, … by the arguments and `{CHAR}` by a randomly chosen character."""

    def fill(text: str) -> str:
        for number, argument in enumerate(arguments, 1):
            text = text.replace(f"{{{number}}}", str(argument))
        return text

    id = f"{needle_set['id']}-{test}"
    character = random.Random(f"{seed} {id}").choice(needle_set["character_set"])
    questions = {hop: fill(text) for hop, text in needle_set["questions"].items()}
    return _Needle(id, fill(needle_set["needle"]).replace(_CHARACTER, character), character, questions)


def _turn_id(passage: int) -> str:
    return f"{_SESSION}:{passage + 1}"
