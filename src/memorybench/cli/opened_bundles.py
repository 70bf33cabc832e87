"""Opens bundles for commands that read runs, by importing them into a temporary results folder."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from .arguments import folders

_NAMES = ("run", "runs", "sides")
"""The arguments, by their `dest`, that name runs."""
_SUFFIX = ".mbz"
_LONGEST_STEM = 50


@contextmanager
def opened_bundles(args: argparse.Namespace) -> Iterator[None]:
    """Import each FILE.mbz that `args` names in place of a run, and put the id of the imported run into `args`."""
    from memorybench.core.errors import BadInput
    from memorybench.processes.programs import temporary_folder

    given = [(key, name) for key in _NAMES for name in _words(getattr(args, key, None))]
    files = {name: head for _, name in given if (head := _file(name))}
    if not files:
        yield
        return
    if args.journal is not None:
        raise BadInput(
            "--journal", "not supported together with a bundle file", remedy="leave out --journal, or name only runs"
        )
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
    """Return the path of the bundle in FILE.mbz or FILE.mbz:PROVIDER; "" if no such bundle exists."""
    head = name if name.endswith(_SUFFIX) else name.rpartition(f"{_SUFFIX}:")[0] + _SUFFIX
    return head if head != _SUFFIX and Path(head).is_file() else ""


def _open(path: Path, results: Path, taken: Collection[str]) -> str:
    """Import a bundle into the results folder; return the id of the run, which is made from the name of the file."""
    from memorybench.bundles.archive import open_archive
    from memorybench.bundles.contents import Rows, import_rows
    from memorybench.core.errors import BadInput
    from memorybench.reporting.typed_commands import as_typed

    stem = (re.sub(r"[^A-Za-z0-9_-]+", "-", path.stem).strip("-") or "bundle")[:_LONGEST_STEM]
    names = (f"{stem}{mark}{_SUFFIX}" for mark in ("", *(f"-{number}" for number in range(2, 1000))))
    with open_archive(path) as archive:
        if changed := archive.changed_files():
            raise BadInput(
                str(path),
                f"{', '.join(changed)} changed since the bundle was made",
                remedy=f"run `memorybench verify {path}` for details",
            )
        run_id = import_rows(Rows.in_archive(archive), results, next(name for name in names if name not in taken))
    verify = as_typed(f"memorybench verify {shlex.quote(str(path))}")
    print(f"{path}: its figures are not checked; {verify} recomputes them", file=sys.stderr)
    return run_id
