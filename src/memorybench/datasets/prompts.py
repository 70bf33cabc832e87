"""What a prompt must and may contain."""

from __future__ import annotations

from memorybench.core.errors import BadInput
from memorybench.files.templates import Template

ANSWER_VARIABLES = ("question", "questionDate", "questionType", "retrievedContext")
JUDGE_VARIABLES = (*ANSWER_VARIABLES, "answer", "response", "rubric")


def answer_prompt(text: str, where: str) -> Template:
    """A prompt for the answering model. It never sees the gold."""
    template = _filled(text, where, ANSWER_VARIABLES)
    if "question" not in template.names:
        raise BadInput(where, "the prompt never asks the question", remedy="put ${question} into it")
    return template


def judge_prompt(text: str, where: str) -> Template:
    """A prompt for the judge. One without any variable is followed by question, gold answer and response."""
    template = _filled(text, where, JUDGE_VARIABLES)
    if template.names and "response" not in template.names:
        raise BadInput(where, "the judge never sees the response", remedy="put ${response} into the prompt")
    return template


def _filled(text: str, where: str, variables: tuple[str, ...]) -> Template:
    if not text.strip():
        raise BadInput(where, "the prompt is empty", remedy="write one, or leave the key out")
    return Template.parse(text, variables, where)
