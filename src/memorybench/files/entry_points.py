"""Entry points: how providers, extractors, benchmarks and metrics register, built-in ones included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OWN_PACKAGE = "memorybench"
_CHECKOUT = Path(__file__).parents[3] / "pyproject.toml"


def built_in_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of this package in `group`, by name.

    In a checkout they are read from pyproject.toml, so that a new line works without installing again.
    """
    from importlib.metadata import EntryPoint, PackageNotFoundError, distribution

    if _CHECKOUT.is_file():
        import tomllib

        project = tomllib.loads(_CHECKOUT.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == OWN_PACKAGE:
            declared = project.get("entry-points", {}).get(group, {})
            return {name: EntryPoint(name, value, group) for name, value in declared.items()}
    try:
        own = distribution(OWN_PACKAGE).entry_points.select(group=group)
    except PackageNotFoundError:
        return {}
    return {point.name: point for point in own}


def third_party_points(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of all other installed packages in `group`, sorted by name."""
    from importlib.metadata import entry_points

    others = (point for point in entry_points(group=group) if point.dist is None or point.dist.name != OWN_PACKAGE)
    return sorted(others, key=lambda point: point.name)
