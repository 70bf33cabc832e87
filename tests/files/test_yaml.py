from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memorybench.core.errors import BadInput
from memorybench.files import yaml_file
from memorybench.files.located import DEEPEST
from memorybench.files.yaml_file import load_yaml, parse_yaml
from tests.doubles.refusals import refused

PARSERS = [yaml.SafeLoader] + ([yaml.CSafeLoader] if yaml.__with_libyaml__ else [])

# what stands in YAML without escapes, and on one line
PRINTABLE = st.text(alphabet=st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=20)

CONFIG = """\
name: mem0
categories: {1: "Factual", 2: "Temporal"}
endpoints:
  add:
    path: /memories
    tags:
      - one
      - key: two

    body: |
      text
"""


@pytest.fixture(autouse=True, params=PARSERS)
def parser(request, monkeypatch):
    """PyYAML comes with and without its parser in C; both must read alike."""
    monkeypatch.setattr(yaml_file, "_PARSER", request.param)


def read(text):
    return parse_yaml(text, "f.yaml").value


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ((), 1),
        (("name",), 1),
        (("categories", "2"), 2),
        (("endpoints", "add", "path"), 5),
        (("endpoints", "add", "tags", 1), 8),
        (("endpoints", "add", "tags", 1, "key"), 8),
        (("endpoints", "add", "body"), 10),
    ],
)
def test_every_place_has_its_line(place, line):
    assert parse_yaml(CONFIG, "f.yaml").line(*place) == line


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("10", 10),
        ("-3", -3),
        ("0", 0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("12:30", "12:30"),
        ("09:30", "09:30"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("1.2.3", "1.2.3"),
        ("'no'", "no"),
        ('"010"', "010"),
        ("|\n  yes\n", "yes\n"),
        ("nothing", "nothing"),
        ("y", "y"),
    ],
)
def test_plain_values_are_what_they_look_like(written, value):
    got = read(f"a: {written}")["a"]
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize("word", ["no", "yes", "on", "off", "No", "YES"])
@pytest.mark.parametrize("form", ["a:\n  b: {}", "a:\n  - {}", "{{a: 1,\n b: {}}}"])
def test_words_that_yaml_1_1_reads_as_booleans_are_refused(word, form):
    error = refused(read, form.format(word))
    assert error.where.startswith("f.yaml:2: ")
    assert "true or false" in error.remedy


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        ("010", "10"),
        ("-007", "-7"),
        ("01.5", "1.5"),
        ("1_000", "1000"),
        ("0x1F", "decimal"),
    ],
)
def test_ambiguous_numbers_are_refused(number, remedy):
    error = refused(read, f"a:\n  b: {number}")
    assert error.where == "f.yaml:2: a.b"
    assert remedy in error.remedy


@pytest.mark.parametrize("number", [".nan", ".NaN", ".inf", "-.INF", "1e999"])
def test_numbers_that_are_not_finite_are_refused(number):
    error = refused(read, f"a: {number}")
    assert error.where == "f.yaml:1: a"
    assert number in error.problem


def test_an_integer_of_5000_digits_is_refused():
    assert refused(read, "a: 1\nb: " + "9" * 5000).where == "f.yaml:2: b"


def test_keys_are_text():
    assert read("1: a\non: b\n2024-01-01: c\n") == {"1": "a", "on": "b", "2024-01-01": "c"}


@pytest.mark.parametrize(
    ("text", "where", "detail"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "f.yaml:4: b.c", '"c"'),
        ('1: a\n"1": b\n', "f.yaml:2: 1", '"1"'),
        ("a: &x 1\nb: *x\n", "f.yaml:1: a", "alias"),
        ("a: *x\n", "f.yaml:1: a", "alias"),
        ("a: 1\nb: !!python/object/apply:os.system ['true']\n", "f.yaml:2: b", "tag"),
        ("a: !!str 5\n", "f.yaml:1: a", "tag"),
        ("a: !mine {b: 1}\n", "f.yaml:1: a", "tag"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2", "second YAML document"),
        ("a: 1\nb: [1, 2\nc: 3\n", "f.yaml:3", "column"),
        ("a:\n\t- b\n", "f.yaml:2", "column 1"),
        ("a: b: c\n", "f.yaml:1", "column 5"),
        ("a: 1\n? [b, c]\n: d\n", "f.yaml:2", "key"),
        ("a: 1\n? \n: d\n", "f.yaml:2", "key"),
        ("a: 1\nb: '\x07'\n", "f.yaml:2", "0x7"),
        ("# nothing\n# at all\n", "f.yaml:1", "comments"),
    ],
)
def test_invalid_yaml_is_refused_with_its_place(text, where, detail):
    error = refused(read, text)
    assert error.where == where
    assert detail in error.problem


def test_half_a_character_is_refused():
    assert refused(read, 'a: 1\nb: "\\ud83d"\n').where.startswith("f.yaml:2")


def test_an_alias_bomb_costs_nothing():
    levels = "".join(f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    assert refused(read, "a: &a [x]\n" + levels).where == "f.yaml:1: a"


@pytest.mark.slow
@pytest.mark.parametrize("opening", ["[", "{a: "])
def test_nesting_of_200000_levels_is_refused(opening):
    error = refused(read, "a:\n  " + opening * 200_000)
    assert error.where.startswith("f.yaml:2: a")
    assert str(DEEPEST) in error.problem


def test_nesting_is_counted_exactly():
    assert read("[" * DEEPEST + "]" * DEEPEST)
    assert str(DEEPEST) in refused(read, "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1)).problem


def test_a_file_is_read_with_its_lines(tmp_path):
    (tmp_path / "f.yaml").write_text(CONFIG)
    document = load_yaml(tmp_path / "f.yaml")
    assert document.where("endpoints", "add", "path") == f"{tmp_path / 'f.yaml'}:5: endpoints.add.path"


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | PRINTABLE,
        lambda inner: st.lists(inner) | st.dictionaries(PRINTABLE.filter(bool), inner),
        max_leaves=10,
    )
)
def test_json_is_yaml(value):
    assert read(json.dumps({"a": value}, ensure_ascii=False)) == {"a": value}


@given(st.text(alphabet="ab:-[]{}!&*|>'\"#, \n\t?~0179._e%@`\\") | st.text())
def test_any_text_is_a_value_or_a_one_line_error(text):
    try:
        parse_yaml(text, "f.yaml")
    except BadInput as error:
        refused = error
    else:
        return
    assert "\n" not in str(refused)
    assert refused.where.startswith("f.yaml")


def test_a_tab_is_among_the_causes_of_invalid_indentation() -> None:
    with pytest.raises(BadInput) as raised:
        parse_yaml("a:\n\tb: 1\n", "x.yaml")
    assert (raised.value.where, "tab" in raised.value.remedy) == ("x.yaml:2", True)
