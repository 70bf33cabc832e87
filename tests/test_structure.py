"""The import graph has no cycle. Its layers are checked by import-linter (`make check`), deferred imports included."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest


def find_cycle(package: str) -> list[str]:
    """Modules that import each other in a circle, at any depth of a function; empty where there is no circle."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=True, cache_dir=None)
    try:
        TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_through_others() -> None:
    assert not find_cycle("memorybench")


def test_a_deferred_import_counts_as_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "circular_sample"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "upper.py").write_text("from circular_sample import lower\n")
    (package / "lower.py").write_text("def late() -> None:\n    from circular_sample import upper\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert set(find_cycle("circular_sample")) == {"circular_sample.upper", "circular_sample.lower"}
