"""Entry points: how providers, extractors, benchmarks and metrics register, built-in ones included."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, SelectableGroups

OWN_PACKAGE = "memorybench"
_CHECKOUT = Path(__file__).parents[3] / "pyproject.toml"


def built_in_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of this package in `group`, by name.

    In a checkout of the source code, they are read from pyproject.toml, so that a new line there works without
    installing again.
    """
    from importlib.metadata import EntryPoint, PackageNotFoundError, distribution

    project = _read_project(_CHECKOUT)
    if project.get("name") == OWN_PACKAGE:
        declared = project.get("entry-points", {}).get(group, {})
        return {name: EntryPoint(name, value, group) for name, value in declared.items()}
    try:
        own = distribution(OWN_PACKAGE).entry_points.select(group=group)
    except PackageNotFoundError:
        return {}
    return {point.name: point for point in own}


def third_party_points(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of all other installed packages in `group`, sorted by name.

    All entry points are read once for the process, until `sys.path` changes.
    """
    own = {(name, point.value) for name, point in built_in_points(group).items()}
    others = [
        point for point in _all_points(tuple(sys.path)).select(group=group) if (point.name, point.value) not in own
    ]
    # asked last: the name of a package is read from a file
    others = [point for point in others if point.dist is None or point.dist.name != OWN_PACKAGE]
    return sorted(others, key=lambda point: point.name)


@cache
def _all_points(path: tuple[str, ...]) -> SelectableGroups:
    from importlib.metadata import entry_points

    return entry_points()


@cache
def _read_project(path: Path) -> Mapping[str, Any]:
    """Return the section [project] of pyproject.toml, or {} if there is no such file."""
    import tomllib

    if not path.is_file():
        return {}
    project: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
    return project
