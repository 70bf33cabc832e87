"""Finds the journal of a results folder: a SQLite file in it, or a Postgres database."""

from __future__ import annotations

import re
from pathlib import Path, PosixPath

from memorybench.core.errors import BadInput

from .contract import Journal
from .sqlite import SqliteJournal

_SCHEMES = ("postgresql://", "postgres://")
_PASSWORD = re.compile(r"(postgres(?:ql)?://[^\s:/?#@]*:)[^\s/?#]*(?=@)|([?&](?:ssl)?password=)[^\s&#]*", re.IGNORECASE)


class DatabaseFolder(PosixPath):
    """A results folder whose rows are in a Postgres database; reports and other files of its runs are in the folder.

    Paths that are made from it are plain: their `url` is "".
    """

    url = ""
    """The address of the database. It may contain a password: show `hide_password(url)`."""

    @classmethod
    def of(cls, folder: Path, url: str) -> DatabaseFolder:
        if not url.lower().startswith(_SCHEMES):
            expected = "postgresql://USER@HOST/DATABASE"
            raise BadInput("--journal", "invalid address of a database", expected=expected)
        found = cls(folder)
        found.url = url
        return found

    def absolute(self) -> DatabaseFolder:
        return self.of(Path(self).absolute(), self.url) if self.url else super().absolute()


def results_folder(folder: Path, url: str | None) -> Path:
    """Return a results folder; with `url`, its rows are in that Postgres database."""
    return DatabaseFolder.of(folder, url) if url is not None else folder


def journal_of(folder: Path) -> Journal:
    if isinstance(folder, DatabaseFolder) and folder.url:
        from .postgres import PostgresJournal

        return PostgresJournal(folder, folder.url, hide_password(folder.url))
    return SqliteJournal(folder)


def journal_words(folder: Path) -> list[str]:
    """Return the flag that names the database of a results folder in a command, without its password."""
    return ["--journal", hide_password(folder.url)] if isinstance(folder, DatabaseFolder) and folder.url else []


def hide_password(text: str) -> str:
    """Replace the passwords of Postgres addresses in a text by ***."""
    return _PASSWORD.sub(lambda match: f"{match[1] or match[2]}***", text)
