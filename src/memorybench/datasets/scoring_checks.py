"""Checks the parts of a benchmark config that say how answers are judged: question types, prompts and the method."""

from __future__ import annotations

import re
from collections.abc import Callable

from memorybench.core.errors import BadInput
from memorybench.files.located import Document
from memorybench.files.prompts import JUDGE_PROMPTS
from memorybench.files.templates import Template
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, suggestion, unknown_name

from .config import AnswerPrompt, BenchmarkConfig, JudgePrompts, SchemaMapping
from .prompts import answer_prompt, judge_prompt

RUBRIC_VARIABLES = ("answer",)
"""Variables of `questionTypes[].rubric`."""


def check_question_types(config: BenchmarkConfig, document: Document) -> None:
    """Raise BadInput if a question type occurs twice, or its rubric or judge prompt cannot be used."""
    names = [kind.name for kind in config.question_types]
    for index, kind in enumerate(config.question_types):
        if kind.name in names[:index]:
            where = document.where("question_types", index, "name")
            raise BadInput(where, f"duplicate question type {preview(kind.name)}", remedy="remove one of the two")
        for number, text in enumerate(kind.rubric):
            where = document.where("question_types", index, "rubric", number)
            Template.parse(text, RUBRIC_VARIABLES, where)
            mapping = config.mapping
            if mapping is None or _has_rubric(mapping) or not text.strip():
                if not text.strip():
                    raise BadInput(where, "the item of the rubric is empty", expected="a text")
                raise BadInput(
                    where,
                    "a question type cannot have a rubric here: schema is missing, or has a rubric or choices",
                    expected="a schema without rubric and choices",
                )
        if kind.evaluation_prompt not in JUDGE_PROMPTS:
            raise BadInput(
                document.where("question_types", index, "evaluation_prompt"),
                f"unknown judge prompt {preview(kind.evaluation_prompt)}",
                expected=f"one of {join_names(JUDGE_PROMPTS)}",
                remedy=suggestion(kind.evaluation_prompt, JUDGE_PROMPTS)
                or "use one of these, or set judgePrompts.byQuestionType",
            )


def _has_rubric(mapping: SchemaMapping) -> bool:
    own = (mapping.question_path("rubric"), mapping.question_path("choices"))
    return any(own) or mapping.answer_mode == "rubric"


def _scores_rubrics(config: BenchmarkConfig) -> bool:
    mapping = config.mapping
    assert mapping is not None
    rubric = mapping.question_path("rubric")
    return bool(rubric) or mapping.answer_mode == "rubric" or any(kind.rubric for kind in config.question_types)


def check_evaluation(config: BenchmarkConfig, document: Document) -> None:
    """Raise BadInput at the first error of the section `evaluation`."""
    part, evaluation = document.at("evaluation"), config.evaluation
    if evaluation.method == "custom" and evaluation.custom_evaluator is None:
        raise BadInput(part.where(), '"customEvaluator" is missing', expected="./file.py:function")
    if evaluation.custom_evaluator is not None:
        _check_evaluator(evaluation.custom_evaluator, part.where("custom_evaluator"))
    if evaluation.f1_rule == "locomo" and evaluation.method == "contains":
        raise BadInput(
            part.where("f1_rule"),
            "f1Rule: locomo has no effect with method: contains",
            remedy="remove f1Rule, or set method: f1",
        )
    if "partial_credit" in evaluation.model_fields_set and config.mapping is not None and not _scores_rubrics(config):
        raise BadInput(part.where("partial_credit"), "partialCredit has no effect without a rubric", remedy="remove it")
    types = [kind.name for kind in config.question_types]
    sections: tuple[tuple[str, AnswerPrompt | JudgePrompts, Callable[[str, str], Template]], ...] = (
        ("answer_prompt", evaluation.answer_prompt, answer_prompt),
        ("judge_prompts", evaluation.judge_prompts, judge_prompt),
    )
    for name, prompts, parse in sections:
        if prompts.default is not None:
            parse(prompts.default, part.where(name, "default"))
        for kind, text in prompts.by_question_type.items():
            where = part.where(name, "by_question_type", kind)
            if types and kind not in types:
                raise unknown_name(where, f"unknown question type {preview(kind)}", kind, types)
            parse(text, where)


def _check_evaluator(evaluator: str, where: str) -> None:
    stem, _, suffix = evaluator.rpartition(".")
    if suffix in ("ts", "js", "mjs"):
        raise BadInput(where, f"{preview(evaluator)} is not a Python file", expected=f"{stem}.py:evaluate")
    if not re.fullmatch(r".+\.py:[A-Za-z_]\w*", evaluator):
        raise BadInput(
            where, f"{preview(evaluator)} does not name a Python file and a function", expected="./file.py:function"
        )
