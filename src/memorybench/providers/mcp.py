"""The adapter `builtin:mcp`: any MCP memory server, used through the tools that its config names.

The implementation is in mcp_provider.py, which needs the extra `mcp`; this module loads without it.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from memorybench.core.contracts import Provider

from .plugin import LocalProvider, OpenContext, Package


class McpServer(LocalProvider):
    required_packages = (Package("mcp", "mcp", "mcp"),)

    @classmethod
    def open(cls, context: OpenContext) -> AbstractAsyncContextManager[Provider]:
        from .mcp_provider import open_mcp_provider

        return open_mcp_provider(
            context.config, context.folder, environment=context.environment, redactor=context.redactor
        )
