"""aqrag and contextual-retrieval with a real model behind a real server. The model is tiny: that calls go out, replies
come back, are stored and charged is what is shown here; what good they do is shown with scripted ones."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from memorybench.core.conversation import Memory
from memorybench.core.errors import Malformed
from memorybench.core.spending import Spending, Tally
from memorybench.models.opening import open_model
from memorybench.models.presets import Options, resolve
from memorybench.providers.aqrag import Aqrag
from memorybench.providers.contextual_retrieval import ContextualRetrieval
from memorybench.providers.storage.chunk_memory import ChunkMemory
from memorybench.secrets.redaction import Redactor
from tests.doubles.scripted_embedder import ScriptedEmbedder
from tests.providers.chunked import config
from tests.providers.embedded import HOME, session, sessions_of

pytest_plugins = ("tests.real.local_llm",)
pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]  # of a busy machine

SESSIONS = (
    session("cat", "I adopted a grey cat from the shelter in Porto last week.", "Lovely! What is her name?", "Luna."),
    session("car", "My car broke down on the way to the office.", "Was it the battery again?"),
)
# a small model may go on and on, and a busy machine may need a minute for a hundred tokens of it
OPTIONS = Options(max_tokens=200, timeout=900)


@dataclass(frozen=True)
class Run:
    spent: dict[str, Spending]
    """By session id, what its add was charged."""
    rejected: set[str]
    """Sessions whose add failed because the model's reply did not have the requested form."""
    found: list[Memory]


def add_and_search(
    url: str, open_provider: Callable[..., AbstractAsyncContextManager[ChunkMemory]], adapter: str, file: Path
) -> Run:
    async def run() -> Run:
        address = resolve("vllm/smollm2", {"VLLM_BASE_URL": url})
        spent, rejected = {}, set()
        async with (
            open_model(address, key=None, redactor=Redactor([]), options=OPTIONS) as model,
            open_provider(config(adapter), file, ScriptedEmbedder(256), model) as provider,
        ):
            for one in SESSIONS:
                with Tally() as tally:
                    try:
                        await provider.add(HOME, one)
                    except Malformed:
                        rejected.add(one.id)
                spent[one.id] = tally.spent
            found = await provider.search(HOME, "Who has a grey cat from the shelter?", 2)
            return Run(spent, rejected, list(found))

    return asyncio.run(run())


def test_aqrag_stores_valid_questions_and_rejects_an_invalid_reply(local_llm: str, tmp_path: Path) -> None:
    """The model is tiny and its words differ between machines: it may or may not follow the requested form."""
    run = add_and_search(local_llm, Aqrag.open_file, "aqrag", tmp_path / "aqrag.db")
    with closing(sqlite3.connect(tmp_path / "aqrag.db")) as db:
        questions = dict(db.execute("SELECT session, count(*) FROM handles WHERE kind = 'question' GROUP BY session"))
    stored = {one.id for one in SESSIONS} - run.rejected
    assert set(questions) == stored
    assert all(1 <= count <= 3 for count in questions.values())
    for name, spent in run.spent.items():
        assert (
            spent.calls == 2 if name in run.rejected else spent.calls in (1, 2)
        )  # an invalid reply is asked for again
        assert spent.input_tokens > 100
        assert spent.output_tokens > 0
        assert spent.cost == 0.0
    assert set(sessions_of(run.found)) == stored


def test_contextual_retrieval_stores_the_model_context_before_the_chunk(local_llm: str, tmp_path: Path) -> None:
    run = add_and_search(local_llm, ContextualRetrieval.open_file, "contextual-retrieval", tmp_path / "contextual.db")
    assert run.rejected == set()
    assert [spent.calls for spent in run.spent.values()] == [1, 1]
    assert set(sessions_of(run.found)) == {"cat", "car"}
    cat = next(memory for memory in run.found if "cat" in (memory.sources or ()))
    context, separator, chunk = cat.content.partition("[2024-03-02] user: I adopted a grey cat")
    assert separator, cat.content
    assert context.strip()
    assert chunk
