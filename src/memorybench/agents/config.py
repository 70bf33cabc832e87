"""The keys of an agent's YAML file. Field docstrings are the user's documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from memorybench.core.records import Record


class Output(Record):
    """How the agent's output is read. Each place is a JSONPath or, for format text, a regular expression, whose first
    group (or whole match) is used. Of several matches, the last one counts, but numbers (tokens, cost) are
    added up, and all tool calls count."""

    format: Literal["text", "json", "jsonl"] = "text"
    """What the agent prints: text, one JSON document, or one JSON document per line, which is read as a list."""
    text: str | None = None
    """Place of the answer; without this key, the whole output is the answer."""
    input_tokens: str | None = None
    """Place of the number of input tokens."""
    output_tokens: str | None = None
    """Place of the number of output tokens."""
    cost: str | None = None
    """Place of the cost in US dollars."""
    tool_calls: str | None = None
    """Place of the names of the tools that the agent called."""
    memory_writes: str | None = None
    """Place of the arguments of calls that write to a memory. With it, a call that never reached the memory server
    counts as an attempt to write, too."""
    max_turns: str | None = None
    """A place that exists only if the agent was stopped because it took too many turns."""
    failure: str | None = None
    """A place that exists only if the agent failed. Its value is the reason."""


Word = str | tuple[str, ...]


class AgentConfig(Record):
    """An agent, and how it is prompted.

    Placeholders: `prompt`; `folder`, the agent's working folder; `home`, a private home folder that is deleted
    afterwards; `model`; `maxTurns`; `session` (1, 2, …); `serverUrl`, the URL of the memory server (streamable HTTP);
    `serverCommand`, a command that connects to it over standard streams, also available as `serverProgram` and
    `serverArguments` (a JSON list); `mcpConfig`, the usual JSON document `{"mcpServers": {"memory": …}}` with
    `serverUrl`.
    """

    name: str
    """The name for `--agent`."""
    display_name: str = ""
    """The name in reports."""
    description: str = ""
    """One line, shown by `list`."""
    tags: tuple[str, ...] = ()
    """Keywords for `list`."""
    checked_against: str = ""
    """The program and version that this file was tested with, or whose documentation it follows."""
    type: Literal["command", "builtin"]
    """`command` (a command-line program) or `builtin` (memorybench's own small agent)."""
    memory: Literal["server", "files"] = "server"
    """server: the agent uses the store under test over MCP. files: it uses its own memory files, and is tested with a
    store of type files, whose folder is the agent's home; all sessions share that home, and there is no server."""
    model: str | None = None
    """The model that the agent uses; `--model` overrides it."""
    command: tuple[Word, ...] = ()
    """The program and its arguments. A list inside the list is left out if one of its variables has no value, as in
    `[--model, "${model}"]`."""
    following: tuple[Word, ...] = ()
    """The command of the second and later sessions, for example to continue the first. All sessions then share a home
    folder; without this key, each session has a new home and knows other sessions only from the memory."""
    stdin: str | None = None
    """The text for the program's standard input; empty by default."""
    install: str = ""
    """How to install the program; shown if it is missing."""
    files: Mapping[str, str] = Field(default_factory=dict)
    """Files to write before the program starts: path (`${home}/…` or `${folder}/…`) and content."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables. CLAUDE_CONFIG_DIR, CODEX_HOME and HERMES_HOME are folders in `${home}` unless they are set
    here; HOME, TMPDIR and the XDG folders always are, and cannot be set."""
    pass_env: tuple[str, ...] = ()
    """Names of variables that the agent gets from your environment, such as the key of its model. It also gets PATH and
    a few others."""
    working_folder: str = "${folder}"
    """The folder in which the program is started."""
    timeout: int = Field(default=600_000, ge=1)
    """Timeout of one prompt, in milliseconds."""
    output: Output = Output()
    """How the agent's output is read."""
    prompt: str | None = None
    """The system prompt of a builtin agent. `${tools}` describes the tools of the memory, `${files}` is the content of
    its folder."""
