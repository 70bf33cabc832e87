"""The search of files for deleted texts: what is decoded, how often, and the offsets of copies in large files."""

import base64
import gzip
import io
import lzma
import random
import sqlite3
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memorybench.secrets import canaries
from memorybench.secrets.decoding import Decoding, decodings
from memorybench.suites.hygiene.leftovers import FileSearch, Leftover

DELETED, TWIN = ["Madididizur", "Gafazimivel", "Fudedovatik"], ["Nobopalirex", "Sutavonigel"]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of all texts of some size that were decoded."""
    lengths: list[int] = []

    def count(text: str) -> Iterator[Decoding]:
        if len(text) > 1_000:
            lengths.append(len(text))
        return decodings(text)

    monkeypatch.setattr(canaries, "decodings", count)
    return lengths


def make_search(folder: Path) -> FileSearch:
    return FileSearch([folder], DELETED, TWIN, folder, {}, time.time(), lambda: None)


def find(folder: Path, octets: bytes) -> list[Leftover]:
    (folder / "data.bin").write_bytes(octets)
    return make_search(folder).search().leftovers


def prose(size: int) -> bytes:
    chance = random.Random(size)
    words = ["".join(chance.choices("abcdefghij", k=chance.randint(3, 9))) for _ in range(500)]
    return " ".join(chance.choice(words) for _ in range(size // 7)).encode()


def test_a_file_is_decoded_once_for_all_texts(tmp_path: Path, decoded: list[int]) -> None:
    octets = prose(60_000)
    assert find(tmp_path, octets) == []
    assert sum(decoded) == len(octets)


def zipped(octets: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("all", octets)
    return file.getvalue()


@pytest.mark.parametrize("pack", [gzip.compress, zipped], ids=["gzip", "zip"])
def test_the_bytes_of_a_compressed_stream_are_not_decoded(tmp_path: Path, decoded: list[int], pack: object) -> None:
    assert callable(pack)
    octets = prose(60_000)
    assert find(tmp_path, pack(octets)) == []
    assert sum(decoded) == len(octets)
    decoded.clear()
    assert find(tmp_path, pack(pack(octets))) == []
    assert sum(decoded) == len(octets)


def test_an_unchanged_file_is_not_searched_again(tmp_path: Path, decoded: list[int]) -> None:
    text = base64.b64encode(f"My cat is called {DELETED[0]}".encode())
    for name in ("kept.txt", "changed.txt"):
        (tmp_path / name).write_bytes(prose(5_000) + text)
    search = make_search(tmp_path)
    first = search.search()
    assert {one.file for one in first.leftovers} == {"kept.txt", "changed.txt"}
    assert search.search() == first
    decoded.clear()
    changed = prose(5_000)
    (tmp_path / "changed.txt").write_bytes(changed)
    second = search.search()
    assert {one.file for one in second.leftovers} == {"kept.txt"}
    assert sum(decoded) == len(changed)


@pytest.mark.parametrize("before", [100, 131_072 - 20, 300_000])
def test_the_place_of_an_encoded_copy_is_found_in_a_large_file(tmp_path: Path, before: int) -> None:
    copy = DELETED[1].encode().hex().encode()
    filler = b"-" * before
    (found,) = find(tmp_path, filler + copy + prose(3_000))
    assert (found.text, found.offset, found.encoding) == (DELETED[1], before, "hex")


def test_the_place_of_an_encoded_copy_between_compressed_streams_is_found(tmp_path: Path) -> None:
    packed, copy = gzip.compress(prose(20_000)), DELETED[0].encode().hex().encode()
    octets = b"head" + packed + b"\0\0" + copy + b"\0\0" + packed + b"tail"
    (found,) = find(tmp_path, octets)
    assert (found.offset, found.encoding) == (octets.index(copy), "hex")


def test_a_compressed_copy_in_a_row_of_a_database_is_in_its_table(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "facts.db")) as database:
        database.execute("CREATE TABLE old (content)")
        database.execute("INSERT INTO old VALUES (?)", (zlib.compress(f"My cat is called {DELETED[0]}".encode()),))
        database.commit()
    (found,) = make_search(tmp_path).search().leftovers
    assert (found.file, found.encoding, found.detail) == ("facts.db", "zlib", "row in table old")


def test_a_row_and_unused_bytes_of_a_database_are_told_apart(tmp_path: Path) -> None:
    """One copy is in a row, one where a row was, and one compressed in a row of another table."""
    text = f"My cat is called {DELETED[0]}, and this is a long story about it."
    with closing(sqlite3.connect(tmp_path / "facts.db")) as database:
        database.execute("PRAGMA secure_delete = OFF")
        database.execute("CREATE TABLE facts (content)")
        database.execute("CREATE TABLE audit (content)")
        database.execute("CREATE TABLE packed (content)")
        database.executemany("INSERT INTO facts VALUES (?)", [["I like tea."], [text], ["I like milk."]])
        database.execute("INSERT INTO audit VALUES (?)", [text])
        database.execute("INSERT INTO packed VALUES (?)", [lzma.compress(text.replace(*DELETED[:2]).encode() * 50)])
        database.commit()
        database.execute("DELETE FROM facts WHERE content = ?", [text])
        database.commit()
    found = {(one.text, one.area, one.detail) for one in make_search(tmp_path).search().leftovers}
    assert found == {
        (DELETED[0], "free pages", "unused bytes of page 2"),
        (DELETED[0], "files", "row in table audit"),
        (DELETED[1], "files", "row in table packed"),
    }


@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "utf-32-le", "utf-32-be"])
def test_a_copy_among_noise_is_found(tmp_path: Path, codec: str) -> None:
    noise = random.Random(1).randbytes(5_000)
    assert {one.text for one in find(tmp_path, noise + DELETED[0].upper().encode(codec) + noise)} == {DELETED[0]}


def test_a_file_beyond_the_limit_is_searched_as_plain_text_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memorybench.suites.hygiene.copies.LARGEST_DECODED", 10_000)
    encoded = DELETED[0].encode().hex().encode()
    (tmp_path / "data.txt").write_bytes(prose(20_000) + encoded + DELETED[1].encode())
    searched = make_search(tmp_path).search()
    assert [one.text for one in searched.leftovers] == [DELETED[1]]
    assert len(searched.unread) == 1
    assert searched.unread[0].startswith("data.txt: ")
