"""aqrag and contextual-retrieval with a real model behind a real server. The model is tiny: that calls go out, replies
come back, are stored and charged is what is shown here; what good they do is shown with scripted ones."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from memorybench.embedding.scripted import ScriptedEmbedder
from memorybench.models.opening import open_model
from memorybench.models.options import Options
from memorybench.models.presets import resolve
from memorybench.providers.aqrag import open_aqrag
from memorybench.providers.chunk_memory import ChunkMemory
from memorybench.providers.contextual_retrieval import open_contextual_retrieval
from memorybench.vocabulary.conversation import Memory
from memorybench.vocabulary.spending import Spending, Tally
from memorybench.wire.redaction import Redactor
from tests.providers.chunked import config
from tests.providers.embedded import HOME, session, sessions_of

pytest_plugins = ("tests.real.local_llm",)
pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]  # of a busy machine

TOLD = (
    session("cat", "I adopted a grey cat from the shelter in Porto last week.", "Lovely! What is her name?", "Luna."),
    session("car", "My car broke down on the way to the office.", "Was it the battery again?"),
)
# a small model may go on and on, and a busy machine may need a minute for a hundred tokens of it
OPTIONS = Options(max_tokens=200, timeout=900)


def lived(
    url: str, open_provider: Callable[..., AbstractAsyncContextManager[ChunkMemory]], adapter: str, file: Path
) -> tuple[list[Spending], list[Memory]]:
    """What each add was charged, and what a search found."""

    async def live() -> tuple[list[Spending], list[Memory]]:
        address = resolve("vllm/smollm2", {"VLLM_BASE_URL": url})
        charged = []
        async with (
            open_model(address, key=None, redactor=Redactor([]), options=OPTIONS) as model,
            open_provider(config(adapter), file, ScriptedEmbedder(256), model) as provider,
        ):
            for told in TOLD:
                with Tally() as tally:
                    await provider.add(HOME, told)
                charged.append(tally.spent)
            return charged, list(await provider.search(HOME, "Who has a grey cat from the shelter?", 2))

    return asyncio.run(live())


def test_aqrag_keeps_the_questions_of_a_real_model(local_llm: str, tmp_path: Path) -> None:
    charged, found = lived(local_llm, open_aqrag, "aqrag", tmp_path / "aqrag.db")
    assert [spent.calls for spent in charged] == [1, 1]
    assert all(spent.input_tokens > 100 and spent.output_tokens > 5 and spent.cost == 0.0 for spent in charged)
    assert sessions_of(found)[0] == "cat"
    db = sqlite3.connect(tmp_path / "aqrag.db")
    kept = db.execute("SELECT session, count(*) FROM handles WHERE kind = 'question' GROUP BY session").fetchall()
    db.close()
    assert {name for name, _ in kept} == {"cat", "car"}
    assert all(1 <= count <= 3 for _, count in kept)


def test_contextual_retrieval_puts_the_words_of_a_real_model_first(local_llm: str, tmp_path: Path) -> None:
    charged, found = lived(local_llm, open_contextual_retrieval, "contextual-retrieval", tmp_path / "contextual.db")
    assert [spent.calls for spent in charged] == [1, 1]
    assert sessions_of(found)[0] == "cat"
    context, _, said = found[0].content.partition("\n")
    assert len(context) > 20
    assert said.startswith("[2024-03-02] user: I adopted a grey cat")
