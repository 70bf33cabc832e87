"""Plug-ins: entry points of other installed packages. They are listed without being loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from memorybench.core.errors import BadInput
from memorybench.files.entry_points import third_party_points
from memorybench.files.names import safe_name
from memorybench.text.sanitize import sanitize

from .entries import Entry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Pluggable = Literal["provider", "benchmark", "metric"]
"""The kinds that a package may register. Extractors, stores and agents can only be described by files."""

GROUPS: Mapping[Pluggable, str] = {
    "provider": "memorybench.providers",
    "benchmark": "memorybench.benchmarks",
    "metric": "memorybench.metrics",
}


def installed_plugins() -> Iterator[tuple[Entry, EntryPoint]]:
    """Yield the entry and the entry point of each plug-in.

    Built-in providers use the same groups of entry points, but are left out: their YAML cards define their entries.
    """
    for kind, group in GROUPS.items():
        for point in third_party_points(group):
            package = point.dist
            origin = f"{package.name} {package.version}" if package else point.value
            broken = None
            try:
                safe_name(point.name, origin)
            except BadInput as error:
                broken = error
            description = sanitize((package.metadata["Summary"] or "") if package else "")
            yield Entry(kind, point.name, "", description, ("plug-in",), origin, broken=broken), point
