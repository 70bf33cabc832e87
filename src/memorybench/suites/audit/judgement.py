"""Whether an answer to a probe is right: by code where code can tell for certain, else by the judge."""

from __future__ import annotations

from collections.abc import Sequence

from memorybench.documents.templates import Template
from memorybench.judging.judge import Judge
from memorybench.judging.prompts import JudgePrompts
from memorybench.vocabulary.errors import Unreadable
from memorybench.vocabulary.plans import Steps
from memorybench.vocabulary.questions import Question
from memorybench.vocabulary.records import Record

from .probes import Probe
from .scoring import chosen_option, mentions, refuses

FLAG = "flag"
_NAMED = {"recall": "default", "hallucination": "abstention", "conflict": "knowledge-update", "temporal": "temporal"}
_FLAG_PROMPT = """\
I will give you a question about something that was said to be one thing and later to be another, the answer that \
tells both, and a response from a model.
Please answer yes if the response points out that there were different statements, or that it has changed, and says \
which of them is the current one. Answer no if it gives one value as if nothing else had ever been said.
"""


class Judged(Record):
    correct: bool
    reason: str = ""
    choice: int | None = None
    """Which option was taken, where the probe has options and it could be told."""


def judge_prompts() -> JudgePrompts:
    """The prompts of an audit. What contradicts itself has its own where it must be flagged."""
    return JudgePrompts(names=_NAMED, by_type={FLAG: Template((_FLAG_PROMPT,), "judge prompt flag")})


def question_of(probe: Probe) -> Question:
    """The probe as a judge is asked about it."""
    kind = FLAG if probe.flags else probe.type
    return Question(
        id=probe.id,
        haystack=probe.conversation,
        question=probe.question,
        answers=(probe.expected_answer,),
        labels={"question_type": kind},
        abstain=probe.abstain,
    )


async def judged(steps: Steps, judge: Judge | None, probe: Probe, response: str) -> Judged:
    """Raises Unreadable where nobody can tell."""
    certain = _certain(probe, response)
    if certain is not None:
        return certain
    if judge is not None:
        verdict = await judge.verdict(steps, question_of(probe), response)
        flags = "".join(f" ({flag})" for flag in verdict.flags)
        return Judged(correct=verdict.correct, reason=f"{verdict.reason}{flags}")
    return _by_code(probe, response)


def _certain(probe: Probe, response: str) -> Judged | None:
    if not response.strip():
        return Judged(correct=probe.abstain, reason="empty answer")
    if probe.options:
        choice = chosen_option(response, probe.options)
        if choice is not None:
            right = probe.options[choice] == probe.expected_answer
            return Judged(correct=right, reason=f"took option {choice + 1}", choice=choice)
    stale = _named(probe.stale, response)
    if stale and not mentions(response, probe.expected_answer) and not probe.flags:
        return Judged(correct=False, reason=f"gives the outdated {stale[0]!r}")
    return None


def _by_code(probe: Probe, response: str) -> Judged:
    if probe.abstain:
        refused = refuses(response)
        return Judged(correct=refused, reason="says that it does not know" if refused else "answers all the same")
    if probe.options:
        if refuses(response):
            return Judged(correct=False, reason="takes neither option")
        raise Unreadable(f"which option does {response[:80]!r} take? without a judge that can not be told")
    if probe.flags:
        both = mentions(response, probe.current) and bool(_named(probe.stale, response))
        return Judged(correct=both, reason="names both values" if both else "does not name both values")
    if _named(probe.stale, response):
        raise Unreadable("names the current and an outdated value: which one is meant takes a judge")
    found = mentions(response, probe.expected_answer)
    return Judged(correct=found, reason="holds the answer" if found else "does not hold the answer")


def _named(values: Sequence[str], response: str) -> list[str]:
    return [value for value in values if mentions(response, value)]
