"""Which settings of the section `local` mem0-oss has a use for."""

from __future__ import annotations

from memorybench.core.errors import BadInput
from memorybench.files.located import Document
from memorybench.text.spelling import camel

from .config import ProviderConfig

_USED = frozenset({"embedding", "enhancement"})
_USED_OF_ENHANCEMENT = frozenset({"enabled", "model"})


def check_mem0(config: ProviderConfig, document: Document) -> None:
    if config.adapter != "builtin:mem0-oss" or config.local is None:
        return
    _check_effect(document.at("local"), config.local.model_fields_set - _USED)
    enhancement = config.local.enhancement
    if enhancement is None:
        return
    part = document.at("local", "enhancement")
    _check_effect(part, enhancement.model_fields_set - _USED_OF_ENHANCEMENT)
    if enhancement.enabled and not enhancement.model:
        raise BadInput(part.where(), '"model" is missing', expected="the model that extracts memories", remedy="add it")


def _check_effect(part: Document, without: frozenset[str] | set[str]) -> None:
    for name in sorted(without):
        raise BadInput(part.where(name), f"{camel(name)} has no effect on builtin:mem0-oss", remedy="remove it")
