"""Entry points of installed packages."""

from __future__ import annotations

import importlib.metadata
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from memorybench.files.entry_points import third_party_points

GROUP = "memorybench.unused"


def test_installed_packages_are_searched_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    searches: list[str] = []

    def entry_points(*, group: str) -> EntryPoints:
        searches.append(group)
        return EntryPoints([EntryPoint("b", "m:B", group), EntryPoint("a", "m:A", group)])

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    assert [point.name for point in third_party_points(GROUP)] == ["a", "b"]
    third_party_points(GROUP)
    assert searches == [GROUP]
    monkeypatch.syspath_prepend(tmp_path)
    third_party_points(GROUP)
    assert searches == [GROUP, GROUP], "another path may hold other packages"
