"""Opens providers by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memorybench import __version__
from memorybench.core.errors import BadInput, ConsentRequired
from memorybench.core.plans import Limits
from memorybench.core.records import digest
from memorybench.core.retry_defaults import LONGEST_DELAY
from memorybench.core.uses import Consent
from memorybench.files.expressions import parse_expression
from memorybench.journal.rows import config_text
from memorybench.providers.plugin import (
    BUILTIN,
    LOCAL_EMBEDDER,
    PLUGIN,
    OpenContext,
    from_plugin,
    load_built_in,
    read_settings,
)

from .consent import check_consent
from .environment import environment, first_variable, redactor
from .renaming import rename_provider
from .source_code import code_of

if TYPE_CHECKING:
    from memorybench.catalog.catalog import Catalog
    from memorybench.catalog.entries import Entry
    from memorybench.core.contracts import Embedder, Model, Provider
    from memorybench.models.presets import ModelAddress
    from memorybench.providers.config.provider import ProviderConfig
    from memorybench.providers.config.sections import Embedding
    from memorybench.providers.plugin import LocalProvider

    from .models import ModelResolver

_EMBEDDING_MODELS = {"openai": "text-embedding-3-small", "google": "gemini-embedding-001"}
"""The default model of an embedder, by its provider."""


def registered_class(catalog: Catalog, config: ProviderConfig) -> type[LocalProvider] | None:
    """Return the built-in or plug-in class of a provider; None for HTTP providers and for a user's own Python file."""
    adapter = config.adapter or ""
    if adapter.startswith(BUILTIN):
        return load_built_in(adapter.removeprefix(BUILTIN))
    if adapter.startswith(PLUGIN):
        return from_plugin(catalog.plugin("provider", adapter.removeprefix(PLUGIN)).load())
    return None


def check_provider(catalog: Catalog, entry: Entry, consent: Consent, *, need_keys: bool = True) -> None:
    """Raise BadInput if a variable, a package or a consent that the provider needs is missing."""
    check_consent(catalog, entry, consent)
    where = f'provider "{entry.name}"'
    config = catalog.provider(entry.name, environment() if need_keys else None)
    if config.type == "hosted" and not consent.disposable_store and not consent.reads_only:
        from .isolation import check_provider_isolation

        check_provider_isolation(config, where)
    provider = registered_class(catalog, config)
    if provider is not None:
        read_settings(provider.settings_model, config)
    embedding = config.local.embedding if config.local else config.embedding
    needs_embedder = config.embedding is not None or (provider is not None and provider.needs_embedder)
    if needs_embedder and (embedding is None or embedding.provider == "local"):
        LOCAL_EMBEDDER.check_installed(where)
    for package in provider.required_packages if provider is not None else ():
        package.check_installed(where)
    embedders = [one for one in (config.embedding, config.local.embedding if config.local else None) if one is not None]
    if config.enhancement_model is not None or embedders:
        _check_models(catalog, config.enhancement_model, embedders, consent, where, need_keys=need_keys)
    if need_keys and config.type != "local":
        from memorybench.http.config import auth_headers

        auth_headers(config.auth, environment().get(config.auth.env_var or ""), where)


def _check_models(
    catalog: Catalog,
    model: str | None,
    embedders: Sequence[Embedding],
    consent: Consent,
    where: str,
    *,
    need_keys: bool,
) -> None:
    """Raise BadInput if the key of a model or an embedder that the provider calls is missing."""
    from .models import ModelResolver

    models = ModelResolver(catalog, consent, need_keys)
    if model is not None:
        try:
            models.resolve(model)
        except ConsentRequired:
            raise
        except BadInput as error:  # the user may not have named this model
            place = f"{where}: local.enhancement.model: {error.where}"
            raise BadInput(place, error.problem, expected=error.expected, remedy=error.remedy) from None
    for embedder in embedders:
        if models.has_server(embedder.model):
            models.resolve(embedder.model)
        elif need_keys and embedder.provider != "local" and not (address := _embedder_address(embedder)).ready:
            names = " or ".join(address.key_variables)
            raise BadInput(
                where,
                f"the environment variable {names} is not set",
                remedy="set it, or use embedding: {provider: local}",
            )


def folder_name(provider: str) -> str:
    """Return the name of the folder for a provider's data. For an expression, it contains a digest of the settings."""
    expression = parse_expression(provider)
    return f"{expression.name}-{digest(provider)[:12]}" if expression.settings else provider


def may_spend(config: ProviderConfig) -> bool:
    """Return whether calls of the provider may cost money: it is not local, or calls a model or a paid embedder."""
    pays_for_vectors = config.local is not None and config.local.embedding.provider != "local"
    return config.type != "local" or config.enhancement_model is not None or pays_for_vectors


def _embedder_address(embedding: Embedding) -> ModelAddress:
    """Return the address of an embedding model that is not a model card and has no address in its name."""
    from memorybench.models.presets import PRESETS, resolve

    preset = PRESETS[embedding.provider]
    variables = (embedding.env_var,) if embedding.env_var else preset.key_variables
    model = embedding.model or _EMBEDDING_MODELS[embedding.provider]
    address = resolve(f"{embedding.provider}/{model}", environment())
    return replace(
        address,
        name=model,
        base_url=embedding.base_url or address.base_url,
        key_variables=variables,
        key_required=address.key_required and not embedding.base_url,  # a private server may not require one
        key_present=first_variable(*variables) is not None,
    )


def _moved_embedder(catalog: Catalog, config: ProviderConfig) -> str:
    """Return a line with the address of an embedder that an environment variable moved to another server; else ""."""
    for embedding in (config.embedding, config.local.embedding if config.local else None):
        if embedding is None or embedding.provider == "local" or embedding.base_url:
            continue
        from memorybench.models.presets import PRESETS, has_address

        if embedding.model and (has_address(embedding.model) or catalog.has_card(embedding.model)):
            continue
        address = _embedder_address(embedding)
        if address.base_url != PRESETS[embedding.provider].base_url:
            return f"\nembedding at {address.base_url}"
    return ""


class Opened(Struct, frozen=True):
    """An open provider, with its limits and with properties that the run needs to know."""

    provider: Provider
    limits: Limits
    remote: bool
    spends: bool
    unordered: bool


@dataclass(eq=False)
class ProviderOpener:
    """Opens the providers of one run. They share the local embedder."""

    stack: AsyncExitStack
    catalog: Catalog
    stores: Path
    """The folder for the data of local providers."""
    run: str
    consent: Consent
    threshold: float | None = None
    keep_on_disk: bool = False
    """Whether all local providers store their data in `stores`; otherwise only those whose calls may cost money."""
    _local_embedder: Embedder | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.stores.mkdir(parents=True, exist_ok=True, mode=0o700)

    @cached_property
    def _models(self) -> ModelResolver:
        from .models import ModelResolver

        return ModelResolver(self.catalog, self.consent)

    async def open(self, name: str) -> Opened:
        entry = self.catalog.chosen("provider", name)
        check_consent(self.catalog, entry, self.consent)
        config = self.catalog.provider(entry.name, environment())
        registered = registered_class(self.catalog, config)
        if registered is not None:
            opening = registered.open(self._context(entry, config, registered))
        elif config.type == "local":
            opening = await self._open_file(entry, config)
        else:
            opening = await self._open_http(entry, config)
        # settings of a plug-in identify its subject, too: with others, no recorded search may be reused
        settings = config.settings if (config.adapter or "").startswith(PLUGIN) else {}
        provider = rename_provider(await self.stack.enter_async_context(opening), entry.name, settings)
        rate = config.rate_limit
        limits = Limits(
            concurrency=rate.concurrency or (1 if registered is not None and registered.single_threaded else None),
            per_process=rate.concurrency is None,
            per_second=rate.requests_per_second,
            tries=rate.max_retries + 1,
            first_delay=rate.retry_delay_ms / 1000,
            longest_delay=LONGEST_DELAY,
        )
        return Opened(
            provider,
            limits,
            remote=config.type != "local",
            spends=may_spend(config),
            unordered=config.capabilities.unordered,
        )

    async def embedder(self, embedding: Embedding | None = None) -> Embedder:
        """Open the embedder of a config; None: the local embedder, which is opened once per run."""
        if embedding is None or embedding.provider == "local":
            if self._local_embedder is None:
                from memorybench.embedding.local import open_local_embedder

                self._local_embedder = await self.stack.enter_async_context(open_local_embedder())
            return self._local_embedder
        if self._models.has_server(embedding.model):
            return await self._models.resolve(embedding.model).open_embedder(self.stack, embedding.dimensions)
        from .models import ResolvedModel

        address = _embedder_address(embedding)
        model = ResolvedModel(address.name, address)
        return await model.open_embedder(self.stack, embedding.dimensions, name=embedding.provider)

    def _context(self, entry: Entry, config: ProviderConfig, registered: type[LocalProvider]) -> OpenContext:
        return OpenContext(
            config=config,
            folder=self.stores / folder_name(entry.name),
            config_file=entry.file,
            environment=environment(),
            redactor=redactor(),
            open_embedder=partial(self.embedder, config.local.embedding if config.local else None),
            open_model=partial(self._model, config),
            settings=read_settings(registered.settings_model, config),
            keep_on_disk=self.keep_on_disk or may_spend(config),
        )

    async def _model(self, config: ProviderConfig) -> Model | None:
        name = config.enhancement_model
        return await self._models.resolve(name).open(self.stack) if name else None

    async def _open_file(self, entry: Entry, config: ProviderConfig) -> AbstractAsyncContextManager[Provider]:
        from memorybench.providers.adapters import open_adapter

        local = config.local
        wants_embedder = local is not None and "embedding" in local.model_fields_set
        return open_adapter(
            config,
            entry.file,
            self.stores / folder_name(config.name),
            embedder=await self.embedder(local.embedding) if local and wants_embedder else None,
            model=await self._model(config),
        )

    async def _open_http(self, entry: Entry, config: ProviderConfig) -> AbstractAsyncContextManager[Provider]:
        from memorybench.providers.http.provider import open_http_provider

        store_id = None
        if config.type == "docker":
            from memorybench.providers.http.docker import compose_environment, open_docker

            stack = open_docker(
                config,
                # equal run ids in two folders are two stacks
                run=f"{self.run}-{digest(str(self.stores.absolute()))[:6]}",
                config_file=entry.file,
                environment=compose_environment(self.catalog.provider(entry.name), environment()),
                redactor=redactor(),
                report_leak=lambda line: print(line, file=sys.stderr),
            )
            store_id = await self.stack.enter_async_context(stack)
        return open_http_provider(
            config,
            key=environment().get(config.auth.env_var) if config.auth.env_var else None,
            redactor=redactor(),
            embedder=await self.embedder(config.embedding) if config.embedding else None,
            threshold=self.threshold,
            store_id=store_id,
            sign=self._load_signer(entry, config),
        )

    def _load_signer(self, entry: Entry, config: ProviderConfig) -> Callable[..., Any] | None:
        """Return the user's function that signs requests, or None. `check_consent` has checked that code is allowed."""
        if config.connection.sign is None:
            return None
        from memorybench.providers.storage.paths import find_file

        from .code import load_function

        where = f'provider "{entry.name}": connection.sign'
        path, _, name = config.connection.sign.rpartition(":")
        return load_function(where, f"{find_file(path, entry.file, where)}:{name}", Consent(code=True))


def described(catalog: Catalog, entry: Entry) -> str:
    """Return a text that identifies the provider's config and code. If it changes, a run cannot be resumed."""
    if entry.kind == "baseline":
        return f"baseline {entry.name}"
    config = catalog.provider(entry.name)
    adapter, text = config.adapter or "", config_text(config.plain())
    if adapter.startswith(BUILTIN):
        text = f"{text}\nmemorybench {__version__}"
    elif adapter.startswith(PLUGIN):
        package = catalog.plugin("provider", adapter.removeprefix(PLUGIN)).dist
        text = f"{text}\n{package.name} {package.version}" if package else text
    return text + _moved_embedder(catalog, config) + code_of(catalog, entry)
