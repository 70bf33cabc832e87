"""`@modelcontextprotocol/server-memory` from npm, over stdio, as the shipped config maps it."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import memorybench.catalog
from memorybench.core.contracts import Provider
from memorybench.files.yaml_file import load_yaml
from memorybench.mcp.client import ToolError
from memorybench.mcp.stdio import open_mcp_stdio
from memorybench.processes.programs import child_environment
from memorybench.providers.config.reading import read_provider
from memorybench.providers.mcp_provider import McpProvider, open_mcp_provider
from memorybench.secrets.redaction import Redactor
from memorybench.testing import ProviderContract
from tests.providers.embedded import HOME, fill, session

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
CONFIG = Path(memorybench.catalog.__file__).parent / "providers" / "mcp-memory.yaml"


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    if shutil.which("node") is None:
        pytest.skip("node, which runs the MCP memory server, is not installed")
    if not program().exists():
        pytest.skip("npm package @modelcontextprotocol/server-memory is not installed (nor $MCP_MEMORY_SERVER set)")


def program() -> Path:
    installed = ROOT / ".venv-real" / "node_modules" / ".bin" / "mcp-server-memory"
    return Path(os.environ.get("MCP_MEMORY_SERVER") or installed)


def opened(folder: Path) -> AbstractAsyncContextManager[McpProvider]:
    config = read_provider(load_yaml(CONFIG), {"MCP_MEMORY_SERVER": str(program())})
    return open_mcp_provider(config, folder / "memory", environment=os.environ, redactor=Redactor([]))


class TestContract(ProviderContract):
    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        return opened(folder)


def test_the_server_has_the_nine_tools_of_the_mapping(tmp_path: Path) -> None:
    async def tools() -> set[str]:
        env = child_environment(os.environ, {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}, tmp_path / "home")
        async with open_mcp_stdio([str(program())], env, tmp_path, Redactor([])) as client:
            with pytest.raises(ToolError, match="create_entities"):
                await client.call_tool("create_entities", {"entities": "none"})
            return {tool.name for tool in await client.list_tools()}

    found = asyncio.run(tools())
    assert len(found) == 9
    assert {"create_entities", "search_nodes", "read_graph", "delete_entities", "delete_observations"} <= found


def test_search_matches_parts_of_words_and_ranks_by_their_number(tmp_path: Path) -> None:
    async def found() -> list[str]:
        async with opened(tmp_path) as provider:
            told = session("s", "Our kitten drank milk.", "A kite flew.", "The kite and the cat.", "Nothing.")
            await fill(provider, [told])
            best = await provider.search(HOME, "Did the kit meet the cat?", 10)
            return [memory.content.partition("user: ")[2] for memory in best]

    assert asyncio.run(found()) == ["The kite and the cat.", "A kite flew.", "Our kitten drank milk."]
