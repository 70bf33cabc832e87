"""A folder for each scope and one store id, for systems that keep their own files."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from memorybench.core.errors import BadInput

_INCARNATION = "incarnation"
_SOURCES = "sources.jsonl"


class ScopeFolders:
    """Also stores the sessions and turns that the documents of a scope came from.

    A system under test never sees the ids of a benchmark, because some of them reveal the answer. It gets ids of ours,
    and the ids in its results are looked up here.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.store_id = _incarnation(folder / _INCARNATION)
        except OSError as error:
            raise BadInput(str(folder), f"cannot be used: {error.strerror}", remedy="choose another folder") from None
        self._folder = folder
        self._sources: dict[str, dict[str, tuple[str, ...]]] = {}

    @property
    def shared(self) -> Path:
        """The data folder of a system that serves all scopes."""
        return _made(self._folder / "data")

    def data(self, scope: str) -> Path:
        """Return the data folder of a scope."""
        return _made(self._folder / "scopes" / scope / "data")

    def note(self, scope: str, sources: Mapping[str, Sequence[str]]) -> None:
        """Store the sources of documents. Must be called before they are added, because the process may be killed."""
        known = self._known(scope)
        new = {document: tuple(whence) for document, whence in sources.items() if document not in known}
        with (self.data(scope).parent / _SOURCES).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps([document, list(whence)]) + "\n" for document, whence in new.items())
        known |= new

    def whence(self, scope: str, document: str) -> Sequence[str]:
        """Return the sources of a document; an unknown id is returned as it is."""
        return self._known(scope).get(document, (document,))

    def clear(self, scope: str) -> None:
        self._sources.pop(scope, None)
        try:
            shutil.rmtree(self._folder / "scopes" / scope)
        except FileNotFoundError:
            return

    def _known(self, scope: str) -> dict[str, tuple[str, ...]]:
        if scope not in self._sources:
            self._sources[scope] = _read(self._folder / "scopes" / scope / _SOURCES)
        return self._sources[scope]


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _read(file: Path) -> dict[str, tuple[str, ...]]:
    if not file.exists():
        return {}
    text = file.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:  # a killed process left half a line
        file.write_text(whole, encoding="utf-8")
    return {document: tuple(sources) for document, sources in map(json.loads, whole.splitlines())}


def _incarnation(file: Path) -> str:
    if not file.exists():
        # linked when it is complete: two processes may open a new folder at once
        made = file.with_name(f"{_INCARNATION}.{os.getpid()}")
        made.write_text(secrets.token_hex(16), encoding="ascii")
        try:
            with suppress(FileExistsError):  # another process was faster: its id is used
                os.link(made, file)
        finally:
            made.unlink()
    return file.read_text(encoding="ascii")
