"""From a provider's name to a memory that can be filled and searched."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memorybench import __version__
from memorybench.catalog.catalog import Catalog
from memorybench.catalog.entries import Entry
from memorybench.core.contracts import Embedder, Model, Provider
from memorybench.core.errors import BadInput
from memorybench.core.plans import Limits
from memorybench.core.records import digest
from memorybench.mcp import check_sdk
from memorybench.providers.chunk_memory import wanted_model
from memorybench.providers.config import Embedding, ProviderConfig
from memorybench.suites.bench.baselines import Arm

from .called import provider_called
from .environment import environment, redactor
from .models import model_named, open_chosen

BUILTIN, PLUGIN = "builtin:", "plugin:"
_KEYS_OF_EMBEDDERS = {"openai": ("OPENAI_API_KEY",), "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY")}
_LONGEST_WAIT = 120.0
_OF_ONE_THREAD = tuple(f"{BUILTIN}{name}" for name in ("bm25", "dense", "hybrid"))


_NEED_VECTORS = ("dense", "hybrid", "aqrag", "contextual-retrieval", "mem0-oss")


def check_provider(catalog: Catalog, entry: Entry, *, allow_code: bool) -> None:
    """Raises where the provider lacks something that can be told before a run: a variable, a package, a permission."""
    config = catalog.provider(entry.name, environment())
    adapter = config.adapter or ""
    wanted_name = wanted_model(config)
    if wanted_name is not None:
        model_named(wanted_name)
    wanted = config.local.embedding if config.local else config.embedding
    local = wanted is None or wanted.provider == "local"
    if local and (adapter.removeprefix(BUILTIN) in _NEED_VECTORS or config.embedding) and not find_spec("wordllama"):
        raise BadInput(
            f'provider "{entry.name}"', "wordllama is not installed", remedy='pip install "memorybench[embed]"'
        )
    if adapter == f"{BUILTIN}mem0-oss" and not find_spec("mem0"):
        raise BadInput(f'provider "{entry.name}"', "mem0ai is not installed", remedy='pip install "memorybench[mem0]"')
    if adapter == f"{BUILTIN}mcp":
        check_sdk(f'provider "{entry.name}"')
    if config.type == "local" and not adapter.startswith((BUILTIN, PLUGIN)) and not allow_code:
        raise BadInput(
            f'provider "{entry.name}"', f"{adapter} is code from a config", remedy="read it, then --allow-code"
        )


@dataclass(frozen=True, slots=True)
class Opened:
    provider: Provider
    limits: Limits
    remote: bool
    spends: bool
    unordered: bool

    def arm(self) -> Arm:
        return Arm(
            self.provider.subject, self.provider, spends=self.spends, remote=self.remote, unordered=self.unordered
        )


class ProviderOpener:
    """Opens the providers of one run; what they share, such as the local embedder, is opened once."""

    def __init__(
        self,
        stack: AsyncExitStack,
        catalog: Catalog,
        stores: Path,
        *,
        run: str,
        allow_code: bool,
        threshold: float | None,
    ) -> None:
        """`stores` is where providers of this process keep their data, one file or folder each."""
        self._stack = stack
        self._catalog = catalog
        self._stores = stores
        self._run = run
        self._allow_code = allow_code
        self._threshold = threshold
        self._local_embedder: Embedder | None = None
        stores.mkdir(parents=True, exist_ok=True, mode=0o700)

    async def open(self, entry: Entry) -> Opened:
        config = self._catalog.provider(entry.name, environment())
        if config.type == "local":
            opening = await self._local(entry, config)
        else:
            opening = await self._http(entry, config)
        provider = provider_called(entry.name, await self._stack.enter_async_context(opening))
        remote = config.type != "local"
        return Opened(
            provider,
            _limits(config),
            remote=remote,
            spends=remote or self._asks_models(config),
            unordered=config.capabilities.unordered,
        )

    async def embedder(self, wanted: Embedding | None = None) -> Embedder:
        """The one that a config wants; the local one where it wants none in particular."""
        if wanted is None or wanted.provider == "local":
            if self._local_embedder is None:
                from memorybench.embedding.local import open_local_embedder

                self._local_embedder = await self._stack.enter_async_context(open_local_embedder())
            return self._local_embedder
        names = (wanted.env_var,) if wanted.env_var else _KEYS_OF_EMBEDDERS[wanted.provider]
        key = next((value for name in names if name and (value := environment().get(name))), None)
        from memorybench.embedding.google import open_google_embedder
        from memorybench.embedding.openai import open_openai_embedder

        opener = open_google_embedder if wanted.provider == "google" else open_openai_embedder
        return await self._stack.enter_async_context(
            opener(
                key=key,
                redactor=redactor(),
                model=wanted.model,
                dimensions=wanted.dimensions,
                base_url=wanted.base_url,
            )
        )

    async def _http(self, entry: Entry, config: ProviderConfig) -> AbstractAsyncContextManager[Provider]:
        from memorybench.providers.http_provider import open_http_provider

        store_id = await self._container(entry, config) if config.type == "docker" else None
        return open_http_provider(
            config,
            key=environment().get(config.auth.env_var) if config.auth.env_var else None,
            redactor=redactor(),
            embedder=await self.embedder(config.embedding) if config.embedding else None,
            threshold=self._threshold,
            store_id=store_id,
        )

    async def _container(self, entry: Entry, config: ProviderConfig) -> str:
        """Starts the stack and waits until it is healthy. Equal run ids in two folders are two stacks."""
        from memorybench.providers.docker import compose_environment, open_docker

        written = self._catalog.provider(entry.name)
        return await self._stack.enter_async_context(
            open_docker(
                config,
                run=f"{self._run}-{digest(str(self._stores.absolute()))[:6]}",
                base=entry.file.parent if entry.file else Path(),
                environment=compose_environment(written, environment()),
                redactor=redactor(),
                leaked=lambda line: print(line, file=sys.stderr),
            )
        )

    async def _local(self, entry: Entry, config: ProviderConfig) -> AbstractAsyncContextManager[Provider]:
        adapter = config.adapter or ""
        if adapter.startswith(BUILTIN):
            return await self._builtin(adapter.removeprefix(BUILTIN), entry, config)
        if adapter.startswith(PLUGIN):
            opener: Any = self._catalog.plugin("provider", adapter.removeprefix(PLUGIN)).load()
            opened: AbstractAsyncContextManager[Provider] = opener(self._stores / entry.name)
            return opened
        from memorybench.providers.adapters import open_adapter

        return open_adapter(
            config,
            entry.file,
            self._stores,
            allow_code=self._allow_code,
            embedder=await self._asked_for(config),
            model=await self._enhancer(config),
        )

    async def _builtin(self, name: str, entry: Entry, config: ProviderConfig) -> AbstractAsyncContextManager[Provider]:
        file, folder = self._stores / f"{entry.name}.db", self._stores / entry.name
        if name == "bm25":
            from memorybench.providers.bm25 import open_bm25

            return open_bm25(file)
        if name == "mcp":
            from memorybench.providers.mcp import open_mcp_provider

            return open_mcp_provider(config, folder, environment=environment(), redactor=redactor())
        embedder = await self.embedder(config.local.embedding if config.local else None)
        if name == "dense":
            from memorybench.providers.dense import open_dense

            return open_dense(file, embedder)
        if name == "hybrid":
            from memorybench.providers.hybrid import open_hybrid

            return open_hybrid(file, embedder)
        model = await self._enhancer(config)
        if name == "mem0-oss":
            from memorybench.providers.mem0_oss import open_mem0_oss

            return open_mem0_oss(folder, embedder, model=model, name=entry.name)
        if name == "aqrag":
            from memorybench.providers.aqrag import open_aqrag

            return open_aqrag(config, file, embedder, model, config_file=entry.file)
        if name == "contextual-retrieval":
            from memorybench.providers.contextual_retrieval import open_contextual_retrieval

            return open_contextual_retrieval(config, file, embedder, model, config_file=entry.file)
        raise BadInput(f'adapter "{BUILTIN}{name}"', "there is no such provider")

    async def _asked_for(self, config: ProviderConfig) -> Embedder | None:
        if config.local is None or "embedding" not in config.local.model_fields_set:
            return None
        return await self.embedder(config.local.embedding)

    async def _enhancer(self, config: ProviderConfig) -> Model | None:
        """The model that works on what is stored, where the config wants one."""
        wanted = wanted_model(config)
        return await open_chosen(self._stack, model_named(wanted)) if wanted else None

    @staticmethod
    def _asks_models(config: ProviderConfig) -> bool:
        return wanted_model(config) is not None or bool(config.local and config.local.embedding.provider != "local")


def _limits(config: ProviderConfig) -> Limits:
    rate = config.rate_limit
    # one thread does their work: a second call would only wait in line, and be measured as slow
    alone = 1 if config.adapter in _OF_ONE_THREAD else None
    return Limits(
        concurrency=rate.concurrency or alone,
        per_second=rate.requests_per_second,
        tries=rate.max_retries + 1,
        first_delay=rate.retry_delay_ms / 1000,
        longest_delay=_LONGEST_WAIT,
    )


def described(catalog: Catalog, entry: Entry) -> str:
    """What a resumed run must find unchanged. What ships with the program changes with its version."""
    if entry.kind == "baseline":
        return f"baseline {entry.name}"
    config = catalog.provider(entry.name)
    adapter = config.adapter or ""
    if adapter.startswith("builtin:"):
        return f"{lines(config.plain())}\nmemorybench {__version__}"
    if adapter.startswith("plugin:"):
        package = catalog.plugin("provider", adapter.removeprefix("plugin:")).dist
        return f"{lines(config.plain())}\n{package.name} {package.version}" if package else lines(config.plain())
    return lines(config.plain())


def lines(value: Any) -> str:
    """JSON with a line for each value, so that a difference shows by itself."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
