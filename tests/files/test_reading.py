from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from memorybench.files import reading
from memorybench.files.json_text import load_json
from memorybench.files.loading import load
from memorybench.files.rows import numbered_jsonl
from tests.doubles.refusals import refused


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv", "a.yaml"])
def test_a_missing_file_is_named(name, tmp_path):
    assert refused(load, tmp_path / name).where == str(tmp_path / name)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv", "a.yaml"])
def test_a_folder_is_refused(name, tmp_path):
    (tmp_path / name).mkdir()
    assert refused(load, tmp_path / name).where == str(tmp_path / name)


def test_a_file_without_read_permission_is_named(tmp_path, monkeypatch):
    def forbidden(*_):  # file modes do not stop the superuser, who may be running this
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)
    assert "permission" in refused(load_json, tmp_path / "a.json").remedy


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv", "a.yaml"])
@pytest.mark.parametrize("content", [b"", b"\n\n  \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert refused(load, tmp_path / name).where == f"{tmp_path / name}:1"


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv", "a.yaml"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named_and_refused(name, encoding, tmp_path):
    (tmp_path / name).write_bytes('{"a": "b"}\n'.encode(encoding))
    assert "UTF-16" in refused(load, tmp_path / name).problem


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("a.json", '{"a": "b"}', {"a": "b"}),
        ("a.jsonl", '{"a": "b"}\n', [{"a": "b"}]),
        ("a.csv", "a\nb\n", [{"a": "b"}]),
        ("a.yaml", "a: b\n", {"a": "b"}),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_every_kind_is_read_plain_and_packed_with_and_without_a_utf_8_mark(name, text, value, packed, mark, tmp_path):
    content = mark + text.encode()
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(content) if packed else content)
    assert load(path).value == value


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv", "a.yaml"])
def test_bytes_that_are_not_utf_8_are_named_by_line_and_column(name, tmp_path):
    (tmp_path / name).write_bytes(b"[1,\n  2, \xe9]\n" if name == "a.json" else b"1\nab\xe9\n")
    error = refused(load, tmp_path / name)
    assert error.where == f"{tmp_path / name}:2"
    assert "0xe9" in error.problem
    assert "UTF-8" in error.expected


def test_suffixes_may_be_capitals(tmp_path):
    (tmp_path / "A.JSON.GZ").write_bytes(gzip.compress(b"[1]"))
    assert load(tmp_path / "A.JSON.GZ").value == [1]


def test_a_file_named_gz_that_is_not_gzip_is_refused(tmp_path):
    (tmp_path / "a.json.gz").write_text("[1]")
    assert "gzip" in refused(load, tmp_path / "a.json.gz").problem


def test_gzip_under_another_name_is_refused(tmp_path):
    (tmp_path / "a.json").write_bytes(gzip.compress(b"[1]"))
    assert "a.json.gz" in refused(load, tmp_path / "a.json").remedy


@pytest.mark.parametrize("harm", [lambda b: b[: len(b) // 2], lambda b: b[:40] + b"\0\xff\0\xff" + b[44:]])
def test_a_damaged_gzip_file_is_refused(harm, tmp_path):
    packed = gzip.compress(json.dumps(list(range(5000))).encode())
    (tmp_path / "a.json.gz").write_bytes(harm(packed))
    assert "gzip" in refused(load, tmp_path / "a.json.gz").problem


def test_a_gzip_file_may_not_unpack_beyond_its_cap(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LARGEST", 1_000_000)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b"[" + b" " * 5_000_000 + b"]"))
    assert "1000000 bytes" in refused(load_json, tmp_path / "a.json.gz").problem


def test_a_stream_of_packed_rows_stops_at_the_cap(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LARGEST", 100)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"[1]\n" * 1000))
    rows = numbered_jsonl(path)
    assert [next(rows) for _ in range(25)] == [(number, [1]) for number in range(1, 26)]
    assert "100 bytes" in refused(next, rows).problem


def test_a_plain_file_has_no_cap(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LARGEST", 100)
    (tmp_path / "a.jsonl").write_bytes(b"[1]\n" * 1000)
    assert sum(1 for _ in numbered_jsonl(tmp_path / "a.jsonl")) == 1000


def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path):
    error = refused(load, tmp_path / "a.parquet")
    assert error.where == str(tmp_path / "a.parquet")
    assert ".jsonl" in error.expected
