"""On needles and a book of our own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import BadInput
from memorybench.datasets.config import BenchmarkConfig
from memorybench.datasets.config_reading import read_benchmark
from memorybench.datasets.nolima import NeedleDataset, open_needles
from memorybench.files.located import Document
from tests.datasets.described import bundled

NEEDLE = {
    "id": "n1",
    "reasoning_type": "world knowledge",
    "system_prompt": "",
    "task_template": "{haystack} {question}",
    "needle": "In those years {CHAR} kept a stall opposite {1}.",
    "questions": {"onehop": "Who has worked in {2}?", "twohop": "Who has worked in {3}?"},
    "character_set": ["Ilse", "Marek", "Tove"],
    "tests": {
        "t1": {"input_args": ["the Rialto bridge", "Venice", "Italy"]},
        "t2": {"input_args": ["the Charles bridge", "Prague", "Bohemia"]},
    },
}
BOOK = " ".join(f"The keeper wrote line {n} of the ledger, and the lamp burned low." for n in range(200))


def config(**needles: Any) -> BenchmarkConfig:
    value = {
        "name": "needles",
        "data": {"type": "local", "path": ".", "files": ["needles.json", "book.txt"]},
        "needles": {"lengths": [250, 1000], "depths": 5} | needles,
        "evaluation": {"method": "contains"},
    }
    return read_benchmark(Document("needles.yaml", value))


def opened(folder: Path, sets: Any = None, book: str = BOOK, **needles: Any) -> NeedleDataset:
    (folder / "needles.json").write_text(json.dumps([NEEDLE] if sets is None else sets), encoding="utf-8")
    (folder / "book.txt").write_text(book, encoding="utf-8")
    return open_needles(config(**needles), folder / "needles.json", [folder / "book.txt"] * 2, "checksum")


def test_every_needle_at_every_depth_of_every_book_and_length(tmp_path: Path) -> None:
    made = opened(tmp_path)
    assert len(made.questions) == 2 * 2 * 5 * 2 * 2  # tests, books, depths, lengths, hops
    assert Counter(question.kind for question in made.questions) == {"onehop": 40, "twohop": 40}
    assert {question.labels["length"] for question in made.questions} == {"250", "1000"}
    assert len({question.haystack for question in made.questions}) == 40
    assert made.evidence == "turn"


def test_the_needle_is_only_in_the_gold_turn(tmp_path: Path) -> None:
    made = opened(tmp_path)
    for question in made.questions:
        turns = made.haystack(question.haystack).sessions[0].turns
        holding = [turn for turn in turns if "kept a stall opposite" in turn.content]
        assert tuple(turn.id for turn in holding) == question.gold_turns
        assert f"In those years {question.answers[0]} kept" in holding[0].content
        assert "{" not in question.question


def test_depths_go_from_the_beginning_to_the_end(tmp_path: Path) -> None:
    made = opened(tmp_path)
    shares = []
    for depth in range(5):
        (session,) = made.haystack(f"n1-t1-book1-1000-at{depth}").sessions
        text = " ".join(turn.content for turn in session.turns)
        shares.append(text.index("In those years") / (len(text) - len("In those years")))
        assert 3_900 <= len(text.encode()) <= 4_100
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert shares[2] == pytest.approx(0.5, abs=0.05)
    assert shares[4] > 0.95


def test_the_seed_chooses_the_characters(tmp_path: Path) -> None:
    def characters(seed: int) -> list[tuple[str, ...]]:
        return [question.answers for question in opened(tmp_path, seed=seed).questions]

    assert characters(42) == characters(42)
    assert any(characters(42) != characters(seed) for seed in range(5))


def test_as_published() -> None:
    needles = bundled("nolima").needles
    assert needles is not None
    assert (needles.depths, needles.seed) == (26, 42)
    assert needles.lengths == (250, 500, 1000, 2000, 4000, 8000, 16000, 32000)


@pytest.mark.parametrize(
    ("sets", "where"),
    [
        ([], "needles.json:1"),
        ([NEEDLE, NEEDLE], "[1].id"),
        ([NEEDLE | {"tests": {}}], "[0]"),
        ([NEEDLE | {"needle": "No one."}], "[0].needle"),
        ([NEEDLE | {"tests": {"t": {}}}], "[0].tests.t"),
    ],
)
def test_invalid_needles_are_located(tmp_path: Path, sets: Any, where: str) -> None:
    with pytest.raises(BadInput) as caught:
        opened(tmp_path, sets)
    assert caught.value.where.endswith(where)


def test_a_book_that_is_too_short(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        opened(tmp_path, book="Short.")
    assert caught.value.where.endswith("book.txt")
