from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeVar

import pytest

from memorybench.core.errors import BadInput, Refused, ServiceError
from memorybench.core.stores import MemoryStore, NewFact
from memorybench.stores.reference import FILE, ReferenceStore, open_reference
from tests.stores.contract import ANN, BOB, KAYAK, TEA, StoreContract, contents, raw

T = TypeVar("T")

KEY = "ghp" + "_" + "k3J9xQ2mZ7vT4bN8sL1wR6yU0pD5fG2hA9cE"
PASSWORD = "The wifi password is Sunny-Day-88"


class TestContract(StoreContract):
    def open_store(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
        return open_reference(folder)


def in_store(folder: Path, work: Callable[[ReferenceStore], Awaitable[T]]) -> T:
    async def opened() -> T:
        async with open_reference(folder) as store:
            return await work(store)

    return asyncio.run(opened())


def fact(content: str, **fields: float) -> NewFact:
    return NewFact.model_validate({"content": content, **fields})


@pytest.mark.parametrize(
    "secret",
    [
        NewFact(content=f"Use {KEY} for the deploy"),
        NewFact(content=PASSWORD),
        NewFact(content="The deploy token", category=KEY),
        NewFact(content="The deploy token", source=f"chat {KEY}"),
        NewFact(content=f"It begins {KEY[:20]}", category=KEY[20:]),
        NewFact(content=KEY[20:], source=KEY[:20]),
        NewFact(content=f"note {KEY[::-1]}"),
        NewFact(content=f"note {KEY.encode().hex()}"),
    ],
)
def test_a_credential_is_refused_and_not_written(tmp_path: Path, secret: NewFact) -> None:
    async def live(store: ReferenceStore) -> None:
        id = await store.remember(ANN, TEA)
        with pytest.raises(Refused, match=r"credential \(") as refused:
            await store.remember(ANN, secret)
        assert KEY not in str(refused.value)
        assert "Sunny" not in str(refused.value)
        with pytest.raises(Refused):
            await store.update(ANN, id, f"{secret.content} {secret.category or ''}{secret.source or ''}{KEY}")
        assert contents(await store.list(ANN)) == [TEA.content]

    in_store(tmp_path, live)
    assert KEY.encode() not in raw(tmp_path)
    assert b"Sunny" not in raw(tmp_path)


def test_text_about_secrets_is_stored(tmp_path: Path) -> None:
    harmless = ["The password policy asks for 14 characters", "A token of thanks", "The secret recipe needs butter"]

    async def live(store: ReferenceStore) -> list[str]:
        for text in harmless:
            await store.remember(ANN, fact(text))
        return contents(await store.list(ANN))

    assert in_store(tmp_path, live) == sorted(harmless)


def test_an_empty_fact_is_refused(tmp_path: Path) -> None:
    async def live(store: ReferenceStore) -> None:
        for blank in ("", " \n\t"):
            with pytest.raises(Refused, match="empty"):
                await store.remember(ANN, NewFact(content=blank, category="habit"))

    in_store(tmp_path, live)


def test_the_same_text_is_one_fact_per_user(tmp_path: Path) -> None:
    async def live(store: ReferenceStore) -> None:
        id = await store.remember(ANN, TEA)
        again = TEA.model_copy(update={"content": f"  {TEA.content}\n", "trust": 0.9})
        assert await store.remember(ANN, again) == id
        assert await store.remember(BOB, TEA) != id
        [fact] = await store.list(ANN)
        assert (fact.content, fact.trust) == (TEA.content, 0.9)

    in_store(tmp_path, live)


def test_an_update_keeps_the_id_and_the_old_text_only_in_history(tmp_path: Path) -> None:
    async def live(store: ReferenceStore) -> None:
        id = await store.remember(ANN, TEA)
        assert await store.update(ANN, id, KAYAK.content) == id
        assert await store.history(ANN) == [TEA.content]
        assert await store.history(BOB) == []
        await store.forget(ANN, id)
        assert await store.history(ANN) == []

    in_store(tmp_path, live)
    assert b"oolong" not in raw(tmp_path)
    assert b"kayak" not in raw(tmp_path)


def test_an_update_to_the_text_of_another_fact_merges_them(tmp_path: Path) -> None:
    async def live(store: ReferenceStore) -> None:
        tea, kayak = [await store.remember(ANN, fact) for fact in (TEA, KAYAK)]
        assert await store.update(ANN, kayak, TEA.content) == tea
        assert contents(await store.list(ANN)) == [TEA.content]

    in_store(tmp_path, live)


def test_facts_of_other_users_and_unknown_ids_are_service_errors(tmp_path: Path) -> None:
    async def live(store: ReferenceStore) -> None:
        id = await store.remember(ANN, TEA)
        for user, wrong in ((BOB, id), (ANN, "999"), (ANN, "no such id")):
            with pytest.raises(ServiceError, match="unknown fact id"):
                await store.update(user, wrong, "Nothing")
            with pytest.raises(ServiceError, match="unknown fact id"):
                await store.forget(user, wrong)
        assert contents(await store.list(ANN)) == [TEA.content]

    in_store(tmp_path, live)


def test_the_id_of_a_forgotten_fact_is_not_reused(tmp_path: Path) -> None:
    async def live(store: ReferenceStore) -> None:
        id = await store.remember(ANN, TEA)
        await store.forget(ANN, id)
        assert await store.remember(ANN, TEA) != id

    in_store(tmp_path, live)


def test_the_files_contain_no_forgotten_text(tmp_path: Path) -> None:
    async def live(store: ReferenceStore) -> None:
        ids = [await store.remember(ANN, fact(f"zebrafinch {n} " + "sings " * (n % 40))) for n in range(50)]
        for n, id in enumerate(ids):
            await store.update(ANN, id, f"zebrafinch {n} slept")
        for id in ids:
            await store.forget(ANN, id)
        assert b"zebrafinch" not in raw(tmp_path)

    in_store(tmp_path, live)


def test_better_matches_come_first_and_trust_breaks_ties(tmp_path: Path) -> None:
    async def live(store: ReferenceStore) -> list[str]:
        await store.remember(ANN, fact("The blue door sticks", trust=0.2))
        await store.remember(ANN, fact("The blue gate sticks", trust=0.9))
        await store.remember(ANN, fact("The blue gate of the garden needs oil, the gate is old"))
        return [fact.content for fact in await store.recall(ANN, "which blue one sticks?", 5)]

    assert in_store(tmp_path, live)[:2] == ["The blue gate sticks", "The blue door sticks"]


@pytest.mark.slow
def test_a_killed_session_loses_no_fact(tmp_path: Path) -> None:
    script = """
import asyncio, os, signal, sys
from pathlib import Path
from memorybench.stores.reference import open_reference
from memorybench.core.stores import NewFact

async def live():
    async with open_reference(Path(sys.argv[1])) as store:
        for n in range(20):
            await store.remember("ann", NewFact(content=f"fact number {n}"))
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(live())
"""
    path = os.pathsep.join(sys.path)
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path)], env={"PYTHONPATH": path}, check=False)
    assert ended.returncode == -signal.SIGKILL

    async def live(store: ReferenceStore) -> int:
        return len(await store.list(ANN))

    assert in_store(tmp_path, live) == 20


def test_writes_do_not_wait_for_the_disk(tmp_path: Path) -> None:
    """Each play has a store of its own, so that waiting for the disk took most of the time of a hygiene run."""

    async def read_pragma(store: ReferenceStore) -> int:
        return int(store._db.execute("PRAGMA synchronous").fetchone()[0])

    assert in_store(tmp_path, read_pragma) == 0


def test_two_sessions_at_once_see_each_other(tmp_path: Path) -> None:
    async def live() -> list[str]:
        async with open_reference(tmp_path) as one, open_reference(tmp_path) as other:
            await one.remember(ANN, TEA)
            await other.remember(ANN, KAYAK)
            return contents(await one.list(ANN))

    assert asyncio.run(live()) == [TEA.content, KAYAK.content]


def test_the_file_is_private_and_can_be_queried(tmp_path: Path) -> None:
    async def live(store: ReferenceStore) -> None:
        await store.remember(ANN, TEA)

    in_store(tmp_path / "memory", live)
    file = tmp_path / "memory" / FILE
    assert file.stat().st_mode & 0o077 == 0
    db = sqlite3.connect(file)
    assert db.execute("SELECT user, content, retrieval_count FROM facts").fetchall() == [(ANN, TEA.content, 0)]
    db.close()


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be one", b"SQLite"])
def test_an_invalid_file_is_rejected_and_not_changed(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / FILE
    file.write_bytes(content)
    with pytest.raises(BadInput, match=FILE):
        asyncio.run(open_reference(tmp_path).__aenter__())
    assert file.read_bytes() == content


def test_a_database_of_another_program_is_rejected_and_not_changed(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / FILE)
    db.execute("CREATE TABLE theirs (a)")
    db.close()
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(BadInput, match="another program"):
        asyncio.run(open_reference(tmp_path).__aenter__())
    assert (tmp_path / FILE).read_bytes() == before


def test_characters_that_cannot_be_stored_are_replaced(tmp_path: Path) -> None:
    async def live(store: ReferenceStore) -> None:
        odd = NewFact(content="kayak \ud800 \x00 red", category="\udfff", source="\ud83d")
        await store.remember(ANN, odd)
        [fact] = await store.recall(ANN, "kayak \ud800", 5)
        assert (fact.content, fact.category, fact.source) == ("kayak ? red", "?", "?")

    in_store(tmp_path, live)


def test_a_file_damaged_during_a_session_is_a_service_error(tmp_path: Path) -> None:
    async def live(store: ReferenceStore) -> None:
        id = await store.remember(ANN, TEA)
        file = tmp_path / FILE
        file.write_bytes(b"x" * file.stat().st_size)
        for failing in (store.list(ANN), store.history(ANN), store.recall(ANN, "tea", 1)):
            with pytest.raises(ServiceError, match=r"memory\.db: "):
                await failing
        with pytest.raises(ServiceError, match=r"memory\.db: "):
            await store.forget(ANN, id)

    in_store(tmp_path, live)


def test_other_calls_go_on_while_a_long_text_is_checked(tmp_path: Path) -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def remember(store: ReferenceStore) -> None:
        counting = asyncio.create_task(count_turns())
        await store.remember(ANN, fact("The password policy of 2024 needs 12 characters. " * 2_000))
        counting.cancel()

    in_store(tmp_path, remember)
    assert turns > 5


def test_texts_are_checked_for_credentials_off_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    monkeypatch.setattr(
        "memorybench.stores.reference.cached_credential_in", lambda _: threads.append(threading.current_thread())
    )

    async def write(store: ReferenceStore) -> None:
        id = await store.remember(ANN, fact("Ann likes tea."))
        await store.update(ANN, id, "Ann likes coffee.")

    in_store(tmp_path, write)
    assert threads
    assert threading.main_thread() not in threads
