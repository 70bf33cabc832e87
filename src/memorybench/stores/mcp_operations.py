"""The operations of an MCP store, parsed from its config: which tools are called, and how results are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memorybench.core.errors import Malformed
from memorybench.core.stores import Capability, StoredFact
from memorybench.files.bodies import BodyTemplate
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.text.sanitize import preview

from .config import Facts, Mcp, Read, Write
from .config_reading import VARIABLES, variables_in

_FIXTURE_VARIABLES: Mapping[Capability, str] = {
    "category": "category",
    "trust": "trust",
    "retrieval_count": "retrievalCount",
}
"""For each capability that is a field of facts: the variable of `remember` that contains the value of the field."""


@dataclass(frozen=True, slots=True)
class ToolTemplate:
    """A tool call whose arguments are a template."""

    tool: str
    arguments: BodyTemplate

    @property
    def names(self) -> frozenset[str]:
        return frozenset(variables_in(self.arguments.root))


@dataclass(frozen=True, slots=True)
class WriteOperation:
    calls: tuple[ToolTemplate, ...]
    defaults: Mapping[str, str]
    id: Path | None

    def with_defaults(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return `values`, with the config's default for each variable that has no value."""
        return {**values, **{name: default for name, default in self.defaults.items() if values.get(name) is None}}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for call in self.calls for name in call.names)


@dataclass(frozen=True, slots=True)
class FactPaths:
    """JSONPaths to the facts in a result."""

    results: Path
    content: Path
    others: Mapping[str, Path]
    """The paths to the other fields of a fact, by field name."""

    def read(self, value: Any, tool: str) -> list[StoredFact]:
        items = self.results.first(value) if self.results.singular else self.results.all(value)
        if not isinstance(items, list):
            raise Malformed(f"{tool}: {self.results.text} must be a list in {preview(value)}")
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


@dataclass(frozen=True, slots=True)
class ReadOperation:
    call: ToolTemplate
    facts: FactPaths
    query_words: bool

    @property
    def names(self) -> frozenset[str]:
        return self.call.names


class Operations:
    """The parsed operations of a store's config, which must have been checked before."""

    def __init__(self, name: str, mcp: Mcp) -> None:
        # error messages name places as in the file, but without line numbers
        part = Document(f'store "{name}"', mcp.operations.model_dump())
        operations = mcp.operations
        self.remember = _write(part.at("remember"), operations.remember)
        self.update = _write(part.at("update"), operations.update) if operations.update else None
        self.forget = _write(part.at("forget"), operations.forget) if operations.forget else None
        self.recall = _read(part.at("recall"), operations.recall) if operations.recall else None
        self.list = _read(part.at("list"), operations.list) if operations.list else None
        self.get = _read(part.at("get"), operations.get) if operations.get else None
        self.clear = _write(part.at("clear"), operations.clear) if operations.clear else None
        self.other_tools = mcp.other_tools

    @property
    def tools(self) -> list[str]:
        writes = [write for write in (self.remember, self.update, self.forget, self.clear) if write is not None]
        reads = [read.call for read in (self.recall, self.list, self.get) if read is not None]
        return [call.tool for call in (*(call for write in writes for call in write.calls), *reads)]

    def capabilities(self, *, uses_folder: bool) -> frozenset[Capability]:
        able: set[Capability] = {"files"} if uses_folder else set()
        for name in ("update", "forget", "recall", "list", "get"):
            if getattr(self, name) is not None:
                able.add(name)
        if self.list is not None:
            written, read = self.remember.names, self.list.facts.others
            fields = _FIXTURE_VARIABLES.items()
            able |= {capability for capability, variable in fields if variable in written and capability in read}
        every = (self.remember, self.update, self.forget, self.recall, self.list, self.clear)
        if all("user" in operation.names for operation in every if operation is not None):
            able.add("users")  # only then does it keep users apart
        return frozenset(able)


def _write(part: Document, write: Write) -> WriteOperation:
    id = Path.parse(write.id, part.where("id")) if write.id is not None else None
    calls = tuple(_call(part.at("calls", place)) for place in range(len(write.calls)))
    return WriteOperation(calls, write.defaults, id)


def _read(part: Document, read: Read) -> ReadOperation:
    return ReadOperation(_call(part), _facts(part.at("facts"), read.facts), getattr(read, "query_words", False))


def _call(part: Document) -> ToolTemplate:
    known = frozenset(name for names in VARIABLES.values() for name in names)
    return ToolTemplate(part.value["tool"], BodyTemplate.parse(part.at("arguments"), known))


def _facts(part: Document, facts: Facts) -> FactPaths:
    paths = {
        name: Path.parse(path, part.where(name))
        for name in Facts.model_fields
        if (path := getattr(facts, name)) is not None
    }
    return FactPaths(paths.pop("results"), paths.pop("content"), paths)
