"""The base class of extractor types, and the context that is passed to open an extractor.

Each value of `type` in an extractor's config is a class that an entry point in the group `memorybench.extractors`
registers. The built-in ones are listed in pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from memorybench.core.contracts import Model, Provider
from memorybench.core.extraction import Extractor
from memorybench.files.entry_points import built_in_points, third_party_points
from memorybench.files.located import Document
from memorybench.secrets.redaction import Redactor

if TYPE_CHECKING:
    from .config import ExtractorConfig

GROUP = "memorybench.extractors"


class OpenContext(Struct, frozen=True):
    """What `ExtractorType.open` gets: the config and everything else that an extractor may need."""

    name: str
    config: ExtractorConfig
    folder: Path
    """The folder that paths in the config are relative to."""
    run: str
    environment: Mapping[str, str]
    redactor: Redactor
    open_model: Callable[[], Awaitable[Model]]
    open_provider: Callable[[], Awaitable[Provider]]
    load_function: Callable[[], Callable[..., Any]]
    """Imports and returns the function that the config names. The user has allowed this with --allow-code."""
    report_leak: Callable[[str], object]
    """Called with a message if data of the run remains in a provider because it could not be deleted."""


class ExtractorType:
    """Base class of extractors: declares the keys of a type and how it is opened."""

    required_key: ClassVar[str]
    keys: ClassVar[frozenset[str]]
    """The config keys that have an effect for this type, in addition to those that every type has."""
    spends: ClassVar[bool] = True
    """Whether calls of an extractor of this type may cost money."""
    runs_code: ClassVar[bool] = False
    """Whether extractors of this type run a program or function that the config names, which needs --allow-code."""
    needs_model: ClassVar[bool] = False

    @classmethod
    def check_config(cls, config: ExtractorConfig, document: Document) -> None:
        """Raise BadInput if the config is invalid for this type. Called when the file is read."""

    @classmethod
    def open(cls, context: OpenContext) -> AbstractAsyncContextManager[Extractor]:
        raise NotImplementedError


@cache
def type_names() -> tuple[str, ...]:
    return tuple(sorted({*built_in_points(GROUP), *(point.name for point in third_party_points(GROUP))}))


@cache
def load_type(name: str) -> type[ExtractorType]:
    points = {point.name: point for point in third_party_points(GROUP)} | built_in_points(GROUP)
    extractor: type[ExtractorType] = points[name].load()
    return extractor
