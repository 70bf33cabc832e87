"""Looks up memory stores by name and opens them, for the hygiene suite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

from msgspec import Struct

from memorybench.catalog.catalog import Catalog
from memorybench.core.agents import Serve, ToolSurface
from memorybench.core.contracts import Provider
from memorybench.core.errors import BadInput
from memorybench.core.stores import Isolation, MemoryStore
from memorybench.core.uses import Consent
from memorybench.journal.rows import config_text
from memorybench.mcp import check_sdk
from memorybench.processes.programs import check_program
from memorybench.stores.config import StoreConfig
from memorybench.stores.mcp_operations import Operations
from memorybench.stores.opening import open_store

from .consent import check_consent
from .environment import environment, redactor
from .isolation import find_isolation
from .providers import ProviderOpener, check_provider, described
from .source_code import code_of


class ResolvedStore(Struct, frozen=True):
    """A store whose config was found and checked, but that is not open yet."""

    config: StoreConfig
    catalog: Catalog
    consent: Consent
    isolation: Isolation

    @property
    def name(self) -> str:
        return self.config.name

    def described(self) -> str:
        """Return a text that identifies the store's config and code. If it changes, a run cannot be resumed."""
        text = config_text(self.config.plain()) + code_of(self.catalog, self.catalog.chosen("store", self.name))
        if self.config.provider is None:
            return text
        return f"{text}\n{described(self.catalog, self.catalog.chosen('provider', self.config.provider))}"

    def open(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
        return open_store(
            self.config, folder, environment=environment(), redactor=redactor(), open_provider=self._open_provider
        )

    def choose_tools(self, chosen: ToolSurface | None) -> ToolSurface:
        """Return which tools an agent gets: memorybench's (`ours`) or those of the store's MCP server (`server`).

        If `chosen` is None, return `server` if that is safe and its results can be judged, otherwise `ours`. Raise
        BadInput if `chosen` is `server` and that is impossible.
        """
        if chosen == "ours":
            return "ours"
        problem = ""
        if self.config.mcp is None:
            problem = "is not an MCP server"
        elif self.isolation == "user":
            problem = "is a live memory, and its own tools reach the data of others"
        if problem and chosen == "server":
            raise BadInput("--tools server", f'store "{self.name}" {problem}', remedy="use --tools ours")
        mcp = self.config.mcp
        if chosen is None and mcp is not None and "user" in Operations(self.name, mcp).writes["remember"].names:
            return "ours"  # the agent does not know which name of a user our scenarios expect
        return "ours" if problem else "server"

    def serve_own_tools(self) -> Serve:
        """Return a function that gives one session of an agent the tools of the store's own MCP server."""
        from memorybench.stores.mcp_store import serve_own_tools

        return serve_own_tools(self.config, environment=environment(), redactor=redactor())

    @asynccontextmanager
    async def _open_provider(self, name: str, folder: Path) -> AsyncIterator[Provider]:
        async with AsyncExitStack() as stack:
            # scenarios open a store again, and search its files
            opener = ProviderOpener(stack, self.catalog, folder, "hygiene", self.consent, keep_on_disk=True)
            yield (await opener.open(name)).provider


def resolve_store(catalog: Catalog, name: str, consent: Consent, *, need_keys: bool = True) -> ResolvedStore:
    """Return the store with this name. Raise BadInput if consent, a variable, a package or a program is missing."""
    check_consent(catalog, catalog.chosen("store", name), consent)
    known = environment() if need_keys else None
    config = catalog.store(name, known)
    provider = None
    if config.provider is not None:
        check_provider(catalog, catalog.chosen("provider", config.provider), consent, need_keys=need_keys)
        provider = catalog.provider(config.provider, known)
    if config.mcp is not None:
        check_sdk(f'store "{name}"')
    program = config.mcp.command if config.mcp else config.command.run if config.command else ()
    if program:
        install = config.mcp.install if config.mcp else ""
        check_program(program[0], f'store "{name}"', path=environment().get("PATH"), install=install)
    isolation = find_isolation(
        config, provider, disposable=consent.disposable_store or consent.reads_only, reads_only=consent.reads_only
    )
    return ResolvedStore(config, catalog, consent, isolation)
