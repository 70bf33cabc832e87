"""The scripted command-line agent as a config, and a place for agents to work in."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memorybench.agents.command import CommandAgent
from memorybench.agents.config import AgentConfig
from memorybench.agents.config_reading import read_agent
from memorybench.core.agents import Serve, Served, Workplace
from memorybench.files.located import Document
from memorybench.secrets.redaction import Redactor
from memorybench.stores.reference import open_reference

pytest.importorskip("mcp")

from memorybench.mcp.store_server import serve_store

PROGRAM = Path(__file__).parent / "scripted_agent.py"
BY_URL = ("--url", "${serverUrl}")


def config(behaviour: str, **keys: object) -> AgentConfig:
    given = {
        "name": "scripted",
        "type": "command",
        "command": [sys.executable, str(PROGRAM), behaviour, "${prompt}", *BY_URL],
        "output": {
            "format": "jsonl",
            "text": "$[?@.type == 'answer'].text",
            "inputTokens": "$[*].tokens.in",
            "outputTokens": "$[*].tokens.out",
            "cost": "$[*].dollars",
            "toolCalls": "$[?@.type == 'call'].tool",
            "maxTurns": "$[?@.type == 'limit'].turns",
            "failure": "$[?@.type == 'failure'].why",
        },
        **keys,
    }
    return read_agent(Document("scripted.yaml", given))


def agent(behaviour: str, environment: Mapping[str, str] | None = None, **keys: object) -> CommandAgent:
    return CommandAgent(config(behaviour, **keys), None, environment or {}, Redactor(["sk-plum-kettle-7741"]))


def served_reference() -> Serve:
    return serve_store(open_reference)


@asynccontextmanager
async def workplace(root: Path, session: int = 1) -> AsyncIterator[tuple[Workplace, Served]]:
    """With the reference store; what is noted of it is in the second."""
    folder = root / "work"
    folder.mkdir(parents=True, exist_ok=True)
    async with served_reference()(root / "store", session) as served:
        yield (
            Workplace(folder=folder, home=root / "home", server_url=served.url, server_command=tuple(served.command)),
            served,
        )
