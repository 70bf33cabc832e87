from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonpath import findall

from memorybench.files.jsonpaths import Path
from tests.doubles.refusals import refused

ITEM = {"question_id": "q1", "memory": None, "chunk": "c", "turns": [{"text": "a"}, {"text": None}], "a-b": 1, "x y": 2}


def path(text):
    return Path.parse(text, "b.yaml:4: schema.itemId")


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("$.question_id", ["q1"]),
        ("question_id", ["q1"]),
        (" question_id ", ["q1"]),
        ("a-b", [1]),
        ("x y", [2]),
        ("turns[0].text", ["a"]),
        ("$.turns[-1].text", [None]),
        ("$.turns[2].text", []),
        ("$.turns[*].text", ["a", None]),
        ("$..text", ["a", None]),
        ("$.turns[?@.text == 'a'].text", ["a"]),
        ("$.absent", []),
        ("$.question_id.deeper", []),
        ("$", [ITEM]),
    ],
)
def test_a_path_finds_what_it_names(text, matches):
    assert path(text).all(ITEM) == matches
    assert path(text).first(ITEM) == (matches[0] if matches else None)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("$.memory | $.chunk", ["c"]),
        ("$.absent|chunk", ["c"]),
        ("$.chunk | $.question_id", ["c"]),
        ("$.absent | $.memory", [None]),
        ("$.absent | $.neither", []),
        ("$.turns[?@.text == '|' || @.text == 'a'].text | $.chunk", ["a"]),
    ],
)
def test_of_alternatives_the_first_that_holds_something_is_taken(text, matches):
    assert path(text).all(ITEM) == matches


@pytest.mark.parametrize("text", ["hello", "[1, 2]", '{"a": 1}', "{broken", ""])
def test_a_string_is_a_string_and_not_json_text(text):
    assert path("$").all(text) == [text]
    assert path("$.a").all(text) == path("$[0]").all(text) == path("$..a").all(text) == path("$[*]").all(text) == []


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("$.results[", 11),
        ("$.a b", 5),
        ("$.memory | $.chunk[", 20),
        ("  $.a b", 7),
        ("a.b[0", 6),
        ("$.a~", 4),
        ("", 1),
        ("$.a | ", 7),
        ("$[?nosuch(@)]", 4),
    ],
)
def test_a_broken_path_is_named_with_its_column(text, column):
    error = refused(path, text)
    assert error.where == "b.yaml:4: schema.itemId"
    assert error.problem.endswith(f"column {column}")


def test_a_path_says_whether_it_has_at_most_one_match():
    assert path("$.a[0] | b").singular
    assert not path("$.a | $.b[*]").singular


KEYS = st.sampled_from(["a", "b"])
TREES = st.recursive(
    st.integers() | st.none(), lambda i: st.lists(i, max_size=3) | st.dictionaries(KEYS, i), max_leaves=10
)


@given(TREES, st.lists(KEYS | st.integers(-3, 3), max_size=4))
def test_plain_paths_find_what_the_library_finds(tree, steps):
    text = "$" + "".join(f"[{json.dumps(step)}]" for step in steps)
    assert path(text).all(tree) == findall(text, tree, strict=True)


def test_a_value_nested_too_deeply_for_a_search_is_one_line():
    deep: list = []
    for _ in range(500):
        deep = [deep]
    assert refused(path("$..a").all, deep).where == "b.yaml:4: schema.itemId"
