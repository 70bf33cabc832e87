"""Reads a store config from a file, with every check that does not need the store itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import get_args

from memorybench.core.errors import BadInput
from memorybench.core.stores import Capability
from memorybench.files.bodies import BodyTemplate
from memorybench.files.configs import read_config
from memorybench.files.located import Document
from memorybench.files.names import safe_name
from memorybench.mcp.config import check_connection
from memorybench.processes.programs import check_no_private_folder
from memorybench.text.patterns import Pattern
from memorybench.text.spelling import join_names

from .config import Files, Mcp, StoreConfig
from .mcp_operations import Operations

FOLDER = frozenset({"folder"})
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
        _check_mcp(config.name, config.mcp, document.at("mcp"))
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
        raise BadInput(part.where("plant"), "the path must name exactly one file", expected="a path without * ? [")


def _check_program(part: Document, name: str) -> None:
    """Raise BadInput if the key `name` (the command) or `env` contains a variable other than `${folder}`."""
    for key in (name, "env"):
        if key in part.value:
            BodyTemplate.parse(part.at(key), FOLDER)


def _check_mcp(name: str, mcp: Mcp, part: Document) -> None:
    check_connection(mcp, part)
    _check_program(part, "command")
    if mcp.refusal is not None:
        try:
            Pattern(mcp.refusal)
        except ValueError as error:
            raise BadInput(part.where("refusal"), str(error)) from None
    Operations(name, mcp, part.at("operations"))
