"""The types of the objects through which suites open providers, models and stores without importing them.

A `Resolved…` object is a name that was looked up and checked, but not opened. `Wiring` returns them, with the catalog
and the environment. The classes are those of memorybench.wiring, for annotations only: suites must not import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from memorybench.wiring.live import LiveWiring as Wiring
    from memorybench.wiring.live import ResolvedProvider
    from memorybench.wiring.models import ResolvedModel
    from memorybench.wiring.stores import ResolvedStore
else:
    ResolvedModel = ResolvedProvider = ResolvedStore = Wiring = Any

__all__ = ["ResolvedModel", "ResolvedProvider", "ResolvedStore", "SizedRecords", "Wiring"]

Row = TypeVar("Row", covariant=True)


class SizedRecords(Protocol[Row]):
    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Row]: ...
