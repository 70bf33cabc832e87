from __future__ import annotations

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.files import reading, rows
from memorybench.files.rows import load_csv, load_jsonl, stream_csv, stream_jsonl

CELLS = st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0\r"))


@pytest.fixture
def write(tmp_path):
    def written(text, name="f.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return written


def test_a_row_of_jsonl_knows_its_line(write):
    path = write('{"q": 1}\n\n  \n{"q": {"a": 2}}\n', "f.jsonl")
    first, second = stream_jsonl(path)
    assert [first.value, second.value] == [{"q": 1}, {"q": {"a": 2}}]
    assert second.where("q", "a") == f"{path}:4: q.a"


def test_loaded_jsonl_knows_the_line_of_each_row(write):
    document = load_jsonl(write('{"q": 1}\n\n{"q": 2}', "f.jsonl"))
    assert document.value == [{"q": 1}, {"q": 2}]
    assert document.where(1, "q") == f"{document.path}:3: [1].q"
    assert document.where(9) == f"{document.path}: [9]"


def test_a_bad_line_is_named_and_the_rows_before_it_are_given(write, complaint):
    path = write('{"a": 1}\n{"a": }\n{"a": 3}\n', "f.jsonl")
    rows = stream_jsonl(path)
    assert next(rows).value == {"a": 1}
    assert complaint(next, rows).startswith(f"{path}:2: not JSON at column 7")


def test_a_fault_inside_a_line_has_its_place(write, complaint):
    path = write('{"a": 1}\n{"a": {"b": [NaN]}}\n', "f.jsonl")
    assert complaint(load_jsonl, path).startswith(f"{path}:2: a.b[0]: NaN is not a finite number")


def test_a_torn_last_line_is_named(write, complaint):
    path = write('{"a": 1}\n{"a": "unfini', "f.jsonl")
    assert complaint(load_jsonl, path).startswith(f"{path}:2: the last line is torn: ends in the middle of a value")


def test_two_values_on_one_line_are_refused(write, complaint):
    path = write('{"a": 1}{"a": 2}\n', "f.jsonl")
    assert "goes on after its value at column 9" in complaint(load_jsonl, path)


def test_a_row_of_csv_knows_its_first_line(write):
    path = write('id,text\n1,"two\nlines"\n\n2,one\n')
    rows = list(stream_csv(path))
    assert [row.value for row in rows] == [{"id": "1", "text": "two\nlines"}, {"id": "2", "text": "one"}]
    assert [row.where("text") for row in rows] == [f"{path}:2: text", f"{path}:5: text"]
    assert load_csv(path).where(1, "text") == f"{path}:5: [1].text"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n1,2,3\n", ":3: has 3 cells where the header has 2"),
        ("a,b\n1\n", ":2: has 1 cells where the header has 2"),
        ("a,,b\n1,2,3\n", ":1: column 2 has no name"),
        ("\n,\n1,2\n", ":2: column 1 has no name"),
        ('"\n"\n', ":1: column 1 has no name"),
        ("a,b, a\n1,2,3\n", ':1: two columns are named "a"'),
        ("a,b\n1,\0\n", ":2: holds a NUL byte"),
        ("a,long\0name\n1,2\n", ":1: holds a NUL byte"),
        ('a,b\n1,2\n3,"4\n5,6\n', ":3: not CSV: unexpected end of data"),
        ('a,b\n1,"2"3\n', ":2: not CSV"),
    ],
)
def test_what_is_wrong_with_csv_is_named_with_its_line(text, said, write, complaint):
    path = write(text)
    assert complaint(load_csv, path).startswith(f"{path}{said}")


def test_a_cell_longer_than_the_standard_librarys_limit_is_read(write):
    long = "x" * 500_000
    assert load_csv(write(f"a,b\n1,{long}\n")).value == [{"a": "1", "b": long}]


def test_a_line_without_end_is_refused_before_it_fills_the_memory(write, complaint, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST_LINE", 10)
    path = write("[1]\n[1,2,3,4,5,6,7]\n", "f.jsonl")
    assert complaint(load_jsonl, path).startswith(f"{path}:2: a line of more than 10 bytes")


def test_windows_line_ends_are_line_ends(write):
    path = write("a,b\r\n1,2\r\n3,4,5\r\n")
    rows = stream_csv(path)
    assert next(rows).value == {"a": "1", "b": "2"}
    assert load_jsonl(write('{"a": 1}\r\n{"a": 2}\r\n', "f.jsonl")).value == [{"a": 1}, {"a": 2}]


def test_rows_are_read_as_they_are_asked_for(write, monkeypatch):
    decoded = []
    monkeypatch.setattr(rows, "decode", lambda line, *_: decoded.append(line) or json.loads(line))
    stream = stream_jsonl(write("[1]\n[2]\n[3]\n", "f.jsonl"))
    next(stream)
    assert decoded == ["[1]\n"]


@given(st.lists(st.tuples(CELLS, CELLS), max_size=5))
def test_what_a_csv_writer_wrote_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "f.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("a", "b"), *rows])
    assert [tuple(row.values()) for row in load_csv(path).value] == rows
