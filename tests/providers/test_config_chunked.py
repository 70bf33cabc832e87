import pytest

from memorybench.core.errors import BadInput
from memorybench.files.yaml_file import parse_yaml
from memorybench.providers.config_reading import read_provider


def refusal(adapter: str, local: str) -> str:
    with pytest.raises(BadInput) as caught:
        read_provider(parse_yaml(f"name: sample\ntype: local\nadapter: builtin:{adapter}\nlocal: {local}", "a.yaml"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("adapter", "local", "complaint"),
    [
        ("aqrag", "{enhancement: {generateQuestions: true}}", 'local.enhancement: "model" is missing'),
        ("aqrag", "{retrieval: {strategy: dense}}", 'strategy: "dense" is not what this adapter does'),
        ("aqrag", "{retrieval: {weights: {question: 1}}}", 'did you mean "questions"?'),
        ("aqrag", "{retrieval: {weights: {chunk: -1}}}", "weights.chunk: -1.0 is no weight"),
        ("aqrag", "{retrieval: {weights: {chunk: 0}}}", "nothing counts"),
        ("aqrag", "{database: {schema: ./a.sql}}", "local.database.schema: has no effect on SQLite"),
        ("contextual-retrieval", "{retrieval: {weights: {chunk: 1}}}", "expected one of dense, lexical"),
        ("contextual-retrieval", "{retrieval: {strategy: dense, weights: {dense: 1}}}", "strategy: weighted beside it"),
        ("contextual-retrieval", "{enhancement: {model: m, questionsPerChunk: 3}}", "questionsPerChunk: has no effect"),
    ],
)
def test_what_has_no_effect_on_an_adapter_is_refused(adapter: str, local: str, complaint: str) -> None:
    assert complaint in refusal(adapter, local)


def test_an_enhancement_that_is_off_needs_no_model() -> None:
    text = "name: sample\ntype: local\nadapter: builtin:aqrag\nlocal: {enhancement: {enabled: false}}"
    local = read_provider(parse_yaml(text, "a.yaml")).local
    assert local is not None
    assert local.enhancement is not None
    assert local.enhancement.model is None
