"""Reads an extractor's config file, with every check that needs neither network nor keys."""

from __future__ import annotations

from collections.abc import Mapping

from memorybench.core.errors import BadInput
from memorybench.files.configs import read_config
from memorybench.files.located import Document
from memorybench.files.names import safe_name
from memorybench.text.sanitize import preview
from memorybench.text.spelling import camel, unknown_name

from .config import ExtractorConfig
from .plugin import load_type, type_names

_COMMON_KEYS = {"name", "display_name", "description", "type"}


def read_extractor(document: Document, environment: Mapping[str, str] | None = None) -> ExtractorConfig:
    return read_config(document, ExtractorConfig, _check, environment)


def _check(config: ExtractorConfig, document: Document) -> None:
    safe_name(config.name, document.where("name"))
    if config.type not in type_names():
        raise unknown_name(document.where("type"), f"unknown type {preview(config.type)}", config.type, type_names())
    extractor = load_type(config.type)
    for name in sorted(config.model_fields_set - _COMMON_KEYS - extractor.keys):
        raise BadInput(
            document.where(name), f"this key has no effect with type: {config.type}", remedy="remove it, or change type"
        )
    if getattr(config, extractor.required_key) is None:
        key = camel(extractor.required_key)
        raise BadInput(document.where(), f'"{key}" is missing', expected=f"{key} in a config with type: {config.type}")
    extractor.check_config(config, document)
