"""Finds out what an agent's call of an MCP server's tool does to the memory, according to the config of the store.

The config has a template of each tool's arguments. The arguments of the agent's call are compared with that template:
the value at the place of `$.content` is the content. A call that stores three facts is read as three operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from msgspec import Struct

from memorybench.core.agents import MemoryOperation, Operation
from memorybench.core.errors import BadInput, Malformed
from memorybench.core.stores import StoredFact
from memorybench.files.bodies import BodyTemplate
from memorybench.files.jsonpaths import Path
from memorybench.files.templates import Placeholder, Template
from memorybench.mcp.client import ToolResult
from memorybench.mcp.proxy import USER, ReadCall
from memorybench.text.patterns import Pattern

from .mcp_operations import Operations, ReadOperation, ToolTemplate, WriteOperation

MAX_OPERATIONS = 1_000
"""A call that would be read as more operations than this counts as one operation with the arguments of the call."""

_MEANINGS: Mapping[str, Operation] = {
    "remember": "remember",
    "update": "update",
    "forget": "forget",
    "recall": "recall",
    "list": "list",
    "clear": "forget",
    "get": "recall",
}
"""Maps an operation of a config to the operation of an agent that a call of its tools counts as."""

Values = dict[str, Any]


class _KnownCall(Struct, frozen=True):
    """A tool call that the config describes, and the agent's memory operation that such a call counts as."""

    operation: Operation
    call: ToolTemplate
    source: WriteOperation | ReadOperation | None
    """The operation of the config, which says how the result is read; None if the config does not describe one."""


class CallReader:
    """Translates calls of one server's tools into operations on the memory."""

    def __init__(self, operations: Operations, refusal: str | None) -> None:
        self._known_calls = list(_list_known_calls(operations))
        self._refusal = Pattern(refusal) if refusal is not None else None

    def read(self, tool: str, arguments: Mapping[str, Any], result: ToolResult, error: str | None) -> ReadCall:
        """Return the memory operations of a call, and the error if it is a refusal of the store.

        A call of a tool that the config does not name has no operations.
        """
        refused = error if error is not None and self._refusal is not None and self._refusal.search(error) else None
        candidates = [known for known in self._known_calls if known.call.tool == tool]
        if not candidates:
            return ReadCall(refused=refused)
        # one tool may have several operations, which a constant such as `action: add` distinguishes
        known = max(candidates, key=lambda one: _count_equal(one.call.arguments.root, arguments))
        matches = [match for match in _match(known.call.arguments.root, arguments) if match]
        most = 1 if isinstance(known.source, ReadOperation) else MAX_OPERATIONS  # a search for two names is one search
        if not 0 < len(matches) <= most:
            matches = [dict(arguments)]
        value = result.value() if error is None else None
        return ReadCall(tuple(self._operation(known, one, value, len(matches)) for one in matches), refused)

    def _operation(self, known: _KnownCall, values: Values, result: Any, count: int) -> MemoryOperation:
        user = str(values.pop("user", USER))
        ids: Sequence[str] = ()
        texts: Sequence[str] = ()
        if isinstance(known.source, ReadOperation):
            facts = _read_facts(known.source, result)
            ids, texts = [fact.id for fact in facts], [fact.content for fact in facts]
        elif known.source is not None and result is not None:
            ids = _find_ids(known.source, values, result, count)
        return MemoryOperation(
            operation=known.operation, user=user, arguments=values, ids=tuple(ids), texts=tuple(texts)
        )


def _list_known_calls(operations: Operations) -> Iterator[_KnownCall]:
    """Yield every tool call that a config describes, with its operation."""
    for name, operation in _MEANINGS.items():
        if (source := operations.every.get(name)) is not None:
            yield from (_KnownCall(operation, call, source) for call in source.calls)
    for tool, name in operations.other_tools.items():
        yield _KnownCall(name, ToolTemplate(tool, BodyTemplate({})), operations.every.get(name))


def _match(template: Any, value: Any) -> list[Values]:
    """Compare `value`, an argument of a call, with its template, and return the values of the template's variables.

    A template list with one element stands for all elements of the argument: for `{"texts": ["$.content"]}` and
    `{"texts": ["a", "b"]}`, `[{"content": "a"}, {"content": "b"}]` is returned. Other templates give one mapping.
    """
    match template:
        case Template(parts=(Placeholder(name=name),)):
            return [{name: value}]
        case Template(names=names):  # text around variables: which part belongs to which one is unknown
            return [dict.fromkeys(sorted(names), value)]
        case Path(text=text):
            name = text.removeprefix("$.")
            return [{name: value}] if name.isidentifier() else [{}]
        case dict() if isinstance(value, Mapping):
            return _merge([_match(inner, value[key]) for key, inner in template.items() if key in value])
        case [inner] if isinstance(value, list):
            return [one for element in value for one in _match(inner, element)]
        case list() if isinstance(value, list):
            return _merge([_match(inner, element) for inner, element in zip(template, value, strict=False)])
    return [{}]


def _merge(parts: Sequence[Sequence[Values]]) -> list[Values]:
    """Return every combination of one mapping from each part, as one mapping; at most MAX_OPERATIONS + 1."""
    combinations = islice(product(*parts), MAX_OPERATIONS + 1)
    return [{name: one for values in combination for name, one in values.items()} for combination in combinations]


def _count_equal(template: Any, value: Any) -> int:
    """Return the number of constants in a template that `value` has at the same place, minus those that it lacks."""
    match template:
        case dict() if isinstance(value, Mapping):
            return sum(_count_equal(inner, value.get(key)) for key, inner in template.items())
        case dict() | list() | Template() | Path():
            return 0
    return 1 if template == value else -1


def _read_facts(operation: ReadOperation, result: Any) -> Sequence[StoredFact]:
    try:
        return operation.facts.read(result, operation.call.tool) if result is not None else ()
    except (Malformed, BadInput):  # the tool returned something that the config does not expect, such as prose
        return ()


def _find_ids(operation: WriteOperation, values: Values, result: Any, count: int) -> Sequence[str]:
    """Return a list with the id of the written fact; empty if the id is unknown.

    It is the id in the result if the call wrote one fact and the result has an id; otherwise, the id that the agent
    sent.
    """
    if operation.id is not None and count == 1 and (id := operation.id.first(result)) is not None:
        return (str(id),)
    chosen = values.get("id", values.get("newId"))
    return (str(chosen),) if chosen is not None else ()
