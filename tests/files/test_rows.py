from __future__ import annotations

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.files import reading, rows
from memorybench.files.rows import load_csv, load_jsonl, numbered_jsonl, stream_csv
from tests.doubles.refusals import refused

CELLS = st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0\r"))


@pytest.fixture
def write(tmp_path):
    def written(text, name="f.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return written


def test_a_row_of_jsonl_has_its_line(write):
    path = write('{"q": 1}\n\n  \n{"q": {"a": 2}}\n', "f.jsonl")
    assert list(numbered_jsonl(path)) == [(1, {"q": 1}), (4, {"q": {"a": 2}})]


def test_loaded_jsonl_knows_the_line_of_each_row(write):
    document = load_jsonl(write('{"q": 1}\n\n{"q": 2}', "f.jsonl"))
    assert document.value == [{"q": 1}, {"q": 2}]
    assert document.where(1, "q") == f"{document.path}:3: q"
    assert document.where(9) == f"{document.path}: [9]"


def test_a_bad_line_is_named_and_the_rows_before_it_are_given(write):
    path = write('{"a": 1}\n{"a": }\n{"a": 3}\n', "f.jsonl")
    rows = numbered_jsonl(path)
    assert next(rows) == (1, {"a": 1})
    error = refused(next, rows)
    assert error.where == f"{path}:2"
    assert "column 7" in error.problem


def test_an_error_inside_a_line_has_its_path(write):
    path = write('{"a": 1}\n{"a": {"b": [NaN]}}\n', "f.jsonl")
    assert refused(load_jsonl, path).where == f"{path}:2: a.b[0]"


def test_an_incomplete_last_line_is_named(write):
    path = write('{"a": 1}\n{"a": "unfini', "f.jsonl")
    error = refused(load_jsonl, path)
    assert error.where == f"{path}:2"
    assert "last line" in error.problem


def test_two_values_on_one_line_are_refused(write):
    path = write('{"a": 1}{"a": 2}\n', "f.jsonl")
    assert "column 9" in refused(load_jsonl, path).problem


def test_a_row_of_csv_knows_its_first_line(write):
    path = write('id,text\n1,"two\nlines"\n\n2,one\n')
    rows = list(stream_csv(path))
    assert [row.value for row in rows] == [{"id": "1", "text": "two\nlines"}, {"id": "2", "text": "one"}]
    assert [row.where("text") for row in rows] == [f"{path}:2: text", f"{path}:5: text"]
    assert load_csv(path).where(1, "text") == f"{path}:5: text"


@pytest.mark.parametrize(
    ("text", "line", "detail"),
    [
        ("a,b\n1,2\n1,2,3\n", 3, "3 cells"),
        ("a,b\n1\n", 2, "1 cells"),
        ("a,,b\n1,2,3\n", 1, "column 2"),
        ("\n,\n1,2\n", 2, "column 1"),
        ('"\n"\n', 1, "column 1"),
        ("a,b, a\n1,2,3\n", 1, '"a"'),
        ("a,b\n1,\0\n", 2, "NUL"),
        ("a,long\0name\n1,2\n", 1, "NUL"),
        ('a,b\n1,2\n3,"4\n5,6\n', 3, "CSV"),
        ('a,b\n1,"2"3\n', 2, "CSV"),
    ],
)
def test_invalid_csv_is_refused_with_its_line(text, line, detail, write):
    path = write(text)
    error = refused(load_csv, path)
    assert error.where == f"{path}:{line}"
    assert detail in error.problem


def test_a_cell_longer_than_the_standard_librarys_limit_is_read(write):
    long = "x" * 500_000
    assert load_csv(write(f"a,b\n1,{long}\n")).value == [{"a": "1", "b": long}]


def test_a_line_above_the_size_limit_is_refused(write, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST_LINE", 10)
    path = write("[1]\n[1,2,3,4,5,6,7]\n", "f.jsonl")
    assert refused(load_jsonl, path).where == f"{path}:2"


def test_windows_line_ends_are_line_ends(write):
    path = write("a,b\r\n1,2\r\n3,4,5\r\n")
    rows = stream_csv(path)
    assert next(rows).value == {"a": "1", "b": "2"}
    assert load_jsonl(write('{"a": 1}\r\n{"a": 2}\r\n', "f.jsonl")).value == [{"a": 1}, {"a": 2}]


def test_rows_are_read_lazily(write, monkeypatch):
    decoded = []
    monkeypatch.setattr(rows, "decode", lambda line, *_: decoded.append(line) or json.loads(line))
    stream = numbered_jsonl(write("[1]\n[2]\n[3]\n", "f.jsonl"))
    next(stream)
    assert decoded == ["[1]\n"]


@given(st.lists(st.tuples(CELLS, CELLS), max_size=5))
def test_written_csv_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "f.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("a", "b"), *rows])
    assert [tuple(row.values()) for row in load_csv(path).value] == rows
