"""Entry points of installed packages. They are named here, and loaded by no one but compose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from memorybench.core.errors import BadInput
from memorybench.files.names import safe_name
from memorybench.text.sanitize import sanitize

from .entries import Entry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Pluggable = Literal["provider", "benchmark", "metric"]
"""What a package may bring. Extractors and stores are described by files."""

GROUPS: Mapping[Pluggable, str] = {
    "provider": "memorybench.providers",
    "benchmark": "memorybench.benchmarks",
    "metric": "memorybench.metrics",
}


def installed() -> Iterator[tuple[Entry, EntryPoint]]:
    from importlib.metadata import entry_points

    for kind, group in GROUPS.items():
        for point in sorted(entry_points(group=group), key=lambda point: point.name):
            yield _entry(kind, point), point


def _entry(kind: Pluggable, point: EntryPoint) -> Entry:
    package = point.dist
    origin = f"{package.name} {package.version}" if package else point.value
    return Entry(
        kind=kind,
        name=point.name,
        description=sanitize((package.metadata["Summary"] or "") if package else ""),
        tags=("plug-in",),
        origin=origin,
        broken=_fault(point.name, origin),
    )


def _fault(name: str, origin: str) -> BadInput | None:
    try:
        safe_name(name, origin)
    except BadInput as bad:
        return bad
    return None
