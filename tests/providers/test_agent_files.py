"""Files that an agent writes and reads whole: MEMORY.md, and a folder with the commands of the memory tool."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.contracts import Provider
from memorybench.core.conversation import Found, Memory, Turn
from memorybench.core.errors import Malformed
from memorybench.core.spending import Spending, Tally
from memorybench.providers.agent_files import AgentFiles, MemoryMd, MemoryTool
from memorybench.testing import ProviderContract
from tests.cli.command import Command
from tests.doubles.scripted_model import ScriptedModel
from tests.providers.embedded import HOME, session

COST = Spending(calls=1, input_tokens=100, output_tokens=10, cost=0.25)


class TestMemoryMd(ProviderContract):
    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        yield MemoryMd(folder / "files", None, "memory-md")

    # a whole file has no sources, and sessions stand in it in the order in which they were added
    test_memories_tell_their_session_and_turn = None  # type: ignore[assignment]
    test_the_order_of_adding_does_not_change_what_is_found = None  # type: ignore[assignment]
    test_list_returns_all_memories_of_the_scope = None  # type: ignore[assignment]


def commands(*listed: dict[str, Any]) -> str:
    return json.dumps({"commands": listed})


def add_all(provider: AgentFiles, *contents: str, limit: int = 10) -> Sequence[Memory]:
    async def live() -> Sequence[Memory]:
        for n, content in enumerate(contents):
            await provider.add(HOME, session(f"s{n}", content))
        return await provider.search(HOME, "anything", limit)

    return asyncio.run(live())


def test_a_model_writes_the_file_and_its_cost_is_charged(tmp_path: Path) -> None:
    prompts: list[str] = []

    def write(turns: Sequence[Turn]) -> str:
        prompts.append(turns[-1].content)
        return "- cat: Tofu" if len(prompts) == 1 else "UNCHANGED"

    provider = MemoryMd(tmp_path, ScriptedModel(write, spent=COST), "memory-md")
    with Tally() as tally:
        [memory] = add_all(provider, "My cat is Tofu.", "It rained.")
    assert (memory.id, memory.content, memory.sources) == ("MEMORY.md", "- cat: Tofu\n", None)
    assert "- cat: Tofu" in prompts[1], "the model sees the file"
    assert tally.spent.calls == 2
    assert tally.spent.cost == 0.5


def test_sessions_are_added_once_also_by_another_process(tmp_path: Path) -> None:
    model = ScriptedModel(["- one", "- two"])
    add_all(MemoryMd(tmp_path, model, "memory-md"), "First.")
    [memory] = add_all(MemoryMd(tmp_path, model, "memory-md"), "First.", "Second.")
    assert memory.content == "- two\n"


def test_an_empty_reply_does_not_delete_the_file(tmp_path: Path) -> None:
    provider = MemoryMd(tmp_path, ScriptedModel(["- one", " "]), "memory-md")
    with pytest.raises(Malformed, match="empty"):
        add_all(provider, "First.", "Second.")
    [memory] = asyncio.run(provider.list(HOME))
    assert memory.content == "- one\n"


def test_the_commands_of_the_memory_tool(tmp_path: Path) -> None:
    replies = [
        commands(
            {"command": "create", "path": "/memories/people/mia.md", "file_text": "Mia has a cat.\nIt is grey.\n"},
            {"command": "create", "path": "/memories/draft.md", "file_text": "x"},
        ),
        commands(
            {"command": "str_replace", "path": "/memories/people/mia.md", "old_str": "a cat", "new_str": "two cats"},
            {"command": "insert", "path": "/memories/people/mia.md", "insert_line": 1, "insert_text": "They sleep."},
            {"command": "rename", "old_path": "/memories/people", "new_path": "/memories/family"},
            {"command": "delete", "path": "/memories/draft.md"},
        ),
        commands(),
    ]
    memories = add_all(MemoryTool(tmp_path, ScriptedModel(replies), "memory-tool"), "One.", "Two.", "Three.")
    assert [(memory.id, memory.content) for memory in memories] == [
        ("family/mia.md", "Mia has two cats.\nThey sleep.\nIt is grey.\n")
    ]


@pytest.mark.parametrize(
    "command",
    [
        {"command": "create", "path": "/memories/../outside.md", "file_text": "x"},
        {"command": "create", "path": "/etc/passwd", "file_text": "x"},
        {"command": "create", "path": "/memories/.hidden", "file_text": "x"},
        {"command": "create", "path": "/memories", "file_text": "x"},
        {"command": "create", "path": "/memories/a"},
        {"command": "create", "path": "/memories/there.md/inside.md", "file_text": "x"},
        {"command": "create", "path": f"/memories/{'x' * 300}", "file_text": "x"},
        {"command": "delete", "path": "/memories/missing.md"},
        {"command": "str_replace", "path": "/memories/there.md", "old_str": "a", "new_str": "b"},
        {"command": "str_replace", "path": "/memories/there.md", "old_str": "", "new_str": "b"},
        {"command": "insert", "path": "/memories/there.md", "insert_line": 9, "insert_text": "b"},
        {"command": "rename", "old_path": "/memories/missing.md", "new_path": "/memories/new.md"},
        {"command": "view", "path": "/memories/there.md"},
        {"path": "/memories/there.md"},
    ],
)
def test_a_command_that_fails_is_shown_to_the_model(tmp_path: Path, command: dict[str, Any]) -> None:
    prompts: list[str] = []
    there = {"command": "create", "path": "/memories/there.md", "file_text": "aa"}

    def write(turns: Sequence[Turn]) -> str:
        prompts.append(turns[-1].content)
        return commands(there, command) if len(prompts) == 1 else commands()

    memories = add_all(MemoryTool(tmp_path / "files", ScriptedModel(write), "memory-tool"), "One.")
    assert [(memory.id, memory.content) for memory in memories] == [("there.md", "aa")]
    assert "These commands failed" in prompts[1]
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


@pytest.mark.parametrize("reply", ["", "no", "[]", '{"commands": 3}', '{"commands": ["x"]}'])
def test_an_unreadable_reply_fails_the_add(tmp_path: Path, reply: str) -> None:
    with pytest.raises(Malformed, match="memory-tool"):
        add_all(MemoryTool(tmp_path, ScriptedModel([reply]), "memory-tool"), "One.")


def test_more_files_than_a_search_returns_are_reported(tmp_path: Path) -> None:
    created = [{"command": "create", "path": f"/memories/{n}.md", "file_text": "x"} for n in range(3)]
    found = add_all(MemoryTool(tmp_path, ScriptedModel([commands(*created)]), "memory-tool"), "One.", limit=2)
    assert len(found) == 2
    assert isinstance(found, Found)


def test_memory_md_has_no_recall_and_names_no_sources(command: Command) -> None:
    said = command("eval", "--providers", "memory-md", "bm25", "--limit", "2", "--json")
    assert said.code == 0, said.err
    measured = {one["subject"]: one["measures"] for one in said.json["results"] if not one["group"]}
    values = {one["name"]: one["value"] for one in measured["memory-md"]}
    assert values.get("recall@5") is None
    assert values["context_tokens"] > {one["name"]: one["value"] for one in measured["bm25"]}["context_tokens"]
