"""Reads a store config from a file, with every check that does not need the store itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, get_args

from memorybench.core.errors import BadInput
from memorybench.core.stores import Capability
from memorybench.files.bodies import BodyTemplate
from memorybench.files.configs import read_config
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.files.names import safe_name
from memorybench.files.templates import Template, check_known
from memorybench.mcp.config import check_connection
from memorybench.processes.programs import check_no_private_folder
from memorybench.text.patterns import Pattern
from memorybench.text.spelling import join_names

from .config import Facts, Files, Mcp, Read, StoreConfig, Write

FOLDER = frozenset({"folder"})
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
"""Variables of an update whose values are read from the store with `list`."""
_REQUIRED = {"remember": "content", "update": "content", "forget": "id", "recall": "query", "get": "id"}
_SECTIONS = ("mcp", "provider", "command", "files")
_ALLOWED_CAPABILITIES: Mapping[str, frozenset[Capability]] = {
    "reference": frozenset(),
    "mcp": frozenset({"sql"}),
    "provider": frozenset({"files", "sql"}),
    "command": frozenset(get_args(Capability)) - {"home"},
    "files": frozenset(),
}


def read_store(document: Document, environment: Mapping[str, str] | None = None) -> StoreConfig:
    return read_config(document, StoreConfig, _check, environment)


def variables_in(template: Any) -> Iterator[str]:
    """Yield the variables of a parsed template."""
    match template:
        case Template():
            yield from template.names
        case Path():
            yield from (str(route.steps[0]) for route in template.routes)
        case dict():
            for inner in template.values():
                yield from variables_in(inner)
        case list():
            for inner in template:
                yield from variables_in(inner)


def _check(config: StoreConfig, document: Document) -> None:
    safe_name(config.name, document.where("name"))
    if config.type in _SECTIONS and getattr(config, config.type) is None:
        raise BadInput(document.where(), f'"{config.type}" is missing', remedy=f"add the section {config.type}")
    for section in _SECTIONS:
        if section != config.type and getattr(config, section) is not None:
            raise BadInput(
                document.where(section), f"this section has no effect with type: {config.type}", remedy="remove it"
            )
    for place, capability in enumerate(config.capabilities):
        if config.type in _ALLOWED_CAPABILITIES and capability not in _ALLOWED_CAPABILITIES[config.type]:
            raise BadInput(
                document.where("capabilities", place),
                f'invalid capability "{capability}" for a store of type {config.type}',
                expected=join_names(_ALLOWED_CAPABILITIES[config.type])
                or "no capabilities, because memorybench knows those of this type",
                remedy="remove it",
            )
    if config.provider is not None:
        safe_name(config.provider, document.where("provider"))
    if config.files is not None:
        _check_files(config.files, document.at("files"))
    if config.mcp is not None:
        _check_mcp(config.mcp, document.at("mcp"))
    if config.command is not None:
        _check_program(document.at("command"), "run")
        check_no_private_folder(config.command.env, lambda name: document.where("command", "env", name))
        if not config.command.run:
            raise BadInput(
                document.where("command", "run"), "the list is empty", expected="a program and its arguments"
            )


def _check_files(files: Files, part: Document) -> None:
    if not files.paths:
        raise BadInput(part.where("paths"), "the list is empty", expected="at least one path")
    for key, paths in (("paths", files.paths), ("plant", (files.plant,))):
        for path in paths:
            if not path or PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or "\\" in path:
                raise BadInput(
                    part.where(key),
                    f"invalid path {path!r}",
                    expected="a relative path inside the home folder of the agent, with / as separator",
                )
    if any(sign in files.plant for sign in "*?["):
        raise BadInput(
            part.where("plant"), "must name exactly one file", expected="a path without the characters * ? ["
        )


def _check_program(part: Document, name: str) -> None:
    """Raise BadInput if command or environment use another variable than `folder`."""
    for key in (name, "env"):
        if key in part.value:
            BodyTemplate.parse(part.at(key), FOLDER)


def _check_mcp(mcp: Mcp, part: Document) -> None:
    check_connection(mcp, part)
    _check_program(part, "command")
    if mcp.refusal is not None:
        try:
            Pattern(mcp.refusal)
        except ValueError as error:
            raise BadInput(part.where("refusal"), str(error)) from None
    for name, known in VARIABLES.items():
        operation = getattr(mcp.operations, name)
        if operation is not None:
            used = _check_operation(operation, part.at("operations", name), known)
            required = _REQUIRED.get(name)
            if required is not None and required not in used:
                raise BadInput(
                    part.where("operations", name),
                    f"the operation does not send $.{required}",
                    remedy="add it to an argument of a call",
                )
            if name == "update" and mcp.operations.list is None and (listed := CURRENT & used):
                raise BadInput(
                    part.where("operations", name),
                    f"$.{min(listed)} needs the operation list",
                    remedy="add operations.list",
                )


def _check_operation(operation: Write | Read, part: Document, known: frozenset[str]) -> frozenset[str]:
    """Return the variables that an operation uses. Raise BadInput if it is invalid, or if one is not in `known`."""
    if isinstance(operation, Read):
        _check_facts(operation.facts, part.at("facts"))
        return _used(part, known)
    if not operation.calls:
        raise BadInput(part.where("calls"), "the list is empty", expected="at least one call")
    for name in operation.defaults:
        check_known(name, known, part.where("defaults", name))
    if operation.id is not None:
        Path.parse(operation.id, part.where("id"))
    calls = (part.at("calls", place) for place in range(len(operation.calls)))
    return frozenset(name for call in calls for name in _used(call, known))


def _used(call: Document, known: frozenset[str]) -> frozenset[str]:
    if "arguments" not in call.value:
        return frozenset()
    return frozenset(variables_in(BodyTemplate.parse(call.at("arguments"), known).root))


def _check_facts(facts: Facts, part: Document) -> None:
    for name in Facts.model_fields:
        path = getattr(facts, name)
        if path is not None:
            Path.parse(path, part.where(name))
