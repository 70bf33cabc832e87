"""Items come one at a time, and each again, from every kind of file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.core.errors import BadInput
from memorybench.datasets.items import read_items
from memorybench.files import json_stream
from tests.doubles.refusals import refused

VALUES = [{"id": n, "text": "ä\n]}" * n, "inner": [{"x": [n]}]} for n in range(30)]


def both(path: Path, **options: Any) -> tuple[list[Any], list[Any]]:
    found = list(read_items(path, **options))
    return [item.document.value for item in found], [item.again().value for item in found]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("chunk", [7, 2**20])
def test_an_array_is_read_as_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, indent: int | None, chunk: int
) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", chunk)
    text = json.dumps(VALUES, indent=indent, ensure_ascii=False).encode()
    file = tmp_path / ("data.json.gz" if packed else "data.json")
    file.write_bytes(gzip.compress(text) if packed else text)
    assert both(file) == (VALUES, VALUES)


def test_an_item_knows_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text(json.dumps(VALUES[:3], indent=1), encoding="utf-8")
    third = list(read_items(file))[2]
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if '"id": 2' in text)
    for document in (third.document, third.again()):
        assert document.where("id") == f"{file}:{line}: [2].id"
        assert document.at("inner", 0).where("x") == f"{file}:{line + 4}: [2].inner[0].x"


def test_the_full_reader_reads_what_the_streaming_reader_cannot(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(VALUES).encode())
    assert both(file) == (VALUES, VALUES)


def test_the_array_may_be_nested(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text(json.dumps({"v": 1, "data": {"items": VALUES}}), encoding="utf-8")
    assert both(file, within="$.data.items") == (VALUES, VALUES)
    assert "$.items" in str(refused(lambda: list(read_items(file, within="$.items"))))


def test_rows_of_jsonl_and_csv(tmp_path: Path) -> None:
    lines = tmp_path / "data.jsonl"
    lines.write_text("".join(json.dumps(value) + "\n" for value in VALUES), encoding="utf-8")
    assert both(lines) == (VALUES, VALUES)
    table = tmp_path / "data.csv"
    table.write_text('id,talk,note\n1,"[{""text"": ""Hi, you""}]",[sic\n', encoding="utf-8")
    expected = [{"id": "1", "talk": [{"text": "Hi, you"}], "note": "[sic"}]
    assert both(table) == (expected, expected)
    assert next(iter(read_items(table))).again().where("talk") == f"{table}:2: talk"


def test_numbers_and_characters_of_an_item_are_the_same_when_it_is_read_again(tmp_path: Path) -> None:
    numbers = "[0.1, -0.0, -0, 1e-7, 5e-324, 1.7976931348623157e308, 123456789012345678901234567890, 1E5]"
    characters = r'"\u00e9 \ud83d\ude42 \u0000 \/ é 🙂"'
    file = tmp_path / "data.json"
    file.write_text(f'[{{"numbers": {numbers}, "characters": {characters}}}]', encoding="utf-8")
    first, again = both(file)
    assert repr(again) == repr(first)


def test_an_item_that_became_invalid_during_the_run_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text('[\n{"text": "Hi"}]', encoding="utf-8")
    (item,) = read_items(file)
    file.write_text('[\n{"text": NaNN}]', encoding="utf-8")
    assert refused(item.again).where.startswith(f"{file}:2")


def test_a_file_removed_during_the_run_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text(json.dumps(VALUES), encoding="utf-8")
    first = next(iter(read_items(file)))
    file.unlink()
    with pytest.raises(BadInput) as caught:
        first.again()
    assert caught.value.where == str(file)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9**20) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.text("xyz", max_size=2), JSON, max_size=3), max_size=6), st.booleans())
def test_both_readers_return_any_array_unchanged(
    tmp_path_factory: pytest.TempPathFactory, values: Any, ascii_: bool
) -> None:
    file = tmp_path_factory.mktemp("any") / "data.json"
    file.write_text(json.dumps(values, ensure_ascii=ascii_), encoding="utf-8")
    assert both(file) == (values, values)
