"""Selects the questions of a benchmark that a run asks."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from memorybench.core.errors import BadInput
from memorybench.core.questions import Dataset, Question
from memorybench.suites.sampling import cases_by_id, sample

from .spec import BenchSpec


def choose_questions(dataset: Dataset, spec: BenchSpec, failed: Collection[str] | None = None) -> tuple[Question, ...]:
    """Return the questions that the flags select: by position, type, id and earlier failure; then a sample of --limit.

    Positions count from 1, and --end is included. A run that has recorded its selection keeps it. `failed` are the ids
    of questions that failed in the run of --failed-in; None without that flag.
    """
    if dataset.name in spec.chosen:
        return tuple(cases_by_id(dataset.questions, spec.chosen[dataset.name], "--resume", dataset.name))
    total = len(dataset.questions)
    if spec.start is not None and spec.start > total:
        raise BadInput(
            "--start", f"{spec.start} is too high", expected=f"1 to {total}, the questions of {dataset.name}"
        )
    questions = list(dataset.questions[(spec.start or 1) - 1 : spec.end])
    if spec.question_types:
        types = sorted({question.kind for question in dataset.questions if question.kind})
        unknown = [name for name in spec.question_types if name not in types]
        if unknown:
            raise BadInput(
                "--question-type", f'{dataset.name} has no type "{unknown[0]}"', expected=f"one of {', '.join(types)}"
            )
        questions = [question for question in questions if question.kind in spec.question_types]
    if spec.question_ids:
        named = {one.id for one in cases_by_id(dataset.questions, spec.question_ids, "--question-id", dataset.name)}
        questions = [question for question in questions if question.id in named]
    if failed is not None:
        questions = [question for question in questions if question.id in failed]
        if not questions:
            raise BadInput(
                "--failed-in",
                f"no selected question of {dataset.name} failed in {spec.failed_in}",
                remedy=f"`memorybench results {spec.failed_in} --failures` lists the failed questions",
            )
    if not questions:
        raise BadInput(
            "",
            f"no question of {dataset.name} matches all of --start, --end, --question-type and --question-id",
            remedy="change these flags",
        )
    return tuple(_limit(questions, spec))


def _limit(questions: Sequence[Question], spec: BenchSpec) -> Sequence[Question]:
    if spec.sample_seed is not None:
        return sample(
            questions,
            spec.limit,
            spec.sample_seed,
            cluster=lambda question: question.group,
            kind=lambda question: question.kind,
        )
    if spec.limit is None or spec.limit >= len(questions) or spec.seed is None:
        return questions[: spec.limit]
    places = sorted(random.Random(spec.seed).sample(range(len(questions)), spec.limit))
    return [questions[place] for place in places]
