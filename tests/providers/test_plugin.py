"""How providers register, and how old plug-ins keep working."""

from __future__ import annotations

import asyncio
import inspect
import tomllib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from memorybench.catalog.catalog import Catalog
from memorybench.core.contracts import Listing, Receipt, Scope
from memorybench.core.conversation import Memory, Session
from memorybench.core.errors import BadInput
from memorybench.core.trials import Subject
from memorybench.core.uses import Consent
from memorybench.files import entry_points
from memorybench.files.yaml_file import parse_yaml
from memorybench.providers import plugin
from memorybench.providers.config.reading import read_provider
from memorybench.providers.plugin import LocalProvider, OpenContext, built_in_names, from_plugin, load_built_in
from memorybench.wiring.providers import ProviderOpener, check_provider
from memorybench.wiring.renaming import rename_provider
from tests.providers.embedded import HOME, fill, session

PROJECT = Path(__file__).parents[2]


class OldProvider:
    """Written for an earlier version: `settle` and `incarnation`."""

    subject = Subject(role="provider", name="old")
    incarnation = "since-1999"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions: dict[str, Session] = {}
        self.searchable: list[Memory] = []

    async def add(self, scope: Scope, session: Session) -> Receipt:
        self.sessions[session.id] = session
        return Receipt(ids=(session.id,))

    async def settle(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        self.searchable = [Memory(id=id, content=one.turns[0].content) for id, one in self.sessions.items()]

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        return self.searchable[:limit]

    async def list(self, scope: Scope) -> Sequence[Memory]:
        return self.searchable

    async def clear(self, scope: Scope) -> None:
        self.searchable = []


@asynccontextmanager
async def open_old(folder: Path) -> AsyncIterator[OldProvider]:
    yield OldProvider(folder)


class Toy:
    """A new plug-in that does not inherit from LocalProvider."""

    single_threaded = True

    @classmethod
    @asynccontextmanager
    async def open(cls, context: OpenContext) -> AsyncIterator[OldProvider]:
        yield OldProvider(context.folder)


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, target: str) -> Catalog:
    """Return a catalog in which another package registers the provider "toy"."""
    info = folder / "site/toy_package-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-package\nVersion: 1.0\nSummary: A toy\n")
    (info / "entry_points.txt").write_text(f"[memorybench.providers]\ntoy = {__name__}:{target}\n")
    monkeypatch.syspath_prepend(str(folder / "site"))
    return Catalog(folder)


@pytest.mark.parametrize("target", ["open_old", "Toy"])
def test_a_plug_in_of_either_version_is_opened_and_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    catalog = install(monkeypatch, tmp_path, target)
    entry = catalog.chosen("provider", "toy")
    check_provider(catalog, entry, Consent())

    async def search() -> tuple[Sequence[Memory], str, int | None]:
        async with AsyncExitStack() as stack:
            opener = ProviderOpener(stack, catalog, tmp_path / "s", "r", Consent())
            opened = await opener.open(entry.name)
            assert opened.provider.subject.name == "toy"
            await fill(opened.provider, [session("s1", "I own a dog.")])
            return await opened.provider.search(HOME, "dog", 5), opened.provider.store_id, opened.limits.concurrency

    memories, store_id, concurrency = asyncio.run(search())
    assert [memory.content for memory in memories] == ["I own a dog."]
    assert store_id == "since-1999"
    assert concurrency == (1 if target == "Toy" else None)


def test_a_renamed_provider_still_offers_its_optional_methods(tmp_path: Path) -> None:
    renamed = rename_provider(OldProvider(tmp_path), "mine")  # type: ignore[arg-type]
    assert renamed.subject.name == "mine"
    assert isinstance(renamed, Listing)
    inspect.getattr_static(renamed, "list")  # isinstance uses it from Python 3.12 on


def test_every_built_in_is_registered_in_the_project_file_and_loads() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(built_in_names()) == set(project["entry-points"]["memorybench.providers"])
    for name in built_in_names():
        assert issubclass(load_built_in(name), LocalProvider)


def test_every_built_in_card_names_a_registered_provider(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    adapters = {catalog.provider(entry.name).adapter for entry in catalog.entries("provider")}
    assert {f"builtin:{name}" for name in built_in_names()} <= adapters


def test_installed_package_reads_its_own_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_points, "_CHECKOUT", tmp_path / "pyproject.toml")
    names = entry_points.built_in_points("console_scripts")
    assert "memorybench" in names


def test_a_built_in_provider_is_one_file_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("toy", f"{__name__}:ToyWithSection", plugin.GROUP)
    monkeypatch.setattr(plugin, "built_in_points", lambda group: {"toy": point})
    for function in (built_in_names, load_built_in):
        function.cache_clear()
    try:
        text = "name: mine\ntype: local\nadapter: builtin:toy\n"
        assert read_provider(parse_yaml(text, "mine.yaml")).adapter == "builtin:toy"
        with pytest.raises(BadInput) as caught:
            read_provider(parse_yaml(f"{text}local: {{}}\n", "mine.yaml"))
        assert caught.value.problem == "checked by its class"
    finally:
        for function in (built_in_names, load_built_in):
            function.cache_clear()


class ToyWithSection(LocalProvider):
    uses_local_section = True

    @classmethod
    def check_config(cls, config: object, document: object) -> None:
        raise BadInput("local", "checked by its class")


def test_undeclared_members_of_a_plug_in_have_defaults() -> None:
    provider = from_plugin(Toy)
    assert (provider.single_threaded, provider.needs_embedder, provider.required_packages) == (True, False, ())


def test_code_of_a_config_needs_permission(tmp_path: Path) -> None:
    configs = tmp_path / "providers/configs"
    configs.mkdir(parents=True)
    (configs / "mine.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')")
    (configs / "mine.yaml").write_text("name: mine\ntype: local\nadapter: ./mine.py:Mine\n")
    catalog = Catalog(tmp_path)
    entry = catalog.chosen("provider", "mine")

    async def open_provider() -> None:
        async with AsyncExitStack() as stack:
            opener = ProviderOpener(stack, catalog, tmp_path / "s", "r", Consent())
            await opener.open(entry.name)

    with pytest.raises(BadInput) as caught:
        check_provider(catalog, entry, Consent())
    assert "--allow-code" in caught.value.remedy
    with pytest.raises(BadInput):
        asyncio.run(open_provider())
    assert not (tmp_path / "executed").exists()
