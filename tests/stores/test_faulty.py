"""Each faulty store differs from the reference store only by its fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from memorybench.core.errors import MemorybenchError
from memorybench.core.stores import MemoryStore, NewFact
from memorybench.stores.reference import ReferenceStore, open_reference
from tests.stores.contract import ANN, BOB, KAYAK, TEA, contents, raw
from tests.stores.faulty import FAULTY, open_faulty


def file_names(folder: Path) -> list[str]:
    return sorted(path.name for place in (folder, folder.parent) for path in place.iterdir() if path.is_file())


Tried = Callable[[str, object], Awaitable[object]]
"""Notes under a name what a call returns, or its error."""


async def behaviour(fault: str | None, folder: Path) -> dict[str, object]:
    """Return everything that two sessions with the store show."""
    seen: dict[str, object] = {}

    def opened() -> object:
        return open_reference(folder) if fault is None else open_faulty(fault, folder)

    async def tried(name: str, work: object) -> object:
        try:
            seen[name] = await work  # type: ignore[misc]
        except MemorybenchError as error:
            seen[name] = f"{type(error).__name__}{' with a fact' if 'cocoa' in str(error) else ''}"
        return seen[name]

    async with opened() as store:  # type: ignore[attr-defined]
        assert isinstance(store, ReferenceStore)
        await tried("remembered", store.remember(ANN, TEA.model_copy(update={"category": "habit"})))
        await tried("again", store.remember(ANN, TEA))
        kayak = await tried("kayak", store.remember(ANN, KAYAK))
        await tried("secret", store.remember(ANN, NewFact(content="My password is hunter2!")))
        await tried("unknown", store.forget(ANN, "777"))
        await tried("updated", store.update(ANN, "1", "Ann drinks cocoa in the evening"))
        seen["recalled"] = contents(await store.recall(ANN, "cocoa", 5))
        for _ in range(2):
            seen["counts"] = [fact.retrieval_count for fact in await store.list(ANN)]
        await tried("forgotten", store.forget(ANN, str(kayak)))
        seen["categories"] = [fact.category for fact in await store.list(ANN)]
        seen["listed"] = contents(await store.list(ANN))
        seen["others"] = contents(await store.list(BOB))
        seen["history"] = list(await store.history(ANN))
        tagged = NewFact(content="Ann has a new laptop", source="ghp_" + "a1B2c3D4e5F6" * 3)
        await tried("secret in metadata", store.remember(ANN, tagged))
        await tried("foreign update", store.update(BOB, "1", "Ann drinks nothing"))
        await tried("foreign forget", store.forget(BOB, "1"))
        await tried("foreign get", store.get(BOB, "1"))
        seen["no match"] = contents(await store.recall(BOB, "cocoa", 5))
        await tried("tea", store.remember(ANN, NewFact(content="Ann drinks mint tea in the evening sun")))
        seen["ranked"] = [fact.content for fact in await store.recall(ANN, "cocoa in the evening", 5)]
        seen["trust"] = [fact.trust for fact in await store.list(ANN)]
        await tried("dark", store.remember(ANN, NewFact(content="Ann prefers dark mode in her editor")))
        await tried("light", store.remember(ANN, NewFact(content="Ann now prefers light mode in her editor")))
        dry = await store.curate(ANN, apply=False)
        seen["proposed"] = [proposal.ids for proposal in dry.proposals]
        seen["after a dry run"] = contents(await store.list(ANN))
        for text in ("Bob rows on Sundays", "Bob rows on Sundays."):
            await tried(text, store.remember(BOB, NewFact(content=text)))
        await store.curate(ANN, apply=True)
        seen["sources after the curation"] = [fact.source for fact in await store.list(ANN)]
        seen["of others after the curation"] = contents(await store.list(BOB))
        seen["after the curation"] = contents(await store.list(ANN))
        await _use_similar_facts(store, seen, tried)
    async with opened() as store:  # type: ignore[attr-defined]
        seen["next session"] = contents(await store.list(ANN))
    folder_of_details = folder.with_name("details")
    async with open_reference(folder_of_details) if fault is None else open_faulty(fault, folder_of_details) as store:
        await _use_details(store, seen, tried)
    seen["residue"] = b"kayak" in raw(folder)
    seen["files"] = file_names(folder)
    return seen


async def _use_similar_facts(store: ReferenceStore, seen: dict[str, object], tried: Tried) -> None:
    """Use facts and users that resemble each other, and more facts than fit on a page."""
    cleo = "cleo"
    shed, cellar = "Cleo's key of the shed hangs here", "Cleo's key of the cellar hangs here"
    ids = [str(await tried(text, store.remember(cleo, NewFact(content=text)))) for text in (shed, cellar)]
    for user in ("Cleo", "cleo-2", BOB):
        for text in (shed, cellar):
            await tried(f"{user}: {text}", store.remember(user, NewFact(content=text)))
    seen["listed for cleo"] = contents(await store.list(cleo))
    for _ in range(2):
        seen["keys"] = contents(await store.recall(cleo, "key of the shed", 1))
        await tried("updated shed", store.update(cleo, ids[0], f"{cellar} and there"))
    await tried("forgotten shed", store.forget(cleo, ids[0]))
    seen["keys of cleo"] = contents(await store.list(cleo))
    await tried("forgotten cellar", store.forget(cleo, ids[1]))
    for user in ("Cleo", BOB):
        await tried("curated", store.curate(user, apply=True))
        seen[f"keys of {user}"] = contents(await store.list(user))
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    for text in (f"{token} and {token[::-1]}", "Zoë is not here", *(f"Note {number}" for number in range(60))):
        await tried(f"note {text}", store.remember("dora", NewFact(content=text)))
    seen["notes"] = contents(await store.list("dora"))


async def _use_details(store: ReferenceStore, seen: dict[str, object], tried: Tried) -> None:
    """Use long texts and signs, ids of facts and users that begin alike, and facts that are not there."""
    detailed = "Fay's box 007 <a/b> \N{BICYCLE}\nis here " + "and there " * 60
    texts = [
        detailed,
        "Fay swims in the lake near the old mill at six",
        "Fay swims in the lake near the old mill at ten",
    ]
    for text in (*texts, *(f"Fay owns book {number}" for number in range(9))):
        await tried(f"fay: {text}", store.remember("fay", NewFact(content=text, source="chat", trust=0.4)))
    seen["searched in capitals"] = contents(await store.recall("fay", "BICYCLE BOX LAKE", 5))
    await tried("long update", store.update("fay", "2", f"{texts[1]} {'or later ' * 60}"))
    await tried("secret update", store.update("fay", "3", "Fay's password is hunter2!"))
    await tried("read after the update", store.get("fay", "2"))
    await tried("read before the deletion", store.get("fay", "1"))
    await tried("first deletion", store.forget("fay", "1"))
    await tried("read after the deletion", store.get("fay", "1"))
    seen["facts of fay"] = [(fact.content, fact.source, fact.trust) for fact in await store.list("fay")]
    await tried("second deletion", store.forget("fay", "1"))
    await tried("late update", store.update("fay", "1", "Fay's box is gone"))
    for user in ("gil-2", "gil.2", "\N{FULLWIDTH LATIN SMALL LETTER G}il-2", f"{'gil' * 12}-1", f"{'gil' * 12}-2"):
        await tried(f"fact of {user}", store.remember(user, NewFact(content=f"This is {user}")))
    seen["facts of gil"] = [contents(await store.list(user)) for user in ("gil-2", f"{'gil' * 12}-1")]
    seen["facts of fay at the end"] = contents(await store.list("fay"))


@pytest.mark.parametrize("fault", sorted(FAULTY))
def test_a_fault_changes_observable_behaviour(tmp_path: Path, fault: str) -> None:
    sound = asyncio.run(behaviour(None, tmp_path / "sound" / "store"))
    assert asyncio.run(behaviour(fault, tmp_path / "faulty" / "store")) != sound


def test_a_faulty_store_is_named_after_its_fault(tmp_path: Path) -> None:
    async def name(fault: str) -> str:
        store: MemoryStore
        async with open_faulty(fault, tmp_path / fault) as store:
            return store.subject.name

    assert [asyncio.run(name(fault)) for fault in FAULTY] == list(FAULTY)
