"""Deletes facts from a store and checks, step by step, that nothing of them is left.

Every check also looks for facts that were not deleted, the twins. It passes if the deleted facts are not found and the
twins are; it fails if a deleted fact is found, or if a twin is lost; otherwise it cannot tell.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from memorybench.core.errors import Lacking, Refused, ServiceError, Transient
from memorybench.core.records import Record
from memorybench.core.stores import Capability, Getting, Isolation, MemoryStore, NewFact, StoredFact
from memorybench.processes.programs import temporary_folder
from memorybench.secrets.canaries import find_text

from .evidence import OpenStore
from .leftovers import Area, FileSearch, Leftover, Searched, combine_searches, file_stamps
from .pairs import MadeUpFact, Pair, make_pairs
from .script import USER

OTHER = "other"
"""A second user, who must not see the facts that the first user deleted."""
LIMIT = 10
"""The number of results per search."""
_CHECK_EVERY = 0.2
"""Seconds between two checks of whether the run must stop."""
CheckState = Literal["pass", "fail", "cannot tell"]

STEPS = {
    "delete": "The store accepts the deletion of each fact",
    "search-exact": "A search for the exact words does not return a deleted fact",
    "search-reworded": "A search in other words does not return a deleted fact",
    "list": "A deleted fact is not listed",
    "get": "A deleted fact cannot be read by its id",
    "history": "The history of changes does not contain a deleted fact",
    "refeed": "A deleted fact can be added and deleted again, and the other deleted facts stay deleted",
    "curation": "Curation or background jobs do not bring a deleted fact back",
    "restart": "A restart does not bring a deleted fact back",
    "summaries": "Entries that the store derived itself do not contain a deleted fact",
    "other-user": "Another user does not see a deleted fact",
    "backups": "Exports and backups do not contain a deleted fact",
    "files": "Files of the store do not contain a deleted fact",
    "free-pages": "Free pages and unused bytes of SQLite files do not contain a deleted fact",
    "write-ahead-log": "Write-ahead logs and rollback journals do not contain a deleted fact",
    "logs": "Log files do not contain a deleted fact",
}
"""What each step checks, by the name of the step, in the order of the certificate."""
CORE = ("delete", "search-exact", "list")
"""The steps that prove the deletion: `delete` must pass, and at least one of the two others."""
_OPERATIONS: dict[str, Capability] = {
    "search-exact": "recall",
    "search-reworded": "recall",
    "list": "list",
    "get": "get",
    "history": "history",
}
"""By step: the operation of the store that the step checks."""
_AREAS: dict[str, tuple[Area, str]] = {
    "backups": ("backups", "there are no exports or backups"),
    "files": ("files", "there are no other files"),
    "free-pages": ("free pages", "there are no SQLite files"),
    "write-ahead-log": ("write-ahead log", "there are no write-ahead logs or rollback journals"),
    "logs": ("logs", "there are no log files"),
}


class Check(Record):
    """The result of one step."""

    step: str
    state: CheckState
    evidence: str
    leftovers: tuple[Leftover, ...] = ()


class Certificate(Record):
    checks: tuple[Check, ...]
    pairs: tuple[Pair, ...] = ()


class Procedure(Struct, frozen=True):
    """The settings of the deletion procedure."""

    seed: int
    isolation: Isolation = "folder"
    look_in: tuple[Path, ...] = ()
    """Further files and folders to search, such as the backups of a live store."""
    wait: float = 0.0
    """Seconds to wait for background jobs."""
    check: Callable[[], None] = lambda: None
    """Called repeatedly while files are searched; raises an error if the run must stop."""


class _Play(Struct):
    """The planted facts, their ids, and the results of the steps."""

    pairs: tuple[Pair, ...]
    witness: MadeUpFact
    ids: dict[str, list[str]] = field(default_factory=dict)
    """The ids that the store gave each fact, by the text of the fact."""
    derived: int = 0
    """The number of entries that the store itself had derived from other entries before the deletion."""
    shown: dict[str, tuple[MadeUpFact, ...]] = field(default_factory=dict)
    """By step: the facts that the operation it checks showed before the deletion, and must still show after it: twins,
    and for `other-user` the fact of the other user."""
    results: dict[str, Check] = field(default_factory=dict)

    @property
    def deleted(self) -> tuple[MadeUpFact, ...]:
        return tuple(pair.deleted for pair in self.pairs)

    @property
    def deleted_values(self) -> list[str]:
        return [value for fact in self.deleted for value in fact.values]

    @property
    def twins(self) -> tuple[MadeUpFact, ...]:
        return tuple(pair.twin for pair in self.pairs)

    @property
    def told_ids(self) -> set[str]:
        return {id for ids in self.ids.values() for id in ids}

    def record(self, step: str, state: CheckState, evidence: str, leftovers: Iterable[Leftover] = ()) -> None:
        self.results[step] = Check(step=step, state=state, evidence=evidence, leftovers=tuple(leftovers))


async def check_forgetting(open_store: OpenStore, procedure: Procedure) -> Certificate:
    """Store facts, delete some, perform every step and return the certificate.

    Raise Lacking if the store has no operation that deletes facts.
    """
    pairs, witness = make_pairs(procedure.seed)
    play = _Play(pairs, witness)
    started = time.time()
    with temporary_folder("memorybench-forget-") as root:
        folder = root / "store"
        folder.mkdir()
        places = [*([root] if procedure.isolation == "folder" else []), *procedure.look_in]
        async with AsyncExitStack() as session:
            store = await session.enter_async_context(open_store(folder))
            if "forget" not in store.capabilities:
                raise Lacking("the store has no operation that deletes a fact")
            has_all_files = "files" in store.capabilities or bool(procedure.look_in)
            earlier = await asyncio.to_thread(file_stamps, places)
            await _plant(store, play)
            files = FileSearch(
                places=places,
                deleted=play.deleted_values,
                controls=[twin.value for twin in play.twins],
                home=folder,
                earlier=earlier,
                started=started,
                check=procedure.check,
            )
            searches: dict[str, Searched] = {}
            await _delete(store, play)
            # at once: the next write of the store may overwrite a copy. In a thread, because decoding takes time
            searches["right after the deletion"] = await asyncio.to_thread(files.search)
            for step in _OPERATIONS:
                play.record(step, *await _look(store, play, step))
            await _check_summaries(store, play)
            await _check_other_user(store, play)
            await _check_curation(store, play, procedure)
            searches["before the restart"] = await asyncio.to_thread(files.search)
            await session.aclose()
            searches["after the store was closed"] = await asyncio.to_thread(files.search)
            store = await session.enter_async_context(open_store(folder))
            await _check_restart(store, play, procedure.isolation)
            await _check_refeed(store, play)
        _check_files(play, combine_searches(searches), has_places=bool(places), has_all_files=has_all_files)
    return Certificate(checks=tuple(play.results[step] for step in STEPS), pairs=pairs)


async def _plant(store: MemoryStore, play: _Play) -> None:
    """Store all facts, run the curator so that it can derive entries, and note which twins each operation shows."""
    for fact in (*play.deleted, *play.twins):
        await _tell(store, play, USER, fact)
    if "users" in store.capabilities:
        await _tell(store, play, OTHER, play.witness)
    if "curate" in store.capabilities:
        await store.curate(USER, apply=True)
    if "list" in store.capabilities:
        play.derived = sum(fact.id not in play.told_ids for fact in await store.list(USER))
    for step in (step for step, operation in _OPERATIONS.items() if operation in store.capabilities):
        for fact in play.deleted:
            await _show(store, play, step, fact)  # a cache must not answer with it after the deletion
        play.shown[step] = tuple([twin for twin in play.twins if await _shown_with(store, play, step, twin)])
    if _texts_with(play.witness.values, await _texts_for_other(store, play)):
        play.shown["other-user"] = (play.witness,)


async def _tell(store: MemoryStore, play: _Play, user: str, fact: MadeUpFact) -> None:
    ids = play.ids.setdefault(fact.text, [])
    try:
        if fact.earlier and "update" in store.capabilities:
            id = await store.remember(user, NewFact(content=fact.earlier))
            play.ids[fact.earlier] = [id]
            ids.append(await store.update(user, id, fact.text))
        else:
            for _ in range(2 if fact.is_repeated else 1):
                ids.append(await store.remember(user, NewFact(content=fact.text)))
    except Refused as error:
        raise ServiceError(f'the store refused the harmless fact "{fact.text}": {error}') from error


async def _show(store: MemoryStore, play: _Play, step: str, fact: MadeUpFact) -> Sequence[str]:
    """Call the operation that a step checks, to search or read a fact, and return the texts that it shows."""
    match step:
        case "search-exact":
            return _texts(await store.recall(USER, fact.text, LIMIT))
        case "search-reworded":
            return _texts(await store.recall(USER, fact.question, LIMIT))
        case "list":
            return _texts(await store.list(USER))
        case "history":
            return await store.history(USER)
    assert isinstance(store, Getting)
    found = []
    # a store may give a corrected fact a new id; the text before it must not be readable by the old one
    for id in dict.fromkeys((*play.ids[fact.text], *play.ids.get(fact.earlier, ()))):
        try:
            found.append(await store.get(USER, id))
        except Transient:
            raise
        except (ServiceError, Refused):
            continue  # the usual answer to an unknown id
    return _texts(fact for fact in found if fact is not None)


def _texts(facts: Iterable[StoredFact]) -> list[str]:
    return ["\n".join(filter(None, (fact.content, fact.category, fact.source))) for fact in facts]


def _texts_with(values: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return the texts that contain one of the values, in any encoding."""
    named = {str(place): text for place, text in enumerate(texts)}
    places = dict.fromkeys(sighting.where for value in values for sighting in find_text(value, named))
    return [named[place] for place in places]


async def _delete(store: MemoryStore, play: _Play) -> None:
    errors = [f'"{fact.text}": {error}' for fact in play.deleted if (error := await _forget(store, play, fact))]
    if errors:
        play.record("delete", "fail", "; ".join(errors))
    else:
        play.record("delete", "pass", f"{len(play.deleted)} facts deleted by their ids, {len(play.twins)} twins kept")


async def _forget(store: MemoryStore, play: _Play, fact: MadeUpFact) -> str:
    """Delete the entries of a fact: those stored for it or, if a curator replaced them, all entries that contain it.

    Return the error of the store; "" if it accepts the deletion.
    """
    ids = list(dict.fromkeys(play.ids[fact.text]))
    try:
        if "list" in store.capabilities:
            facts = await store.list(USER)
            told = [one.id for one in facts if one.id in ids]
            ids = told or [one.id for one in facts if _texts_with(fact.values, _texts([one]))] or ids
        for id in ids:
            await store.forget(USER, id)
    except Transient:
        raise
    except (ServiceError, Refused) as error:
        return str(error)
    return ""


async def _look(store: MemoryStore, play: _Play, step: str, *, are_ids_current: bool = True) -> tuple[CheckState, str]:
    """Check the operation of a step, which must not show deleted facts, and must show the twins that it showed before.

    Without `are_ids_current`, a twin that cannot be read by its id may have a new one, so it is not called lost.
    Return the state of the step and the evidence.
    """
    twins = play.shown.get(step)
    if twins is None:
        missing = {"get": "reads a fact by its id", "history": "shows earlier texts", "list": "lists facts"}
        return "cannot tell", f"the store has no operation that {missing.get(step, 'searches')}"
    try:
        texts = {fact.text: await _show(store, play, step, fact) for fact in (*play.deleted, *twins)}
    except Transient:
        raise
    except ServiceError as error:
        return "cannot tell", f"error: {error}"
    found = _texts_with(play.deleted_values, list(dict.fromkeys(text for shown in texts.values() for text in shown)))
    lost = [twin for twin in twins if not _texts_with(twin.values, texts[twin.text])]
    if found:
        return "fail", f"returned: {_quote(found)}"
    if lost and step == "get" and not are_ids_current:
        return (
            "cannot tell",
            f"not readable by the earlier id, which may have changed: {_quote(twin.text for twin in lost)}",
        )
    if lost:
        return "fail", f"lost a fact that was not deleted: {_quote(twin.text for twin in lost)}"
    if not twins:
        return "cannot tell", "the twins, which were not deleted, were not returned either"
    count = "1 twin" if len(twins) == 1 else f"{len(twins)} twins"
    return "pass", f"no deleted fact returned; {count} returned as before"


def _quote(texts: Iterable[str]) -> str:
    found = list(dict.fromkeys(texts))
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return ", ".join(f'"{text}"' for text in found[:3]) + more


async def _shown_with(store: MemoryStore, play: _Play, step: str, fact: MadeUpFact) -> list[str]:
    """Call the operation of a step for a fact, and return the texts that it shows and that have a value of the fact."""
    return _texts_with(fact.values, await _show(store, play, step, fact))


async def _look_again(store: MemoryStore, play: _Play) -> tuple[CheckState, str]:
    """Check searches, list and get again. Return the first of `fail`, `pass`, `cannot tell` with its evidence.

    Curation or a restart may have given facts new ids.
    """
    steps = ("search-exact", "search-reworded", "list", "get")
    results = {step: await _look(store, play, step, are_ids_current=False) for step in steps}
    states: tuple[CheckState, ...] = ("fail", "pass", "cannot tell")
    worst = next(state for state in states if state in {found for found, _ in results.values()})
    evidence: dict[str, list[str]] = {}
    for step, (state, text) in results.items():
        if state == worst:
            evidence.setdefault(text, []).append(step)
    return worst, "; ".join(f"{', '.join(steps)}: {text}" for text, steps in evidence.items())


async def _check_summaries(store: MemoryStore, play: _Play) -> None:
    if "list" not in play.shown:
        play.record("summaries", "cannot tell", "the store has no operation that lists facts")
        return
    derived = [fact for fact in await store.list(USER) if fact.id not in play.told_ids]
    found = _texts_with(play.deleted_values, _texts(derived))
    if found:
        play.record("summaries", "fail", f"derived entries: {_quote(found)}")
    elif play.derived:
        play.record("summaries", "pass", f"{len(derived)} derived entries, none with a deleted fact")
    else:
        play.record("summaries", "pass", "the store lists no entries that it derived itself")


async def _texts_for_other(store: MemoryStore, play: _Play) -> list[str]:
    """Return the texts that list and searches show the other user; empty if the store does not separate users."""
    texts: list[str] = []
    if {"users", "list"} <= store.capabilities:
        texts += _texts(await store.list(OTHER))
    if {"users", "recall"} <= store.capabilities:
        for fact in (*play.deleted, play.witness):
            texts += _texts(await store.recall(OTHER, fact.text, LIMIT))
    return texts


async def _check_other_user(store: MemoryStore, play: _Play) -> None:
    texts = await _texts_for_other(store, play)
    found = _texts_with(play.deleted_values, texts)
    if found:
        play.record("other-user", "fail", f"another user was shown: {_quote(found)}")
    elif _texts_with(play.witness.values, texts):
        play.record("other-user", "pass", "another user was shown no deleted fact, and still has a fact of their own")
    elif "other-user" in play.shown:
        play.record(
            "other-user", "fail", f"another user lost a fact that was not deleted: {_quote([play.witness.text])}"
        )
    else:
        play.record("other-user", "cannot tell", "the store does not separate users, or does not show them their facts")


async def _check_curation(store: MemoryStore, play: _Play, procedure: Procedure) -> None:
    wait = procedure.wait
    if "curate" not in store.capabilities and not wait:
        missing = "the store has no operation that starts curation; --wait SECONDS gives background jobs time"
        state, evidence = await _look_again(store, play)
        play.record("curation", *(("fail", evidence) if state == "fail" else ("cannot tell", missing)))
        return
    if "curate" in store.capabilities:
        await store.curate(USER, apply=True)
    end = time.monotonic() + wait
    while (left := end - time.monotonic()) > 0:
        procedure.check()
        await asyncio.sleep(min(left, _CHECK_EVERY))
    state, evidence = await _look_again(store, play)
    waited = f"after {wait:g} s" if wait else "later background jobs were not waited for (--wait SECONDS)"
    play.record("curation", state, f"{evidence}; {waited}")


async def _check_restart(store: MemoryStore, play: _Play, isolation: Isolation) -> None:
    state, evidence = await _look_again(store, play)
    if state == "pass" and isolation != "folder":
        state, evidence = "cannot tell", "only the connection was opened again: a live store is not restarted"
    play.record("restart", state, evidence)


async def _check_refeed(store: MemoryStore, play: _Play) -> None:
    """Store the first deleted fact again, check that the other deleted facts stay deleted, and delete it again."""
    steps = [step for step in ("search-exact", "list") if play.shown.get(step)]
    if not steps:
        play.record("refeed", "cannot tell", "neither search nor list returns the twins")
        return
    first, *others = play.deleted
    try:
        play.ids[first.text] = [await store.remember(USER, NewFact(content=first.text))]
    except Transient:
        raise
    except (Refused, ServiceError) as error:
        play.record("refeed", "fail", f"a deleted fact cannot be added again: {error}")
        return
    is_back = [bool(await _shown_with(store, play, step, first)) for step in steps]
    came_back = [text for step in steps for fact in others for text in await _shown_with(store, play, step, fact)]
    refusal = await _forget(store, play, first)
    left = [text for step in steps for text in await _shown_with(store, play, step, first)]
    if came_back:
        play.record("refeed", "fail", f"adding one fact brought another one back: {_quote(came_back)}")
    elif not all(is_back):
        play.record("refeed", "fail", f'added again, it is not returned: "{first.text}"')
    elif refusal:
        play.record("refeed", "fail", f"it cannot be deleted again: {refusal}")
    elif left:
        play.record("refeed", "fail", f"deleted again, it is still returned: {_quote(left)}")
    else:
        play.record("refeed", "pass", "added again, it was returned; no other one came back; and it was deleted again")


def _check_files(play: _Play, searched: Searched, *, has_places: bool, has_all_files: bool) -> None:
    amount = f"{searched.files} {'file' if searched.files == 1 else 'files'}, {searched.octets:,} bytes searched"
    for step, (area, absent) in _AREAS.items():
        leftovers = [one for one in searched.leftovers if one.area == area]
        if leftovers:
            play.record(step, "fail", f"found in {_count_files(leftovers)}{_moments(leftovers)}", leftovers)
        elif not has_places:
            play.record(step, "cannot tell", "the files of a live store are elsewhere; --look-in PATH names them")
        elif searched.unread:
            play.record(step, "cannot tell", f"not searched: {'; '.join(searched.unread)}")
        elif not has_all_files:
            play.record(step, "cannot tell", f"{amount}, but the store may keep data elsewhere")
        elif not searched.controls:
            play.record(step, "cannot tell", f"{amount}, but the twins are not found in them either")
        else:
            evidence = f"{amount}, where twins are found"
            play.record(step, "pass", evidence if area in searched.areas else f"{evidence}; {absent}")


def _count_files(leftovers: Sequence[Leftover]) -> str:
    names = sorted({one.file for one in leftovers})
    return names[0] if len(names) == 1 else f"{len(names)} files"


def _moments(leftovers: Sequence[Leftover]) -> str:
    """Return, for a message, the moments at which the copies were found; "" if any of them was found at all moments."""
    if not all(one.moments for one in leftovers):
        return ""
    return ", " + " and ".join(dict.fromkeys(moment for one in leftovers for moment in one.moments))
