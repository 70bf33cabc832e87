"""Calls of a server's own tools, read by the binding of its store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import memorybench.catalog
from memorybench.files.located import Document
from memorybench.files.yaml_file import load_yaml
from memorybench.stores.config_reading import read_store

pytest.importorskip("mcp")

from memorybench.core.agents import MemoryOperation
from memorybench.mcp.client import ToolResult
from memorybench.stores.mcp_calls import CallReader
from memorybench.stores.mcp_operations import Operations

BUNDLED = Path(memorybench.catalog.__file__).parent / "stores/mcp-memory.yaml"
READ = {"results": "$.hits", "id": "id", "content": "text"}
ONE_TOOL = {
    "remember": {"calls": [{"tool": "memory", "arguments": {"action": "add", "text": "$.content", "who": "$.user"}}]},
    "forget": {"calls": [{"tool": "memory", "arguments": {"action": "delete", "id": "$.id"}}]},
    "recall": {"tool": "memory", "arguments": {"action": "search", "text": "$.query", "limit": 5}, "facts": READ},
}


def bundled() -> CallReader:
    config = read_store(load_yaml(BUNDLED), {"MCP_MEMORY_SERVER": "server"})
    assert config.mcp is not None
    return CallReader(Operations(config.name, config.mcp), config.mcp.refusal)


def one_tool() -> CallReader:
    mcp = {"url": "http://127.0.0.1:1/mcp", "refusal": "not allowed", "operations": ONE_TOOL}
    config = read_store(Document("one.yaml", {"name": "one", "type": "mcp", "mcp": mcp}))
    assert config.mcp is not None
    return CallReader(Operations(config.name, config.mcp), config.mcp.refusal)


def parts(reader: CallReader, tool: str, arguments: dict[str, Any], result: Any = None) -> tuple[MemoryOperation, ...]:
    return reader.read(tool, arguments, ToolResult("", result), None).parts


def test_a_call_that_stores_three_facts_has_three_operations() -> None:
    ana = {"name": "Ana", "entityType": "person", "observations": ["drinks tea", "lives in Porto"]}
    bo = {"name": "Bo", "entityType": "person", "observations": ["drinks milk"]}
    found = parts(bundled(), "create_entities", {"entities": [ana, bo]}, {"entities": [ana, bo]})
    assert [(one.operation, one.user, one.arguments["content"], one.ids) for one in found] == [
        ("remember", "user", "drinks tea", ("Ana",)),
        ("remember", "user", "lives in Porto", ("Ana",)),
        ("remember", "user", "drinks milk", ("Bo",)),
    ]


def test_searches_name_the_facts_that_they_found() -> None:
    found = {"entities": [{"name": "Ana", "entityType": "person", "observations": ["drinks tea"]}], "relations": []}
    two = {"names": ["Ana", "Bo"]}
    for tool, arguments, operation, variables in (
        ("search_nodes", {"query": "tea"}, "recall", {"query": "tea"}),
        ("open_nodes", {"names": ["Ana"]}, "recall", {"id": "Ana"}),
        ("open_nodes", two, "recall", two),
        ("read_graph", {}, "list", {}),
    ):
        [part] = parts(bundled(), tool, arguments, found)
        assert (part.operation, part.arguments) == (operation, variables)
        assert (part.ids, part.texts) == (("Ana",), ("drinks tea",))


@pytest.mark.parametrize(
    ("arguments", "operation", "variables", "user"),
    [
        ({"action": "add", "text": "Ana", "who": "bo"}, "remember", {"content": "Ana"}, "bo"),
        ({"action": "search", "text": "Ana", "limit": 9}, "recall", {"query": "Ana"}, "user"),
        ({"action": "delete", "id": 7}, "forget", {"id": 7}, "user"),
    ],
)
def test_a_constant_distinguishes_the_operations_of_one_tool(
    arguments: dict[str, Any], operation: str, variables: dict[str, Any], user: str
) -> None:
    [part] = parts(one_tool(), "memory", arguments, {"hits": []})
    assert (part.operation, part.arguments, part.user) == (operation, variables, user)


def test_a_call_with_unexpected_arguments_keeps_them() -> None:
    [part] = parts(bundled(), "create_entities", {"entities": "Ana", "note": "x"})
    assert part.operation == "remember"
    assert part.arguments == {"entities": "Ana", "note": "x"}
    many = [{"name": str(n), "observations": ["a", "b"]} for n in range(1_000)]
    assert len(parts(bundled(), "create_entities", {"entities": many})) == 1


def test_prose_and_unknown_tools_are_not_errors() -> None:
    [part] = bundled().read("read_graph", {}, ToolResult("There is nothing."), None).parts
    assert (part.ids, part.texts) == ((), ())
    assert bundled().read("no_such_tool", {"x": 1}, ToolResult(""), None).parts == ()


def test_only_a_matching_error_is_a_refusal() -> None:
    arguments = {"action": "add", "text": "sk-1", "who": "bo"}
    refused = one_tool().read("memory", arguments, ToolResult(""), "secrets are not allowed")
    failed = one_tool().read("memory", arguments, ToolResult(""), "the disk is full")
    assert (refused.refused, failed.refused) == ("secrets are not allowed", None)
    assert refused.parts[0].ids == ()
