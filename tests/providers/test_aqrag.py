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
from memorybench.providers.aqrag import Aqrag
from memorybench.providers.storage.chunk_memory import ChunkMemory
from tests.doubles.scripted_embedder import ScriptedEmbedder
from tests.doubles.scripted_model import ScriptedModel
from tests.providers.chunked import asks, config
from tests.providers.embedded import HOME, fill, session, sessions_of

VET = session("vet", "Rex limped, so we drove to Doctor Brandt on Friday.")
GARDEN = session("garden", "The roses near the wall bloom, and a dog ran through them.")
SESSIONS = (VET, GARDEN)
ASKED = "Which animal hospital treated the dog?"
WRITTEN = asks({"Rex": "Which animal hospital treated the dog named Rex?"})


@asynccontextmanager
async def open_aqrag(folder: Path, model: ScriptedModel | None, **local: Any) -> AsyncIterator[ChunkMemory]:
    async with Aqrag.open_file(config("aqrag", **local), folder / "aqrag.db", ScriptedEmbedder(512), model) as provider:
        yield provider


def search_memories(
    folder: Path, model: ScriptedModel | None, sessions: Sequence[Session] = SESSIONS, limit: int = 5, **local: Any
) -> Sequence[Memory]:
    async def add_and_search() -> Sequence[Memory]:
        async with open_aqrag(folder, model, **local) as provider:
            await fill(provider, sessions)
            return await provider.search(HOME, ASKED, limit)

    return asyncio.run(add_and_search())


def test_generated_question_improves_the_search(tmp_path: Path) -> None:
    without = search_memories(tmp_path, None, enhancement={"enabled": False})
    assert sessions_of(without) == ["garden", "vet"]
    (tmp_path / "asked").mkdir()
    assert sessions_of(search_memories(tmp_path / "asked", WRITTEN)) == ["vet", "garden"]


def test_weights_are_respected(tmp_path: Path) -> None:
    ranked = {}
    for name, weights in {"chunks": {"chunk": 1}, "questions": {"questions": 1}}.items():
        (tmp_path / name).mkdir()
        ranked[name] = sessions_of(search_memories(tmp_path / name, WRITTEN, retrieval={"weights": weights}))
    assert ranked == {"chunks": ["garden", "vet"], "questions": ["vet", "garden"]}


def test_a_score_is_the_weighted_sum_of_both_cosines(tmp_path: Path) -> None:
    same = ScriptedModel(lambda _: json.dumps({"questions": [ASKED]}))
    [memory] = search_memories(tmp_path, same, [VET], retrieval={"weights": {"chunk": 0, "questions": 0.25}})
    assert memory.score == pytest.approx(0.25)


def test_max_results_is_respected(tmp_path: Path) -> None:
    assert len(search_memories(tmp_path, WRITTEN, retrieval={"maxResults": 1})) == 1


def test_questions_are_limited_and_unique(tmp_path: Path) -> None:
    many = ScriptedModel(lambda _: json.dumps({"questions": [" a? ", "a?", "", "b?", "c?", "d?"]}))
    search_memories(tmp_path, many, [VET])
    assert kept_questions(tmp_path) == ["a?", "b?", "c?"]


def kept_questions(folder: Path) -> list[str]:
    import sqlite3

    db = sqlite3.connect(folder / "aqrag.db")
    rows = db.execute("SELECT said FROM handles WHERE kind = 'question' ORDER BY said").fetchall()
    db.close()
    return [replies for (replies,) in rows]


def test_prompt_contains_the_chunk_and_the_number_of_questions(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    search_memories(tmp_path, ScriptedModel(lambda _: '{"questions": ["?"]}', ledger=ledger), [VET])
    [[role, prompt]] = json.loads(ledger.read_text())["turns"]
    assert role == "user"
    assert "[2024-03-02] user: Rex limped" in prompt
    assert "Write 3 questions" in prompt


@pytest.mark.parametrize("garbage", ["", "Sure!", "[]", '{"questions": []}', '{"questions": [" "]}', '{"asks": ["a"]}'])
def test_invalid_reply_is_requested_again_once(tmp_path: Path, garbage: str) -> None:
    ledger = tmp_path / "ledger"
    with pytest.raises(Malformed, match='model "scripted"'):
        search_memories(tmp_path, ScriptedModel(lambda _: garbage, ledger=ledger), [VET])
    first, second = [json.loads(line)["turns"] for line in ledger.read_text().splitlines()]
    assert second[0] == first[0]
    assert second[1][0] == "assistant"
    assert "cannot be used" in second[2][1]


def test_valid_second_attempt_is_used(tmp_path: Path) -> None:
    model = ScriptedModel(["Sure!", '{"questions": ["Who treated Rex?"]}'])
    search_memories(tmp_path, model, [VET])
    assert kept_questions(tmp_path) == ["Who treated Rex?"]


def test_model_cost_is_charged_to_the_open_step(tmp_path: Path) -> None:
    async def spent() -> list[Spending]:
        model = ScriptedModel(lambda _: '{"questions": ["?"]}', spent=Spending(calls=1, input_tokens=90, cost=0.5))
        async with open_aqrag(tmp_path, model) as provider:
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


def test_retried_add_requests_only_missing_replies(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    replies: list[Any] = ['{"questions": ["a?"]}', Transient("busy"), '{"questions": ["b?"]}', '{"questions": ["c?"]}']

    async def retried() -> None:
        chunking = {"size": 4, "overlap": 0, "strategy": "paragraph"}
        async with open_aqrag(tmp_path, ScriptedModel(replies, ledger=ledger), chunking=chunking) as provider:
            added = session("s1", "First turn.", "Second turn.", "Third turn.")
            with pytest.raises(Transient):
                await provider.add(HOME, added)
            assert await provider.list(HOME) == [], "half a session was stored"
            await provider.add(HOME, added)
            assert len(await provider.list(HOME)) == 3

    asyncio.run(retried())
    assert len(ledger.read_text().splitlines()) == 4
    assert kept_questions(tmp_path) == ["a?", "b?", "c?"]


def test_store_id_depends_on_chunking_and_model(tmp_path: Path) -> None:
    async def store_id(model: ScriptedModel, **local: Any) -> str:
        async with open_aqrag(tmp_path, model, **local) as provider:
            return provider.store_id

    first = asyncio.run(store_id(WRITTEN))
    assert first == asyncio.run(store_id(WRITTEN, retrieval={"maxResults": 3}))
    assert first != asyncio.run(store_id(WRITTEN, chunking={"size": 99}))
    assert first != asyncio.run(store_id(ScriptedModel([], name="other")))


def test_subject_contains_model_and_embedder(tmp_path: Path) -> None:
    async def settings() -> Any:
        async with open_aqrag(tmp_path, WRITTEN) as provider:
            return provider.subject.settings

    added = asyncio.run(settings())
    assert (added["model"]["name"], added["embedder"]["name"], added["database"]) == ("scripted", "scripted", "sqlite")
    assert added["chunking"] == {"size": 1024, "overlap": 96, "strategy": "fixed"}


def test_without_a_model_there_are_no_questions(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r'provider "aqrag": .*add local.enhancement.model'):
        search_memories(tmp_path, None)
