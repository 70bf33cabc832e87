"""A folder for each scope and one store id, for memory systems that store their data in files of their own."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from memorybench.core.errors import BadInput

_STORE_ID = "incarnation"  # the former name of the store id, which files of earlier versions have
_SOURCES = "sources.jsonl"


class ScopeFolders:
    """A folder for each scope, with a list of the sessions and turns that the scope's documents come from.

    A system under test never sees the ids of a benchmark, because some of them reveal the answer. It gets ids that
    memorybench makes; this list maps the ids in its results to those of the benchmark.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.store_id = _read_store_id(folder / _STORE_ID)
        except OSError as error:
            raise BadInput(
                str(folder), f"the folder for memories cannot be used: {error.strerror}", remedy="choose another folder"
            ) from None
        self._folder = folder
        self._sources: dict[str, dict[str, tuple[str, ...]]] = {}

    @property
    def shared(self) -> Path:
        """A folder, which is created, for the data of a system that stores all scopes together."""
        return _make_folder(self._folder / "data")

    def data(self, scope: str) -> Path:
        """Return a folder, which is created, for the system's data of one scope."""
        return _make_folder(self._folder / "scopes" / scope / "data")

    def save_sources(self, scope: str, sources: Mapping[str, Sequence[str]]) -> None:
        """Save the sources of documents: `sources` maps the id of a document to ids of sessions and turns.

        Must be called before the documents are added, because the process may be killed in between.
        """
        known = self.sources_of(scope)
        new = {document: tuple(ids) for document, ids in sources.items() if document not in known}
        with (self.data(scope).parent / _SOURCES).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps([document, list(ids)]) + "\n" for document, ids in new.items())
        known |= new

    def clear(self, scope: str) -> None:
        self._sources.pop(scope, None)
        with suppress(FileNotFoundError):
            shutil.rmtree(self._folder / "scopes" / scope)

    def sources_of(self, scope: str) -> dict[str, tuple[str, ...]]:
        """Return the sources of every document of a scope: the ids of sessions and turns, by the document's id.

        If a result has an id that is not in this mapping, the system under test made the id.
        """
        if scope not in self._sources:
            file = self._folder / "scopes" / scope / _SOURCES
            text = file.read_text(encoding="utf-8") if file.exists() else ""
            complete = text[: text.rfind("\n") + 1]
            if complete != text:  # a killed process left half a line
                file.write_text(complete, encoding="utf-8")
            rows = map(json.loads, complete.splitlines())
            self._sources[scope] = {document: tuple(ids) for document, ids in rows}
        return self._sources[scope]


def _make_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _read_store_id(file: Path) -> str:
    if not file.exists():
        # linked when it is complete: two processes may open a new folder at once
        temporary = file.with_name(f"{file.name}.{os.getpid()}")
        temporary.write_text(secrets.token_hex(16), encoding="ascii")
        try:
            with suppress(FileExistsError):  # another process was faster: its id is used
                os.link(temporary, file)
        finally:
            temporary.unlink()
    return file.read_text(encoding="ascii")
