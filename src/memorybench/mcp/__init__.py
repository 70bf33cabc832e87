"""Model Context Protocol, by the official SDK (the extra `mcp`): clients, and the recording proxy for agents.

config.py          the connection keys of a config file
client.py          McpClient: lists and calls the tools of one server
stdio.py           connects to a server that is started as a child process
http.py            connects to a server over streamable HTTP
forwarding.py      an MCP server that forwards everything to another server (the real server)
agent_side.py      forwards the real server's requests and notifications to the agent
proxy.py           serves another server to an agent, and records every call
store_server.py    serves a memory store to an agent as MCP tools, and records every call
bridge.py          a program that connects an agent's standard streams to the proxy

All modules except config.py import the SDK, so import them only after `check_sdk`.
"""

from __future__ import annotations

from importlib.util import find_spec

from memorybench.core.errors import BadInput


def check_sdk(where: str) -> None:
    """Raise BadInput if the MCP SDK is not installed. `where` names what needs it."""
    if find_spec("mcp") is None:
        raise BadInput(where, 'the package "mcp" is not installed', remedy='pip install "memorybench[mcp]"')
