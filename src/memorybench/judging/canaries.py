"""Tests a judge with responses of known correctness, once per judge and prompt, before its verdicts count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from memorybench.core.errors import Unreadable
from memorybench.core.plans import Steps
from memorybench.core.questions import Question
from memorybench.core.records import Record

from .canary_cases import CASES, KINDS, RIGHT, CanaryCase
from .judge import Judge
from .prompts import ABSTENTION, JudgePrompt

STEP = "canary"

T = TypeVar("T")


class CanaryCount(Record):
    """The verdicts on one kind of response under one prompt."""

    prompt: str
    kind: str
    right: bool
    """The expected verdict."""
    agreed: int
    n: int
    unreadable: int = 0
    """Replies that could not be read; not included in n."""


class CanaryReport(Record):
    judge: str
    counts: tuple[CanaryCount, ...]

    @property
    def sensitivity(self) -> tuple[int, int]:
        """Returns how many right responses were called right, and how many there were."""
        return self._agreed(True)

    @property
    def specificity(self) -> tuple[int, int]:
        """Returns how many wrong responses were called wrong, and how many there were."""
        return self._agreed(False)

    @property
    def unreadable(self) -> int:
        return sum(count.unreadable for count in self.counts)

    def sentence(self) -> str:
        """Returns `judge gpt-4o on canaries: sensitivity 8 of 8, specificity 15 of 16 (vague: 1 wrong)`."""
        (hits, right), (passes, wrong) = self.sensitivity, self.specificity
        missed = {kind: sum(c.n - c.agreed for c in self.counts if c.kind == kind) for kind in KINDS}
        faults = [f"{kind}: {number} wrong" for kind, number in missed.items() if number]
        faults += [f"{self.unreadable} unreadable"] if self.unreadable else []
        remark = f" ({', '.join(faults)})" if faults else ""
        rates = f"sensitivity {hits} of {right}, specificity {passes} of {wrong}"
        return f"judge {self.judge} on canaries: {rates}{remark}"

    def _agreed(self, right: bool) -> tuple[int, int]:
        counts = [count for count in self.counts if count.right == right]
        return sum(count.agreed for count in counts), sum(count.n for count in counts)


async def check_judge(steps: Steps, judge: Judge, prompts: Sequence[JudgePrompt]) -> CanaryReport:
    """Asks the judge about the canaries of each prompt. The verdicts are recorded steps and not paid for again.

    Unreadable verdicts are counted separately; an exhausted budget blocks, as it does everywhere.
    """
    rows = [(prompt, kind) for prompt in prompts for kind in KINDS]
    counts = await _gather_all(*(_count(steps, judge, prompt, kind) for prompt, kind in rows))
    return CanaryReport(judge=judge.model.subject.name, counts=tuple(counts))


async def _count(steps: Steps, judge: Judge, prompt: JudgePrompt, kind: str) -> CanaryCount:
    verdicts = await _gather_all(*(_verdict(steps, judge, prompt, case, kind) for case in CASES[prompt.kind]))
    right = kind in RIGHT
    return CanaryCount(
        prompt=prompt.name,
        kind=kind,
        right=right,
        agreed=sum(verdict == right for verdict in verdicts),
        n=sum(verdict is not None for verdict in verdicts),
        unreadable=sum(verdict is None for verdict in verdicts),
    )


async def _verdict(steps: Steps, judge: Judge, prompt: JudgePrompt, case: CanaryCase, kind: str) -> bool | None:
    question = Question(
        id=kind, haystack="", question=case.question, answers=(case.gold,), abstain=prompt.kind == ABSTENTION
    )
    try:
        verdict = await judge.ask(steps, STEP, prompt, question, getattr(case, kind), shared=True)
    except Unreadable:
        return None
    return verdict.correct


async def _gather_all(*work: Awaitable[T]) -> list[T]:
    """Awaits all calls, so that finished ones are recorded, and then raises the first error."""
    done: list[T] = []
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done
