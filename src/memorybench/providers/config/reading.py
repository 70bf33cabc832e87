"""Reads a provider config, with every check that needs neither network nor keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, cast

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.files.configs import read_config, references
from memorybench.files.located import Document, Place
from memorybench.files.names import safe_name
from memorybench.files.templates import Template
from memorybench.http.config import check_address, check_auth, check_variable_name
from memorybench.providers.plugin import BUILTIN, built_in_names, load_built_in, read_settings
from memorybench.text.sanitize import preview
from memorybench.text.spelling import camel, unknown_name

from .sections import Embedding, Local, PlainProviderConfig

if TYPE_CHECKING:
    from .provider import ProviderConfig

_SCOPE_PARTS = frozenset({"benchmarkId", "runId", "haystackId"})
_REQUIRED = {"hosted": ("connection", "endpoints"), "docker": ("docker", "endpoints"), "local": ("adapter",)}
_HTTP_KEYS = ("connection", "auth", "scoping", "setup", "endpoints", "teardown", "limits", "embedding")
_REQUESTS_AND_TOOLS = frozenset({"setup", "endpoints", "teardown", "mcp"})
_UNUSED_KEYS = {
    "hosted": ("adapter", "docker", "local", "mcp"),
    "docker": ("adapter", "local", "mcp"),
    "local": ("docker", *_HTTP_KEYS),
}


def read_provider(document: Document, environment: Mapping[str, str] | None = None) -> ProviderConfig:
    return read_config(document, _record_of(document), _check, environment)


def _record_of(document: Document) -> type[ProviderConfig]:
    """Return the class that a config is read into: ProviderConfig if it has requests or tools; else its base class.

    The base class, PlainProviderConfig, does not need the classes for requests, whose import is slow.
    """
    if isinstance(document.value, dict) and _REQUESTS_AND_TOOLS.isdisjoint(document.value):
        return cast("type[ProviderConfig]", PlainProviderConfig)  # has the same fields
    from .provider import ProviderConfig

    return ProviderConfig


def needed_variables(config: ProviderConfig, environment: Mapping[str, str]) -> dict[str, bool]:
    """Return the names of the environment variables that the config needs, each with whether it is set."""
    keys = [config.auth.env_var, *(embedding.env_var for _, embedding in _embeddings(config))]
    names = [*(name for name in keys if name is not None), *references(config.model_dump(mode="json"))]
    return {name: bool(environment.get(name)) for name in dict.fromkeys(names)}


def _embeddings(config: ProviderConfig) -> Iterator[tuple[Place, Embedding]]:
    if config.embedding is not None:
        yield ("embedding",), config.embedding
    if config.local is not None:
        yield ("local", "embedding"), config.local.embedding


def _check(config: ProviderConfig, document: Document) -> None:
    safe_name(config.name, document.where("name"))
    _check_kind(config, document)
    _check_addresses(config, document)
    check_auth(config.auth, document)
    sign = config.connection.sign
    if sign is not None and not re.fullmatch(r".+\.py:[A-Za-z_]\w*", sign):
        where = document.where("connection", "sign")
        raise BadInput(where, f"invalid function {preview(sign)}", expected="./file.py:function")
    for place, embedding in _embeddings(config):
        if embedding.env_var is not None:
            check_variable_name(embedding.env_var, document, (*place, "env_var"))
    Template.parse(config.scoping.run_id_format, _SCOPE_PARTS, document.where("scoping", "run_id_format"))
    if config.adapter is not None:
        _check_adapter(config.adapter, document.where("adapter"))
        if config.adapter.startswith(BUILTIN):
            read_settings(load_built_in(config.adapter.removeprefix(BUILTIN)).settings_model, config, document)
    elif config.settings:
        raise BadInput(
            document.where("settings"), f"this section has no effect with type: {config.type}", remedy="remove it"
        )
    if config.local is not None:
        _check_local(config.local, config, document)
    if config.type != "local":
        from .retired import check_retired
        from .variables import check_requests

        check_retired(config, document)
        check_requests(config, document)
    if config.mcp is not None or config.adapter == "builtin:mcp":
        from memorybench.providers.config_mcp_reading import check_mcp

        check_mcp(config, document)


def _check_kind(config: ProviderConfig, document: Document) -> None:
    """Raise BadInput if a key that the config's `type` requires is missing, or a key has no effect with that `type`."""
    for name in _UNUSED_KEYS[config.type]:
        if name in config.model_fields_set:
            raise BadInput(
                document.where(name),
                f"this key has no effect with type: {config.type}",
                remedy="remove it, or change type",
            )
    for name in _REQUIRED[config.type]:
        if name not in config.model_fields_set:
            needed = " and ".join(camel(needed) for needed in _REQUIRED[config.type])
            raise BadInput(
                document.where(),
                f'"{camel(name)}" is missing',
                expected=f"{needed} in a config with type: {config.type}",
            )
    if config.type == "hosted" and not config.connection.base_url:
        raise BadInput(document.where("connection"), '"baseUrl" is missing', remedy="add the address of the API")
    if config.type == "docker" and config.connection.base_url:
        raise BadInput(
            document.where("connection", "base_url"),
            "baseUrl has no effect with type: docker",
            remedy="use docker.baseUrl",
        )


def _check_addresses(config: ProviderConfig, document: Document) -> None:
    addresses: list[tuple[Place, str | None]] = [(("connection", "base_url"), config.connection.base_url)]
    if config.docker:
        addresses.append((("docker", "base_url"), config.docker.base_url))
        addresses.append((("docker", "healthcheck"), config.docker.healthcheck))
    if config.mcp:
        addresses.append((("mcp", "url"), config.mcp.url))
    addresses += [((*place, "base_url"), embedding.base_url) for place, embedding in _embeddings(config)]
    for place, url in addresses:
        if url:
            insecure = config.connection.insecure
            check_address(url, document.where(*place), insecure=insecure, insecure_key="connection.insecure")


def _check_adapter(adapter: str, where: str) -> None:
    kind, _, name = adapter.partition(":")
    path = PurePosixPath(adapter)
    if path.suffix in (".ts", ".js", ".mjs"):
        class_name = "".join(word.capitalize() for word in re.split(r"\W|_", path.stem))
        raise BadInput(
            where,
            f"{preview(adapter)} is not a Python file",
            expected="the path of a Python file and a class in it",
            remedy=f'write the class in Python and set "{adapter[: -len(path.suffix)]}.py:{class_name}"',
        )
    if kind == "builtin":
        if name not in built_in_names():
            raise unknown_name(where, f"unknown built-in provider {preview(name)}", name, built_in_names())
    elif kind == "plugin":
        safe_name(name, where)
    elif not re.fullmatch(r".+\.py:[A-Za-z_]\w*", adapter):
        raise BadInput(
            where, f"invalid adapter {preview(adapter)}", expected="builtin:NAME, plugin:NAME or ./file.py:Class"
        )


def _is_set(section: Record, key: str) -> bool:
    """Return whether the config sets a key of a section. `key` may have dots, such as `enhancement.model`."""
    first, _, rest = key.partition(".")
    if first not in section.model_fields_set:
        return False
    inner = getattr(section, first)
    return not rest or (inner is not None and _is_set(inner, rest))


def _check_local(local: Local, config: ProviderConfig, document: Document) -> None:
    adapter = config.adapter or ""
    chunking, database = local.chunking, local.database
    if chunking.overlap >= chunking.size:
        raise BadInput(
            document.where("local", "chunking", "overlap"),
            f"an overlap of {chunking.overlap} tokens leaves no new text in a chunk of {chunking.size} tokens",
            expected="an overlap smaller than size",
        )
    if database.type == "postgres" and not database.connection_string:
        where = document.where("local", "database")
        raise BadInput(where, '"connectionString" is missing', remedy="add it, for example ${DATABASE_URL}")
    if adapter.startswith(BUILTIN):
        provider = load_built_in(adapter.removeprefix(BUILTIN))
        if not provider.uses_local_section:
            raise BadInput(
                document.where("local"), f"this section has no effect with adapter: {adapter}", remedy="remove it"
            )
        for key in provider.unused_settings:
            if _is_set(local, key):
                where = document.where("local", *key.split("."))
                raise BadInput(where, f"this key has no effect with adapter: {adapter}", remedy="remove it")
        provider.check_config(config, document)
