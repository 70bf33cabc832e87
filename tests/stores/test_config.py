from __future__ import annotations

from pathlib import Path

import pytest

import memorybench.catalog
from memorybench.core.errors import BadInput
from memorybench.files.yaml_file import load_yaml, parse_yaml
from memorybench.stores.config_reading import read_store

BUNDLED = sorted((Path(memorybench.catalog.__file__).parent / "stores").glob("*.yaml"))
MCP = """name: mine
type: mcp
mcp:
  command: [server]
  env: {FILE: "${folder}/kept"}
  operations:
    remember:
      calls:
        - tool: add
          arguments: {text: $.content, owner: $.user}
    list:
      tool: all
      arguments: {owner: $.user}
      facts: {results: $.found, id: $.id, content: $.text}
"""


@pytest.mark.parametrize("file", BUNDLED, ids=lambda file: file.stem)
def test_a_bundled_config_is_valid_and_named_like_its_file(file: Path) -> None:
    config = read_store(load_yaml(file))
    assert config.name == file.stem
    assert config.description


def test_the_four_stores_are_bundled() -> None:
    assert [file.stem for file in BUNDLED if not file.stem.endswith("-files")] == [
        "mcp-memory-libsql",
        "mcp-memory",
        "mem0-oss",
        "reference",
    ]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("type: mcp", "type: mpc", r'mine.yaml:2: type: is "mpc".*did you mean "mcp"'),
        ("type: mcp", "type: reference", "mcp: this section has no effect with type: reference"),
        ("type: mcp", "type: provider", '"provider" is missing'),
        ("name: mine", "name: ../mine", r"mine.yaml:1: name: "),
        ("  env:", "  envv:", 'unknown key "envv".*did you mean "env"'),
        ("FILE:", "HOME:", "mine.yaml:5: mcp.env.HOME: a config cannot set HOME"),
        ("${folder}", "${floder}", 'unknown variable "floder".*did you mean "folder"'),
        ("command: [server]", "timeout: 5", "mcp: expected exactly one of command and url"),
        ("command: [server]", "url: https://x.example/", "mcp.env: env has no effect "),
        ("$.content, owner", "$.contents, owner", r'mine.yaml:10: .*unknown variable "contents".*did you mean'),
        ("text: $.content, ", "", r"operations.remember: .* \$.content;"),
        ("$.found", "'$.['", r"mine.yaml:14: mcp.operations.list.facts.results: "),
        ("      calls:", "      defaults: {categroy: x}\n      calls:", 'unknown variable "categroy".*mean "category"'),
        ("        - tool: add", "        - tol: add", 'unknown key "tol".*did you mean "tool"'),
        ("    remember:", "    remembers:", 'unknown key "remembers".*did you mean "remember"'),
        ("  command:", "  refusal: '('\n  command:", "refusal: "),
        ("type: mcp", "type: mcp\ncapabilities: [curate]", r'capabilities\[0\]: .*"curate"'),
        ("type: mcp", "type: mcp\ncapabilities: [sqll]", r'capabilities\[0\]: is "sqll".*did you mean "sql"'),
        (
            "    list:",
            "    forget: {calls: [{tool: drop, arguments: {a: $.user}}]}\n    list:",
            r"operations.forget: .* \$.id;",
        ),
    ],
)
def test_errors_name_the_place_and_a_remedy(old: str, new: str, error: str) -> None:
    read_store(parse_yaml(MCP, "mine.yaml"))
    assert old in MCP
    with pytest.raises(BadInput, match=error):
        read_store(parse_yaml(MCP.replace(old, new), "mine.yaml"))


@pytest.mark.parametrize("variable", ["previous", "category"])
def test_the_current_values_of_a_fact_need_the_operation_list(variable: str) -> None:
    update = f"    update: {{calls: [{{tool: set, arguments: {{new: $.content, old: $.{variable}}}}}]}}\n"
    read_store(parse_yaml(MCP + update, "mine.yaml"))
    with pytest.raises(BadInput, match=rf"\$\.{variable}, which is read with the operation list"):
        read_store(parse_yaml(MCP.partition("    list:")[0] + update, "mine.yaml"))


def test_a_missing_variable_is_an_error_only_when_the_store_is_used() -> None:
    written = parse_yaml(MCP.replace("[server]", '["${MY_SERVER}"]'), "mine.yaml")
    config = read_store(written)
    assert config.mcp is not None
    assert config.mcp.command == ("${MY_SERVER}",)
    with pytest.raises(BadInput, match="MY_SERVER is not set"):
        read_store(written, {})
