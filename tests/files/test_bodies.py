from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.files.bodies import BodyTemplate
from memorybench.files.located import Document
from memorybench.files.yaml_file import parse_yaml

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


def test_everything_else_is_sent_as_it_stands():
    body = {"n": 1, "x": None, "t": True, "money": "$5", "text": "no $.path here", "literal": "$${x}"}
    assert sent(body) == body | {"literal": "${x}"}


def test_a_path_with_many_matches_gives_them_all():
    assert sent("$.messages[*].content") == ['say "hi"', "hi"]
    assert sent("$.messages[5:].content") == []


@given(st.text())
def test_values_pass_unread_however_they_look(text):
    assert sent({"a": "$.content", "b": "${content}", "c": "<${content}>"}, content=text) == {
        "a": text,
        "b": text,
        "c": f"<{text}>",
    }


@pytest.mark.parametrize(
    "value", ["$.contnt", "${contnt}", "x ${contnt}", "$.contnt.id", "$['contnt']", "$.scope | $.contnt"]
)
def test_an_unknown_variable_is_refused_at_load_time_with_its_line(value, complaint):
    document = parse_yaml(
        f"endpoints:\n  add:\n    body:\n      user: '$.scope'\n      text:\n        - \"{value}\"\n", "p.yaml"
    )
    line = complaint(BodyTemplate.parse, document.at("endpoints", "add", "body"), VALUES)
    assert line.startswith(
        'p.yaml:6: endpoints.add.body.text[0]: unknown variable "contnt"; expected one of content, limit'
    )
    assert line.endswith('did you mean "content"?')


@pytest.mark.parametrize("value", ["$", "$[0]", "$..content", "$[*]"])
def test_a_path_must_name_a_variable(value, complaint):
    assert "names no variable" in complaint(sent, {"a": value})


def test_a_broken_path_is_refused_with_its_column(complaint):
    assert "at column 11" in complaint(sent, {"a": "$.content and more"})


def test_placeholders_in_keys_are_refused(complaint):
    assert "p.yaml: a.${scope}" in complaint(sent, {"a": {"${scope}": 1}}).replace('["', ".").replace('"]', "")


def test_a_part_of_a_value_that_is_not_there_is_an_error_and_no_hole(complaint):
    assert '"$.metadata.b" has no value here' in complaint(sent, {"a": "$.metadata.b"})


def test_a_value_that_was_not_given_is_an_error_and_no_hole(complaint):
    body = BodyTemplate.parse(Document("p.yaml", {"a": "${scope}"}), VALUES)
    assert "${scope} has no value here" in complaint(body.render, {})
