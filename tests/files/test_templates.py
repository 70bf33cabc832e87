from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.files.templates import Template
from tests.doubles.refusals import refused

KNOWN = ("session", "dialogue", "date", "question")


def rendered(text, **values):
    return Template.parse(text, set(values), "p.yaml:3: prompt").render(values)


def test_placeholders_are_replaced_and_other_dollars_are_not():
    assert rendered("Q: ${question} costs $5, $x and {y}", question="how?") == "Q: how? costs $5, $x and {y}"


def test_a_doubled_dollar_is_a_literal_placeholder():
    assert rendered("$${question} is ${question}", question="x") == "${question} is x"


def test_the_names_of_a_template_are_known():
    assert Template.parse("${date}: ${session}, ${date} $${question}", KNOWN, "").names == {"date", "session"}


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (3, "3"), (0.5, "0.5"), (True, "true"), (["é"], '["é"]'), ({"a": None}, '{"a": null}')],
)
def test_in_text_none_is_nothing_and_other_values_are_json(value, text):
    assert rendered("<${x}>", x=value) == f"<{text}>"


@given(st.text(alphabet="${}ab x"), st.text(alphabet="${}ab x"))
def test_a_value_is_never_expanded(a, b):
    assert rendered("${a}|${b}|${a}", a=a, b=b) == f"{a}|{b}|{a}"


@given(st.text(alphabet="${}ab_ \n"))
def test_any_text_can_be_written_by_doubling(text):
    assert rendered(text.replace("${", "$${"), a="!") == text


def test_an_unknown_placeholder_names_the_nearest_and_all_there_are():
    error = refused(Template.parse, "${Quesion}", KNOWN, "p.yaml:3: prompt")
    assert error.where == "p.yaml:3: prompt"
    assert '"Quesion"' in error.problem
    assert "date, dialogue, question, session" in error.expected
    assert '"question"' in error.remedy


def test_javascript_of_earlier_configs_is_refused_with_its_replacement():
    error = refused(Template.parse, "Session: ${JSON.stringify(session)}", KNOWN, "b.yaml:9: formatTemplate")
    assert "${session}" in error.remedy
    turns = "${session.map(turn => `${turn.speaker}: ${turn.text}`).join('\\n')}"
    assert "${dialogue}" in refused(Template.parse, turns, KNOWN, "b.yaml:9: formatTemplate").remedy


def test_an_unknown_replacement_is_not_suggested():
    error = refused(Template.parse, "${JSON.stringify(session)}", {"question"}, "")
    assert "${session}" not in error.remedy
    assert "question" in str(error)


@pytest.mark.parametrize(
    "text", ["${", "${question", "${}", "${ question }", "${question.id}", "${1}", "${é}", "${a:-b}"]
)
def test_an_invalid_placeholder_is_refused(text):
    assert refused(Template.parse, text, KNOWN, "p").where == "p"


def test_a_missing_value_is_an_error():
    template = Template.parse("${date}", KNOWN, "p.yaml:3: prompt")
    error = refused(template.render, {})
    assert error.where == "p.yaml:3: prompt"
    assert "${date}" in error.problem
