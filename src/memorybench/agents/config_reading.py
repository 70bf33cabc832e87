"""Reads an agent config from a file, with every check that needs neither the program nor a key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from memorybench.core.errors import BadInput
from memorybench.files.configs import read_config
from memorybench.files.jsonpaths import Path as JsonPath
from memorybench.files.located import Document, Place
from memorybench.files.names import safe_name
from memorybench.files.templates import Template
from memorybench.processes.programs import check_no_private_folder
from memorybench.text.spelling import camel

from .config import AgentConfig, Output

VARIABLES = frozenset(
    {
        "prompt", "folder", "home", "model", "maxTurns", "session", "serverUrl", "serverCommand", "serverProgram",
        "serverArguments", "mcpConfig",
    }
)  # fmt: skip
PROMPT_VARIABLES = frozenset({"tools", "files"})

_FOR_ALL = {"name", "display_name", "description", "tags", "checked_against", "type", "model"}
_EFFECTIVE = {
    "command": {
        "command", "memory", "following", "stdin", "install", "files", "env", "pass_env", "working_folder", "timeout",
        "output",
    },
    "builtin": {"prompt"},
}  # fmt: skip
_NEEDED = {"command": "command", "builtin": "prompt"}
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE = re.compile(r"\$\{(?:home|folder)\}/.")


def read_agent(document: Document, environment: Mapping[str, str] | None = None) -> AgentConfig:
    return read_config(document, AgentConfig, _check, environment)


def _check(config: AgentConfig, document: Document) -> None:
    safe_name(config.name, document.where("name"))
    for name in sorted(config.model_fields_set - _FOR_ALL - _EFFECTIVE[config.type]):
        raise BadInput(
            document.where(name), f"this key has no effect with type: {config.type}", remedy="remove it, or change type"
        )
    needed = _NEEDED[config.type]
    if not getattr(config, needed):
        raise BadInput(
            document.where(),
            f'"{camel(needed)}" is missing',
            expected=f"{camel(needed)} in a config with type: {config.type}",
        )
    if config.prompt is not None:
        _check_instructions(config.prompt, document.where("prompt"))
    if config.type == "command":
        _check_program(config, document)
        _check_output(config.output, document)


def _check_instructions(prompt: str, where: str) -> None:
    if "tools" not in Template.parse(prompt, PROMPT_VARIABLES, where).names:
        raise BadInput(
            where, "the prompt does not contain ${tools}, so the agent would not know its tools", remedy="add it"
        )


def _check_program(config: AgentConfig, document: Document) -> None:
    prompt_places: set[str] = set()
    for place, text in _templates(config):
        names = Template.parse(text, VARIABLES, document.where(*place)).names
        if place[0] in ("command", "stdin"):
            prompt_places |= names
    if "prompt" not in prompt_places:
        raise BadInput(
            document.where("command"), "the agent would not get the prompt", remedy="add ${prompt} to command or stdin"
        )
    if not isinstance(config.command[0], str):
        raise BadInput(
            document.where("command", 0), "the first word must be the name of a program", expected="a text, not a list"
        )
    for name in config.files:
        if not _FILE.match(name) or ".." in name.split("/"):
            raise BadInput(
                document.where("files", name),
                "the path is not in the agent's home or working folder",
                expected="a path that begins with ${home}/ or ${folder}/",
            )
    check_no_private_folder(config.env, lambda name: document.where("env", name))
    check_no_private_folder(config.pass_env, lambda name: document.where("pass_env", config.pass_env.index(name)))
    for place_in_list, name in enumerate(config.pass_env):
        if not _VARIABLE_NAME.fullmatch(name):
            # the value is most likely a key, so it is not shown
            raise BadInput(
                document.where("pass_env", place_in_list),
                "this is not the name of an environment variable",
                expected="a name such as ANTHROPIC_API_KEY",
                remedy="write the name of a variable here, and never the key itself",
            )


def _templates(config: AgentConfig) -> Iterator[tuple[Place, str]]:
    """Yield every text that may contain placeholders, after its place in the config."""
    for key in ("command", "following"):
        for place, word in enumerate(getattr(config, key)):
            if isinstance(word, str):
                yield (key, place), word
            else:
                yield from (((key, place, inner), part) for inner, part in enumerate(word))
    for key in ("files", "env"):
        yield from (((key, name), text) for name, text in getattr(config, key).items())
    yield from ((("files", name), name) for name in config.files)
    yield ("working_folder",), config.working_folder
    if config.stdin is not None:
        yield ("stdin",), config.stdin


def _check_output(output: Output, document: Document) -> None:
    for name in Output.model_fields:
        place = getattr(output, name)
        if name == "format" or place is None:
            continue
        where = document.where("output", name)
        if output.format != "text":
            JsonPath.parse(place, where)
            continue
        try:
            re.compile(place)
        except re.error as error:
            raise BadInput(where, f"invalid regular expression: {error}") from None
