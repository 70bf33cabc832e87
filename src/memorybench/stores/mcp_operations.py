"""The operations in the config of an MCP store, parsed and checked: the tools to call, and how results are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput, Malformed
from memorybench.core.stores import Capability, StoredFact
from memorybench.files.bodies import BodyTemplate, names_in
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.files.templates import check_known
from memorybench.text.sanitize import preview

from .config import Facts, Mcp, Read, Write

VARIABLES: Mapping[str, frozenset[str]] = {
    "remember": frozenset({"user", "newId", "content", "category", "source", "trust", "retrievalCount"}),
    "update": frozenset({"user", "id", "content", "previous", "category"}),
    "forget": frozenset({"user", "id"}),
    "recall": frozenset({"user", "query", "limit"}),
    "list": frozenset({"user"}),
    "get": frozenset({"user", "id"}),
    "clear": frozenset({"user"}),
}
CURRENT = frozenset({"previous", "category"})
"""Variables of an update that have the fact's current text and category, which are read from the store with `list`."""
_REQUIRED = {"remember": "content", "update": "content", "forget": "id", "recall": "query", "get": "id"}
_FIXTURE_VARIABLES: Mapping[Capability, str] = {
    "category": "category",
    "trust": "trust",
    "retrieval_count": "retrievalCount",
}
"""Maps each capability that is a field of facts to the variable of `remember` that has the value of the field."""


class ToolTemplate(Struct, frozen=True):
    """A tool call whose arguments are a template."""

    tool: str
    arguments: BodyTemplate

    @property
    def names(self) -> frozenset[str]:
        return names_in(self.arguments.root)


class WriteOperation(Struct, frozen=True):
    calls: tuple[ToolTemplate, ...]
    defaults: Mapping[str, str]
    id: Path | None

    def with_defaults(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return `values`, with the default of the config for each variable that is missing or None."""
        return {**values, **{name: default for name, default in self.defaults.items() if values.get(name) is None}}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for call in self.calls for name in call.names)


class FactPaths(Struct, frozen=True):
    """The JSONPaths by which facts are read from the result of a tool."""

    results: Path
    content: Path
    others: Mapping[str, Path]
    """The paths to the other fields of a fact, by field name."""

    def read(self, value: Any, tool: str) -> list[StoredFact]:
        items = self.results.first(value) if self.results.singular else self.results.all(value)
        if not isinstance(items, list):
            raise Malformed(f"{tool}: the result has no list of facts at {self.results.text}: {preview(value)}")
        return [self._fact(item, tool) for item in items]

    def _fact(self, item: Any, tool: str) -> StoredFact:
        texts = self.content.all(item)
        if not all(isinstance(text, str) for text in texts):
            raise Malformed(f"{tool}: invalid text of a fact: {preview(texts)}")
        fields = {name: path.first(item) for name, path in self.others.items()}
        fields = {name: value for name, value in fields.items() if value not in (None, "")}
        try:
            return StoredFact.model_validate({**fields, "id": str(fields.get("id", "")), "content": "\n".join(texts)})
        except ValueError:
            raise Malformed(f"{tool}: invalid fact {preview(fields)}") from None


class ReadOperation(Struct, frozen=True):
    call: ToolTemplate
    facts: FactPaths
    query_words: bool

    @property
    def calls(self) -> tuple[ToolTemplate, ...]:
        return (self.call,)

    @property
    def names(self) -> frozenset[str]:
        return self.call.names


class Operations:
    """The parsed operations of a store's config, by name. The constructor raises BadInput if one of them is invalid."""

    def __init__(self, name: str, mcp: Mcp, part: Document | None = None) -> None:
        """Parse the operations in `mcp`. `part` is that section of the file; if it is None, errors name no line."""
        part = part or Document(f'store "{name}"', mcp.operations.model_dump())
        configs = {key: getattr(mcp.operations, key) for key in VARIABLES}
        self.writes = {key: _write(part, key, one) for key, one in configs.items() if isinstance(one, Write)}
        self.reads = {key: _read(part, key, one) for key, one in configs.items() if isinstance(one, Read)}
        self.every: Mapping[str, WriteOperation | ReadOperation] = {**self.writes, **self.reads}
        self.other_tools = mcp.other_tools
        for key, required in _REQUIRED.items():
            if key in self.every and required not in self.every[key].names:
                raise BadInput(
                    part.where(key),
                    f"the operation does not send $.{required}",
                    remedy="add it to an argument of a call",
                )
        if "update" in self.writes and "list" not in self.reads and (listed := CURRENT & self.writes["update"].names):
            raise BadInput(
                part.where("update"),
                f"the operation uses $.{min(listed)}, which is read with the operation list",
                remedy="add operations.list",
            )

    @property
    def tools(self) -> list[str]:
        return [call.tool for operation in self.every.values() for call in operation.calls]

    def capabilities(self, *, uses_folder: bool) -> frozenset[Capability]:
        able: set[Capability] = {"files"} if uses_folder else set()
        for name in ("update", "forget", "recall", "list", "get"):
            if name in self.every:
                able.add(name)
        if "list" in self.reads:
            written, read = self.writes["remember"].names, self.reads["list"].facts.others
            fields = _FIXTURE_VARIABLES.items()
            able |= {capability for capability, variable in fields if variable in written and capability in read}
        if all("user" in operation.names for name, operation in self.every.items() if name != "get"):
            able.add("users")  # a store whose calls do not send the user cannot keep users apart
        return frozenset(able)


def _write(operations: Document, name: str, write: Write) -> WriteOperation:
    part, known = operations.at(name), VARIABLES[name]
    if not write.calls:
        raise BadInput(part.where("calls"), "the list is empty", expected="at least one call")
    for variable in write.defaults:
        check_known(variable, known, part.where("defaults", variable))
    id = Path.parse(write.id, part.where("id")) if write.id is not None else None
    calls = tuple(_call(part.at("calls", place), known) for place in range(len(write.calls)))
    return WriteOperation(calls, write.defaults, id)


def _read(operations: Document, name: str, read: Read) -> ReadOperation:
    part = operations.at(name)
    paths = {
        field: Path.parse(path, part.where("facts", field))
        for field in Facts.model_fields
        if (path := getattr(read.facts, field)) is not None
    }
    facts = FactPaths(paths.pop("results"), paths.pop("content"), paths)
    return ReadOperation(_call(part, VARIABLES[name]), facts, getattr(read, "query_words", False))


def _call(part: Document, known: frozenset[str]) -> ToolTemplate:
    has_arguments = "arguments" in part.value
    arguments = BodyTemplate.parse(part.at("arguments"), known) if has_arguments else BodyTemplate({})
    return ToolTemplate(part.value["tool"], arguments)
