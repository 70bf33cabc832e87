"""Lends a provider or a dataset the name it was chosen by: two configs of one adapter are two arms."""

from __future__ import annotations

from typing import Any, cast

from memorybench.core.contracts import Provider
from memorybench.core.questions import Dataset


class _Called:
    """All else is the original's, what it can do beside its contract included."""

    def __init__(self, original: object, **lent: object) -> None:
        self.__dict__.update(lent)
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


_OLD_NAMES = {"wait_until_searchable": "settle", "store_id": "incarnation"}
"""Members of Provider that were renamed in 0.2; a plug-in may still have the old ones."""


def provider_called(name: str, provider: Provider) -> Provider:
    old = {new: getattr(provider, old) for new, old in _OLD_NAMES.items() if not hasattr(provider, new)}
    if old:
        provider = cast("Provider", _Called(provider, **old))
    if provider.subject.name == name:
        return provider
    return cast("Provider", _Called(provider, subject=provider.subject.model_copy(update={"name": name})))


def dataset_called(name: str, dataset: Dataset) -> Dataset:
    return dataset if dataset.name == name else cast("Dataset", _Called(dataset, name=name))
