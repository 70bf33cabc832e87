import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.errors import BadInput, Malformed
from memorybench.providers.contextual_retrieval import ContextualRetrieval
from tests.doubles.scripted_embedder import ScriptedEmbedder
from tests.doubles.scripted_model import ScriptedModel
from tests.providers.chunked import chunk_in, config
from tests.providers.embedded import HOME, fill, session, sessions_of

TRIP = session(
    "trip",
    "We talked about the holidays in Portugal.",
    "It rained there all week.",
    "Awful, was it not? I would never have gone.",
)
GARDEN = session("garden", "It rained in the garden.")
BY_TURN = {"size": 13, "overlap": 0, "strategy": "paragraph"}
ASKED = "How was it in Portugal when it rained?"


def explains(turns: Sequence[Turn]) -> str:
    return "The weather of the holidays in Portugal." if "rained there" in chunk_in(turns) else "Talk."


def search_memories(
    folder: Path,
    model: ScriptedModel | None,
    sessions: Sequence[Session] = (TRIP, GARDEN),
    query: str = ASKED,
    limit: int = 5,
    **local: Any,
) -> Sequence[Memory]:
    async def search() -> Sequence[Memory]:
        settings = config("contextual-retrieval", **{"chunking": BY_TURN, **local})
        opening = ContextualRetrieval.open_file(settings, folder / "context.db", ScriptedEmbedder(512), model)
        async with opening as provider:
            await fill(provider, sessions)
            return await provider.search(HOME, query, limit)

    return asyncio.run(search())


def test_generated_context_improves_the_search(tmp_path: Path) -> None:
    without = search_memories(tmp_path, None, enhancement={"enabled": False})
    assert "It rained there" not in without[0].content
    (tmp_path / "explained").mkdir()
    best = search_memories(tmp_path / "explained", ScriptedModel(explains))[0]
    assert best.content == "The weather of the holidays in Portugal.\n[2024-03-02] user: It rained there all week."
    assert best.sources == ("trip", "trip:2")


@pytest.mark.parametrize(
    ("retrieval", "query", "first"),
    [
        ({"strategy": "lexical"}, "gardens", "garden"),  # only words have stems
        ({"strategy": "dense"}, "it rained in the garden", "garden"),
        ({"strategy": "weighted", "weights": {"lexical": 1}}, "gardens", "garden"),
        ({"strategy": "weighted", "weights": {"lexical": 1, "dense": 3}}, "it rained in the garden", "garden"),
    ],
)
def test_each_strategy_works(tmp_path: Path, retrieval: dict[str, Any], query: str, first: str) -> None:
    memories = search_memories(tmp_path, ScriptedModel(explains), query=query, retrieval=retrieval)
    assert sessions_of(memories)[0] == first


def test_hybrid_stems_words(tmp_path: Path) -> None:
    memories = search_memories(tmp_path, ScriptedModel(explains), query="gardens", retrieval={"strategy": "dense"})
    assert {memory.score for memory in memories} == {0.0}


@pytest.mark.parametrize("strategy", ["lexical", "dense", "weighted"])
def test_max_results_is_respected(tmp_path: Path, strategy: str) -> None:
    retrieval = {"strategy": strategy, "maxResults": 2}
    assert len(search_memories(tmp_path, ScriptedModel(explains), retrieval=retrieval)) == 2


def test_prompt_contains_the_session_around_the_chunk(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    search_memories(tmp_path, ScriptedModel(lambda _: "Talk.", ledger=ledger), [TRIP])
    prompts = [json.loads(line)["turns"][0][1] for line in ledger.read_text().splitlines()]
    assert len(prompts) > 2
    for prompt in prompts:
        assert "holidays" in prompt
        assert "rained" in prompt
        assert "Awful" in prompt


def test_prompt_contains_only_near_parts_of_a_very_long_session(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    talk = session("long", *(f"Remark {n}: " + "the weather was mild. " * 50 for n in range(100)))
    search_memories(tmp_path, ScriptedModel(lambda _: "Talk.", ledger=ledger), [talk], chunking={"size": 500})
    prompts = [json.loads(line)["turns"][0][1] for line in ledger.read_text().splitlines()]
    assert max(map(len, prompts)) < 4 * 4_500
    assert "Remark 99" in prompts[-1]
    assert "Remark 3:" not in prompts[-1]


def test_text_of_users_is_not_expanded_as_a_template(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    search_memories(tmp_path, ScriptedModel(lambda _: "Talk.", ledger=ledger), [session("s", "${chunk} ${around}")])
    assert json.loads(ledger.read_text())["turns"][0][1].count("${chunk} ${around}") == 2


def test_context_is_one_line_of_limited_length(tmp_path: Path) -> None:
    endless = ScriptedModel(lambda _: "On\npets.  " * 1_000)
    [memory] = search_memories(tmp_path, endless, [GARDEN])
    context, _, text = memory.content.partition("\n")
    assert context.startswith("On pets. On pets.")
    assert len(context) <= 1_000
    assert text == "[2024-03-02] user: It rained in the garden."


def test_lone_surrogate_in_a_model_reply_is_replaced(tmp_path: Path) -> None:
    [memory] = search_memories(tmp_path, ScriptedModel(lambda _: "On \ud800 pets."), [GARDEN])
    assert memory.content.startswith("On ? pets.\n")


def test_empty_model_reply_is_malformed(tmp_path: Path) -> None:
    with pytest.raises(Malformed, match="the reply is empty"):
        search_memories(tmp_path, ScriptedModel(lambda _: "  "), [GARDEN])


def test_without_a_model_there_are_no_contexts(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r'provider "contextual-retrieval": .*add local.enhancement.model'):
        search_memories(tmp_path, None)
