"""Decides whether an answer is correct: by code if it is equal to a known answer, otherwise by the judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from memorybench.core.errors import Unreadable
from memorybench.core.plans import Steps
from memorybench.core.questions import Choice, Question
from memorybench.core.trials import Score
from memorybench.files.prompts import load_prompt
from memorybench.files.templates import Template
from memorybench.judging.judge import Judge
from memorybench.judging.prompts import ABSTENTION, JudgePrompt, JudgePrompts, named_prompt
from memorybench.suites.answering import BY_CODE
from memorybench.text.sanitize import preview

from .answers import is_abstention, is_same, occurs
from .probes import Probe

FLAG = "flag"
_PROMPT_NAMES = {
    "recall": "recall",
    "hallucination": "abstention",
    "conflict": "conflict",
    "as of": "conflict",
    "order": "order",
    "duration": "temporal",
}
_LETTERS = "AB"


class Judgement(Struct, frozen=True):
    correct: bool
    reason: str = ""
    by_judge: bool = False
    choice: int | None = None
    """The index of the option that the answer chooses; None if it chooses none, or the probe has no options."""


def judge_prompts() -> JudgePrompts:
    """Return the judge prompts of an audit. Conflicts whose answer must name both values have their own prompt."""
    flag = Template((load_prompt("judge-flag"),), "judge prompt flag")
    return JudgePrompts(names=_PROMPT_NAMES, by_type={FLAG: flag})


def used_prompts(probes: Iterable[Probe]) -> set[JudgePrompt]:
    """Return the judge prompts that these probes need, and the one that asks whether an answer declines."""
    kinds = {(probe.type, probe.kind, probe.flags, probe.abstain): probe for probe in probes}
    return {*judge_prompts().used(map(question_of, kinds.values())), named_prompt(ABSTENTION)}


def question_of(probe: Probe) -> Question:
    """Return the probe as a question for the judge.

    The gold answer also lists the values of other times, which are wrong.
    """
    kind = FLAG if probe.flags else probe.kind if probe.type == "temporal" else probe.type
    gold = probe.expected_answer
    if probe.stale and not probe.flags:
        gold += f"\nValues of other times: {'; '.join(probe.stale)}"
    choices = tuple(Choice(label, option) for label, option in zip(_LETTERS, probe.options, strict=False))
    if choices:
        gold = next(str(choice) for choice in choices if choice.text == probe.expected_answer)
    return Question(
        id=probe.id,
        haystack=probe.conversation,
        question=probe.question,
        answers=(gold,),
        labels={"question_type": kind},
        abstain=probe.abstain,
        choices=choices,
    )


async def judge_answer(steps: Steps, judge: Judge | None, probe: Probe, response: str) -> Judgement:
    """Judge an answer; raise Unreadable if neither code nor a judge can decide."""
    certain = _judge_by_code(probe, response)
    if certain is not None:
        return certain
    if judge is None:
        raise Unreadable(f"code cannot decide whether the answer {preview(response)} is right; add --judge-model MODEL")
    verdict = await judge.verdict(steps, question_of(probe), response)
    reason = " ".join((verdict.reason, *(f"({flag})" for flag in verdict.flags)))
    choice = _LETTERS.index(verdict.choice) if verdict.choice in tuple(_LETTERS) else None
    return Judgement(verdict.correct, reason, by_judge=True, choice=choice)


async def is_declined(steps: Steps, judge: Judge | None, probe: Probe, response: str) -> bool | None:
    """Return whether a wrong answer only says that it does not know.

    None if there is no judge to decide, or its reply is unreadable.
    """
    if not response.strip() or is_abstention(response):
        return True
    if judge is None:
        return None
    asked = question_of(probe).model_copy(update={"abstain": True, "answers": (), "choices": ()})
    try:
        return (await judge.verdict(steps, asked, response)).correct
    except Unreadable:
        return None


def names_stale(probe: Probe, response: str) -> bool:
    """Return whether an answer names an outdated value and not the current one, which explains why it is wrong."""
    is_stale = any(occurs(value, response) for value in probe.stale)
    return is_stale and not occurs(probe.current or probe.expected_answer, response)


async def scores_of(
    steps: Steps,
    judge: Judge | None,
    probe: Probe,
    response: str,
    judgement: Judgement,
    of_context: Sequence[Score] = (),
    of_evidence: Sequence[Score] = (),
) -> list[Score]:
    """Return the scores of an answer.

    `of_context` are scores of what the model saw; they are always included. `of_evidence` are included if the answer is
    wrong and names no outdated value; one that does gets the score `miss_stale` instead.
    """
    scores = [Score(name="correct", value=float(judgement.correct), reason=judgement.reason), *of_context]
    if judge is not None and not judgement.by_judge:
        scores.append(Score(name=BY_CODE, value=1.0))
    is_stale = not judgement.correct and names_stale(probe, response)
    if is_stale:
        scores.append(Score(name="miss_stale", value=1.0))
    elif not judgement.correct:
        if not probe.options:
            is_silent = False if probe.abstain else await is_declined(steps, judge, probe, response)
            if is_silent is not None and probe.type == "recall":
                scores.append(Score(name="answered", value=float(not is_silent)))
            if is_silent is False:
                scores.append(Score(name="miss_invented", value=1.0))
        scores += of_evidence
    if probe.abstain:
        scores.append(Score(name="hallucinated", value=float(not judgement.correct)))
    elif probe.type == "recall" and (judgement.correct or is_stale):
        scores.append(Score(name="answered", value=1.0))
    return scores


def has_pair_scores(probe: Probe) -> bool:
    """Return whether the trial of this probe gets the scores of its pair. Of two paired probes, only one does."""
    return probe.twin is not None and not probe.reversed and probe.type in ("temporal", "hallucination")


def pair_scores(probe: Probe, twin: Probe, own: Judgement, other: Judgement) -> list[Score]:
    """Return the scores of a pair: an order question in both orders, or an absent fact and its answerable twin."""
    both = float(own.correct and other.correct)
    if probe.type == "hallucination":
        return [Score(name="paired", value=both)]
    scores = [Score(name="ordered", value=both)]
    if own.choice is not None and other.choice is not None:
        same = probe.options[own.choice] == twin.options[other.choice]
        scores.append(Score(name="consistent", value=float(same)))
    return scores


def _judge_by_code(probe: Probe, response: str) -> Judgement | None:
    """Judge an answer that is empty, or equal to a known answer after normalisation; None for any other."""
    if not response.strip():
        return Judgement(correct=probe.abstain, reason="empty answer")
    if probe.options:
        choice = _chosen_option(response, probe.options)
        if choice is not None:
            right = probe.options[choice] == probe.expected_answer
            return Judgement(correct=right, reason=f"chose option {_LETTERS[choice]}", choice=choice)
    if not probe.abstain:  # before abstention: the value may be "none" or "unknown"
        units = ("", " days", " day") if probe.kind == "duration" else ("",)
        if any(is_same(response, probe.expected_answer + unit) for unit in units):
            return Judgement(correct=True, reason="equals the expected answer")
        if any(is_same(response, value) for value in probe.stale):
            return Judgement(correct=False, reason="equals a value of another time")
    if is_abstention(response):
        return Judgement(correct=probe.abstain, reason="declines to answer")
    return None


def _chosen_option(response: str, options: Sequence[str]) -> int | None:
    """Return the index of the one option that is the whole answer (its letter, text or both); None for any other."""
    chosen = [
        place
        for place, (letter, option) in enumerate(zip(_LETTERS, options, strict=False))
        if any(is_same(response, text) for text in (letter, f"Option {letter}", option, f"{letter} {option}"))
    ]
    return chosen[0] if len(chosen) == 1 else None
