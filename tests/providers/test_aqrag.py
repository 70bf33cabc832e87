import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.conversation import Memory, Session
from memorybench.core.errors import BadInput, Malformed, Transient
from memorybench.core.spending import Spending, Tally
from memorybench.embedding.scripted import ScriptedEmbedder
from memorybench.models.scripted import ScriptedModel
from memorybench.providers.aqrag import Aqrag
from memorybench.providers.storage.chunk_memory import ChunkMemory
from tests.providers.chunked import asks, config
from tests.providers.embedded import HOME, fill, session, sessions_of

VET = session("vet", "Rex limped, so we drove to Doctor Brandt on Friday.")
GARDEN = session("garden", "The roses near the wall bloom, and a dog ran through them.")
SESSIONS = (VET, GARDEN)
ASKED = "Which animal hospital treated the dog?"
WRITTEN = asks({"Rex": "Which animal hospital treated the dog named Rex?"})


@asynccontextmanager
async def opened(folder: Path, model: ScriptedModel | None, **local: Any) -> AsyncIterator[ChunkMemory]:
    async with Aqrag.open_file(config("aqrag", **local), folder / "aqrag.db", ScriptedEmbedder(512), model) as provider:
        yield provider


def found(
    folder: Path, model: ScriptedModel | None, sessions: Sequence[Session] = SESSIONS, limit: int = 5, **local: Any
) -> Sequence[Memory]:
    async def asked() -> Sequence[Memory]:
        async with opened(folder, model, **local) as provider:
            await fill(provider, sessions)
            return await provider.search(HOME, ASKED, limit)

    return asyncio.run(asked())


def test_an_anticipated_question_finds_what_its_chunk_alone_would_not(tmp_path: Path) -> None:
    without = found(tmp_path, None, enhancement={"enabled": False})
    assert sessions_of(without) == ["garden", "vet"]
    (tmp_path / "asked").mkdir()
    assert sessions_of(found(tmp_path / "asked", WRITTEN)) == ["vet", "garden"]


def test_the_weights_decide_what_counts(tmp_path: Path) -> None:
    ranked = {}
    for name, weights in {"chunks": {"chunk": 1}, "questions": {"questions": 1}}.items():
        (tmp_path / name).mkdir()
        ranked[name] = sessions_of(found(tmp_path / name, WRITTEN, retrieval={"weights": weights}))
    assert ranked == {"chunks": ["garden", "vet"], "questions": ["vet", "garden"]}


def test_a_score_is_the_weighted_sum_of_both_cosines(tmp_path: Path) -> None:
    same = ScriptedModel(lambda _: json.dumps({"questions": [ASKED]}))
    [memory] = found(tmp_path, same, [VET], retrieval={"weights": {"chunk": 0, "questions": 0.25}})
    assert memory.score == pytest.approx(0.25)


def test_no_more_than_max_results_come_back(tmp_path: Path) -> None:
    assert len(found(tmp_path, WRITTEN, retrieval={"maxResults": 1})) == 1


def test_no_more_questions_are_kept_than_asked_for_and_none_twice(tmp_path: Path) -> None:
    many = ScriptedModel(lambda _: json.dumps({"questions": [" a? ", "a?", "", "b?", "c?", "d?"]}))
    found(tmp_path, many, [VET])
    assert kept_questions(tmp_path) == ["a?", "b?", "c?"]


def kept_questions(folder: Path) -> list[str]:
    import sqlite3

    db = sqlite3.connect(folder / "aqrag.db")
    rows = db.execute("SELECT said FROM handles WHERE kind = 'question' ORDER BY said").fetchall()
    db.close()
    return [said for (said,) in rows]


def test_the_model_sees_the_chunk_and_how_many_questions_are_wanted(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    found(tmp_path, ScriptedModel(lambda _: '{"questions": ["?"]}', ledger=ledger), [VET])
    [[role, prompt]] = json.loads(ledger.read_text())["turns"]
    assert role == "user"
    assert "[2024-03-02] user: Rex limped" in prompt
    assert "Write 3 questions" in prompt


@pytest.mark.parametrize("garbage", ["", "Sure!", "[]", '{"questions": []}', '{"questions": [" "]}', '{"asks": ["a"]}'])
def test_an_unreadable_reply_is_asked_for_once_more_and_then_malformed(tmp_path: Path, garbage: str) -> None:
    ledger = tmp_path / "ledger"
    with pytest.raises(Malformed, match='model "scripted"'):
        found(tmp_path, ScriptedModel(lambda _: garbage, ledger=ledger), [VET])
    first, second = [json.loads(line)["turns"] for line in ledger.read_text().splitlines()]
    assert second[0] == first[0]
    assert second[1][0] == "assistant"
    assert "cannot be used" in second[2][1]


def test_a_second_attempt_that_can_be_read_counts(tmp_path: Path) -> None:
    model = ScriptedModel(["Sure!", '{"questions": ["Who treated Rex?"]}'])
    found(tmp_path, model, [VET])
    assert kept_questions(tmp_path) == ["Who treated Rex?"]


def test_what_the_model_spends_is_charged_to_the_open_step(tmp_path: Path) -> None:
    async def spent() -> list[Spending]:
        model = ScriptedModel(lambda _: '{"questions": ["?"]}', spent=Spending(calls=1, input_tokens=90, cost=0.5))
        async with opened(tmp_path, model) as provider:
            with Tally() as ingest:
                await provider.add(HOME, VET)
            with Tally() as again:
                await provider.add(HOME, VET)
            with Tally() as search:
                await provider.search(HOME, ASKED, 5)
        return [ingest.spent, again.spent, search.spent]

    ingest, again, search = asyncio.run(spent())
    assert ingest == Spending(calls=1, input_tokens=90, cost=0.5)
    assert (again, search) == (Spending(), Spending()), "what was written already is not paid again"


def test_an_add_that_is_retried_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    said: list[Any] = ['{"questions": ["a?"]}', Transient("busy"), '{"questions": ["b?"]}', '{"questions": ["c?"]}']

    async def retried() -> None:
        chunking = {"size": 4, "overlap": 0, "strategy": "paragraph"}
        async with opened(tmp_path, ScriptedModel(said, ledger=ledger), chunking=chunking) as provider:
            told = session("s1", "First turn.", "Second turn.", "Third turn.")
            with pytest.raises(Transient):
                await provider.add(HOME, told)
            assert await provider.list(HOME) == [], "half a session was stored"
            await provider.add(HOME, told)
            assert len(await provider.list(HOME)) == 3

    asyncio.run(retried())
    assert len(ledger.read_text().splitlines()) == 4
    assert kept_questions(tmp_path) == ["a?", "b?", "c?"]


def test_to_other_chunks_or_another_model_a_store_is_another_store(tmp_path: Path) -> None:
    async def store_id(model: ScriptedModel, **local: Any) -> str:
        async with opened(tmp_path, model, **local) as provider:
            return provider.store_id

    first = asyncio.run(store_id(WRITTEN))
    assert first == asyncio.run(store_id(WRITTEN, retrieval={"maxResults": 3}))
    assert first != asyncio.run(store_id(WRITTEN, chunking={"size": 99}))
    assert first != asyncio.run(store_id(ScriptedModel([], name="other")))


def test_the_subject_says_who_wrote_and_who_embedded(tmp_path: Path) -> None:
    async def settings() -> Any:
        async with opened(tmp_path, WRITTEN) as provider:
            return provider.subject.settings

    told = asyncio.run(settings())
    assert (told["model"]["name"], told["embedder"]["name"], told["database"]) == ("scripted", "scripted", "sqlite")
    assert told["chunking"] == {"size": 1024, "overlap": 96, "strategy": "fixed"}


def test_without_a_model_there_are_no_questions(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match='provider "aqrag": missing model'):
        found(tmp_path, None)
