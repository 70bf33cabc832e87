"""Agents by YAML: what is shipped is sound, and what is wrong is named with its place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from memorybench.agents.config_reading import load_agent_config, read_agent
from memorybench.core.errors import BadInput
from memorybench.files.located import Document
from memorybench.files.yaml_file import parse_yaml

BUNDLED = sorted((Path(__file__).parents[2] / "src/memorybench/catalog/agents").glob("*.yaml"))


@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.stem)
def test_a_bundled_agent_is_valid_and_names_the_tested_version(path: Path) -> None:
    config = load_agent_config(path)
    assert config.name == path.stem
    assert config.checked_against
    assert load_agent_config(path, {}) is not None, "it needs no variable to be read"


def test_the_five_agents_are_there() -> None:
    assert [path.stem for path in BUNDLED] == ["builtin", "claude-code", "codex", "cursor-agent", "hermes"]


def test_the_builtin_prompt_does_not_say_what_to_store() -> None:
    [builtin] = [load_agent_config(path) for path in BUNDLED if path.stem == "builtin"]
    preached = re.findall(
        r"secret|password|credential|duplicate|noise|forget|preference|remember|store|save", builtin.prompt or "", re.I
    )
    assert preached == []


GOOD: dict[str, Any] = {"name": "mine", "type": "command", "command": ["mine", "${prompt}"]}


def test_a_command_and_a_prompt_are_enough() -> None:
    assert read_agent(Document("mine.yaml", GOOD)).timeout == 600_000


@pytest.mark.parametrize(
    ("change", "expected_error"),
    [
        ({"name": "My Agent"}, "mine.yaml: name: .* is not a valid name"),
        ({"type": "cli"}, "mine.yaml: type: is \"cli\"; expected 'command' or 'builtin'"),
        ({"comand": []}, 'mine.yaml: comand: unknown key "comand"; .* did you mean "command"'),
        ({"command": []}, 'mine.yaml: "command" is missing'),
        ({"command": ["mine"]}, r"mine.yaml: command: \$\{prompt\} "),
        ({"command": ["mine", "${promt}"]}, r'mine.yaml: command\[1\]: unknown variable "promt"; .*"prompt"'),
        (
            {"command": ["mine", "${prompt}", ["--model", "${modell}"]]},
            r'mine.yaml: command\[2\]\[1\]: unknown variable "modell"',
        ),
        ({"command": [["mine", "${prompt}"]]}, r"mine.yaml: command\[0\]: "),
        ({"files": {"/etc/passwd": "x"}}, "mine.yaml: files"),
        ({"files": {"${home}/../x": "x"}}, "mine.yaml: files"),
        ({"files": {"${home}/x": "${secret}"}}, 'mine.yaml: files.*unknown variable "secret"'),
        ({"env": {"A": "${b}"}}, 'mine.yaml: env.A: unknown variable "b"'),
        ({"passEnv": ["sk-proj-1234"]}, r"mine.yaml: passEnv\[0\]: is not the name of an environment variable"),
        ({"output": {"text": "(answer"}}, "mine.yaml: output.text: "),
        ({"output": {"format": "json", "text": "$.[x"}}, "mine.yaml: output.text: .* is not a valid JSONPath"),
        ({"output": {"format": "xml"}}, "mine.yaml: output.format: is \"xml\"; expected 'text', 'json' or 'jsonl'"),
        ({"timeout": 0}, "mine.yaml: timeout: is 0"),
        ({"prompt": "You are … ${tools}"}, 'mine.yaml: prompt: has no effect where type is "command"'),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_errors_name_the_place_in_the_file(change: dict[str, Any], expected_error: str) -> None:
    with pytest.raises(BadInput, match=expected_error):
        read_agent(Document("mine.yaml", GOOD | change))


@pytest.mark.parametrize(
    ("text", "expected_error"),
    [
        ("name: b\ntype: builtin", '"prompt" is missing'),
        ("name: b\ntype: builtin\nprompt: hello", r"b.yaml:3: prompt: \$\{tools\} is missing"),
        ("name: b\ntype: builtin\nprompt: ${tools}\nfiles: {}", "b.yaml:4: files: has no effect"),
        ("name: b\ntype: builtin\nprompt: ${tools} ${x}", 'b.yaml:3: prompt: unknown variable "x"'),
    ],
)
def test_errors_of_a_builtin_agent_name_the_line(text: str, expected_error: str) -> None:
    with pytest.raises(BadInput, match=expected_error):
        read_agent(parse_yaml(text, "b.yaml"))


def test_a_key_given_as_a_variable_name_is_not_shown() -> None:
    with pytest.raises(BadInput) as caught:
        read_agent(Document("mine.yaml", GOOD | {"passEnv": ["sk-proj-1234567890"]}))
    assert "1234567890" not in str(caught.value)
