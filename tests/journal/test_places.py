"""The address of a journal: `--journal`, without a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from memorybench.core.errors import BadInput
from memorybench.journal.places import hide_password, journal_of, journal_words, results_folder
from memorybench.journal.sqlite import SqliteJournal
from tests.cli.command import Command


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:pw@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgres://me:p:w@host/db", "postgres://me:***@host/db"),
        ("postgresql://me:p@w@host/db", "postgresql://me:***@host/db"),
        ("postgresql:///db?user=me&password=pw&host=/tmp", "postgresql:///db?user=me&password=***&host=/tmp"),
        (
            "--journal=postgresql://me:pw@host/db?sslpassword=pw",
            "--journal=postgresql://me:***@host/db?sslpassword=***",
        ),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
    ],
)
def test_a_password_is_hidden(address: str, shown: str) -> None:
    assert hide_password(address) == shown


def test_a_folder_keeps_its_database_and_paths_in_it_do_not(tmp_path: Path) -> None:
    folder = results_folder(tmp_path, "postgresql://me:pw@host/db")
    assert journal_words(folder.absolute()) == ["--journal", "postgresql://me:***@host/db"]
    assert journal_words(folder / "run") == []
    assert isinstance(journal_of(folder / "run"), SqliteJournal)
    assert results_folder(tmp_path, None) == folder == tmp_path


@pytest.mark.parametrize("address", ["mysql://me@host/db", "results.db", ""])
def test_another_kind_of_address_is_refused(command: Command, address: str) -> None:
    with pytest.raises(BadInput) as error:
        results_folder(Path(), address)
    assert error.value.where == "--journal"
    for words in (("eval", "--providers", "bm25"), ("results", "r"), ("runs",), ("compare", "a", "b")):
        refused = command(*words, "--journal", address)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert list(command.folder.iterdir()) == []
