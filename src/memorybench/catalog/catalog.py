"""Finds entries and configs by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memorybench.agents.config import AgentConfig
from memorybench.agents.config_reading import read_agent
from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.datasets.config import BenchmarkConfig, Data, Evaluation
from memorybench.datasets.config_reading import merge_base, read_benchmark
from memorybench.extractors.config import ExtractorConfig
from memorybench.extractors.config_reading import read_extractor
from memorybench.files.expressions import parse_expression
from memorybench.files.located import Document
from memorybench.files.yaml_file import load_yaml
from memorybench.metrics.names import known_metrics
from memorybench.models.config import ModelConfig, cards_in, read_model
from memorybench.providers.config.extending import extend
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.reading import read_provider
from memorybench.stores.config import StoreConfig
from memorybench.stores.config_reading import read_store
from memorybench.text.sanitize import preview, sanitize
from memorybench.text.spelling import as_written, suggestion

from .entries import BASELINES, BUNDLED, Entry, Kind
from .files import Described, bundled_files, files_of_user, recognise, unrecognised
from .literal_credentials import check_literals
from .plugins import Pluggable, installed_plugins

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Environment = Mapping[str, str] | None
BeforeUse = Callable[[Record, Path | None], None]
"""Takes a config and its file."""


T = TypeVar("T", bound=Record)


@dataclass(frozen=True, slots=True)
class _Source:
    """Something with a name, from one place."""

    entry: Entry
    read: Callable[[Environment], Any] | None = None
    """Reads its config; None if it has none."""
    plugin: EntryPoint | None = None
    document: Document | None = None
    """Its file, before `extends` is applied."""


class Catalog:
    """Bundled configs, those in `folder` and in the `extra` folders, and installed plug-ins.

    An invalid entry raises only when it is chosen; the others can be used.
    """

    def __init__(self, folder: Path, extra: Sequence[Path] = (), before_use: BeforeUse | None = None) -> None:
        """`before_use` gets each config, with `${VAR}`, before it is read with an environment."""
        self._folder = folder
        self._extra = tuple(extra)
        self._before_use = before_use

    def entries(self, *kinds: Kind) -> tuple[Entry, ...]:
        """Return all entries of these kinds, sorted by name. Each config is read, so that an invalid one is marked."""
        return tuple(
            self._check(sources)
            for _, sources in sorted(self._sources.items(), key=itemgetter(0))
            if sources[0].entry.kind in kinds
        )

    def chosen(self, kind: Pluggable | Described, name: str) -> Entry:
        """Return the valid entry of that name. A baseline counts as a provider."""
        return self._source(kind, name).entry

    def provider(self, name: str, environment: Environment = None) -> ProviderConfig:
        """Read a config. With an environment, `${VAR}` is replaced; a missing variable raises BadInput."""
        return self._config("provider", name, environment, ProviderConfig)

    def benchmark(self, name: str, environment: Environment = None) -> BenchmarkConfig:
        return self._config("benchmark", name, environment, BenchmarkConfig)

    def extractor(self, name: str, environment: Environment = None) -> ExtractorConfig:
        return self._config("extractor", name, environment, ExtractorConfig)

    def store(self, name: str, environment: Environment = None) -> StoreConfig:
        return self._config("store", name, environment, StoreConfig)

    def agent(self, name: str, environment: Environment = None) -> AgentConfig:
        return self._config("agent", name, environment, AgentConfig)

    def model(self, name: str, environment: Environment = None) -> ModelConfig:
        return self._config("model", name, environment, ModelConfig)

    def card(self, name: str) -> ModelConfig | None:
        """Return the model card of that name; None if there is none."""
        return self.model(name) if name in self.names("model") else None

    def names(self, kind: Kind) -> list[str]:
        """Return the names of this kind, also of invalid entries."""
        return [name for family, name in self._sources if family == kind]

    def plugin(self, kind: Pluggable, name: str) -> EntryPoint:
        """Return the entry point of that name, not yet loaded."""
        source = self._source(kind, name)
        if source.plugin is None:
            raise BadInput("", f'the {kind} "{name}" is not a plug-in but {source.entry.origin}')
        return source.plugin

    def _config(self, kind: Described, name: str, environment: Environment, record: type[T]) -> T:
        source = self._source(kind, name)
        if source.read is None:
            raise BadInput("", f'"{name}" is a {source.entry.kind}', expected=f"a {kind} with a config")
        if environment is not None and self._before_use is not None:
            self._before_use(source.read(None), source.entry.file)
        config = source.read(environment)
        assert isinstance(config, record)
        return config

    def document(self, kind: Described, name: str) -> Document | None:
        """Return the complete YAML of an entry; None if it has none."""
        source = self._source(kind, name)
        if source.document is None:
            return None
        return self.complete(source.document) if kind == "provider" else merge_base(source.document)

    def _source(self, kind: Pluggable | Described, name: str) -> _Source:
        if kind == "provider" and "(" in name:
            return self._varied(name)
        sources = self._sources.get((kind, name))
        if sources is None:
            known = [named for family, named in self._sources if family == kind]
            listing = f"memorybench list --{kind}s" if kind != "metric" else "memorybench list"
            close = suggestion(name, known)
            remedy = f"{close} ({listing})" if close else f"`{listing}` shows all"
            raise BadInput("", f'no {kind} "{sanitize(name)}"', remedy=remedy)
        entry = self._check(sources)
        if entry.broken is not None:
            raise entry.broken
        return replace(sources[0], entry=entry)

    def _check(self, sources: Sequence[_Source]) -> Entry:
        """Return the entry of a name, marked as broken if it is invalid or not unique."""
        first = sources[0]
        if len(sources) > 1:
            origins = " and ".join(source.entry.origin for source in sources)
            problem = f'{len(sources)} {first.entry.family}s are called "{first.entry.name}": {origins}'
            return replace(first.entry, origin=origins, broken=BadInput("", problem, remedy="rename or remove one"))
        if first.entry.broken is None and first.read is not None:
            try:
                first.read(None)
                return self._with_base(first)
            except BadInput as error:
                return replace(first.entry, broken=error)
        return first.entry

    def _varied(self, text: str) -> _Source:
        """Return the source of an expression, such as `bm25(k1=1.5)`: a config that extends `bm25`."""
        expression = parse_expression(text)
        if not expression.settings:
            return self._source("provider", expression.name)
        name = str(expression)
        base = self._source("provider", expression.name).entry
        if base.kind == "baseline":
            raise BadInput("", f'"{base.name}" is a baseline, which has no settings', remedy=f"write {base.name}")
        card = {"name": base.name, "extends": base.name, "settings": expression.nested()}
        check_literals(Document(f'provider "{base.name}"', card))  # its error must not repeat the credential
        document = Document(f'provider "{name}"', card)

        def read(environment: Environment) -> ProviderConfig:
            return read_provider(self.complete(document), environment).model_copy(update={"name": name})

        read(None)  # raises if a setting is invalid
        return _Source(replace(base, name=name, display_name="", base=base), read, document=document)

    def complete(self, document: Document, chain: tuple[str, ...] = ()) -> Document:
        """Return a provider's config with everything that it inherits."""
        if not _extends(document):
            return document
        base = self._base(document)
        assert base.document is not None
        if base.entry.name in chain:
            circle = " -> ".join((chain[-1], *chain[chain.index(base.entry.name) :]))
            expected = "a provider that does not extend this one"
            raise BadInput(document.where("extends"), f"circular extends: {circle}", expected=expected)
        return extend(self.complete(base.document, (*chain, base.entry.name)), document)

    def _base(self, document: Document) -> _Source:
        """Return what a config extends. It is not checked: it may be valid only together with the config."""
        name, where = document.value["extends"], document.where("extends")
        known = {named: found for (family, named), found in self._sources.items() if family == "provider"}
        if not isinstance(name, str) or name not in known:
            raise BadInput(where, f"no provider {preview(name)}", remedy=suggestion(str(name), known))
        if len(known[name]) > 1 or known[name][0].document is None:
            raise BadInput(where, f'"{name}" cannot be extended', expected="one provider with a config")
        return known[name][0]

    def _with_base(self, source: _Source) -> Entry:
        """Return the entry with its `base` set.

        A provider that extends another runs the base's code, so `file` is the base's.
        """
        document = source.document
        if source.entry.kind != "provider" or document is None or not _extends(document):
            return source.entry
        base = self._with_base(self._base(document))
        return replace(source.entry, base=base, file=base.file)

    @cached_property
    def _sources(self) -> Mapping[tuple[str, str], Sequence[_Source]]:
        """All sources, by family and name."""
        gathered: dict[tuple[str, str], list[_Source]] = {}
        for source in (*(_Source(entry) for entry in BASELINES), *self._plugins, *self._files()):
            gathered.setdefault((source.entry.family, source.entry.name), []).append(source)
        return gathered

    @cached_property
    def _plugins(self) -> Sequence[_Source]:
        return [
            _Source(entry, _plugin_reader(entry), point, _plugin_document(entry))
            for entry, point in installed_plugins()
        ]

    def _files(self) -> Iterator[_Source]:
        seen = set()
        for path, kind in bundled_files():
            seen.add(path.resolve())
            yield from self._from_file(path, kind, BUNDLED)
        for path, user_kind in files_of_user(self._folder, self._extra):
            if path.resolve() not in seen:  # an extra folder may be one that is searched anyway
                seen.add(path.resolve())
                yield from self._from_file(path, user_kind, str(path))

    def _from_file(self, path: Path, kind: Described | None, origin: str) -> Iterator[_Source]:
        try:
            document = load_yaml(path)
            kind = kind or recognise(document)
            parts = cards_in(document) if kind == "model" else [document]
        except BadInput as error:
            yield _Source(Entry(kind or "unknown", path.stem, origin=origin, file=path, broken=error))
            return
        if kind is None:
            yield _Source(Entry("unknown", path.stem, origin=origin, file=path, broken=unrecognised(document)))
            return
        for part in parts:
            yield self._from_document(part, path, kind, origin)

    def _from_document(self, document: Document, path: Path, kind: Described, origin: str) -> _Source:
        read: Callable[[Document, Environment], Record]
        if kind == "benchmark":
            plugins = [source.entry.name for source in self._plugins if source.entry.kind == "metric"]
            read = partial(read_benchmark, metrics=known_metrics(plugins))
        else:
            read = _READERS[kind] if kind != "provider" else self._read_provider

        def read_checked(environment: Environment) -> Record:
            if origin != BUNDLED:
                check_literals(document)
            return read(document, environment)

        return _Source(_head(kind, document, path, origin), read_checked, document=document)

    def _read_provider(self, document: Document, environment: Environment) -> ProviderConfig:
        return read_provider(self.complete(document), environment)


_READERS: Mapping[Described, Callable[[Document, Environment], Record]] = {
    "provider": read_provider,
    "extractor": read_extractor,
    "store": read_store,
    "agent": read_agent,
    "model": read_model,
}


def _head(kind: Described, document: Document, path: Path, origin: str) -> Entry:
    """Return the entry of a file without checking the whole file."""

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


def _extends(document: Document) -> bool:
    return isinstance(document.value, dict) and document.value.get("extends") is not None


def _plugin_document(plugin: Entry) -> Document | None:
    if plugin.kind != "provider":
        return None
    return Document(plugin.origin, {"name": plugin.name, "type": "local", "adapter": f"plugin:{plugin.name}"})


def _plugin_reader(plugin: Entry) -> Callable[[Environment], Any] | None:
    """Return a reader of the config of a plug-in, which has no file."""
    name = plugin.name
    if plugin.kind == "provider":
        return lambda _: ProviderConfig(name=name, type="local", adapter=f"plugin:{name}")
    if plugin.kind == "benchmark":
        data, evaluation = Data(type="plugin", path=name), Evaluation(method="llm-judge")
        return lambda _: BenchmarkConfig(name=name, data=data, evaluation=evaluation)
    return None
