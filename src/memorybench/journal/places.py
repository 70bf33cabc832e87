"""Returns the journal of a results folder: a SQLite file in the folder, or a Postgres database."""

from __future__ import annotations

import re
from pathlib import Path, PosixPath
from urllib.parse import unquote

from memorybench.core.errors import BadInput

from .contract import Journal
from .sqlite import SqliteJournal

_SCHEMES = ("postgresql://", "postgres://")
_EXPECTED = "postgresql://USER@HOST/DATABASE"
_USER_PASSWORD = re.compile(
    r"(postgres(?:ql)?://[^:/@]*:)"
    # libpq takes what stands before an @, if no / comes first; any other characters may be part of it
    r"((?:[^/]*@)(?:[^?]*@)?"
    # a password with a / or an @ that is not encoded: libpq takes parts of it for host, port and database
    r"|[^?]*@"
    r"|(?![^@/?]*\]|\d*[,/?]).*@)",
    re.IGNORECASE | re.DOTALL,
)
_PARAMETER = re.compile(r"([?&]([^=&?]*)=)([^&]*)")
_SECRET_PARAMETERS = frozenset(
    {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}
)


class DatabaseFolder(PosixPath):
    """A results folder whose journal is a Postgres database. Reports and other files of its runs are in the folder.

    Paths that are derived from it, such as `folder.parent` and `folder / name`, have the `url` "" and no database.
    """

    url = ""
    """The address of the database. It may contain a password: show `hide_password(url)`."""

    @classmethod
    def of(cls, folder: Path, url: str) -> DatabaseFolder:
        if not url.lower().startswith(_SCHEMES):
            raise BadInput("--journal", "invalid address of a database", expected=_EXPECTED)
        password = _USER_PASSWORD.match(url)
        if password is not None and re.search("[/@]", password[2][:-1]):
            # errors of libpq would show a part of it
            raise BadInput(
                "--journal",
                "invalid address of a database",
                expected=_EXPECTED,
                remedy="write / as %2F and @ as %40 in a user name, a password or the name of a database",
            )
        found = cls(folder)
        found.url = url
        return found

    def absolute(self) -> DatabaseFolder:
        return self.of(Path(self).absolute(), self.url) if self.url else super().absolute()


def results_folder(folder: Path, url: str | None) -> Path:
    """Return the folder with the Postgres database at `url` as its journal. If `url` is None, return it unchanged."""
    return DatabaseFolder.of(folder, url) if url is not None else folder


def journal_of(folder: Path) -> Journal:
    if isinstance(folder, DatabaseFolder) and folder.url:
        from .postgres import PostgresJournal

        return PostgresJournal(folder, folder.url, hide_password(folder.url))
    return SqliteJournal(folder)


def journal_words(folder: Path) -> list[str]:
    """Return the arguments `--journal ADDRESS` for a command to show; empty if the journal is a SQLite file.

    The password in the address is replaced by ***.
    """
    return ["--journal", hide_password(folder.url)] if isinstance(folder, DatabaseFolder) and folder.url else []


def hide_password(text: str) -> str:
    """Return a text in which the passwords of Postgres addresses are replaced by ***."""
    return _PARAMETER.sub(
        lambda match: f"{match[1]}***" if _is_secret(match[2]) else match[0], _USER_PASSWORD.sub(r"\1***@", text)
    )


def hide_passwords_of(url: str, text: str) -> str:
    """Return a text in which the passwords of one Postgres address are replaced by ***, however short they are."""
    text = text.replace(url, hide_password(url))
    for match in _USER_PASSWORD.finditer(url):
        text = text.replace(f":{match[2]}", ":***@")  # where the address was taken for a path, and // became /
    return text


def passwords_in(url: str) -> list[str]:
    """Return each password in a Postgres address twice: as written, and URL-decoded.

    A password that also occurs elsewhere in the address, such as `postgres` as user name, is left out, because the
    rest of the address is shown.
    """
    found = [match[2][:-1] for match in _USER_PASSWORD.finditer(url)]
    found += [match[3] for match in _PARAMETER.finditer(_USER_PASSWORD.sub("", url)) if _is_secret(match[2])]
    shown = hide_password(url)
    return [text for password in found for text in (password, unquote(password)) if text not in shown]


def _is_secret(parameter: str) -> bool:
    return unquote(parameter).lower() in _SECRET_PARAMETERS
