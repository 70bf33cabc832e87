from __future__ import annotations

import pytest

from memorybench.files.environment import expand_environment
from memorybench.files.yaml_file import parse_yaml
from tests.doubles.refusals import refused


def expanded(text, **environment):
    return expand_environment(parse_yaml(text, "p.yaml"), environment)


def test_variables_and_defaults_are_filled_in_at_every_depth():
    text = "url: ${API_URL:-https://example.org/v1}/x\nnested: [{key: 'a ${A} b ${B2_C:-} c'}]\nn: 3\n"
    assert expanded(text, A="1").value == {"url": "https://example.org/v1/x", "nested": [{"key": "a 1 b  c"}], "n": 3}
    assert (
        expanded("url: ${API_URL:-https://example.org}", API_URL="http://localhost").value["url"] == "http://localhost"
    )


def test_an_expanded_document_still_knows_its_lines():
    assert expanded("a: 1\nb: ${X}\n", X="x").where("b") == "p.yaml:2: b"


@pytest.mark.parametrize("environment", [{}, {"DATABASE_URL": ""}])
def test_a_missing_variable_is_named_with_the_file_and_line(environment):
    error = refused(expanded, "a: 1\nlocal:\n  url: ${DATABASE_URL}\n", **environment)
    assert error.where == "p.yaml:3: local.url"
    assert "DATABASE_URL" in error.problem


def test_an_empty_variable_gives_way_to_the_default():
    assert expanded("a: ${X:-d}", X="").value == {"a": "d"}


@pytest.mark.parametrize(
    "text", ["${runTag}", "${question}", "$${HOME}", "${JSON.stringify(session)}", "$HOME", "${Home}"]
)
def test_template_placeholders_are_unchanged(text):
    assert expanded(f"a: '{text}'", HOME="x", JSON="x", Home="x").value == {"a": text}


def test_keys_are_unchanged():
    assert expanded("'${HOME}': 1", HOME="x").value == {"${HOME}": 1}


@pytest.mark.parametrize("reference", ["${X-d}", "${X:=d}", "${X:?d}", "${X:+d}"])
def test_other_shell_expansions_are_refused(reference):
    assert "${X:-default}" in refused(expanded, f"a: '{reference}'", X="x").expected


def test_a_value_is_never_expanded_again():
    error = refused(expanded, "a: ${SECRET}", SECRET="s3cr3t ${question}", question="x")
    assert error.where == "p.yaml:1: a"
    assert "SECRET" in error.problem
    assert "s3cr3t" not in str(error)
