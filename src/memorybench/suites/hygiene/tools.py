"""Chooses the tools of an agent: those of memorybench, or those of the MCP server under test."""

from __future__ import annotations

from memorybench.core.agents import Serve, ToolSurface
from memorybench.suites.wiring import ResolvedStore

from .attempts import ServeStore
from .evidence import OpenStore


def choose_server(store: ResolvedStore, tools: ToolSurface | None) -> ServeStore:
    """Return the function that connects an agent to the store, with the tools of memorybench or of the server."""
    if tools != "server":
        from memorybench.mcp.store_server import serve_store  # needs the MCP SDK, which other runs do without

        return serve_store

    def serve(_open_store: OpenStore) -> Serve:
        return store.serve_own_tools()  # the server itself opens the folder of the play

    return serve
