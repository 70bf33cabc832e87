"""The checksum of a large data file is computed once, and again when the file changes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from memorybench.core.errors import BadInput
from memorybench.datasets import checksums
from memorybench.datasets.locating import local_source
from memorybench.datasets.sources import Source, verify_files

from .described import config


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every file is large and settled; the names of the files that were hashed."""
    names: list[str] = []

    def count(file: Path) -> str:
        names.append(file.name)
        return original(file)

    original = checksums.sha256_of
    monkeypatch.setattr(checksums, "sha256_of", count)
    monkeypatch.setattr(checksums, "SMALLEST", 0)
    monkeypatch.setattr(checksums, "SETTLED_SECONDS", 0)
    return names


def source(folder: Path, text: str = "[1]") -> Source:
    file = folder / "data.json"
    file.write_text(text)
    return local_source(config(), file)


def test_an_unchanged_file_is_hashed_once(tmp_path: Path, hashed: list[str]) -> None:
    data = source(tmp_path)
    assert verify_files(data, tmp_path / "cache") == verify_files(data, tmp_path / "cache")
    assert hashed == ["data.json"]
    assert verify_files(data) == verify_files(data, tmp_path / "cache")


def test_a_file_that_changed_behind_its_size_and_time_is_hashed_again(tmp_path: Path, hashed: list[str]) -> None:
    first = verify_files(source(tmp_path), tmp_path / "cache")
    status = (tmp_path / "data.json").stat()
    (tmp_path / "other.json").write_text("[2]")
    os.utime(tmp_path / "other.json", ns=(status.st_atime_ns, status.st_mtime_ns))
    (tmp_path / "other.json").replace(tmp_path / "data.json")
    assert verify_files(local_source(config(), tmp_path / "data.json"), tmp_path / "cache") != first
    assert hashed == ["data.json", "data.json"]


def test_a_file_that_changed_just_now_is_not_remembered(
    tmp_path: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksums, "SETTLED_SECONDS", 3600)
    data = source(tmp_path)
    verify_files(data, tmp_path / "cache")
    verify_files(data, tmp_path / "cache")
    assert hashed == ["data.json", "data.json"]


def test_a_remembered_checksum_is_compared_with_the_expected_one(tmp_path: Path, hashed: list[str]) -> None:
    verify_files(source(tmp_path), tmp_path / "cache")
    pinned = config(data={"type": "local", "path": "data.json", "sha256": "0" * 64})
    with pytest.raises(BadInput) as error:
        verify_files(local_source(pinned, tmp_path / "data.json"), tmp_path / "cache")
    assert "checksum" in error.value.problem
    assert hashed == ["data.json"]


@pytest.mark.parametrize("damage", ["", "{", '{"sha256": 1}'])
def test_a_damaged_note_is_ignored(tmp_path: Path, hashed: list[str], damage: str) -> None:
    data = source(tmp_path)
    first = verify_files(data, tmp_path / "cache")
    [note] = (tmp_path / "cache").iterdir()
    note.write_text(damage)
    assert verify_files(data, tmp_path / "cache") == first


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, hashed: list[str]) -> None:
    (tmp_path / "cache").write_text("a file")
    assert verify_files(source(tmp_path), tmp_path / "cache") == hashlib.sha256(b"[1]").hexdigest()
