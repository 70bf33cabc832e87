"""The keys of a store's YAML file. Field docstrings are the user's documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from memorybench.core.records import Record
from memorybench.core.stores import Capability
from memorybench.mcp.config import ServerConnection, ToolCall


class Write(Record):
    """A change, made by one call or by several in order."""

    calls: tuple[ToolCall, ...]
    """The calls. Variables: user; in remember also newId, content, category, source, trust, retrievalCount; in update
    also id, content, and previous and category (current text and category, from `list`); in forget also id."""
    defaults: Mapping[str, str] = Field(default_factory=dict)
    """Values for variables that have none, such as `source` for a fact without a source, if a tool requires them."""
    id: str | None = None
    """JSONPath to the fact's id in the result of the last call. Without it, a new fact has the id `newId`, and an
    updated fact keeps its id."""


class Facts(Record):
    """How facts are read from the structured content of a result, else from its text, which must be JSON."""

    results: str
    """JSONPath to the list of facts in the result."""
    id: str
    """JSONPath to the id, within a fact."""
    content: str
    """JSONPath to the text, within a fact; several matches are joined by newlines."""
    category: str | None = None
    """JSONPath to the category, within a fact."""
    source: str | None = None
    """JSONPath to the source, within a fact."""
    trust: str | None = None
    """JSONPath to the trust, a number, within a fact."""
    retrieval_count: str | None = None
    """JSONPath to the number of retrievals, within a fact."""


class Read(ToolCall):
    facts: Facts
    """How facts are read from the result."""


class Recall(Read):
    query_words: bool = False
    """For a tool that finds only facts that contain the whole query: it is called once per keyword of the query, and
    facts are ordered by the number of keywords that found them."""


class Operations(Record):
    """The tools for each operation. An operation without tools is not supported."""

    remember: Write
    """Writes a fact."""
    update: Write | None = None
    """Changes the text of a fact."""
    forget: Write | None = None
    """Deletes a fact."""
    recall: Recall | None = None
    """Searches, as an agent would. Variables: user, query, limit."""
    list: Read | None = None
    """Lists all facts, without counting as a retrieval. Variables: user."""
    get: Read | None = None
    """Reads one fact by its id, for `hygiene forget` and scenarios about ids; an unknown id must give no facts.
    Variables: user, id."""
    clear: Write | None = None
    """Deletes all facts of a user, after a scenario on a live store; without it, facts are listed and deleted singly.
    Variables: user."""


class Mcp(ServerConnection):
    """An MCP memory server, started for a session or reached over HTTP."""

    command: tuple[str, ...] = ()
    """The program and its arguments. `${folder}` is the folder for all data of the store."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables of the program; may contain `${folder}`. It also gets PATH and a few others, but none of
    your keys. HOME, TMPDIR and the XDG folders are private folders in `${folder}`."""
    refusal: str | None = None
    """A regular expression that matches the error message of a tool that refuses to store something. An error that it
    does not match counts as a failure, not as a refusal."""
    operations: Operations
    """The tools for each operation."""
    other_tools: Mapping[str, Literal["remember", "update", "forget", "recall", "list"]] = Field(default_factory=dict)
    """Further tools that an agent may call, and the operation that each performs, such as `open_nodes: recall`. Calls
    of tools that this file does not name are recorded, but not scored."""


class Command(Record):
    """A program that reads one JSON request per line and writes one answer per line.

    Requests: `{"op": "remember", "user": …, "fact": {…}}`, `{"op": "update", "user", "id", "content"}`,
    `{"op": "forget", "user", "id"}`, `{"op": "recall", "user", "query", "limit"}`, `{"op": "list", "user"}`,
    `{"op": "curate", "user", "apply"}`, `{"op": "history", "user"}`, `{"op": "get", "user", "id"}`.
    Answers: `{"ok": …}` (an id; a list of facts; `{"proposals": […]}`; a list of texts; a fact or null),
    `{"refused": reason}`, `{"lacking": what}`, `{"error": message}`.
    """

    run: tuple[str, ...]
    """The program and its arguments. `${folder}` is the folder for all data of the store, in which the program starts:
    write other paths as absolute ones."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables of the program; may contain `${folder}`. HOME, TMPDIR and the XDG folders are private
    folders in `${folder}`."""
    timeout: int = Field(default=60_000, ge=1)
    """Timeout of one answer, in milliseconds."""


class Files(Record):
    """The memory files of an agent in its private home folder. memorybench reads them; it writes only the facts that a
    scenario starts with.

    The agent works in the folder `project` of its home. Each list item or paragraph of a file is a fact; headings and
    front matter are searched for secrets, but are not facts.
    """

    paths: tuple[str, ...]
    """The files, relative to the home; `*` and `**` match names and folders."""
    plant: str
    """The file that the facts of a scenario are added to before the agent starts."""
    separator: str | None = None
    """A line between two facts, for files that have one, such as `§`."""


class StoreConfig(Record):
    """A memory store that hygiene can test."""

    name: str
    """Its name for `--store`."""
    display_name: str = ""
    """Its name in reports."""
    description: str = ""
    """One line, shown by `list`."""
    tags: tuple[str, ...] = ()
    """Keywords for `list`."""
    checked_against: str = ""
    """The program and version that this file was tested with."""
    type: Literal["reference", "mcp", "provider", "command", "files"]
    """The reference store, an MCP server, a provider of memorybench, any program, or the memory files of an agent."""
    capabilities: tuple[Capability, ...] = ()
    """Capabilities that cannot be derived from the rest of the file. Allowed for type mcp: sql; provider: files, sql;
    command: all."""
    mcp: Mcp | None = None
    """The server; required for type mcp."""
    provider: str | None = None
    """The provider's name; required for type provider. Each user gets a scope."""
    command: Command | None = None
    """The program; required for type command."""
    files: Files | None = None
    """The files; required for type files."""
