"""The base class of providers, LocalProvider, and the context that is passed to open a provider, OpenContext.

A provider that runs in this process is registered by an entry point in the group `memorybench.providers`, whether it
is built in (pyproject.toml of this project) or comes from another package. The entry point names a class with the
members of `LocalProvider`. docs/python-adapters.md shows an example.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.files.entry_points import built_in_points
from memorybench.files.located import Document
from memorybench.files.validation import validated

if TYPE_CHECKING:
    from pydantic import BaseModel

    from memorybench.core.contracts import Embedder, Model, Provider
    from memorybench.secrets.redaction import Redactor

    from .config.provider import ProviderConfig

GROUP = "memorybench.providers"
BUILTIN, PLUGIN = "builtin:", "plugin:"
FORMER_NAMES = {"wait_until_searchable": "settle", "store_id": "incarnation"}
"""Maps the name of a member of Provider to its former name, which a plug-in or an adapter may still use."""


class Package(NamedTuple):
    """An optional dependency."""

    module: str
    """The name of the module to import."""
    name: str
    """The name of the package to install."""
    extra: str
    """The extra of memorybench that installs the package, such as `mem0` for `memorybench[mem0]`."""

    def check_installed(self, where: str) -> None:
        if find_spec(self.module) is None:
            raise BadInput(where, f"{self.name} is not installed", remedy=f'pip install "memorybench[{self.extra}]"')


LOCAL_EMBEDDER = Package("wordllama", "wordllama", "embed")


class OpenContext(Struct, frozen=True):
    """What `LocalProvider.open` gets: the provider's config and everything else that it may need."""

    config: ProviderConfig
    folder: Path
    """A folder for the provider's own data; it may not exist yet."""
    config_file: Path | None
    """The file that `config` was read from; None if it was read from none. Paths in `config` are relative to the folder
    of this file."""
    environment: Mapping[str, str]
    redactor: Redactor
    open_embedder: Callable[[], Awaitable[Embedder]]
    """Opens and returns the embedder that the config describes in `local.embedding`; if the config has none, the
    default embedder, which runs in this process. The embedder is closed after the provider."""
    open_model: Callable[[], Awaitable[Model | None]]
    """Opens and returns the model that the config names in `local.enhancement`; returns None if it names none. The
    model is closed after the provider."""
    settings: Any = None
    """The section `settings` of the config: an object of the provider's `settings_model`, or a mapping if the provider
    has no `settings_model`."""
    keep_on_disk: bool = True
    """Whether the provider must store its data in `folder`. If False, it may keep the data in memory instead, and then
    needs a new `store_id` each time it is opened."""

    @property
    def store_file(self) -> Path:
        """A path for providers that store their data in a single file: the path of `folder` with `.db` at its end."""
        return self.folder.with_name(f"{self.folder.name}.db")


SETTINGS_OF_CHUNKS = (
    "database",
    "chunking",
    "retrieval",
    "enhancement.generate_questions",
    "enhancement.questions_per_chunk",
)
"""Keys of a config's section `local` that have no effect for providers that do not store chunks of sessions."""


class LocalProvider:
    """Base class of providers that run in this process: declares what a provider needs and how it is opened.

    A plug-in need not inherit from this class. It needs the method `open`; attributes that it does not have get the
    values below.
    """

    needs_embedder: ClassVar[bool] = False
    single_threaded: ClassVar[bool] = False
    """Whether the provider does all its work on one thread. If so, the engine makes one call at a time: a second call
    would wait for the first, and this wait would be measured as part of its duration."""
    required_packages: ClassVar[tuple[Package, ...]] = ()
    uses_local_section: ClassVar[bool] = False
    """Whether the provider uses the section `local` of the config."""
    settings_model: ClassVar[type[BaseModel] | None] = None
    """The pydantic model of the config's section `settings`, whose fields have defaults and descriptions; None if the
    provider has no settings."""
    unused_settings: ClassVar[tuple[str, ...]] = ()
    """Keys of the section `local` that have no effect for this provider, such as `enhancement.questions_per_chunk`."""

    @classmethod
    def check_config(cls, config: ProviderConfig, document: Document) -> None:
        """Raise BadInput if the config is invalid for this provider. Called when the file is read."""

    @classmethod
    def open(cls, context: OpenContext) -> AbstractAsyncContextManager[Provider]:
        raise NotImplementedError


def require_model(config: ProviderConfig, document: Document, expected: str) -> None:
    """Raise BadInput if `local.enhancement` of a config is enabled but has no model.

    `expected` describes the missing model in the error, such as "the model that writes memories".
    """
    enhancement = config.local.enhancement if config.local else None
    if enhancement is not None and enhancement.enabled and not enhancement.model:
        raise BadInput(document.where("local", "enhancement"), '"model" is missing', expected=expected)


@cache
def built_in_names() -> tuple[str, ...]:
    return tuple(sorted(built_in_points(GROUP)))


@cache
def load_built_in(name: str) -> type[LocalProvider]:
    provider: type[LocalProvider] = built_in_points(GROUP)[name].load()
    return provider


def read_settings(model: type[BaseModel] | None, config: ProviderConfig, document: Document | None = None) -> Any:
    """Return the section `settings` of a config as an object of `model`, the provider's `settings_model`.

    Raise BadInput if a setting is invalid, or there are settings but `model` is None. Return {} if there is neither.
    `document` is the config's file, for error messages.
    """
    document = document or Document(f'provider "{config.name}"', {"settings": dict(config.settings)})
    if model is None:
        if config.settings:
            raise BadInput(
                document.where("settings"),
                f"this section has no effect with adapter: {config.adapter}",
                remedy="remove it",
            )
        return {}
    part = document.at("settings") if config.settings else Document(document.path, {}, within=("settings",))
    return validated(part, model, spell=str)  # errors name settings in snake_case, as `describe` lists them


def from_plugin(target: Any) -> type[LocalProvider]:
    """Return a subclass of LocalProvider for `target`, the object that the entry point of a plug-in names.

    `target` is a class with the method `open` or, in an older plug-in, a function that takes the data folder and
    returns an async context manager.
    """
    if isinstance(target, type) and issubclass(target, LocalProvider):
        return target
    if not hasattr(target, "open"):
        members = {"open": staticmethod(lambda context: target(context.folder))}
    else:
        declared = (name for name in vars(LocalProvider) if not name.startswith("_"))
        members = {name: getattr(target, name) for name in declared if hasattr(target, name)}
    return type("PluginProvider", (LocalProvider,), members)
