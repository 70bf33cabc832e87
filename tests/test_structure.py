"""The import graph has no cycle, and the lists of modules in the docstrings of packages are complete.

The layers are checked by import-linter (`make check`), deferred imports included.
"""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "memorybench"


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


def listed_modules(docstring: str) -> list[str]:
    """Names such as `run.py` or `html/` with which lines begin, alone or several in a row."""
    beginnings = re.findall(r"^ *((?:\w+(?:\.py|/),?(?: +|$))+)", docstring, re.MULTILINE)
    return [name.rstrip(",") for beginning in beginnings for name in beginning.split()]


def test_a_list_of_modules_in_a_docstring_is_complete() -> None:
    problems = []
    for init in sorted(PACKAGE.rglob("__init__.py")):
        folder = init.parent
        listed = listed_modules(ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or "")
        if len(listed) < 2:
            continue
        modules = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
        modules |= {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}
        where = init.relative_to(PACKAGE)
        problems += [f"{where} does not list {name}" for name in sorted(modules.difference(listed))]
        problems += [f"{where} lists {name}, which is gone" for name in listed if not (folder / name).exists()]
        problems += [f"{where} lists {name} twice" for name in sorted(set(listed)) if listed.count(name) > 1]
    assert problems == []
