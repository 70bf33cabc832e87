"""Gives a provider or dataset the name that the user chose, because two configs can use the same adapter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from memorybench.core.contracts import Provider
from memorybench.core.questions import Dataset
from memorybench.core.trials import Subject
from memorybench.providers.plugin import FORMER_NAMES


def rename_provider(provider: Provider, name: str, settings: Mapping[str, Any] | None = None) -> Provider:
    """Return the provider with another name and with `settings` added to those of its subject.

    Members of the provider that have a former name are also available under the current name.
    """
    members = {new: getattr(provider, old) for new, old in FORMER_NAMES.items() if not hasattr(provider, new)}
    if provider.subject.name != name or settings:
        complete = {**provider.subject.settings, **(settings or {})}
        # a new Subject: a copy would keep the cached key of the other name
        members["subject"] = Subject(role=provider.subject.role, name=name, settings=complete)
    return cast("Provider", _replace_members(provider, members)) if members else provider


def rename_dataset(dataset: Dataset, name: str) -> Dataset:
    return dataset if dataset.name == name else cast("Dataset", _replace_members(dataset, {"name": name}))


def _replace_members(original: object, members: Mapping[str, object]) -> Any:
    """Return an object that forwards to the original, with some members replaced.

    The other members are forwarded by properties, because isinstance with a protocol ignores __getattr__.
    """

    def forward(name: str) -> property:
        return property(lambda _: getattr(original, name))

    forwarded = {name: forward(name) for name in dir(original) if not name.startswith("__")}
    return type(type(original).__name__, (), {**forwarded, **members})()
