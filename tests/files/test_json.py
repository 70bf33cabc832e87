from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.core.errors import BadInput
from memorybench.files.json_text import find_json, load_json, parse_json
from memorybench.files.located import DEEPEST
from tests.doubles.refusals import refused

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


@pytest.mark.parametrize(
    ("text", "where", "detail"),
    [
        ('{"a": 1,\n "b" 2}', "f.json:2", "column 6"),
        ("[1,\n2,\n]", "f.json:3", "column 1"),
        ('["a\nb"]', "f.json:1", "column 4"),
        ('{"a": [1, 2', "f.json:1", "truncated"),
        ('[1,\n"unfinis', "f.json:2", "truncated"),
        ('{"a": 1}\n{"a": 2}', "f.json:2", "after"),
        ('{"q": [1,\n NaN]}', "f.json:2: q[1]", "NaN"),
        ("[-Infinity]", "f.json:1: [0]", "-Infinity"),
        ('{"a": 1e999}', "f.json:1: a", "out of range"),
        ('[1e999,\n{"a": 1, "a": 2}]', "f.json:2: [1].a", '"a"'),
        ("[1e999,\nNaN]", "f.json:2: [1]", "NaN"),
        ("NaN", "f.json:1", "NaN"),
        ('{"a": {"b": 1,\n"b": 2}}', "f.json:2: a.b", '"b"'),
        ('[{"a": 1}, {"a": 1, "\\u0061": 1}]', "f.json:1: [1].a", '"a"'),
        ('["ok",\n"\\ud83d"]', "f.json:2", "surrogate"),
        ('["\\ud83d\\ude00",\n"\\\\ud83d",\n{"\\ude00": 1}]', "f.json:3", "surrogate"),
    ],
)
def test_invalid_json_is_refused_with_its_place(text, where, detail):
    error = refused(parse_json, text, "f.json")
    assert error.where == where
    assert detail in error.problem


def test_one_value_per_line_suggests_jsonl():
    assert ".jsonl" in str(refused(parse_json, '{"a": 1}\n{"a": 2}', "f.json"))


def test_an_integer_of_5000_digits_is_refused_where_it_stands():
    text = '{"a": [1,\n{"n": ' + "9" * 5000 + "}]}"
    assert refused(parse_json, text, "f.json").where == "f.json:2: a[1].n"


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_nesting_of_200000_levels_is_refused(opening):
    assert refused(parse_json, '"]"\n'.join(["[\n", "," + opening * 200_000]), "f.json").where == "f.json:3"


def test_nesting_is_counted_exactly():
    assert parse_json("[" * DEEPEST + "]" * DEEPEST, "f.json")
    assert refused(parse_json, "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "f.json").where == "f.json:1"


def test_whole_characters_written_as_two_escapes_are_read():
    assert parse_json('["\\ud83d\\ude00", "\\\\ud83d"]', "f.json").value == ["😀", "\\ud83d"]


def test_the_line_of_a_place_is_found_in_the_file(tmp_path):
    path = tmp_path / "f.json"
    path.write_text('{\n "a": [\n  {"q": 1},\n  {\n   "q": 2\n  }\n ]\n}')
    document = load_json(path)
    assert document.where("a", 1, "q") == f"{path}:5: a[1].q"
    assert document.where("a", 0, "q") == f"{path}:3: a[0].q"
    assert document.where("a", 1) == f"{path}:4: a[1]"
    assert document.where("a", 1, "absent") == f"{path}:4: a[1].absent"
    assert document.where("a", 7) == f"{path}:2: a[7]"


def test_a_file_that_is_gone_when_a_line_is_asked_for_costs_only_the_line(tmp_path):
    path = tmp_path / "f.json"
    path.write_text('{"a": 1}')
    document = load_json(path)
    path.unlink()
    assert document.where("a") == f"{path}: a"


@pytest.mark.slow
@given(VALUES)
def test_valid_json_is_read_as_by_the_standard_library(value):
    assert parse_json(json.dumps(value), "f.json").value == value


@pytest.mark.slow
@given(VALUES, st.sampled_from([None, 0, 1, 3]), st.data())
def test_the_line_reported_for_any_place_is_the_line_it_stands_on(value, indent, data):
    place = []
    inner = value
    while isinstance(inner, (dict, list)) and inner and data.draw(st.booleans()):
        step = data.draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
        place.append(step)
        inner = inner[step]
    text = json.dumps(value, indent=indent)
    # the marked value is unlike any that was drawn, and stands where the place's value stood
    marked = _replaced(value, place, "\0mark\0")
    before = json.dumps(marked, indent=indent).partition(json.dumps("\0mark\0"))[0]
    assert parse_json(text, "f.json").line(*place) == before.count("\n") + 1


def _replaced(value, place, mark):
    if not place:
        return mark
    step, *rest = place
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[step] = _replaced(value[step], rest, mark)
    return copy


@given(st.text(alphabet='[]{}",:0123456789eE+-.NaNInfinity\\ud8 \ntrue') | st.text())
def test_any_text_is_a_value_or_a_one_line_error(text):
    try:
        parse_json(text, "f.json")
    except BadInput as error:
        refused = error
    else:
        return
    assert "\n" not in str(refused)
    assert refused.where.startswith("f.json:")


@pytest.mark.parametrize(
    ("text", "openings", "expected"),
    [
        ('So: {"a": [1]}, {"b": 2}. Done', "{", '{"a": [1]}, {"b": 2}'),
        ('[{"a": 1}] {', "{", '{"a": 1}'),
        ('[{"a": 1}] {', "{[", '[{"a": 1}]'),
        ("} {", "{", ""),
        ("none", "{[", ""),
        ("{" * 10**6, "{[", ""),
    ],
)
def test_json_in_a_text_is_from_the_first_bracket_to_the_last(text: str, openings: str, expected: str) -> None:
    assert find_json(text, openings) == expected
