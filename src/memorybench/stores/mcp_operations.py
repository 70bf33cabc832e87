"""The operations of an MCP store, parsed from its config: which tools are called, and how facts are read from them."""

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

_KEPT: Mapping[Capability, str] = {"category": "category", "trust": "trust", "retrieval_count": "retrievalCount"}
"""What a fixture may pin, and the variable that tells it."""


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    arguments: BodyTemplate

    @property
    def names(self) -> frozenset[str]:
        return frozenset(variables_in(self.arguments.root))


@dataclass(frozen=True, slots=True)
class Writing:
    calls: tuple[Call, ...]
    defaults: Mapping[str, str]
    id: Path | None

    def values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """What is told, and the defaults for what is not."""
        return {**told, **{name: default for name, default in self.defaults.items() if told.get(name) is None}}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for call in self.calls for name in call.names)


@dataclass(frozen=True, slots=True)
class _Facts:
    results: Path
    content: Path
    others: Mapping[str, Path]
    """Of the fields that a fact has beside its text."""

    def read(self, value: Any, tool: str) -> list[StoredFact]:
        found = self.results.first(value) if self.results.singular else self.results.all(value)
        if not isinstance(found, list):
            raise Malformed(f"{tool}: {self.results.text} leads to no list in {preview(value)}")
        return [self._fact(item, tool) for item in found]

    def _fact(self, item: Any, tool: str) -> StoredFact:
        texts = self.content.all(item)
        if not all(isinstance(text, str) for text in texts):
            raise Malformed(f"{tool}: the text of a fact is {preview(texts)}")
        told = {name: path.first(item) for name, path in self.others.items()}
        told = {name: value for name, value in told.items() if value not in (None, "")}
        try:
            return StoredFact.model_validate({**told, "id": str(told.get("id", "")), "content": "\n".join(texts)})
        except ValueError:
            raise Malformed(f"{tool}: {preview(told)} is no fact") from None


@dataclass(frozen=True, slots=True)
class Reading:
    call: Call
    facts: _Facts
    query_words: bool

    @property
    def names(self) -> frozenset[str]:
        return self.call.names


class Operations:
    """The operations of a config, parsed once. It was checked when it was read."""

    def __init__(self, name: str, mcp: Mcp) -> None:
        # places are named as in the file; its lines are no longer known
        part = Document(f'store "{name}"', mcp.operations.model_dump())
        operations = mcp.operations
        self.remember = _write(part.at("remember"), operations.remember)
        self.update = _write(part.at("update"), operations.update) if operations.update else None
        self.forget = _write(part.at("forget"), operations.forget) if operations.forget else None
        self.recall = _read(part.at("recall"), operations.recall) if operations.recall else None
        self.list = _read(part.at("list"), operations.list) if operations.list else None

    @property
    def tools(self) -> list[str]:
        writes = [write for write in (self.remember, self.update, self.forget) if write is not None]
        reads = [read.call for read in (self.recall, self.list) if read is not None]
        return [call.tool for call in (*(call for write in writes for call in write.calls), *reads)]

    def capabilities(self, *, in_folder: bool) -> frozenset[Capability]:
        able: set[Capability] = {"files"} if in_folder else set()
        for name in ("update", "forget", "recall", "list"):
            if getattr(self, name) is not None:
                able.add(name)
        if self.list is not None:
            told, kept = self.remember.names, self.list.facts.others
            able |= {capability for capability, name in _KEPT.items() if name in told and capability in kept}
        every = (self.remember, self.update, self.forget, self.recall, self.list)
        if all("user" in operation.names for operation in every if operation is not None):
            able.add("users")  # only then can it tell them apart
        return frozenset(able)


def _write(part: Document, write: Write) -> Writing:
    id = Path.parse(write.id, part.where("id")) if write.id is not None else None
    calls = tuple(_call(part.at("calls", place)) for place in range(len(write.calls)))
    return Writing(calls, write.defaults, id)


def _read(part: Document, read: Read) -> Reading:
    return Reading(_call(part), _facts(part.at("facts"), read.facts), getattr(read, "query_words", False))


def _call(part: Document) -> Call:
    known = frozenset(name for names in VARIABLES.values() for name in names)
    return Call(part.value["tool"], BodyTemplate.parse(part.at("arguments"), known))


def _facts(part: Document, facts: Facts) -> _Facts:
    paths = {
        name: Path.parse(path, part.where(name))
        for name in Facts.model_fields
        if (path := getattr(facts, name)) is not None
    }
    return _Facts(paths.pop("results"), paths.pop("content"), paths)
