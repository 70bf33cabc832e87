"""What a bench run depends on: the flags of `eval` and `score`."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from memorybench.core.errors import BadInput
from memorybench.suites.search_limits import SearchSpec
from memorybench.suites.spec import JudgedSpec, RepeatedSpec, flag

DEFAULT_BENCHMARKS = ("starter",)
DEFAULT_PROVIDERS = ("bm25", "dense", "hybrid", "none", "full-context", "oracle")
ANSWERS = "answers_per_question"
"""The key of a saved spec for the number of answers per question. `score --repeats` repeats only the verdicts."""
MEASURED_ON = "measured_on"
"""The key of a saved spec for the benchmarks that have each measure that not every question has."""
FIRST_MEASURES = "first_measures"
"""The key of a saved spec for the measures, by benchmark, that its config wants to see first."""


class BenchSpec(SearchSpec, RepeatedSpec):
    benchmarks: tuple[str, ...] = flag(DEFAULT_BENCHMARKS, help="Run these benchmarks.", metavar="NAME")
    providers: tuple[str, ...] = flag(DEFAULT_PROVIDERS, help="Compare these providers and baselines.", metavar="NAME")
    limit: int | None = flag(
        None, help="Sample N questions per benchmark across histories and types.", metavar="N", default_text="all", ge=1
    )
    sample_seed: int | None = flag(0, help="With --limit: draw the sample with this seed.", metavar="N")
    """The seed of the sample.

    None for a run of an earlier version, whose --limit took the first questions or, with `seed`, random ones.
    """
    start: int | None = flag(None, help="Start at question N of each benchmark, counting from 1.", metavar="N", ge=1)
    end: int | None = flag(None, help="End with question N, included; --limit samples from these.", metavar="N", ge=1)
    question_types: tuple[str, ...] = flag(
        (),
        help="Ask only these question types; `memorybench describe BENCHMARK` lists them.",
        name="--question-type",
        metavar="TYPE",
    )
    question_ids: tuple[str, ...] = flag(
        (), help="Ask only questions with these ids.", name="--question-id", metavar="ID"
    )
    failed_in: str | None = flag(None, help="Ask only questions that a chosen provider missed in RUN.", metavar="RUN")
    seed: int | None = flag(None, help="Send this seed to the answering model.", metavar="N")
    answering_model: str | None = flag(
        None,
        help='Answer with this model; "none" measures retrieval only.',
        metavar="MODEL",
        default_text="$MEMORYBENCH_MODEL, or the benchmark's if its key is set",
    )
    judge_model: str | None = flag(
        None,
        help="Judge the answers with this model.",
        metavar="MODEL",
        default_text="$MEMORYBENCH_JUDGE, or the benchmark's if its key is set",
    )
    answer_prompt: str | None = flag(
        None, help="Replace the benchmark's answer prompt (file or text).", metavar="PROMPT", file_or_text=True
    )
    judge_prompt: str | None = flag(
        None, help="Replace the benchmark's judge prompt (file or text).", metavar="PROMPT", file_or_text=True
    )
    data_files: Mapping[str, str] = flag(
        dict, help="Read the data of benchmark NAME from this copy.", name="--data-file", metavar="NAME=PATH"
    )
    errata: Mapping[str, str] = flag(
        dict, help="Also score benchmark NAME by this file of corrected answers.", name="--errata", metavar="NAME=PATH"
    )
    chosen: Mapping[str, tuple[str, ...]] = {}
    """By benchmark: the ids of the questions that --limit and --failed-in selected. A resumed run asks the same
    ones."""
    methods: Mapping[str, str] = {}
    """By benchmark: how its answers are scored. Decided when the run begins."""
    answers_of: str | None = None
    """The run whose recorded answers are judged again (`memorybench score`); None for other runs."""

    @classmethod
    def migrate(cls, saved: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"sample_seed": None, **saved}

    @model_validator(mode="after")
    def _start_before_end(self) -> Self:
        if self.start and self.end and self.start > self.end:
            raise BadInput("--start", f"{self.start} comes after --end {self.end}", expected="--start ≤ --end")
        return self


class ScoreSpec(JudgedSpec):
    reuse: str | None = None
    """Not a flag of this command, which always reuses the steps of the run that it scores."""
    store_is_disposable: bool = Field(False, exclude=True)
    """Not a flag of this command, which opens no memory."""
    run: str = flag(help="Judge answers of this run in --output (needed unless --resume).", name="run", metavar="RUN")
    judge_model: str = flag(help="Judge with this model (needed unless --resume).", metavar="MODEL")
    repeats: int | None = flag(
        None, help="Judge each answer N times; RUN must have no --repeats.", metavar="N", default_text="once", ge=1
    )
    judge_prompt: str | None = flag(
        None, help="Replace the benchmark's judge prompt (file or text).", metavar="PROMPT", file_or_text=True
    )
