"""Opens bundles for commands that read runs: their rows are in a temporary results folder while the command runs."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from .arguments import folders

_NAMES = ("run", "runs", "sides")
"""Arguments that name runs."""
_SUFFIX = ".mbz"
_LONGEST_STEM = 50


@contextmanager
def opened_bundles(args: argparse.Namespace) -> Iterator[None]:
    """Replace each FILE.mbz among the runs by the id under which it can be read, and search its folder, too."""
    from memorybench.core.errors import BadInput
    from memorybench.processes.programs import temporary_folder

    given = [(key, name) for key in _NAMES for name in _words(getattr(args, key, None))]
    files = {name: head for _, name in given if (head := _file(name))}
    if not files:
        yield
        return
    if args.journal is not None:
        raise BadInput("--journal", "not supported together with a bundle", remedy="name runs or bundles")
    with temporary_folder("memorybench-bundle-") as place:
        results = place / "results"
        ids: dict[str, str] = {}
        for head in dict.fromkeys(files.values()):
            ids[head] = _open(Path(head), results, ids.values())
        for key in _NAMES:
            value = getattr(args, key, None)
            names = [
                name.replace(files[name], ids[files[name]], 1) if name in files else name for name in _words(value)
            ]
            if names:
                setattr(args, key, names[0] if isinstance(value, str) else names)
        args.typed_results = list(args.results)
        args.bundles = {id: head for head, id in ids.items()}
        args.results = [results] if len(files) == len(given) else [*folders(args), results]
        yield


def _words(value: object) -> list[str]:
    words = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [word for word in words if isinstance(word, str)]


def _file(name: str) -> str:
    """Return the path of FILE.mbz or FILE.mbz:PROVIDER; "" if the name is another one."""
    head = name if name.endswith(_SUFFIX) else name.rpartition(f"{_SUFFIX}:")[0] + _SUFFIX
    return head if head != _SUFFIX and Path(head).is_file() else ""


def _open(path: Path, results: Path, taken: Collection[str]) -> str:
    """Write the rows of a bundle into the folder; return the id of the run, which is the name of the file."""
    from memorybench.bundles.archive import open_archive
    from memorybench.bundles.contents import Rows, import_rows
    from memorybench.core.errors import BadInput

    stem = (re.sub(r"[^A-Za-z0-9_-]+", "-", path.stem).strip("-") or "bundle")[:_LONGEST_STEM]
    names = (f"{stem}{mark}{_SUFFIX}" for mark in ("", *(f"-{number}" for number in range(2, 1000))))
    with open_archive(path) as archive:
        if changed := archive.changed_files():
            raise BadInput(str(path), f"{', '.join(changed)} changed", remedy=f"memorybench verify {path}")
        run_id = import_rows(Rows.in_archive(archive), results, next(name for name in names if name not in taken))
    print(f"{path}: its figures are not checked; memorybench verify {path} recomputes them", file=sys.stderr)
    return run_id
