"""Names → entries and configs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybench.agents.config import AgentConfig
from memorybench.agents.config_reading import read_agent
from memorybench.core.errors import BadInput
from memorybench.datasets.config import BenchmarkConfig, Data, Evaluation
from memorybench.datasets.config_reading import read_benchmark
from memorybench.extractors.config import ExtractorConfig
from memorybench.extractors.config_reading import read_extractor
from memorybench.files.located import Document
from memorybench.files.yaml_file import load_yaml
from memorybench.metrics.names import known_metrics
from memorybench.providers.config import ProviderConfig
from memorybench.providers.config_reading import read_provider
from memorybench.stores.config import StoreConfig
from memorybench.stores.config_reading import read_store
from memorybench.text.sanitize import sanitize
from memorybench.text.spelling import as_written, suggestion

from .entries import BASELINES, BUNDLED, Entry, Kind
from .files import Described, bundled_files, files_of_user, recognise, unrecognised
from .plugins import Pluggable, installed

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Environment = Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class _Found:
    """One thing of this name, from one place."""

    entry: Entry
    read: Callable[[Environment], Any] | None = None
    """Makes its config; None: it has none."""
    plugin: EntryPoint | None = None


class Catalog:
    """Bundled configs, those dropped into `folder`, those in `extra` folders, and installed plug-ins.

    Everything that is wrong with one entry is told when that one is listed or chosen, and never hinders another.
    """

    def __init__(self, folder: Path, extra: Sequence[Path] = ()) -> None:
        self._folder = folder
        self._extra = tuple(extra)

    def entries(self, *kinds: Kind) -> tuple[Entry, ...]:
        """All of these kinds, by name. Each is read to its end, so that a broken one shows as broken."""
        return tuple(
            _examined(found)
            for _, found in sorted(self._found.items(), key=itemgetter(0))
            if found[0].entry.kind in kinds
        )

    def chosen(self, kind: Pluggable | Described, name: str) -> Entry:
        """The entry of that name, which can be used. A baseline is found among the providers."""
        return self._chosen(kind, name).entry

    def provider(self, name: str, environment: Environment = None) -> ProviderConfig:
        """Without an environment, `${VAR}` stays as it is written; with one, a missing variable is an error."""
        config = self._config("provider", name, environment)
        assert isinstance(config, ProviderConfig)
        return config

    def benchmark(self, name: str, environment: Environment = None) -> BenchmarkConfig:
        config = self._config("benchmark", name, environment)
        assert isinstance(config, BenchmarkConfig)
        return config

    def extractor(self, name: str, environment: Environment = None) -> ExtractorConfig:
        config = self._config("extractor", name, environment)
        assert isinstance(config, ExtractorConfig)
        return config

    def store(self, name: str, environment: Environment = None) -> StoreConfig:
        config = self._config("store", name, environment)
        assert isinstance(config, StoreConfig)
        return config

    def agent(self, name: str, environment: Environment = None) -> AgentConfig:
        config = self._config("agent", name, environment)
        assert isinstance(config, AgentConfig)
        return config

    def plugin(self, kind: Pluggable, name: str) -> EntryPoint:
        """The entry point of that name, not yet loaded."""
        found = self._chosen(kind, name)
        if found.plugin is None:
            raise BadInput("", f'the {kind} "{name}" is no plug-in but {found.entry.origin}')
        return found.plugin

    def _config(self, kind: Described, name: str, environment: Environment) -> Any:
        found = self._chosen(kind, name)
        if found.read is None:
            raise BadInput("", f'"{name}" is a {found.entry.kind}', expected=f"a {kind} with a config")
        return found.read(environment)

    def _chosen(self, kind: Pluggable | Described, name: str) -> _Found:
        found = self._found.get((kind, name))
        if found is None:
            known = [named for family, named in self._found if family == kind]
            listing = f"(memorybench list --{kind}s)" if kind != "metric" else "(memorybench list)"
            raise BadInput("", f'no {kind} "{sanitize(name)}"', remedy=f"{suggestion(name, known)} {listing}".strip())
        entry = _examined(found)
        if entry.broken is not None:
            raise entry.broken
        return found[0]

    @cached_property
    def _found(self) -> Mapping[tuple[str, str], Sequence[_Found]]:
        """By family and name."""
        gathered: dict[tuple[str, str], list[_Found]] = {}
        for found in (*self._baselines(), *self._plugins, *self._files()):
            gathered.setdefault((found.entry.family, found.entry.name), []).append(found)
        return gathered

    def _baselines(self) -> Iterator[_Found]:
        return (_Found(entry) for entry in BASELINES)

    @cached_property
    def _plugins(self) -> Sequence[_Found]:
        return [_Found(entry, _reader_of(entry), point) for entry, point in installed()]

    def _files(self) -> Iterator[_Found]:
        seen = set()
        for path, kind in bundled_files():
            seen.add(path.resolve())
            yield self._in_file(path, kind, BUNDLED)
        for path, told in files_of_user(self._folder, self._extra):
            if path.resolve() not in seen:  # a folder may be named that is looked into anyway
                seen.add(path.resolve())
                yield self._in_file(path, told, str(path))

    def _in_file(self, path: Path, kind: Described | None, origin: str) -> _Found:
        try:
            document = load_yaml(path)
        except BadInput as bad:
            return _Found(Entry(kind or "unknown", path.stem, origin=origin, file=path, broken=bad))
        kind = kind or recognise(document)
        if kind is None:
            broken = unrecognised(document)
            return _Found(Entry("unknown", path.stem, origin=origin, file=path, broken=broken))
        return _Found(_head(kind, document, path, origin), self._reader(kind, document))

    def _reader(self, kind: Described, document: Document) -> Callable[[Environment], Any]:
        if kind == "provider":
            return lambda environment: read_provider(document, environment)
        if kind == "extractor":
            return lambda environment: read_extractor(document, environment)
        if kind == "store":
            return lambda environment: read_store(document, environment)
        if kind == "agent":
            return lambda environment: read_agent(document, environment)
        metrics = known_metrics([found.entry.name for found in self._plugins if found.entry.kind == "metric"])
        return lambda environment: read_benchmark(document, environment, metrics)


def _head(kind: Described, document: Document, path: Path, origin: str) -> Entry:
    """What can be told without reading the file to its end."""

    def text(name: str) -> str:
        value = head.get(as_written(head, name) or "")
        return sanitize(value) if isinstance(value, str) else ""

    head = document.value if isinstance(document.value, dict) else {}
    tags = head.get("tags")
    return Entry(
        kind=kind,
        name=text("name") or path.stem,
        display_name=text("display_name"),
        description=text("description"),
        tags=tuple(sanitize(tag) for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
        origin=origin,
        file=path,
    )


def _reader_of(plugin: Entry) -> Callable[[Environment], Any] | None:
    """A plug-in that no file describes has the config that a file of three lines would give it."""
    name = plugin.name
    if plugin.kind == "provider":
        return lambda _: ProviderConfig(name=name, type="local", adapter=f"plugin:{name}")
    if plugin.kind == "benchmark":
        return lambda _: BenchmarkConfig(
            name=name, data=Data(type="plugin", path=name), evaluation=Evaluation(method="llm-judge")
        )
    return None


def _examined(found: Sequence[_Found]) -> Entry:
    first = found[0]
    if len(found) > 1:
        origins = " and ".join(one.entry.origin for one in found)
        return replace(first.entry, origin=origins, broken=_ambiguous(found))
    if first.entry.broken is None and first.read is not None:
        try:
            first.read(None)
        except BadInput as bad:
            return replace(first.entry, broken=bad)
    return first.entry


def _ambiguous(found: Sequence[_Found]) -> BadInput:
    entry = found[0].entry
    origins = " and ".join(one.entry.origin for one in found)
    return BadInput(
        "", f'{len(found)} {entry.family}s are called "{entry.name}": {origins}', remedy="rename or remove one"
    )
