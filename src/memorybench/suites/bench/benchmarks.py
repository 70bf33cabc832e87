"""The benchmarks of a run: their questions, prompts and limits, read and checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memorybench.core.errors import BadInput
from memorybench.core.records import canonical
from memorybench.datasets.prompts import answer_prompt
from memorybench.files.prompts import load_prompt
from memorybench.suites.answering import CHOICE
from memorybench.suites.judge_prompts import judge_prompts
from memorybench.suites.sampling import describe_sample
from memorybench.suites.search_limits import SearchLimits
from memorybench.suites.shards import Unit

from .selection import choose_questions
from .spec import BenchSpec

if TYPE_CHECKING:
    from memorybench.core.questions import Dataset, Question
    from memorybench.datasets.config import BenchmarkConfig, Evaluation
    from memorybench.files.templates import Template
    from memorybench.judging.prompts import JudgePrompts
    from memorybench.suites.wiring import Wiring

_DATE_LINE = "Asked on: ${questionDate}\n"
_CLOSED_WORDS = 3
"""If gold answers have more words than this on average, they are free text, unless the benchmark says otherwise."""


class Benchmark(Struct, frozen=True):
    """One benchmark of a run, after its config and data are read and checked."""

    config: BenchmarkConfig
    dataset: Dataset
    questions: tuple[Question, ...]
    prompts: Mapping[str, Template]
    judge_prompts: JudgePrompts
    corrected: Mapping[str, Question]
    limits: SearchLimits
    method: str
    """How answers are scored, such as `exact-match` or `f1`. The verdicts of a judge, if there is one, replace it."""

    @property
    def name(self) -> str:
        return self.dataset.name

    @property
    def judge_calls(self) -> int:
        """The number of judge calls per provider and repeat.

        A question with a rubric needs one call per item. Of the others, a question with required texts, or with
        excluded texts and no gold answer, needs none, because code decides it; any other needs one, or two if its
        answer key is corrected.
        """
        return sum(judge_calls(one, is_corrected=one.id in self.corrected) for one in self.questions)


def answer_prompts(
    config: BenchmarkConfig, override: str | None = None, *, has_dates: bool = True
) -> Mapping[str, Template]:
    """Return the answer prompts of a benchmark by question type; the key "" is for all other types.

    `override` is the value of --answer-prompt, which replaces all of them. Without `has_dates`, the default prompts
    have no line for the date of the question.
    """
    own, where = config.evaluation.answer_prompt, f"{config.name}: evaluation.answerPrompt"
    if override is not None:
        if not own.user_override:
            raise BadInput(
                "--answer-prompt",
                f"the config of {config.name} does not allow another answer prompt (answerPrompt.userOverride: false)",
                remedy="leave the flag out",
            )
        return {"": answer_prompt(override, "--answer-prompt")}

    def load(name: str) -> str:
        return load_prompt(name) if has_dates else load_prompt(name).replace(_DATE_LINE, "")

    texts = {"": own.default or load("bench-answer"), **own.by_question_type}
    mapping = config.mapping
    if own.default is None and mapping is not None and mapping.question_path("choices"):
        texts[CHOICE] = load("bench-choice")
    return {kind: answer_prompt(text, where) for kind, text in texts.items()}


def answer_prompts_text(prompts: Mapping[str, Template]) -> str:
    """Return the answer prompts as one text, of which the fingerprint is made."""
    return canonical({kind: str(prompt.parts) for kind, prompt in prompts.items()})


def read_benchmark(
    name: str, spec: BenchSpec, wiring: Wiring, failed: Mapping[str, Collection[str]] | None
) -> Benchmark:
    config = wiring.benchmark(name)
    file = spec.data_files.get(name)
    dataset = wiring.dataset(config, Path(file) if file else None)
    errata = spec.errata.get(name)
    corrected: dict[str, Question] = {}
    if errata:
        from memorybench.datasets.errata import Citing, load_errata

        if not isinstance(dataset, Citing):
            raise BadInput(
                "--errata",
                f"{dataset.name} does not support corrections of its answer key",
                remedy="leave the flag out",
            )
        found = load_errata(Path(errata), dataset)
        corrected = {id: erratum.corrected for id, erratum in found.items()}
    return Benchmark(
        config,
        dataset,
        choose_questions(dataset, spec, None if failed is None else failed.get(dataset.name, ())),
        answer_prompts(config, spec.answer_prompt, has_dates=any(one.asked_at for one in dataset.questions)),
        judge_prompts(config, spec.judge_prompt),
        corrected,
        SearchLimits.of(spec, name, depth=config.search.default_limit, shown=config.search.context_limit),
        spec.methods.get(dataset.name) or scoring_method(config.evaluation, dataset.questions),
    )


def scoring_method(evaluation: Evaluation, questions: Sequence[Question]) -> str:
    """Return how answers are scored: the method of the config, but `f1` instead of `exact-match` for free text.

    Free text is seldom equal to the gold answer, so exact match would score nearly every answer as wrong.
    """
    if evaluation.method != "exact-match" or evaluation.closed_answers:
        return evaluation.method
    words = [min(len(gold.split()) for gold in one.answers) for one in questions if one.answers and not one.choices]
    is_closed = not words or sum(words) <= _CLOSED_WORDS * len(words)
    return "exact-match" if is_closed and evaluation.closed_answers is None else "f1"


def units_of(benchmarks: Sequence[Benchmark]) -> set[Unit]:
    return {(benchmark.name, question.group) for benchmark in benchmarks for question in benchmark.questions}


def part_of(benchmarks: Sequence[Benchmark], part: Collection[Unit] | None) -> tuple[Benchmark, ...]:
    """Return the benchmarks with only the questions about the histories in `part`; None: with all questions."""
    if part is None:
        return tuple(benchmarks)
    return tuple(
        replace(one, questions=tuple(question for question in one.questions if (one.name, question.group) in part))
        for one in benchmarks
    )


def samples_of(benchmarks: Sequence[Benchmark]) -> dict[str, dict[str, int]]:
    return {
        benchmark.name: describe_sample(benchmark.questions, benchmark.dataset.questions, lambda one: one.group)
        for benchmark in benchmarks
    }


def judge_calls(question: Question, *, is_corrected: bool = False) -> int:
    by_code = question.must_contain or (question.must_not_contain and not question.answers)
    return len(question.rubric) or (0 if by_code else 1 + is_corrected)
