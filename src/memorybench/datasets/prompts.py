"""Parses answer and judge prompts and checks their variables."""

from __future__ import annotations

from memorybench.core.errors import BadInput
from memorybench.files.templates import Template

ANSWER_VARIABLES = ("question", "questionDate", "questionType", "retrievedContext")
JUDGE_VARIABLES = (*ANSWER_VARIABLES, "answer", "response", "rubric")


def answer_prompt(text: str, where: str) -> Template:
    """Parse a prompt for the answering model; raise BadInput if `${question}` is missing or a variable is unknown."""
    template = _template(text, where, ANSWER_VARIABLES)
    if "question" not in template.names:
        raise BadInput(where, "the prompt does not contain ${question}", remedy="add ${question} to the prompt")
    return template


def judge_prompt(text: str, where: str) -> Template:
    """Parse a judge prompt; append question, gold answer and response if it has no variables.

    Raise BadInput if it has variables, but not `${response}`.
    """
    template = _template(text, where, JUDGE_VARIABLES)
    if template.names and "response" not in template.names:
        raise BadInput(where, "the prompt does not contain ${response}", remedy="add ${response} to the prompt")
    return template


def _template(text: str, where: str, variables: tuple[str, ...]) -> Template:
    if not text.strip():
        raise BadInput(where, "the prompt is empty", remedy="write a prompt, or leave it out to use the default")
    return Template.parse(text, variables, where)
