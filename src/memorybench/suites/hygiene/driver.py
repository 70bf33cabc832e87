"""Fixture → steps → evidence, in a folder that is gone afterwards, whatever happens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from memorybench.core.errors import Lacking, Refused, ServiceError
from memorybench.core.records import canonical, digest
from memorybench.core.stores import Capability, MemoryStore, NewFact, StoredFact
from memorybench.processes.programs import temporary_folder

from .assertions import findings
from .claims import Finding, Phase
from .evidence import Call, Evidence, Moment, OpenStore, Picture, copied, curate, history_of, picture
from .scenario import Scenario, SeededFact
from .script import USER, Curate, Forget, List, Mark, Operation, Recall, Remember, Restart, Script, Update, needed

_SOURCE = "a remark in passing"
NO_STRANGERS = "nothing was written for people who are not in the scenario"


@dataclass(frozen=True, slots=True)
class Ground:
    """Where one phase is played: a store's folder with the scenario's facts in it, and a workspace with its files."""

    open_store: OpenStore
    fresh: Callable[[], AbstractAsyncContextManager[Ground]]
    """The same again, untouched."""
    scenario: Scenario
    """With what is planted in it."""
    planted: Mapping[str, str]
    store: Path
    workspace: Path
    fixture: Moment
    capabilities: frozenset[Capability]


@dataclass(slots=True)
class Played:
    """What a script or an agent did, and what a scenario's names mean afterwards."""

    calls: list[Call] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    moments: dict[str, Moment] = field(default_factory=dict)
    answers: tuple[str, ...] = ()

    @classmethod
    def on(cls, ground: Ground, calls: Iterable[Call] = (), answers: Iterable[str] = ()) -> Played:
        return cls(list(calls), dict(ground.fixture.names), {"fixture": ground.fixture}, tuple(answers))


@asynccontextmanager
async def prepared(open_store: OpenStore, scenario: Scenario, seed: int) -> AsyncIterator[Ground]:
    """A fresh fixture in a temporary folder, with the store closed."""
    grown, planted = scenario.grown(seed)
    with temporary_folder("memorybench-hygiene-") as root:
        folder, workspace = root / "store", root / "workspace"
        _furnish(folder, {})
        _furnish(workspace, grown.setup.files)
        async with open_store(folder) as store:
            names = await _seeded(store, grown)
            fixture = Moment(await picture(store, grown.users), names)
            capabilities = store.capabilities
        fresh = partial(prepared, open_store, scenario, seed)
        yield Ground(open_store, fresh, grown, planted, folder, workspace, fixture, capabilities)


async def keeps_source(open_store: OpenStore) -> bool:
    """Whether a store tells afterwards what source a fact was given. No capability says so: it is tried."""
    with temporary_folder("memorybench-hygiene-") as folder:
        async with open_store(folder) as store:
            if "list" not in store.capabilities:
                return False
            try:
                await store.remember(USER, NewFact(content="The user walks to work", source=_SOURCE))
            except Refused:
                return False
            return any(fact.source == _SOURCE for fact in await store.list(USER))


def _furnish(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


async def _seeded(store: MemoryStore, scenario: Scenario) -> dict[str, str]:
    names = {}
    for fact in scenario.setup.facts:
        try:
            id = await store.remember(fact.user, _pinned(fact, store.capabilities))
        except Refused as error:
            raise ServiceError(f'the store refused the fixture\'s "{fact.content}": {error}') from error
        if fact.name is not None:
            names[fact.name] = id
    return names


def _pinned(fact: SeededFact, capabilities: frozenset[Capability]) -> NewFact:
    """What the store can keep of a fact."""
    return NewFact(
        content=fact.content,
        source=fact.source,
        category=fact.category if "category" in capabilities else None,
        trust=fact.trust if "trust" in capabilities else None,
        retrieval_count=fact.retrieval_count if "retrieval_count" in capabilities else None,
    )


async def play(ground: Ground, script: Script) -> Played:
    """Performs the steps. A refusal is recorded and the script goes on; a broken store raises."""
    played = Played.on(ground)
    async with AsyncExitStack() as session:
        store = await session.enter_async_context(ground.open_store(ground.store))
        _check_able(store.capabilities, script, ground.scenario)
        for step in script:
            if isinstance(step, Restart):
                await session.aclose()
                store = await session.enter_async_context(ground.open_store(ground.store))
                played.calls.append(Call(op="restart", user=step.user))
            elif isinstance(step, Mark):
                held = await picture(store, ground.scenario.users)
                played.moments[step.name] = Moment(held, dict(played.names))
            else:
                played.calls.append(await _called(store, step, played.names))
    return played


def _check_able(capabilities: frozenset[Capability], script: Script, scenario: Scenario) -> None:
    lacking = [need for need in needed(script) if need not in capabilities]
    if lacking:
        raise Lacking(f"the store lacks {', '.join(lacking)}")
    if len({*scenario.users, *(step.user for step in script)}) > 1 and "users" not in capabilities:
        raise Lacking("the store does not keep users apart")


async def _called(store: MemoryStore, step: Operation, names: dict[str, str]) -> Call:
    arguments = step.model_dump(exclude={"do", "user", "name"}, exclude_none=True)
    call = Call(op=step.do, user=step.user, arguments=arguments)
    if isinstance(step, Update | Forget) and step.fact not in names:
        return call.model_copy(update={"undone": f'nothing was found that "{step.fact}" could mean'})
    try:
        ids, texts = await _performed(store, step, names)
    except Refused as error:
        return call.model_copy(update={"refused": str(error)})
    if isinstance(step, Update):
        names[step.fact] = ids[0]
    if isinstance(step, Remember | Update | Recall) and step.name is not None and ids:
        names[step.name] = ids[0]
    return call.model_copy(update={"ids": ids, "texts": texts})


async def _performed(
    store: MemoryStore, step: Operation, names: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ids and texts that the operation came back with."""
    match step:
        case Remember():
            fact = NewFact(content=step.content, category=step.category, source=step.source)
            return (await store.remember(step.user, fact),), ()
        case Update():
            return (await store.update(step.user, names[step.fact], step.content),), ()
        case Forget():
            await store.forget(step.user, names[step.fact])
            return (names[step.fact],), ()
        case Recall():
            return _told(await store.recall(step.user, step.query, step.limit))
        case List():
            return _told(await store.list(step.user))
        case Curate():
            curation = await store.curate(step.user, apply=step.apply)
            return tuple(id for proposal in curation.proposals for id in proposal.ids), ()


def _told(facts: Sequence[StoredFact]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(fact.id for fact in facts), tuple(fact.content for fact in facts)


@dataclass(frozen=True, slots=True)
class Judged:
    findings: tuple[Finding, ...]
    left: str
    """The digest of what the memory holds in the end, ids aside."""


async def judge_end_state(
    ground: Ground, calls: Iterable[Call], phase: Phase = "real_model", *, answers: Iterable[str] = ()
) -> tuple[Finding, ...]:
    """What the scenario's assertions see of the memory as an agent left it. The store is closed, or idle."""
    return (await judged(ground, Played.on(ground, calls, answers), phase)).findings


async def judged(ground: Ground, played: Played, phase: Phase, *, curated: bool = False) -> Judged:
    """What the assertions see; `curated`: after the curator has been at what they look at."""
    users = ground.scenario.users
    async with _looked_at(ground, users if curated else ()) as (store, files):
        evidence = Evidence(
            store=store,
            users=users,
            held=await picture(store, users),
            history=await history_of(store, users),
            files=files,
            calls=tuple(played.calls),
            names=played.names,
            moments=played.moments,
            planted=ground.planted,
            answers=played.answers,
        )
        strangers = [user for user in dict.fromkeys(call.user for call in played.calls) if user not in users]
        burdened = _burdened(await picture(store, strangers))
        return Judged((*await findings(ground.scenario.asserted(phase), evidence), *burdened), _left(evidence.held))


def _burdened(strangers: Picture) -> Iterator[Finding]:
    """True of every scenario without being said: who is not in it has nothing in memory."""
    for user, facts in strangers.items():
        if facts:
            wrong = f'{user} was given "{facts[0].content}"'
            yield Finding(claim=NO_STRANGERS, kind="strangers", status="broken", found=wrong, rate="restraint")


def _left(held: Picture) -> str:
    return digest([[user, sorted(canonical(fact.model_dump(exclude={"id"})) for fact in held[user])] for user in held])


@asynccontextmanager
async def _looked_at(ground: Ground, curated: Sequence[str]) -> AsyncIterator[tuple[MemoryStore, Path | None]]:
    """A copy of the store, where all it knows lies in its folder; else the store itself."""
    if "files" in ground.capabilities:
        async with copied(ground.open_store, ground.store, curated=curated) as (store, files):
            yield store, files
    else:
        async with ground.open_store(ground.store) as store:
            await curate(store, curated)
            yield store, None
