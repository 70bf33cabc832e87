"""The keys of a store's YAML file. Field docstrings are the user's documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field

from memorybench.core.records import Record
from memorybench.core.stores import Capability


class Section(Record):
    model_config = ConfigDict(use_attribute_docstrings=True)


class ToolCall(Section):
    """One call of a tool, in templates: `${name}` inside text, `$.name` for a whole value that keeps its type."""

    tool: str
    """The tool's name."""
    arguments: Mapping[str, Any] = Field(default_factory=dict)
    """Its arguments. A key whose variable has no value is left out."""


class Write(Section):
    """A change, by one call or by several that are made in this order."""

    calls: tuple[ToolCall, ...]
    """The calls. Variables: user; remember: newId, content, category, source, trust, retrievalCount; update: id,
    content, previous (what the fact said, by `list`); forget: id."""
    defaults: Mapping[str, str] = Field(default_factory=dict)
    """What a variable is where the fact has no value for it, for tools that insist on one."""
    id: str | None = None
    """JSONPath to the fact's id in the result of the last call. Without it, a new fact has the id `newId`, and an
    updated one the id it had."""


class Facts(Section):
    """How facts are read from the structured content of a result, else from its text, which must be JSON."""

    results: str
    """JSONPath to the facts."""
    id: str
    """JSONPath to the id, within one of them."""
    content: str
    """JSONPath to the text; where it matches several, they are lines of one text."""
    category: str | None = None
    """JSONPath to the category."""
    source: str | None = None
    """JSONPath to the source."""
    trust: str | None = None
    """JSONPath to the trust, a number."""
    retrieval_count: str | None = None
    """JSONPath to the number of retrievals."""


class Read(ToolCall):
    facts: Facts
    """How facts are read from the result."""


class Recall(Read):
    query_words: bool = False
    """For a search that finds only what holds the query as it stands: the tool is called for each telling word, and
    what more of them have found comes first."""


class Operations(Section):
    """Which tools do what. An operation that is not here is one that the store lacks."""

    remember: Write
    """Writes a fact."""
    update: Write | None = None
    """Changes the text of a fact."""
    forget: Write | None = None
    """Deletes a fact."""
    recall: Recall | None = None
    """Searches, as an agent would. Variables: user, query, limit."""
    list: Read | None = None
    """Tells all facts, without counting as a retrieval. Variables: user."""


class Mcp(Section):
    """An MCP memory server, which is started for a session or asked over HTTP."""

    command: tuple[str, ...] = ()
    """The program and its arguments. `${folder}` is the folder that the store must keep everything in."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables of the program, where `${folder}` may stand, too. Beside these it sees PATH, HOME and the
    like, and none of your keys."""
    install: str = ""
    """How the program is installed; shown where it is missing."""
    url: str | None = None
    """In the place of `command`: where a server answers over HTTP (streamable HTTP)."""
    headers: Mapping[str, str] = Field(default_factory=dict)
    """Headers of every request to `url`, such as `Authorization: Bearer ${MY_KEY}`."""
    timeout: int = Field(default=60_000, ge=1)
    """Milliseconds that a call may take."""
    refusal: str | None = None
    """A regular expression for what the server says where a tool fails because it declines to store something. Every
    other failure is an error, which defends nothing."""
    operations: Operations
    """Which tools do what."""


class Command(Section):
    """A program that reads one JSON request a line, and answers each with one line.

    Requests: `{"op": "remember", "user": …, "fact": {…}}`, `{"op": "update", "user", "id", "content"}`,
    `{"op": "forget", "user", "id"}`, `{"op": "recall", "user", "query", "limit"}`, `{"op": "list", "user"}`,
    `{"op": "curate", "user", "apply"}`, `{"op": "history", "user"}`.
    Answers: `{"ok": …}` (an id; a list of facts; `{"proposals": […]}`; a list of texts), `{"refused": reason}`,
    `{"lacking": what}`, `{"error": message}`.
    """

    run: tuple[str, ...]
    """The program and its arguments. `${folder}` is the folder that the store must keep everything in."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables of the program, where `${folder}` may stand, too."""
    timeout: int = Field(default=60_000, ge=1)
    """Milliseconds that an answer may take."""


class StoreConfig(Section):
    """A memory that hygiene can drive."""

    name: str
    """What `--store` calls it."""
    display_name: str = ""
    """What reports call it."""
    description: str = ""
    """One line for `list`."""
    tags: tuple[str, ...] = ()
    """Words to find it by."""
    checked_against: str = ""
    """Which program, of which version, this file was tried on."""
    type: Literal["reference", "mcp", "provider", "command"]
    """What it is: our own, an MCP server, a provider of memorybench, or any program."""
    capabilities: tuple[Capability, ...] = ()
    """What the rest of the file does not tell. mcp: sql. provider: files, sql. command: all that the program can do."""
    mcp: Mcp | None = None
    """The server; needed where type is mcp."""
    provider: str | None = None
    """The provider's name; needed where type is provider. Each person has a scope."""
    command: Command | None = None
    """The program; needed where type is command."""
