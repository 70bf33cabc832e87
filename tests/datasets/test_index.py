"""The index of a large data file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memorybench.core.errors import BadInput
from memorybench.core.records import digest
from memorybench.datasets import index, items, mapped
from memorybench.datasets.locating import local_source
from memorybench.datasets.mapped import MappedDataset, open_mapped

from .described import config, item


@pytest.fixture(autouse=True)
def every_file_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "SMALLEST", 0)


def write(folder: Path, count: int, suffix: str = "json") -> Path:
    rows = [item(id=f"q{n}", question=f"Where is number {n}? ü") for n in range(count)]
    file = folder / f"data.{suffix}"
    text = json.dumps(rows, indent=1) if suffix == "json" else "".join(f"{json.dumps(row)}\n" for row in rows)
    file.write_text(text, encoding="utf-8")
    return file


def open_file(file: Path, checksum: str = "checksum") -> MappedDataset:
    return open_mapped(config(), local_source(config(), file), lambda: checksum, file.parent / "indexes")


def content(dataset: MappedDataset) -> str:
    haystacks = [dataset.haystack(question.haystack) for question in dataset.questions]
    return digest([dataset.fingerprint, dataset.questions, dataset.notes, haystacks])


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_the_second_opening_gives_the_same_dataset_without_parsing_the_file(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, 3, suffix)
    first = content(open_file(file))

    def fail(*_: object) -> None:
        raise AssertionError("the file is parsed again")

    monkeypatch.setattr(mapped, "read_items", fail)
    assert content(open_file(file)) == first


def test_only_the_asked_items_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, 5)
    open_file(file)
    read: list[int] = []
    original = items._read_text
    monkeypatch.setattr(items, "_read_text", lambda path, span: read.append(span.position) or original(path, span))
    dataset = open_file(file)
    dataset.haystack(dataset.questions[3].haystack)
    assert read == [3]


def test_another_file_or_config_is_not_opened_by_the_index(tmp_path: Path) -> None:
    file = write(tmp_path, 3)
    open_file(file)
    assert len(open_file(write(tmp_path, 2), "another checksum").questions) == 2
    named = config(categories={"1": "named"})
    other = open_mapped(named, local_source(named, file), lambda: "checksum", tmp_path / "indexes")
    assert other.fingerprint != open_file(file).fingerprint


def test_a_file_with_the_size_and_time_of_another_is_parsed(tmp_path: Path) -> None:
    first = open_file(write(tmp_path, 3))
    second = open_file(tmp_path / "data.json", "another checksum")
    assert second.fingerprint != first.fingerprint


@pytest.mark.parametrize("damage", ["", "{", '{"fingerprint": 1}'])
def test_a_damaged_index_is_replaced(tmp_path: Path, damage: str) -> None:
    file = write(tmp_path, 3)
    first = content(open_file(file))
    [written] = (tmp_path / "indexes").iterdir()
    written.write_text(damage)
    assert content(open_file(file)) == first
    assert written.read_text() != damage


def test_only_the_newest_index_of_a_file_is_kept(tmp_path: Path) -> None:
    for count in (1, 2, 3):
        open_file(write(tmp_path, count), f"checksum {count}")
    assert len(list((tmp_path / "indexes").iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "indexes").write_text("a file")
    assert len(open_file(write(tmp_path, 3)).questions) == 3


def test_an_unexpected_file_is_reported_before_its_content(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text("[{}]")

    def unexpected() -> str:
        raise BadInput("checksum", "the checksum differs")

    with pytest.raises(BadInput) as error:
        open_mapped(config(), local_source(config(), file), unexpected)
    assert error.value.where == "checksum"
