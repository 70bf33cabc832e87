"""Decides whether the answer to a probe is correct: by code if code is certain, otherwise by the judge."""

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

from .options import chosen_option
from .probes import Probe
from .refusals import refuses
from .spoken import sentences, unadorned, value_words
from .standings import Standing, standings
from .words import MONTHS

_ABOUT_THE_PAST = re.compile(r"\b(?:was|were|did|had|used to)\b")
_UNDECIDED = frozenset((Standing.PARTLY, Standing.ONE_OF_TWO, Standing.WAS))


def mentions(text: str, value: str, question: str = "") -> bool | None:
    """Return whether a reply gives a value as the answer to the question; None: unclear.

    A denied value is not given, nor is an earlier one, unless the question is about the past, nor one of three or more
    alternatives. It is unclear if the value is one of two alternatives, in a list of bare names, or only partly given.
    """
    senses = standings(text, value, question)
    past = _ABOUT_THE_PAST.search(question.lower()) is not None
    if any(standing >= (Standing.PAST if past else Standing.PLAIN) for standing in senses):
        return True
    if Standing.WAS in senses and len(sentences(text)) == 1:
        return True  # a single sentence with `it was` may be about the present
    return None if senses & _UNDECIDED else False


def names_as_current(text: str, current: str, stale: Sequence[str], question: str = "") -> bool | None:
    """Return whether a reply names one value as current and the others as earlier ones; None: unclear."""
    for_current = [standing for standing in standings(text, current, question) if standing >= Standing.PAST]
    for_stale = [one for value in stale for one in standings(text, value, question) if one >= Standing.PAST]
    if not for_current or not for_stale or max(for_current) == max(for_stale):
        return None
    return max(for_current) > max(for_stale)


_FORGIVEN = 1
_MONTH = "|".join(MONTHS)
_DATE = re.compile(
    r"(?:\b(?:from|to|between|and|until|on|since) )?"
    rf"(?:\d{{4}}-\d{{2}}-\d{{2}}|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTH})\b(?:,? \d{{4}})?"
    rf"|\b(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?)"
)
"""A date, which is not a number of days."""
_TERMS = re.compile(r"^.*=")
"""The terms of a sum, up to its last equals sign: only the result is an answer."""
_INEXACT = re.compile(
    r"\b(?:between|from|least|most|to|than|over|under|nearly|almost|not|never|or)(?: \w+){0,2} \d|\d \w*\b ?or\b"
)
"""A range, a bound, or a denial."""
_IN_DAYS = {"day": 1, "days": 1, "week": 7, "weeks": 7}
_OTHER_UNITS = frozenset(("month", "months", "year", "years", "hour", "hours", "minute", "minutes"))


def days_right(text: str, days: int) -> bool | None:
    """None: it gives no number, a range or a bound, several that do not agree, or months."""
    told = value_words(_TERMS.sub("", _DATE.sub(" ", unadorned(text).replace("\n", " "))))
    counted = None if _INEXACT.search(" ".join(told)) else _counted(told)
    return None if counted is None else abs(counted - days) <= _FORGIVEN


def _counted(said: Sequence[str]) -> int | None:
    """A number alone is days; weeks and days are added."""
    amounts = [(int(word), "".join(said[place + 1 : place + 2])) for place, word in enumerate(said) if word.isdigit()]
    units = [unit.removesuffix("s") for _, unit in amounts]
    if _OTHER_UNITS & set(said) or (len(amounts) != 1 and units != ["week", "day"]):
        return None
    return sum(number * _IN_DAYS.get(unit, 1) for number, unit in amounts)


FLAG = "flag"
_PROMPT_NAMES = {
    "recall": "default",
    "hallucination": "abstention",
    "conflict": "knowledge-update",
    "temporal": "temporal",
}
_FLAG_PROMPT = """\
I will give you a question about something that was said to be one thing and later to be another, the answer that \
tells both, and a response from a model.
Please answer yes if the response points out that there were different statements, or that it has changed, and says \
which of them is the current one. Answer no if it gives one value as if nothing else had ever been said.
"""
_CHANGED = re.compile(r"\b(?:chang|contradict|differ|conflict|used to|no longer|previous|before|earlier|former)")
"""Words by which an answer points out a change."""


@dataclass(frozen=True, slots=True)
class Judgement:
    correct: bool
    reason: str = ""
    by_judge: bool = False
    choice: int | None = None
    """The index of the chosen option, if the probe has options and the choice is clear."""


def judge_prompts() -> JudgePrompts:
    """Return the judge prompts of an audit; conflicts that must be flagged have their own."""
    return JudgePrompts(names=_PROMPT_NAMES, by_type={FLAG: Template((_FLAG_PROMPT,), "judge prompt flag")})


def question_of(probe: Probe) -> Question:
    """Return the probe as a question for the judge."""
    kind = FLAG if probe.flags else probe.type
    return Question(
        id=probe.id,
        haystack=probe.conversation,
        question=probe.question,
        answers=(probe.expected_answer,),
        labels={"question_type": kind},
        abstain=probe.abstain,
    )


async def judge_answer(steps: Steps, judge: Judge | None, probe: Probe, response: str) -> Judgement:
    """Judge an answer; raise Unreadable if neither code nor a judge can decide."""
    certain = _judge_if_certain(probe, response)
    if certain is not None:
        return certain
    if judge is not None:
        verdict = await judge.verdict(steps, question_of(probe), response)
        flags = "".join(f" ({flag})" for flag in verdict.flags)
        return Judgement(correct=verdict.correct, reason=f"{verdict.reason}{flags}", by_judge=True)
    return _judge_by_code(probe, response)


def is_answered(probe: Probe, response: str, judgement: Judgement) -> bool | None:
    """Return whether the response gives an answer, right or wrong; None: unclear. A correct response always does."""
    if judgement.correct or not response.strip():
        return judgement.correct
    refused = refuses(response, probe.question)
    return None if refused is None else not refused


def _judge_if_certain(probe: Probe, response: str) -> Judgement | None:
    if not response.strip():
        return Judgement(correct=probe.abstain, reason="empty answer")
    if probe.options:
        choice = chosen_option(response, probe.options)
        if choice is not None:
            right = probe.options[choice] == probe.expected_answer
            return Judgement(correct=right, reason=f"chose option {choice + 1}", choice=choice)
    stale = _mentioned(probe.stale, probe, response)
    if stale and not probe.flags and mentions(response, probe.expected_answer, probe.question) is False:
        return Judgement(correct=False, reason=f"gives the outdated {stale[0]!r}")
    return None


def _judge_by_code(probe: Probe, response: str) -> Judgement:
    refused = refuses(response, probe.question)
    if probe.abstain:
        reason = "declines to answer" if refused else "answers a question about an absent fact"
        return _decide(refused, reason, f"whether {response[:80]!r} answers")
    if probe.options:
        return _decide(False if refused else None, "chooses neither option", f"which option {response[:80]!r} chooses")
    if probe.flags:
        return _judge_flag(probe, response)
    if probe.kind == "duration":
        right = days_right(response, int(probe.expected_answer))
        return _decide(False if refused else right, "compared in days", f"how many days {response[:80]!r} means")
    return _judge_value(probe, response, refused)


def _judge_flag(probe: Probe, response: str) -> Judgement:
    """Judge an answer that must point out a change: it must name both values and say which one is current."""
    if not standings(response, probe.current, probe.question):
        return Judgement(correct=False, reason="does not name the current value")
    if not any(standings(response, value, probe.question) for value in probe.stale):
        mentions_change = _CHANGED.search(response.lower()) is not None
        return _decide(
            None if mentions_change else False, "does not mention the change", "whether it mentions the change"
        )
    right = names_as_current(response, probe.current, probe.stale, probe.question)
    reason = "names the current and the earlier value" if right else "names an earlier value as current"
    return _decide(right, reason, f"which of the values in {response[:80]!r} is current")


def _judge_value(probe: Probe, response: str, refused: bool | None) -> Judgement:
    has_value = mentions(response, probe.expected_answer, probe.question)
    if has_value and _mentioned(probe.stale, probe, response):
        # for a question about a past date, the order of the values decides nothing
        is_current = names_as_current(response, probe.current, probe.stale, probe.question) if probe.current else None
        return _decide(is_current, "also names values of other times", "which of the values is meant")
    if refused:
        return _decide(None if has_value else False, "does not answer", "whether it answers")
    reason = "contains the answer" if has_value else "does not contain the answer"
    return _decide(has_value, reason, f"what {response[:80]!r} answers")


def _decide(correct: bool | None, reason: str, question: str) -> Judgement:
    if correct is None:
        raise Unreadable(f"cannot decide without a judge {question}")
    return Judgement(correct=correct, reason=reason)


def _mentioned(values: Sequence[str], probe: Probe, response: str) -> list[str]:
    """Return the values that the response mentions."""
    return [value for value in values if mentions(response, value, probe.question)]
