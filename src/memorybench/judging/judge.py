"""A judge: asks a model whether a response is right and records the verdict as a step."""

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
    """The shortened reply of the judge, or why no judge was asked."""
    flags: tuple[str, ...] = ()
    """Why a person should check the verdict: the response addresses the judge."""
    prompt: str = ""
    """The name of the prompt; "": no judge was asked."""
    reply: str = ""
    """The whole reply, where `reason` is shortened."""


@dataclass(frozen=True, slots=True)
class Judge:
    model: Model
    prompts: JudgePrompts = field(default_factory=JudgePrompts)

    async def verdict(self, steps: Steps, question: Question, response: str, context: str = "") -> Verdict:
        """Returns the verdict on a response. An empty response is decided without asking the judge.

        Raises Unreadable if two replies in a row cannot be read or the judge cannot be reached: the trial stays
        unscored. `context` is what the answering model was shown, for prompts that include it.
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
        """Return the verdict by one prompt as the step `name`; ask a second time if the reply cannot be read.

        A `shared` verdict is about the judge or a pair of facts, not about a run: other runs reuse it.
        """
        text = prompt.render(question, response, context)
        flag = talks_to_judge(response)
        blank = Verdict(correct=False, flags=(flag,) if flag else (), prompt=prompt.name)
        first = {"model": self.model.subject, "prompt": text, "attempt": 1}
        second = {"model": self.model.subject, "prompt": text + _ONCE_MORE, "attempt": 2}
        try:
            # a recorded second reply means that the first was unreadable: it is not paid for again
            if not steps.is_inherited(name, second, shared=shared):
                with suppress(Unreadable):
                    return await self._attempt(steps, name, first, blank, shared)
            return await self._attempt(steps, name, second, blank, shared)
        except ServiceError as error:
            # the provider has answered: a failing judge is not its failure
            raise Unreadable(f"the judge failed: {error}") from error

    async def _attempt(
        self, steps: Steps, name: str, inputs: Mapping[str, Any], blank: Verdict, shared: bool
    ) -> Verdict:
        async def ask() -> Verdict:
            completion = await self.model.complete([Turn(role="user", content=inputs["prompt"])])
            correct = read_verdict(completion.text, completion.finish)
            reason = _short(completion.text)
            whole = completion.text if reason.endswith("…") else ""
            return blank.model_copy(update={"correct": correct, "reason": reason, "reply": whole})

        return await steps.once(name, inputs, ask, Verdict, on=self.model.subject, paid=True, shared=shared)


def self_judged(judge: Subject, reader: Subject) -> bool:
    """Returns whether a model judges its own answers; endpoint, version date and temperature are ignored."""
    own, other = (_VERSION.sub("", subject.name.lower().rpartition("/")[2]) for subject in (judge, reader))
    return own == other


def _short(reply: str) -> str:
    text = " ".join(sanitize(reply).split())
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"
