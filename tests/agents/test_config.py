"""Agents by YAML: what is shipped is sound, and what is wrong is named with its place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from memorybench.agents.config_reading import read_agent
from memorybench.files.located import Document
from memorybench.files.yaml_file import load_yaml, parse_yaml
from tests.doubles.refusals import refused

BUNDLED = sorted((Path(__file__).parents[2] / "src/memorybench/catalog/agents").glob("*.yaml"))


@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.stem)
def test_a_bundled_agent_is_valid_and_names_the_tested_version(path: Path) -> None:
    config = read_agent(load_yaml(path))
    assert config.name == path.stem
    assert config.checked_against
    assert read_agent(load_yaml(path), {}) is not None, "it needs no variable to be read"


def test_the_agents_are_there() -> None:
    assert [path.stem for path in BUNDLED if not path.stem.endswith("-files")] == [
        "builtin",
        "claude-code",
        "codex",
        "cursor-agent",
        "gemini-cli",
        "hermes",
    ]


def test_the_builtin_prompt_does_not_say_what_to_store() -> None:
    [builtin] = [read_agent(load_yaml(path)) for path in BUNDLED if path.stem == "builtin"]
    preached = re.findall(
        r"secret|password|credential|duplicate|noise|forget|preference|remember|store|save", builtin.prompt or "", re.I
    )
    assert preached == []


GOOD: dict[str, Any] = {"name": "mine", "type": "command", "command": ["mine", "${prompt}"]}


def test_a_command_and_a_prompt_are_enough() -> None:
    assert read_agent(Document("mine.yaml", GOOD)).timeout == 600_000


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"name": "My Agent"}, "mine.yaml: name"),
        ({"type": "cli"}, "mine.yaml: type"),
        ({"comand": []}, "mine.yaml: comand"),
        ({"command": []}, "mine.yaml"),
        ({"command": ["mine"]}, "mine.yaml: command"),
        ({"command": ["mine", "${promt}"]}, "mine.yaml: command[1]"),
        ({"command": ["mine", "${prompt}", ["--model", "${modell}"]]}, "mine.yaml: command[2][1]"),
        ({"command": [["mine", "${prompt}"]]}, "mine.yaml: command[0]"),
        ({"files": {"/etc/passwd": "x"}}, 'mine.yaml: files["/etc/passwd"]'),
        ({"files": {"${home}/../x": "x"}}, 'mine.yaml: files["${home}/../x"]'),
        ({"files": {"${home}/x": "${secret}"}}, 'mine.yaml: files["${home}/x"]'),
        ({"env": {"A": "${b}"}}, "mine.yaml: env.A"),
        ({"env": {"XDG_DATA_HOME": "/x"}}, "mine.yaml: env.XDG_DATA_HOME"),
        ({"passEnv": ["MY_KEY", "HOME"]}, "mine.yaml: passEnv[1]"),
        ({"passEnv": ["sk-proj-1234"]}, "mine.yaml: passEnv[0]"),
        ({"output": {"text": "(answer"}}, "mine.yaml: output.text"),
        ({"output": {"format": "json", "text": "$.[x"}}, "mine.yaml: output.text"),
        ({"output": {"format": "xml"}}, "mine.yaml: output.format"),
        ({"timeout": 0}, "mine.yaml: timeout"),
        ({"prompt": "You are … ${tools}"}, "mine.yaml: prompt"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_errors_name_the_place_in_the_file(change: dict[str, Any], where: str) -> None:
    assert refused(read_agent, Document("mine.yaml", GOOD | change)).where == where


@pytest.mark.parametrize(
    ("change", "nearest"), [({"comand": []}, "command"), ({"command": ["mine", "${promt}"]}, "prompt")]
)
def test_a_misspelt_key_or_variable_is_reported_with_the_nearest_name(change: dict[str, Any], nearest: str) -> None:
    assert f'"{nearest}"' in refused(read_agent, Document("mine.yaml", GOOD | change)).remedy


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("name: b\ntype: builtin", "b.yaml:1"),
        ("name: b\ntype: builtin\nprompt: hello", "b.yaml:3: prompt"),
        ("name: b\ntype: builtin\nprompt: ${tools}\nfiles: {}", "b.yaml:4: files"),
        ("name: b\ntype: builtin\nprompt: ${tools} ${x}", "b.yaml:3: prompt"),
    ],
)
def test_errors_of_a_builtin_agent_name_the_line(text: str, where: str) -> None:
    assert refused(read_agent, parse_yaml(text, "b.yaml")).where == where


def test_a_key_given_as_a_variable_name_is_not_shown() -> None:
    error = refused(read_agent, Document("mine.yaml", GOOD | {"passEnv": ["sk-proj-1234567890"]}))
    assert "1234567890" not in str(error)
