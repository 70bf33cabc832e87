"""What code can not decide about two facts, a judge is asked: does the one say all that the other says?

Two questions a pair, one for each direction, each read as strictly as any verdict and each recorded as a step: the same
question is paid for once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from memorybench.core.plans import Steps
from memorybench.core.questions import Question
from memorybench.files.templates import Template

from .facts import MemoryFact
from .judge import Judge
from .matching import Comparison
from .matching_pairs import Matching, Pair, matched, open_pairs
from .prompts import JudgePrompt

STEP = "entail"

T = TypeVar("T")

_TEXT = """\
Below are two notes from the memory of an assistant about its user. The word before a colon is the category of a note.

The first note:
${answer}

The second note:
${response}

Answer yes if the first note says everything that the second note says: whoever knows the first knows the second. Other
words, another order and another category do no harm. Answer no if the second note adds, changes or denies anything:
another number, another name, another time, a "not" or a "maybe" more or less.
"""
PROMPT = JudgePrompt("entailment", Template.parse(_TEXT, ("answer", "response"), "entailment prompt"), "entailment")


@dataclass(frozen=True, slots=True)
class EntailmentJudge:
    judge: Judge

    async def says(self, steps: Steps, first: MemoryFact, second: MemoryFact, step: str = STEP) -> bool:
        """Whether the first fact says all that the second says. Raises Unreadable where the judge does not tell."""
        question = Question(id="", haystack="", question="", answers=(str(first),))
        verdict = await self.judge.ask(steps, step, PROMPT, question, str(second), shared=True)
        return verdict.correct

    async def decide(self, steps: Steps, matching: Matching) -> Matching:
        """The matching with every open pair put to the judge."""
        pairs = open_pairs(matching)
        told = await all_of(*(self._compared(steps, matching, pair) for pair in pairs))
        return matched(matching.grid.decided(dict(zip(pairs, told, strict=True)))) if pairs else matching

    async def _compared(self, steps: Steps, matching: Matching, pair: Pair) -> Comparison:
        gold, found = matching.grid.gold[pair[0]], matching.grid.found[pair[1]]
        says, said = await self.says(steps, found, gold), await self.says(steps, gold, found)
        return Comparison("same" if says and said else "different", says, said, holds=says, held=said)


async def all_of(*work: Awaitable[T]) -> list[T]:
    """All results. Where one raises, what is under way is finished, and so recorded, before it is raised."""
    done: list[T] = []
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done
