"""Describes the user's own code that a run depends on. It reads the code and runs nothing."""

from __future__ import annotations

import ast
import importlib.util
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.core.records import digest
from memorybench.files.reading import read_text
from memorybench.journal.rows import CODE

from .consent import entry_uses

if TYPE_CHECKING:
    from memorybench.catalog.catalog import Catalog
    from memorybench.catalog.entries import Entry

_INSTALLED = frozenset({"site-packages", "dist-packages"})


def code_of(catalog: Catalog, entry: Entry) -> str:
    """Return digests of the modules that the config of an entry names and of the Python files in its commands.

    Return "" for an installed entry. See `describe_code`.
    """
    if entry.is_installed:
        return ""
    uses = entry_uses(catalog, entry)
    places = [use.value.rpartition(":")[0] for use in uses.modules]
    words = [word for use in uses.programs for word in shlex.split(use.value)]
    places += [word for word in words if word.endswith(".py")]
    return describe_code(places, entry.file.parent if entry.file else None)


def describe_code(places: Iterable[str], folder: Path | None = None) -> str:
    """Return a line with a digest for each file or module in `places`, and for each of the user's modules they import.

    A file is searched for in `folder` and in the working folder. Modules of Python, of memorybench and of installed
    packages are left out, and so are files and modules that are not found.
    """
    folders = [folder, Path()] if folder else [Path()]
    todo: list[tuple[str, Path | None]] = []
    for place in places:
        if place.endswith(".py"):
            files = [one / place for one in folders if (one / place).is_file()]
            todo += [(Path(place).stem, file) for file in files[:1]]
        else:
            todo.append((place, _find_module(place)))
    lines: dict[str, str] = {}
    while todo:
        name, file = todo.pop()
        if file is not None and name not in lines:
            text = read_text(file)
            lines[name] = f"\n{CODE}{name}: {digest(text)[:12]}"
            todo += [(module, _find_module(module)) for module in _imported(text, name, file)]
    return "".join(lines[name] for name in sorted(lines))


def _imported(text: str, name: str, file: Path) -> Iterator[str]:
    """Yield the full names that a module imports. A name may be a module or a member of one."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (module, *(f"{module}.{alias.name}" for alias in node.names))


def _find_module(name: str) -> Path | None:
    """Return the file of one of the user's own modules; None for other modules. Imports nothing."""
    top, *rest = name.split(".")
    if not top or top == "memorybench" or top in sys.stdlib_module_names:
        return None
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    file = Path(spec.origin) if spec is not None and spec.origin else None
    if file is None or not _INSTALLED.isdisjoint(file.parts):
        return None
    inside = file.parent.joinpath(*rest)
    candidates = [inside.with_suffix(".py"), inside / "__init__.py"] if rest else [file]
    return next((one for one in candidates if one.suffix == ".py" and one.is_file()), None)
