from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.files.bodies import BodyTemplate
from memorybench.files.located import Document
from memorybench.files.yaml_file import parse_yaml
from tests.doubles.refusals import refused

MESSAGES = [{"role": "user", "content": 'say "hi"'}, {"role": "assistant", "content": "hi"}]
VALUES = {"content": "c", "limit": 5, "messages": MESSAGES, "metadata": {"a": None}, "scope": "s"}


def sent(body, **more):
    values = VALUES | more
    return BodyTemplate.parse(Document("p.yaml", body), set(values)).render(values)


def test_a_path_or_a_lone_placeholder_keeps_the_type_of_its_value():
    body = {"a": "$.messages", "b": "${limit}", "c": ["$.scope"], "d": "$.metadata", "e": {"f": "$.metadata.a"}}
    assert sent(body) == {"a": MESSAGES, "b": 5, "c": ["s"], "d": {"a": None}, "e": {"f": None}}


def test_placeholders_inside_text_are_text():
    assert sent({"a": "top ${limit} of ${scope}", "b": " ${limit}"}) == {"a": "top 5 of s", "b": " 5"}


def test_everything_else_is_sent_unchanged():
    body = {"n": 1, "x": None, "t": True, "money": "$5", "text": "no $.path here", "literal": "$${x}"}
    assert sent(body) == body | {"literal": "${x}"}


def test_a_path_with_many_matches_gives_them_all():
    assert sent("$.messages[*].content") == ['say "hi"', "hi"]
    assert sent("$.messages[5:].content") == []


EVERY_WAY = BodyTemplate.parse(
    Document("p.yaml", {"a": "$.content", "b": "${content}", "c": "<${content}>"}), set(VALUES)
)


@given(st.text())
def test_values_are_never_expanded(text):
    assert EVERY_WAY.render(VALUES | {"content": text}) == {"a": text, "b": text, "c": f"<{text}>"}


@pytest.mark.parametrize(
    "value", ["$.contnt", "${contnt}", "x ${contnt}", "$.contnt.id", "$['contnt']", "$.scope | $.contnt"]
)
def test_an_unknown_variable_is_refused_at_load_time_with_its_line(value):
    document = parse_yaml(
        f"endpoints:\n  add:\n    body:\n      user: '$.scope'\n      text:\n        - \"{value}\"\n", "p.yaml"
    )
    error = refused(BodyTemplate.parse, document.at("endpoints", "add", "body"), VALUES)
    assert error.where == "p.yaml:6: endpoints.add.body.text[0]"
    assert '"contnt"' in error.problem
    assert "content, limit" in error.expected
    assert '"content"' in error.remedy


@pytest.mark.parametrize("value", ["$", "$[0]", "$..content", "$[*]"])
def test_a_path_must_name_a_variable(value):
    assert refused(sent, {"a": value}).where == "p.yaml: a"


def test_a_broken_path_is_refused_with_its_column():
    assert "column 11" in refused(sent, {"a": "$.content and more"}).problem


def test_placeholders_in_keys_are_refused():
    assert refused(sent, {"a": {"${scope}": 1}}).where.startswith("p.yaml: a")


def test_a_missing_part_of_a_value_is_an_error():
    assert "$.metadata.b" in refused(sent, {"a": "$.metadata.b"}).problem


def test_a_missing_value_is_an_error():
    body = BodyTemplate.parse(Document("p.yaml", {"a": "${scope}"}), VALUES)
    assert "${scope}" in refused(body.render, {}).problem
