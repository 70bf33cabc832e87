"""Whether an answer to a probe is right: by code where code can tell for certain, else by the judge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memorybench.core.errors import Unreadable
from memorybench.core.plans import Steps
from memorybench.core.questions import Question
from memorybench.files.templates import Template
from memorybench.judging.judge import Judge
from memorybench.judging.prompts import JudgePrompts

from .durations import days_right
from .probes import Probe
from .scoring import chosen_option, mentions, names_as_current, refuses
from .standings import standings

FLAG = "flag"
_NAMED = {"recall": "default", "hallucination": "abstention", "conflict": "knowledge-update", "temporal": "temporal"}
_FLAG_PROMPT = """\
I will give you a question about something that was said to be one thing and later to be another, the answer that \
tells both, and a response from a model.
Please answer yes if the response points out that there were different statements, or that it has changed, and says \
which of them is the current one. Answer no if it gives one value as if nothing else had ever been said.
"""
_CHANGED = re.compile(r"\b(?:chang|contradict|differ|conflict|used to|no longer|previous|before|earlier|former)")
"""Words of one who has noticed that it is no longer so."""


@dataclass(frozen=True, slots=True)
class Judged:
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


def answered(probe: Probe, response: str, judged: Judged) -> bool | None:
    """Whether it gives an answer, right or wrong; None: it can not be told. A right one is, whatever code reads."""
    if judged.correct or not response.strip():
        return judged.correct
    refused = refuses(response, probe.question)
    return None if refused is None else not refused


def _certain(probe: Probe, response: str) -> Judged | None:
    if not response.strip():
        return Judged(correct=probe.abstain, reason="empty answer")
    if probe.options:
        choice = chosen_option(response, probe.options)
        if choice is not None:
            right = probe.options[choice] == probe.expected_answer
            return Judged(correct=right, reason=f"took option {choice + 1}", choice=choice)
    stale = _given(probe.stale, probe, response)
    if stale and not probe.flags and mentions(response, probe.expected_answer, probe.question) is False:
        return Judged(correct=False, reason=f"gives the outdated {stale[0]!r}")
    return None


def _by_code(probe: Probe, response: str) -> Judged:
    refused = refuses(response, probe.question)
    if probe.abstain:
        reason = "says that it does not know" if refused else "answers all the same"
        return _told(refused, reason, f"whether {response[:80]!r} answers")
    if probe.options:
        return _told(False if refused else None, "takes neither option", f"which option {response[:80]!r} takes")
    if probe.flags:
        return _flagged(probe, response)
    if probe.kind == "duration":
        right = days_right(response, int(probe.expected_answer))
        return _told(False if refused else right, "compared in days", f"how many days {response[:80]!r} tells")
    return _compared(probe, response, refused)


def _flagged(probe: Probe, response: str) -> Judged:
    """To name both values is not enough: which of them holds must be told."""
    if not standings(response, probe.current, probe.question):
        return Judged(correct=False, reason="does not name what holds")
    if not any(standings(response, value, probe.question) for value in probe.stale):
        silent = _CHANGED.search(response.lower()) is None
        return _told(False if silent else None, "does not tell that it has changed", "whether that flags the change")
    right = names_as_current(response, probe.current, probe.stale, probe.question)
    reason = "tells what holds and what held before" if right else "takes what held before for what holds"
    return _told(right, reason, f"which of the values in {response[:80]!r} holds")


def _compared(probe: Probe, response: str, refused: bool | None) -> Judged:
    found = mentions(response, probe.expected_answer, probe.question)
    if found and _given(probe.stale, probe, response):
        # of what held at a date, the order in which values are named tells nothing
        later = names_as_current(response, probe.current, probe.stale, probe.question) if probe.current else None
        return _told(later, "names what held at other times as well", "which of the values is meant")
    if refused:
        return _told(None if found else False, "does not answer", "whether it answers")
    return _told(found, "holds the answer" if found else "does not hold the answer", f"what {response[:80]!r} answers")


def _told(correct: bool | None, reason: str, asked: str) -> Judged:
    if correct is None:
        raise Unreadable(f"{asked} can not be told without a judge")
    return Judged(correct=correct, reason=reason)


def _given(values: Sequence[str], probe: Probe, response: str) -> list[str]:
    return [value for value in values if mentions(response, value, probe.question)]
