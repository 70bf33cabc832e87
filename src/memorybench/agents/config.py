"""The keys of an agent's YAML file. Field docstrings are the user's documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from memorybench.core.records import Record


class Section(Record):
    model_config = ConfigDict(use_attribute_docstrings=True)


class Output(Section):
    """How its output is read. Each place is a JSONPath, or, where the format is text, a regular expression whose first
    group (or else the whole match) is meant; the last match counts, and numbers are added up."""

    format: Literal["text", "json", "jsonl"] = "text"
    """What it prints: text, one JSON document, or a JSON document a line, which paths see as one list."""
    text: str | None = None
    """Where its answer stands; without it, all it prints is the answer."""
    input_tokens: str | None = None
    """Where the number of tokens that it read stands."""
    output_tokens: str | None = None
    """Where the number of tokens that it wrote stands."""
    cost: str | None = None
    """Where its cost in US dollars stands."""
    tool_calls: str | None = None
    """Where the names of the tools that it called stand."""
    max_turns: str | None = None
    """What is found there only if it was stopped for having taken too many turns."""
    failure: str | None = None
    """What is found there only if it failed, and says why."""


Word = str | tuple[str, ...]


class AgentConfig(Section):
    """An agent, and how to put a prompt to it.

    Placeholders: `prompt`; `folder`, where it works; `home`, a folder of its own that is gone afterwards; `model`;
    `maxTurns`; `session` (1, 2, …); `serverUrl`, where the memory answers over streamable HTTP; `serverCommand`, a
    command line that leads to it over standard streams, and the same as `serverProgram` and `serverArguments` (a JSON
    list); `mcpConfig`, the usual JSON document `{"mcpServers": {"memory": …}}` that leads to `serverUrl`.
    """

    name: str
    """What `--agent` calls it."""
    display_name: str = ""
    """What reports call it."""
    description: str = ""
    """One line for `list`."""
    tags: tuple[str, ...] = ()
    """Words to find it by."""
    checked_against: str = ""
    """Which program, of which version, this file was tried on, or whose documentation it was written from."""
    type: Literal["command", "builtin"]
    """A command-line program, or our own small agent."""
    model: str | None = None
    """The model it uses; --model wins."""
    command: tuple[Word, ...] = ()
    """The program and its arguments. A list inside the list is left out where one of its values is not known, as in
    `[--model, "${model}"]`."""
    following: tuple[Word, ...] = ()
    """The command of the second and later sessions, where it differs: to continue the first, say. Its home is then
    kept; without it every session starts in a new one, and knows of the others what is in memory."""
    stdin: str | None = None
    """What it reads on standard input; without it, nothing."""
    install: str = ""
    """How the program is installed; shown where it is missing."""
    files: Mapping[str, str] = Field(default_factory=dict)
    """Files that are written before it starts, by path: `${home}/…` or `${folder}/…`."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables. HOME, the XDG folders, CLAUDE_CONFIG_DIR, CODEX_HOME and HERMES_HOME lie in `${home}`
    unless they are set here."""
    pass_env: tuple[str, ...] = ()
    """Names of variables that it gets from your environment, such as the key of its model. Beside these it sees PATH
    and the like."""
    working_folder: str = "${folder}"
    """The folder that it is started in."""
    timeout: int = Field(default=600_000, ge=1)
    """Milliseconds that one prompt may take."""
    output: Output = Output()
    """How its output is read."""
    prompt: str | None = None
    """What a builtin agent is told before anything else, with `${tools}`: those that the memory offers, and `${files}`:
    what lies in its folder."""
