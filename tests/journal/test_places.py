"""The address of a journal: `--journal`, without a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from memorybench import api
from memorybench.core.errors import BadInput
from memorybench.journal.places import hide_password, journal_of, journal_words, results_folder
from memorybench.journal.sqlite import SqliteJournal
from memorybench.wiring.environment import forget_secrets, redactor
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
        ("postgresql://me:hunter#two@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql://me:hunter?two@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql://me:hunter two@host/db", "postgresql://me:***@host/db"),
        ("postgresql://m?e#:pw&[]%@host/db?user=a@b", "postgresql://m?e#:***@host/db?user=a@b"),
        ("postgresql://me:hun/t@er@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:1234/x@host/db?user=a", "postgresql://me:***@host/db?user=a"),
        ("postgresql://me:pw@[::1]:5432,other:5433/db", "postgresql://me:***@[::1]:5432,other:5433/db"),
        ("postgresql:///db?password=hunter#two&user=me", "postgresql:///db?password=***&user=me"),
        ("postgresql:///db?p%61ssword=hunter%23two", "postgresql:///db?p%61ssword=***"),
        ("postgresql://host:5432/db?user=me@corp", "postgresql://host:5432/db?user=me@corp"),
        ("postgresql://one:1,two:2/db?user=me@corp", "postgresql://one:1,two:2/db?user=me@corp"),
        ("postgresql://[::1]:5432/db?user=me@corp", "postgresql://[::1]:5432/db?user=me@corp"),
    ],
)
def test_a_password_is_hidden(address: str, shown: str) -> None:
    assert hide_password(address) == shown


@pytest.mark.parametrize(
    "password", ["hunter#two", "hunter?two", "hunter two", "hunter%23two", "hunter@two", "hunter/two"]
)
def test_an_address_that_cannot_be_reached_is_shown_without_its_password(command: Command, password: str) -> None:
    pytest.importorskip("psycopg")
    for address in (f"postgresql://me:{password}@127.0.0.1:1/db", f"postgresql://127.0.0.1:1/db?password={password}"):
        for words in (("eval", "--providers", "bm25"), ("results", "r"), ("worker",), ("validate",)):
            refused = command(*words, "--journal", address)
            assert (refused.code, refused.err.count("\n")) == (2, 1), refused.err
            assert "hunter" not in refused.err
            assert "two" not in refused.err


@pytest.mark.parametrize(
    "words", [("runs", "ADDRESS"), ("results", "--jurnal=ADDRESS"), ("results", "ADDRESS"), ("ADDRESS",)]
)
def test_an_address_in_the_wrong_place_is_shown_without_its_password(command: Command, words: tuple[str, ...]) -> None:
    given = [word.replace("ADDRESS", "postgresql://me:pw1@127.0.0.1:1/db") for word in words]
    refused = command(*given)
    assert refused.code == 2
    assert "pw1" not in refused.err
    assert "pw1" not in command(*given, "--debug").err


def test_the_redactor_learns_the_password_as_written_and_decoded(command: Command) -> None:
    address = "postgresql://me:hunter%23two@127.0.0.1:1/db"
    assert command("runs", "--journal", address).code == 2
    assert "two" not in redactor().clean("hunter%23two and hunter#two")
    forget_secrets()
    with pytest.raises(BadInput):
        api.evaluate(providers="bm25", journal=address)
    assert "two" not in redactor().clean("hunter%23two and hunter#two")
    command("runs", "--journal", "postgresql://postgres:postgres@127.0.0.1:1/db")
    assert redactor().clean("postgresql://") == "postgresql://", "the address shows this word elsewhere"


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
