"""Finds entries and configs by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.files.located import Document
from memorybench.files.yaml_file import load_yaml
from memorybench.metrics.names import known_metrics
from memorybench.text.sanitize import preview, sanitize
from memorybench.text.spelling import as_written, suggestion

from .entries import BASELINES, BUNDLED, Entry, Kind
from .files import KINDS, MODELS, Described, bundled_files, files_of_user, recognise, unrecognised
from .plugins import Pluggable, installed_plugins

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from memorybench.agents.config import AgentConfig
    from memorybench.datasets.config import BenchmarkConfig
    from memorybench.extractors.config import ExtractorConfig
    from memorybench.models.config import ModelConfig
    from memorybench.providers.config.provider import ProviderConfig
    from memorybench.stores.config import StoreConfig

Environment = Mapping[str, str] | None
BeforeUse = Callable[[Record, Path | None], None]
"""A function that gets a config and its file before the config is used."""
Read = Callable[[Environment], Any]
READERS = {
    "extractor": "memorybench.extractors.config_reading:read_extractor",
    "store": "memorybench.stores.config_reading:read_store",
    "agent": "memorybench.agents.config_reading:read_agent",
    "model": "memorybench.models.config:read_model",
}
"""By kind: the function that makes a config from a document and the environment, as `module:name`."""


class _Source(Struct, frozen=True):
    """One definition of an entry: a file, a plug-in, or a baseline. A name with several definitions is invalid."""

    entry: Entry
    read: Read | None = None
    """A function that reads the config of the entry; None if the entry has none."""
    plugin: EntryPoint | None = None
    document: Document | None = None
    """The content of the entry's file, without what it inherits by `extends`; None if it has no file."""


class Catalog:
    """Finds bundled configs, configs in `folder` and in the `extra` folders, and installed plug-ins.

    An invalid entry raises an error only when it is used, so that other entries can be used.
    """

    def __init__(self, folder: Path, extra: Sequence[Path] = (), before_use: BeforeUse | None = None) -> None:
        """`before_use` is called with each config and its file before `${VAR}` in the config is replaced."""
        self._folder = folder
        self._extra = tuple(extra)
        self._before_use = before_use
        self._found: dict[tuple[str, str], Sequence[_Source]] = {}

    def entries(self, *kinds: Kind) -> tuple[Entry, ...]:
        """Return all entries of these kinds, sorted by name.

        Each config is read; `broken` is set in invalid entries.
        """
        return tuple(
            self._check(sources)
            for _, sources in sorted(self._sources.items(), key=itemgetter(0))
            if sources[0].entry.kind in kinds
        )

    def chosen(self, kind: Pluggable | Described, name: str) -> Entry:
        """Return the entry with this name; raise BadInput if it does not exist or is invalid.

        A baseline counts as a provider.
        """
        return self._source(kind, name).entry

    def provider(self, name: str, environment: Environment = None) -> ProviderConfig:
        """Return the config of a provider. With an environment, `${VAR}` is replaced; a missing one raises BadInput."""
        return cast("ProviderConfig", self._config("provider", name, environment))

    def benchmark(self, name: str, environment: Environment = None) -> BenchmarkConfig:
        return cast("BenchmarkConfig", self._config("benchmark", name, environment))

    def extractor(self, name: str, environment: Environment = None) -> ExtractorConfig:
        return cast("ExtractorConfig", self._config("extractor", name, environment))

    def store(self, name: str, environment: Environment = None) -> StoreConfig:
        return cast("StoreConfig", self._config("store", name, environment))

    def agent(self, name: str, environment: Environment = None) -> AgentConfig:
        return cast("AgentConfig", self._config("agent", name, environment))

    def model(self, name: str, environment: Environment = None) -> ModelConfig:
        return cast("ModelConfig", self._config("model", name, environment))

    def has_card(self, name: str) -> bool:
        """Return whether there is a model card with this name, valid or not. A name with `/` is never that of a card.

        If there is none, but a file with this name or the name of some card cannot be read, raise BadInput: it may be
        the card that the user means, and without it, the caller would send requests to another server.
        """
        if "/" in name or self.has("model", name):
            return "/" not in name
        if (unreadable := self.unreadable(name)) is not None:
            raise unreadable
        for source in self._of_user:
            is_model = (source.entry.kind, source.entry.name) == ("unknown", MODELS) or source.entry.kind == "model"
            if is_model and not _has_name(source.document) and (broken := self._check([source]).broken) is not None:
                raise broken
        return False

    def card(self, name: str) -> ModelConfig | None:
        """Return the model card with this name; None if there is none."""
        return self.model(name) if self.has("model", name) else None

    def names(self, kind: Kind) -> list[str]:
        """Return the names of all entries of this kind, including invalid ones."""
        return [name for family, name in self._sources if family == kind]

    def has(self, kind: Kind, name: str) -> bool:
        """Return whether there is an entry with this name, valid or not."""
        return bool(self._find(kind, name))

    def plugin(self, kind: Pluggable, name: str) -> EntryPoint:
        """Return the entry point of a plug-in, without loading it."""
        source = self._source(kind, name)
        if source.plugin is None:
            raise BadInput("", f'the {kind} "{name}" is not a plug-in: {source.entry.origin}', expected="a plug-in")
        return source.plugin

    def _config(self, kind: Described, name: str, environment: Environment) -> Any:
        source = self._source(kind, name)
        if source.read is None:
            raise BadInput(f'{source.entry.kind} "{name}"', "it has no config", expected=f"a {kind} with a config")
        if environment is not None and self._before_use is not None:
            self._before_use(source.read(None), source.entry.file)
        return source.read(environment)

    def document(self, kind: Described, name: str) -> Document | None:
        """Return the content of an entry's YAML file, with everything that it inherits; None if it has no file."""
        source = self._source(kind, name)
        if source.document is None:
            return None
        if kind == "provider":
            return self.complete(source.document)
        from memorybench.datasets.config_reading import merge_base

        return merge_base(source.document)

    def _source(self, kind: Pluggable | Described, name: str) -> _Source:
        if kind == "provider" and "(" in name:
            return self._varied(name)
        sources = self._find(kind, name)
        if not sources:
            raise self.unreadable(name) or BadInput("", f'no {kind} "{sanitize(name)}"', remedy=self.advice(kind, name))
        entry = self._check(sources)
        if entry.broken is not None:
            raise entry.broken
        return replace(sources[0], entry=entry)

    def unreadable(self, name: str) -> BadInput | None:
        """Return the error of a file that is called `name` and whose kind cannot be recognised; None without one."""
        entries = (source.entry for source in self._of_user)
        return next((one.broken for one in entries if one.kind == "unknown" and one.name == name), None)

    def advice(self, kind: Pluggable | Described, name: str, others: Collection[str] = ()) -> str:
        """Return what to do about a name that no entry of this kind has. `others` are further names to suggest."""
        entries = [source.entry for source in self._of_user]
        files = [entry for entry in entries if entry.file is not None and name in (entry.name, entry.file.stem)]
        for entry in files:
            if entry.kind == kind:
                return f'{entry.origin} has the name "{entry.name}": write {entry.name}, or change `name` in the file'
        if files and kind != "metric":
            article = "an" if files[0].kind in ("agent", "extractor") else "a"
            keys = f"`memorybench schema {kind}` shows the keys of {kind}s"
            return f"{files[0].origin} has this name, but was read as {article} {files[0].kind}; {keys}"
        if Path(name).suffix in (".yaml", ".yml"):
            return f"save the file in {kind}s/configs/, and write the `name` that is in it"
        known = [*(named for family, named in self._sources if family == kind), *others]
        listing = f"memorybench list --{kind}s" if kind != "metric" else "memorybench list"
        close = suggestion(name, known)
        return f"{close} ({listing})" if close else f"`{listing}` shows all"

    def _check(self, sources: Sequence[_Source]) -> Entry:
        """Return the entry that `sources` define, with `broken` set if it is invalid or there are several sources."""
        first = sources[0]
        if len(sources) > 1:
            origins = " and ".join(source.entry.origin for source in sources)
            problem = f'{len(sources)} {first.entry.family}s are called "{first.entry.name}": {origins}'
            return replace(
                first.entry, origin=origins, broken=BadInput("", problem, remedy="rename or remove one of them")
            )
        if first.entry.broken is None and first.read is not None:
            try:
                first.read(None)
                return self._with_base(first)
            except BadInput as error:
                return replace(first.entry, broken=error)
        return first.entry

    def _varied(self, text: str) -> _Source:
        """Return a source for an expression such as `bm25(k1=1.5)`: its config extends `bm25` with these settings."""
        from memorybench.files.expressions import parse_expression
        from memorybench.providers.config.reading import read_provider

        from .literal_credentials import check_literals

        expression = parse_expression(text)
        if not expression.settings:
            return self._source("provider", expression.name)
        name = str(expression)
        base = self._source("provider", expression.name).entry
        if base.kind == "baseline":
            raise BadInput(
                "", f'"{base.name}" is a baseline, which has no settings', remedy=f"write {base.name} without settings"
            )
        card = {"name": base.name, "extends": base.name, "settings": expression.nested()}
        check_literals(Document(f'provider "{base.name}"', card))  # its error must not repeat the credential
        document = Document(f'provider "{name}"', card)

        def read(environment: Environment) -> ProviderConfig:
            return read_provider(self.complete(document), environment).model_copy(update={"name": name})

        read(None)  # raises if a setting is invalid
        return _Source(replace(base, name=name, display_name="", base=base), read, document=document)

    def complete(self, document: Document, chain: tuple[str, ...] = ()) -> Document:
        """Return a provider's config with everything that it inherits. Raise BadInput if what it extends is invalid.

        `chain` are the names of the configs on the way here, to detect a circle.
        """
        if not _extends(document):
            return document
        base = self._base(document)
        assert base.document is not None
        if base.entry.name in chain:
            circle = " -> ".join((chain[-1], *chain[chain.index(base.entry.name) :]))
            raise BadInput(
                document.where("extends"),
                f"circular extends: {circle}",
                expected="a provider that does not itself extend this one",
            )
        from memorybench.providers.config.extending import extend

        return extend(self.complete(base.document, (*chain, base.entry.name)), document)

    def _base(self, document: Document) -> _Source:
        """Return the source that a config extends.

        Its config is not checked, because it may be valid only when extended.
        """
        name, where = document.value["extends"], document.where("extends")
        found = self._find("provider", name) if isinstance(name, str) else ()
        if not found:
            raise BadInput(
                where,
                f"there is no provider {preview(name)} to extend",
                remedy=suggestion(str(name), self.names("provider")),
            )
        if len(found) > 1 or found[0].document is None:
            raise BadInput(
                where, f'"{name}" cannot be extended', expected="the name of exactly one provider, which has a config"
            )
        return found[0]

    def _with_base(self, source: _Source) -> Entry:
        """Return the entry of a source. If it extends another entry, set `base` to that entry, and `file` to its file.

        A provider that extends another one runs the code of that one, so paths are relative to that file.
        """
        document = source.document
        if source.entry.kind != "provider" or document is None or not _extends(document):
            return source.entry
        base = self._with_base(self._base(document))
        return replace(source.entry, base=base, file=base.file)

    @cached_property
    def _sources(self) -> Mapping[tuple[str, str], Sequence[_Source]]:
        """All sources, by family and name."""
        bundled = (source for path, kind in bundled_files() for source in self._from_file(path, kind, BUNDLED))
        return _by_name((*self._without_files, *bundled, *self._of_user))

    def _find(self, family: str, name: str) -> Sequence[_Source]:
        """Return the sources of one name in a family. Only bundled files with this name are read, which saves time."""
        if (family, name) not in self._found:
            bundled = (
                source
                for path, kind in bundled_files(kind for kind in KINDS if kind == family)
                if path.stem == name
                for source in self._from_file(path, kind, BUNDLED)
            )
            sources = _by_name((*self._without_files, *bundled, *self._of_user))
            self._found[family, name] = sources.get((family, name), ())
        return self._found[family, name]

    @cached_property
    def _without_files(self) -> Sequence[_Source]:
        return (*(_Source(entry) for entry in BASELINES), *self._plugins)

    @cached_property
    def _plugins(self) -> Sequence[_Source]:
        return [
            _Source(entry, _plugin_reader(entry), point, _plugin_document(entry))
            for entry, point in installed_plugins()
        ]

    @cached_property
    def _of_user(self) -> Sequence[_Source]:
        """The sources in the working folder and the extra folders."""
        sources: list[_Source] = []
        seen: set[Path] = set()
        for path, kind in files_of_user(self._folder, self._extra):
            seen = seen or {bundled.resolve() for bundled, _ in bundled_files()}
            if path.resolve() not in seen:  # an extra folder may be one that is searched anyway
                seen.add(path.resolve())
                sources += self._from_file(path, kind, str(path))
        return sources

    def _from_file(self, path: Path, kind: Described | None, origin: str) -> Iterator[_Source]:
        try:
            document = load_yaml(path)
            kind = kind or recognise(document)
            parts = _cards(document) if kind == "model" else [document]
        except BadInput as error:
            yield _Source(Entry(kind or "unknown", path.stem, origin=origin, file=path, broken=error))
            return
        if kind is None:
            yield _Source(Entry("unknown", path.stem, origin=origin, file=path, broken=unrecognised(document)))
            return
        for part in parts:
            yield self._from_document(part, path, kind, origin)

    def _from_document(self, document: Document, path: Path, kind: Described, origin: str) -> _Source:
        def read(environment: Environment) -> Record:
            if origin != BUNDLED:
                from .literal_credentials import check_literals

                check_literals(document)
            return self._read(kind, document, environment)

        return _Source(_head(kind, document, path, origin), _remember(read), document=document)

    def _read(self, kind: Described, document: Document, environment: Environment) -> Record:
        """Return a document as a config of this kind. Only the modules for this kind are imported."""
        if kind == "provider":
            from memorybench.providers.config.reading import read_provider

            return read_provider(self.complete(document), environment)
        if kind == "benchmark":
            from memorybench.datasets.config_reading import read_benchmark

            plugins = [source.entry.name for source in self._plugins if source.entry.kind == "metric"]
            return read_benchmark(document, environment, metrics=known_metrics(plugins))
        from pkgutil import resolve_name

        config: Record = resolve_name(READERS[kind])(document, environment)
        return config


def _by_name(sources: Iterable[_Source]) -> dict[tuple[str, str], list[_Source]]:
    gathered: dict[tuple[str, str], list[_Source]] = {}
    for source in sources:
        gathered.setdefault((source.entry.family, source.entry.name), []).append(source)
    return gathered


def _remember(read: Read) -> Read:
    """Return a function that does the same as `read`, but reads the config without an environment only once."""
    without_environment = cache(lambda: read(None))
    return lambda environment: without_environment() if environment is None else read(environment)


def _cards(document: Document) -> Sequence[Document]:
    from memorybench.models.config import cards_in

    return cards_in(document)


def _head(kind: Described, document: Document, path: Path, origin: str) -> Entry:
    """Return the entry of a file by its name, description and tags, without checking the rest of the file."""

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


def _has_name(document: Document | None) -> bool:
    return document is not None and isinstance(document.value, dict) and isinstance(document.value.get("name"), str)


def _extends(document: Document) -> bool:
    return isinstance(document.value, dict) and document.value.get("extends") is not None


def _plugin_document(plugin: Entry) -> Document | None:
    if plugin.kind != "provider":
        return None
    return Document(plugin.origin, {"name": plugin.name, "type": "local", "adapter": f"plugin:{plugin.name}"})


def _plugin_reader(plugin: Entry) -> Callable[[Environment], Any] | None:
    """Return a function that returns the config of a plug-in, which has no file; None if it needs no config."""
    name = plugin.name
    if plugin.kind == "provider":
        from memorybench.providers.config.provider import ProviderConfig

        return lambda _: ProviderConfig(name=name, type="local", adapter=f"plugin:{name}")
    if plugin.kind == "benchmark":
        from memorybench.datasets.config import BenchmarkConfig, Data, Evaluation

        data, evaluation = Data(type="plugin", path=name), Evaluation(method="llm-judge")
        return lambda _: BenchmarkConfig(name=name, data=data, evaluation=evaluation)
    return None
