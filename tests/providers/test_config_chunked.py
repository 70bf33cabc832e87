import pytest

from memorybench.core.errors import BadInput
from memorybench.files.yaml_file import parse_yaml
from memorybench.providers.config.reading import read_provider


def error_line(adapter: str, local: str) -> str:
    with pytest.raises(BadInput) as caught:
        read_provider(parse_yaml(f"name: sample\ntype: local\nadapter: builtin:{adapter}\nlocal: {local}", "a.yaml"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("adapter", "local", "problem"),
    [
        ("aqrag", "{enhancement: {generateQuestions: true}}", 'local.enhancement: "model" is missing'),
        ("aqrag", "{retrieval: {strategy: dense}}", '"dense" is not supported'),
        ("aqrag", "{retrieval: {weights: {question: 1}}}", 'did you mean "questions"?'),
        ("aqrag", "{retrieval: {weights: {chunk: -1}}}", "weights.chunk: invalid weight -1.0"),
        ("aqrag", "{retrieval: {weights: {chunk: 0}}}", "all weights are 0"),
        ("aqrag", "{database: {schema: ./a.sql}}", "local.database.schema: "),
        ("contextual-retrieval", "{retrieval: {weights: {chunk: 1}}}", "expected one of dense, lexical"),
        ("contextual-retrieval", "{retrieval: {strategy: dense, weights: {dense: 1}}}", "without strategy: weighted"),
        (
            "contextual-retrieval",
            "{enhancement: {model: m, questionsPerChunk: 3}}",
            "questionsPerChunk: this key has no effect",
        ),
    ],
)
def test_invalid_local_section_is_an_error_with_its_place(adapter: str, local: str, problem: str) -> None:
    assert problem in error_line(adapter, local)


def test_an_enhancement_that_is_off_needs_no_model() -> None:
    text = "name: sample\ntype: local\nadapter: builtin:aqrag\nlocal: {enhancement: {enabled: false}}"
    local = read_provider(parse_yaml(text, "a.yaml")).local
    assert local is not None
    assert local.enhancement is not None
    assert local.enhancement.model is None
