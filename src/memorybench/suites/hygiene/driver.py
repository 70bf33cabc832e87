"""Set up a scenario in a temporary folder, run a script on the store, and check the memory afterwards."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from memorybench.core.errors import Lacking, Malformed, NotReady, Refused, ServiceError, Transient
from memorybench.core.records import Record, canonical, digest
from memorybench.core.stores import Capability, Getting, MemoryStore, NewFact, StoredFact
from memorybench.processes.programs import temporary_folder

from .assertions import check_assertions
from .assertions_base import Finding, Phase
from .evidence import Activity, Call, Evidence, FactsByUser, OpenStore, Snapshot, list_facts
from .outside_files import OutsideFiles, find_outside_files
from .scenario import Scenario
from .script import USER, Curate, Forget, Get, Mark, Operation, Recall, Remember, Restart, Script, Update
from .unasserted_findings import find_disclosure, find_held_credential

_SOURCE = "a remark in passing"
NO_STRANGERS = "nothing was written for people who are not in the scenario"


class Fixture(Struct, frozen=True):
    """A prepared scenario: a closed store with the facts of the setup, and a workspace with its files."""

    open_store: OpenStore
    rebuild: Callable[[], AbstractAsyncContextManager[Fixture]]
    """Builds the same fixture again in another folder."""
    scenario: Scenario
    """The scenario, with a value in place of each placeholder."""
    planted_values: Mapping[str, str]
    store_folder: Path
    workspace: Path
    snapshot: Snapshot
    capabilities: frozenset[Capability]
    started: float
    """When the build of the fixture began, in seconds since 1970."""


class StoreProbe(Record):
    """The result of a test of the store that finds out what its capabilities do not say."""

    source: bool
    """Whether the store lists the source of a fact."""


class CheckResult(Struct, frozen=True):
    findings: tuple[Finding, ...]
    facts: FactsByUser
    """By user: the facts at the end."""

    @property
    def facts_digest(self) -> str:
        """Digest of the facts at the end, without their ids."""
        return digest(
            [
                [user, sorted(canonical(one.model_dump(exclude={"id"})) for one in self.facts[user])]
                for user in self.facts
            ]
        )


@asynccontextmanager
async def open_fixture(open_store: OpenStore, scenario: Scenario, seed: int) -> AsyncIterator[Fixture]:
    """Build the fixture of a scenario in a temporary folder, which is deleted at the end, and yield it."""
    scenario_with_values, values = scenario.with_planted_values(seed)
    started = time.time()
    with temporary_folder("memorybench-hygiene-") as root:
        folder, workspace = root / "store", root / "workspace"
        folder.mkdir()
        async with open_store(folder) as store:
            if "home" in store.capabilities:
                workspace = folder / "project"  # agents find memory files of a project from its folder upwards
            workspace.mkdir()
            for name, text in scenario_with_values.setup.files.items():
                path = workspace / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            names = await _store_setup_facts(store, scenario_with_values)
            snapshot = Snapshot(await list_facts(store, scenario_with_values.users), names)
            capabilities = store.capabilities
        rebuild = partial(open_fixture, open_store, scenario, seed)
        yield Fixture(
            open_store, rebuild, scenario_with_values, values, folder, workspace, snapshot, capabilities, started
        )


async def _store_setup_facts(store: MemoryStore, scenario: Scenario) -> dict[str, str]:
    """Store the facts of the setup, without fields that the store does not support; return the ids of named facts."""
    names = {}
    fields = {"content", "source"} | ({"category", "trust", "retrieval_count"} & store.capabilities)
    for fact in scenario.setup.facts:
        try:
            id = await store.remember(fact.user, NewFact.model_validate(fact.model_dump(include=fields)))
        except Refused as error:
            raise ServiceError(f'the store refused the setup fact "{fact.content}": {error}') from error
        if fact.name is not None:
            names[fact.name] = id
    return names


async def probe_store(open_store: OpenStore) -> StoreProbe:
    """Store a fact with a source and return whether the store lists that source. No capability says so."""
    with temporary_folder("memorybench-hygiene-") as folder:
        async with open_store(folder) as store:
            try:
                await store.remember(USER, NewFact(content="The user walks to work", source=_SOURCE))
            except Refused:
                return StoreProbe(source=False)
            facts = (await list_facts(store, [USER])).get(USER, ())
            return StoreProbe(source=any(fact.source == _SOURCE for fact in facts))


def check_users(users: Iterable[str], capabilities: frozenset[Capability]) -> None:
    if len(set(users)) > 1 and "users" not in capabilities:
        raise Lacking("the store does not separate users")


async def run_script(fixture: Fixture, script: Script) -> Activity:
    """Perform the steps of a script. After a refusal, the script continues; other errors of the store are raised.

    Raise Lacking if the store lacks an operation that a step needs.
    """
    activity = Activity.on(fixture.snapshot)
    owners = {fact.name: fact.user for fact in fixture.scenario.setup.facts}
    async with AsyncExitStack() as session:
        store = await session.enter_async_context(fixture.open_store(fixture.store_folder))
        # a mark lists the facts
        needs = dict.fromkeys("list" if step.do == "mark" else step.do for step in script)
        able = store.capabilities | {"remember", "restart"}
        if missing := [need for need in needs if need not in able]:
            raise Lacking(f"the store does not support {', '.join(missing)}")
        check_users((*fixture.scenario.users, *(step.user for step in script)), store.capabilities)
        for step in script:
            if isinstance(step, Restart):
                await session.aclose()
                store = await session.enter_async_context(fixture.open_store(fixture.store_folder))
                activity.calls.append(Call(op="restart", user=step.user))
            elif isinstance(step, Mark):
                facts = await list_facts(store, fixture.scenario.users)
                activity.snapshots[step.name] = Snapshot(facts, dict(activity.names))
            else:
                activity.calls.append(await _make_call(store, step, activity.names, owners))
    return activity


async def _make_call(
    store: MemoryStore, step: Operation, names: dict[str, str], owners: Mapping[str | None, str]
) -> Call:
    """Perform one operation and return the call; record in `names` the ids of facts that it wrote or found."""
    arguments = step.model_dump(exclude={"do", "user", "name", "missing"}, exclude_none=True)
    call = Call(op=step.do, user=step.user, arguments=arguments)
    if isinstance(step, Update | Forget | Get) and step.fact not in names:
        return call.model_copy(update={"undone": f'fact "{step.fact}" not found'})
    try:
        ids, texts = await _perform(store, step, names)
    except (Refused, ServiceError) as error:
        if not isinstance(error, Refused):
            if not isinstance(step, Update | Forget | Get):
                raise
            if await _must_succeed(store, step, names[step.fact], owners.get(step.fact, step.user), error):
                raise
        # the error of a read, or of a write to a deleted fact, is not a refusal; it may still quote a fact
        is_refusal = not isinstance(step, Get) and not _is_missing(step)
        return call.model_copy(update={"refused" if is_refusal else "error": str(error)})
    if isinstance(step, Update) and step.missing:
        problem = f'the store reported success, but the fact "{step.fact}" was deleted before'
        return call.model_copy(update={"ids": ids, "undone": problem})
    if isinstance(step, Update):
        names[step.fact] = ids[0]
    if isinstance(step, Remember | Update | Recall) and step.name is not None and ids:
        names[step.name] = ids[0]
    return call.model_copy(update={"ids": ids, "texts": texts})


def _is_missing(step: Operation) -> bool:
    return isinstance(step, Update | Forget) and step.missing


async def _must_succeed(
    store: MemoryStore, step: Update | Forget | Get, id: str, owner: str, error: ServiceError
) -> bool:
    """Return whether the step should have succeeded, so that the error is a fault of the store.

    Transient, Malformed and NotReady are always faults. Any other error is correct if the user has no fact with this
    id; if the store cannot list facts, the script says whether the user has it. `owner` is the user who had the fact at
    first.
    """
    if isinstance(error, Transient | Malformed | NotReady):
        return True
    if owner != step.user or _is_missing(step):
        return False
    if "list" not in store.capabilities:
        return True
    return any(fact.id == id for fact in await store.list(step.user))


async def _perform(
    store: MemoryStore, step: Operation, names: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Perform one operation; return the ids of the facts that it affected or returned, and the returned contents."""
    match step:
        case Remember():
            fact = NewFact(content=step.content, category=step.category, source=step.source)
            return (await store.remember(step.user, fact),), ()
        case Update():
            return (await store.update(step.user, names[step.fact], step.content),), ()
        case Forget():
            await store.forget(step.user, names[step.fact])
            return (names[step.fact],), ()
        case Get():
            assert isinstance(store, Getting)
            found = await store.get(step.user, names[step.fact])
            facts: Sequence[StoredFact] = () if found is None else (found,)
        case Curate():
            curation = await store.curate(step.user, apply=step.apply)
            return tuple(id for proposal in curation.proposals for id in proposal.ids), ()
        case Recall():
            facts = await store.recall(step.user, step.query, step.limit)
        case _:
            facts = await store.list(step.user)
    return tuple(fact.id for fact in facts), tuple(fact.content for fact in facts)


async def check_memory(fixture: Fixture, activity: Activity, phase: Phase, *, curate: bool = False) -> CheckResult:
    """Check the assertions of a phase. The store must be closed or idle. With `curate`, its curator runs before."""
    users, assertions = fixture.scenario.users, fixture.scenario.assertions_for(phase)
    async with open_copy(fixture, users if curate else ()) as (store, files):
        histories = {user: await store.history(user) for user in users if "history" in store.capabilities}
        # an agent may write into its workspace and elsewhere
        has_outside = phase != "real_model" and any(one.kind in ("secret_free", "residue") for one in assertions)
        outside = await asyncio.to_thread(find_outside_files, fixture) if has_outside else OutsideFiles()
        evidence = Evidence(
            store=store,
            users=users,
            facts=await list_facts(store, users),
            history=tuple(text for texts in histories.values() for text in texts),
            files=files,
            activity=activity,
            planted_values=fixture.planted_values,
            outside=outside.found,
            unread_files=(*outside.unread, *_links_to_folders(fixture.store_folder)),
        )
        strangers = [user for user in dict.fromkeys(call.user for call in activity.calls) if user not in users]
        findings = [
            Finding(claim=NO_STRANGERS, kind="strangers", status="broken", rate="restraint",
                    found=f'"{facts[0].content}" was written for {user}')
            for user, facts in (await list_facts(store, strangers)).items() if facts
        ]  # fmt: skip
        checked = await check_assertions(assertions, evidence)
        if not any(finding.kind == "secret_free" and finding.status == "broken" for finding in checked):
            findings += await find_held_credential(evidence, fixture.snapshot)
        if activity.writes:
            findings = [finding.model_copy(update={"fate": "stored"}) for finding in findings]
        if phase != "real_model":  # an agent is not to blame for what its store shows
            findings += find_disclosure(fixture.scenario, evidence, histories)
        return CheckResult((*checked, *findings), evidence.facts)


def _links_to_folders(folder: Path) -> list[str]:
    """Return the links in a folder that lead to a folder outside of it, whose files are not read."""
    root = folder.resolve()
    links = [path for path in sorted(folder.rglob("*")) if path.is_symlink() and path.is_dir()]
    return [
        f"{path.relative_to(folder).as_posix()} (a link to a folder)"
        for path in links
        if not path.resolve().is_relative_to(root)
    ]


@asynccontextmanager
async def open_copy(fixture: Fixture, curated_users: Sequence[str]) -> AsyncIterator[tuple[MemoryStore, Path | None]]:
    """Yield the store, opened on a copy of its folder, and the path of a second copy that is not opened.

    A store that may have data outside its folder is opened on the folder itself; if this folder has no files, the path
    is None. The curator runs for `curated_users` before the store is yielded.
    """
    can_copy = "files" in fixture.capabilities
    with TemporaryDirectory(prefix="memorybench-look-") as scratch:
        files, folder = Path(scratch, "files"), Path(scratch, "store") if can_copy else fixture.store_folder
        if can_copy:
            _copy_folder(fixture.store_folder, folder)
        if curated_users:
            async with fixture.open_store(folder) as store:
                await curate_memory(store, curated_users)
        if not can_copy and not any(path.is_file() for path in folder.rglob("*")):
            async with fixture.open_store(folder) as store:
                yield store, None
            return
        _copy_folder(folder, files)
        async with fixture.open_store(folder) as store:
            yield store, files


def _copy_folder(folder: Path, copy: Path) -> None:
    """Copy a folder without sockets, pipes and devices. Links stay links: they may lead anywhere, or in a circle.

    Links into the folder lead to the same place in the copy.
    """

    def without_data(parent: str, names: Sequence[str]) -> list[str]:
        paths = {name: Path(parent, name) for name in names}
        return [name for name, path in paths.items() if not (path.is_symlink() or path.is_file() or path.is_dir())]

    shutil.copytree(folder, copy, symlinks=True, ignore=without_data)
    root = Path(os.path.realpath(folder))
    for link in [path for path in copy.rglob("*") if path.is_symlink()]:
        # not Path.resolve, which fails for links in a circle
        target = Path(os.path.realpath(folder / link.relative_to(copy)))
        if target.is_relative_to(root):
            link.unlink()
            place = copy / target.relative_to(root)
            link.symlink_to(os.path.relpath(place, link.parent), target_is_directory=target.is_dir())


async def find_unannounced_removals(fixture: Fixture) -> list[str]:
    """Return the contents of facts that the curator removes, but that its dry run did not propose to remove."""
    if not {"list", "curate"} <= fixture.capabilities:
        return []
    texts = []
    async with open_copy(fixture, ()) as (store, _):
        for user in fixture.scenario.users:
            before = await store.list(user)
            dry_run = await store.curate(user, apply=False)
            await store.curate(user, apply=True)
            known = {id for proposal in dry_run.proposals for id in proposal.ids}
            known |= {fact.id for fact in await store.list(user)}
            texts += [fact.content for fact in before if fact.id not in known]
    return texts


async def curate_memory(store: MemoryStore, users: Iterable[str]) -> None:
    for user in users:
        await store.curate(user, apply=True)
