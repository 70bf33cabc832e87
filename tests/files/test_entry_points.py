"""Entry points of installed packages."""

from __future__ import annotations

import importlib.metadata
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from memorybench.files.entry_points import third_party_points

GROUP, OTHER = "memorybench.unused", "memorybench.unused_too"


def test_installed_packages_are_searched_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    searches = 0

    def entry_points() -> EntryPoints:
        nonlocal searches
        searches += 1
        return EntryPoints(
            [EntryPoint("b", "m:B", GROUP), EntryPoint("a", "m:A", GROUP), EntryPoint("c", "m:C", OTHER)]
        )

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.syspath_prepend(tmp_path / "first")
    assert [point.name for point in third_party_points(GROUP)] == ["a", "b"]
    assert [point.name for point in third_party_points(OTHER)] == ["c"]
    third_party_points(GROUP)
    assert searches == 1
    monkeypatch.syspath_prepend(tmp_path / "second")
    third_party_points(GROUP)
    assert searches == 2, "another path may hold other packages"
