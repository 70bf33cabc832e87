import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memorybench.core.errors import BadInput, ServiceError
from memorybench.providers.storage.chunks import SearchKey, Similarity, SqliteChunkStore, StoredChunk
from tests.providers.chunked import chunk

DIES_IN_THE_MIDDLE = """
import asyncio, json, os, signal, sys
from pathlib import Path
from tests.doubles.scripted_embedder import ScriptedEmbedder
from tests.doubles.scripted_model import ScriptedModel
from memorybench.providers.aqrag import Aqrag
from tests.providers.chunked import config
from tests.providers.embedded import HOME, session

folder, calls_to_live = Path(sys.argv[1]), int(sys.argv[2])
calls = 0

async def before():
    global calls
    calls += 1
    if calls > calls_to_live:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    model = ScriptedModel(lambda _: json.dumps({"questions": ["What?"]}), before=before, ledger=folder / "ledger")
    settings = config("aqrag", chunking={"size": 4, "overlap": 0})
    async with Aqrag.open_file(settings, folder / "aqrag.db", ScriptedEmbedder(16), model) as provider:
        await provider.add(HOME, session("s1", "The zebrafinch sings."))
        await provider.add(HOME, session("s2", *(f"Remark number {n}." for n in range(4))))
        print(len(await provider.list(HOME)), provider.store_id)

asyncio.run(main())
"""


def vector(*numbers: float) -> bytes:
    np = pytest.importorskip("numpy")
    return np.asarray(numbers, np.float32).tobytes()


def raw_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def live(folder: Path, calls_to_live: int) -> subprocess.CompletedProcess[str]:
    child = [sys.executable, "-c", DIES_IN_THE_MIDDLE, str(folder), str(calls_to_live)]
    return subprocess.run(child, capture_output=True, text=True, env={"PYTHONPATH": os.pathsep.join(sys.path)})


@pytest.mark.slow
def test_resumed_ingest_repeats_no_paid_call(tmp_path: Path) -> None:
    """Two killed processes cost only the two calls that were in flight."""
    assert live(tmp_path, 3).returncode == -signal.SIGKILL
    assert live(tmp_path, 2).returncode == -signal.SIGKILL
    finished = live(tmp_path, 1000)
    chunks = int(finished.stdout.split()[0])
    assert chunks > 5
    assert len((tmp_path / "ledger").read_text().splitlines()) == chunks + 2
    assert live(tmp_path, 0).stdout == finished.stdout, "the store has a new incarnation, or paid again"


def test_session_added_again_is_replaced(tmp_path: Path) -> None:
    store = SqliteChunkStore(tmp_path / "chunks.db")
    store.replace(
        "scope", "s1", [chunk("s1", 1, "dog"), chunk("s1", 2, "cat")], [SearchKey(2, "chunk", "cat", vector(1))]
    )
    store.replace("scope", "s1", [chunk("s1", 1, "horse")], [])
    assert store.entries("scope") == [chunk("s1", 1, "horse")]
    assert store.similarities("scope", vector(1)) == []
    store.close()


def test_similarity_uses_the_nearest_key_of_each_kind(tmp_path: Path) -> None:
    store = SqliteChunkStore(tmp_path / "chunks.db")
    handles = [
        SearchKey(1, "chunk", "a", vector(1, 0)),
        SearchKey(1, "question", "b", vector(0, 1)),
        SearchKey(1, "question", "c", vector(0.6, 0.8)),
        SearchKey(2, "chunk", "d", vector(0, 0)),
    ]
    store.replace("scope", "s1", [chunk("s1", 1), chunk("s1", 2)], handles)
    store.replace("other", "s1", [chunk("s1", 1)], [SearchKey(1, "question", "z", vector(1, 0))])
    found = sorted(store.similarities("scope", vector(1, 0)))
    assert [(likeness.place, likeness.kind) for likeness in found] == [(1, "chunk"), (1, "question"), (2, "chunk")]
    assert [likeness.cosine for likeness in found] == pytest.approx([1.0, 0.6, 0.0])
    assert isinstance(found[0], Similarity)
    store.close()


def test_replies_are_stored_per_scope_until_cleared(tmp_path: Path) -> None:
    store = SqliteChunkStore(tmp_path / "chunks.db")
    store.save_reply("scope", "topic", "said")
    assert (store.load_reply("scope", "topic"), store.load_reply("other", "topic")) == ("said", None)
    store.clear("scope")
    assert store.load_reply("scope", "topic") is None
    store.close()


def test_cleared_text_is_not_in_the_raw_files(tmp_path: Path) -> None:
    store = SqliteChunkStore(tmp_path / "chunks.db")
    store.replace("scope", "s1", [chunk("s1", 1, "zebrafinch")], [SearchKey(1, "question", "zebrafinch?", vector(1))])
    store.save_reply("scope", "topic", "zebrafinch!")
    store.replace("other", "s1", [chunk("s1", 1, "tortoise")], [])
    assert b"zebrafinch" in raw_bytes(tmp_path)
    store.clear("scope")
    assert b"zebrafinch" not in raw_bytes(tmp_path)
    assert b"tortoise" in raw_bytes(tmp_path)
    store.close()


def test_turn_store_cannot_be_opened_as_chunk_store(tmp_path: Path) -> None:
    from memorybench.providers.storage.turns import TurnStore

    TurnStore(tmp_path / "store.db").close()
    with pytest.raises(BadInput, match="a database of another program"):
        SqliteChunkStore(tmp_path / "store.db")


def test_a_database_that_fails_is_a_failed_service(tmp_path: Path) -> None:
    store = SqliteChunkStore(tmp_path / "chunks.db")
    store.close()
    with pytest.raises(ServiceError, match=r"chunks\.db"):
        store.entries("scope")


def test_memory_contains_its_context_and_sources() -> None:
    memory = StoredChunk("s1", 2, ("D1:3", "D1:4"), "On pets.", "I own a dog.").as_memory(0.5)
    assert (memory.id, memory.content, memory.score) == ("s1#2", "On pets.\nI own a dog.", 0.5)
    assert memory.sources == ("s1", "D1:3", "D1:4")
