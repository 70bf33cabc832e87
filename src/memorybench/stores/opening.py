"""Opens a memory store of any type from its config."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from memorybench.core.stores import MemoryStore
from memorybench.secrets.redaction import Redactor

from .config import StoreConfig
from .provider_store import OpenProvider


def open_store(
    config: StoreConfig,
    folder: Path,
    *,
    environment: Mapping[str, str],
    redactor: Redactor,
    open_provider: OpenProvider | None = None,
) -> AbstractAsyncContextManager[MemoryStore]:
    """Open a store that keeps its data in `folder`. Opening the same folder again simulates a restart.

    `open_provider` is required for a config of type provider: it opens a provider by its name. For type mcp, the caller
    must have checked that the MCP SDK is installed.
    """
    if config.type == "mcp":
        from .mcp_store import open_mcp_store

        return open_mcp_store(config, folder, environment=environment, redactor=redactor)
    if config.type == "command":
        from .command_store import open_command_store

        return open_command_store(config, folder, environment=environment, redactor=redactor)
    if config.type == "provider":
        from .provider_store import open_provider_store

        assert open_provider is not None
        return open_provider_store(config, folder, open_provider)
    if config.type == "files":
        from .file_store import open_file_store

        return open_file_store(config, folder)
    from .reference import open_reference

    return open_reference(folder, name=config.name)
