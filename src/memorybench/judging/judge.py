"""A judge: asks a model whether a response is right, and reads what it decided inside the recorded step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from memorybench.core.contracts import Model
from memorybench.core.conversation import Turn
from memorybench.core.errors import ServiceError, Unreadable
from memorybench.core.plans import Steps
from memorybench.core.questions import Question
from memorybench.core.records import Record
from memorybench.core.trials import Subject
from memorybench.text.sanitize import sanitize

from .injection import talks_to_judge
from .prompts import JudgePrompt, JudgePrompts
from .verdicts import read_verdict

EMPTY = "empty answer"
_LONGEST_REASON = 300
_ONCE_MORE = "\nYour last reply could not be read. Reply with the single word yes, or with the single word no.\n"
_VERSION = re.compile(r"(?:[-@]\d{4}-?\d\d-?\d\d|:latest|-latest)$")


class Verdict(Record):
    correct: bool
    reason: str = ""
    """What the judge said, short; or why none was asked."""
    flags: tuple[str, ...] = ()
    """What a person should look at: the response talks to the judge."""
    prompt: str = ""
    """Which prompt was used; "": nobody was asked."""


@dataclass(frozen=True, slots=True)
class Judge:
    model: Model
    prompts: JudgePrompts = field(default_factory=JudgePrompts)

    async def verdict(self, steps: Steps, question: Question, response: str, context: str = "") -> Verdict:
        """Raises Unreadable where the judge can not be read twice in a row, or can not be reached: the response may
        be right or wrong, the trial stays unscored.

        `context` is what the reader saw, for prompts that show it. An empty response is not worth a question.
        """
        if not response.strip():
            return Verdict(correct=question.abstain, reason=EMPTY)
        return await self.ask(steps, "judge", self.prompts.of(question), question, response, context)

    async def ask(
        self,
        steps: Steps,
        name: str,
        prompt: JudgePrompt,
        question: Question,
        response: str,
        context: str = "",
        *,
        shared: bool = False,
    ) -> Verdict:
        """The verdict by one prompt, as a step called `name`; asked once more where it can not be read.

        A `shared` verdict is about the judge or a pair of facts, not about a run: other runs reuse it.
        """
        text = prompt.render(question, response, context)
        flag = talks_to_judge(response)
        blank = Verdict(correct=False, flags=(flag,) if flag else (), prompt=prompt.name)
        first = {"model": self.model.subject, "prompt": text, "attempt": 1}
        second = {"model": self.model.subject, "prompt": text + _ONCE_MORE, "attempt": 2}
        try:
            # a second reply that was left to us means that the first was not readable: it is not paid for again
            if not steps.is_inherited(name, second, shared=shared):
                with suppress(Unreadable):
                    return await self._attempt(steps, name, first, blank, shared)
            return await self._attempt(steps, name, second, blank, shared)
        except ServiceError as error:
            # the subject did its part: an instrument out of order is not its failure
            raise Unreadable(f"the judge failed: {error}") from error

    async def _attempt(
        self, steps: Steps, name: str, inputs: Mapping[str, Any], blank: Verdict, shared: bool
    ) -> Verdict:
        async def ask() -> Verdict:
            completion = await self.model.complete([Turn(role="user", content=inputs["prompt"])])
            correct = read_verdict(completion.text, completion.finish)
            return blank.model_copy(update={"correct": correct, "reason": _short(completion.text)})

        return await steps.once(name, inputs, ask, Verdict, on=self.model.subject, paid=True, shared=shared)


def self_judged(judge: Subject, reader: Subject) -> bool:
    """Whether a model judges its own answers, whichever door, version date or temperature it is called by."""
    return _model_name(judge) == _model_name(reader)


def _model_name(subject: Subject) -> str:
    return _VERSION.sub("", subject.name.lower().rpartition("/")[2])


def _short(reply: str) -> str:
    text = " ".join(sanitize(reply).split())
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"
