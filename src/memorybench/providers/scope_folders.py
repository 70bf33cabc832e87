"""A folder for each scope, and an incarnation for all of them: for systems that keep files of their own."""

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
    """Also remembers which sessions and turns the documents of a scope came from.

    No id of a benchmark is told to a system under test, because some tell which sessions hold an answer: it is told ids
    of ours, and what it names as a source is looked up here.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.store_id = _incarnation(folder / _INCARNATION)
        except OSError as error:
            raise BadInput(str(folder), f"can not be used: {error.strerror}", remedy="name another folder") from None
        self._folder = folder
        self._sources: dict[str, dict[str, tuple[str, ...]]] = {}

    @property
    def shared(self) -> Path:
        """Where a system that serves all scopes may keep what it likes."""
        return _made(self._folder / "data")

    def data(self, scope: str) -> Path:
        """Where the system may keep what it likes of this scope."""
        return _made(self._folder / "scopes" / scope / "data")

    def note(self, scope: str, sources: Mapping[str, Sequence[str]]) -> None:
        """What each document came from. To be called before it is stored: a killed process may not come to do it."""
        known = self._known(scope)
        new = {document: tuple(whence) for document, whence in sources.items() if document not in known}
        with (self.data(scope).parent / _SOURCES).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps([document, list(whence)]) + "\n" for document, whence in new.items())
        known |= new

    def whence(self, scope: str, document: str) -> Sequence[str]:
        """What a document came from; a name that is not ours stands for itself."""
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
    if whole != text:  # a killed process left half a line, which the next one must not be written behind
        file.write_text(whole, encoding="utf-8")
    return {document: tuple(sources) for document, sources in map(json.loads, whole.splitlines())}


def _incarnation(file: Path) -> str:
    if not file.exists():
        # written whole before it has its name: two processes may open a new folder at once
        made = file.with_name(f"{_INCARNATION}.{os.getpid()}")
        made.write_text(secrets.token_hex(16), encoding="ascii")
        try:
            with suppress(FileExistsError):  # another process was quicker: its incarnation is the one that holds
                os.link(made, file)
        finally:
            made.unlink()
    return file.read_text(encoding="ascii")
