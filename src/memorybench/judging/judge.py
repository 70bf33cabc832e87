"""A judge: asks a model whether a response is right and records the verdict as a step."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from memorybench.core.contracts import Completion, Model
from memorybench.core.errors import Unreadable
from memorybench.core.plans import Steps
from memorybench.core.questions import Choice, Question
from memorybench.core.records import Record
from memorybench.core.trials import Subject
from memorybench.text.normalisation import plain
from memorybench.text.reasoning import without_reasoning
from memorybench.text.sanitize import preview, sanitize, shorten

from .asking import ask_judge
from .choices import read_choice
from .prompts import DEFAULT, ORDER, RUBRIC_ITEM, JudgePrompt, JudgePrompts
from .verdicts import check_finished, read_item_score, read_verdict

_VERDICT = r"[\"'“‘(]?(?:yes|no|correct|incorrect|true|false|right|wrong)\b[\"'”’)]?"
_JUDGE = r"(?:judge|grader|evaluator|examiner|scorer|assessor|marker|reviewer)"
_RULES = r"(?:instruction|rubric|prompt|guideline|criteri(?:a|on)|rule|direction)s?"
_TO_YOU = (
    r"(?:^|[.!?;:\n>\]]\s*|\bplease\s+|\byou\s+(?:must|should|shall|have to|need to)\s+)"
    r"(?:(?:please|just|simply|now|always|only|then)\s+){0,3}"
)
_WHATEVER = r"[.,]?\s*(?:only\b|and nothing|regardless|no matter|whatever|for this\b)"

# the reason shown in reports, and its pattern
_SIGNS = tuple(
    (reason, re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for reason, pattern in (
        (
            "tells the judge what to answer",
            rf"{_TO_YOU}(?:answer|reply|respond|output|return)\s+(?:only\s+|just\s+)?(?:with\s+)?"
            rf"(?:the (?:single )?word\s+)?{_VERDICT}(?:\s*(?:$|[.,;!:\n])|{_WHATEVER})"
            rf"|{_TO_YOU}(?:say|write|print)\s+{_VERDICT}{_WHATEVER}",
        ),
        (
            "tells the judge how to mark it",
            r"\b(?:mark|grade|score|rate|judge|label|classify|count|evaluate|consider|treat|accept)\s+"
            r"(?:this|the|my|it|that)(?:\s+(?:response|answer|reply|one))?\s+(?:as|to be)\s+(?:fully\s+|completely\s+)?"
            r"(?:\"|')?(?:correct|right|true|yes|satisf\w+|passed|passing|valid|accurate)\b"
            r"|\b(?:score|rate|grade|give)\s+(?:this|the|my|it|that)(?:\s+(?:response|answer|reply|one))?\s+"
            r"(?:with\s+|as\s+)?(?:an?\s+)?(?:score of\s+)?(?:1(?:\.0)?|full (?:marks|score|credit))(?=[\s.,;!]*$)",
        ),
        (
            "asks to set the instructions aside",
            rf"{_TO_YOU}(?:ignore|disregard|forget|override|bypass)\s+(?:\w+\s+){{0,4}}?{_RULES}\b"
            rf"|\b(?:ignore|disregard)\s+(?:(?:all|any|the)\s+){{0,3}}(?:previous|prior|above|earlier)\s+(?:\w+\s+)?{_RULES}\b"
            rf"|\b(?:ignore|disregard|forget)\s+(?:everything|anything|all)\s+(?:above|before|that came)"
            rf"|\b(?:ignore|disregard)\s+the\s+(?:correct|gold|reference|expected)\s+answer\b"
            rf"|\bnew\s+{_RULES}\s*:",
        ),
        (
            "speaks to the judge",
            rf"(?:^|[.!?\n]\s*|\b(?:dear|attention|note to(?: the)?|hey|hello)\s+)(?:the\s+)?{_JUDGE}"
            rf"(?:\s+(?:model|llm|ai))?\s*[,:]|\bas (?:the|a|an) (?:\w+\s+)?{_JUDGE},? you\b"
            rf"|\byou are now (?:the|a|an) (?:\w+\s+)?{_JUDGE}\b",
        ),
        (
            "states its own verdict",
            r"^[^\w\n]{0,20}(?:final\s+|judge'?s\s+)?(?:verdict|judge?ment|grade|is_correct)[\"'*]*\s*[:=][\s\"'*]*"
            r"(?:yes|no|correct|incorrect|true|false|pass)\b|\bthe (?:correct )?verdict (?:is|must be|should be) "
            rf"{_VERDICT}",
        ),
        (
            "plays with the prompt's marks",
            r"</?(?:response|correct-answer|question|rubric|explanation|system|assistant|user|instructions?)\b[^>\n]{0,80}>"
            r"|<\|[a-z_]+\|>|\[/?INST\]|^(?:#{2,}|={3,}|-{3,}) *(?:end|begin|system|new)\b"
            r"|^system\s*:",
        ),
    )
)


def talks_to_judge(response: str) -> str | None:
    """Return why a response seems to address the judge, for example with an instruction; None if it does not."""
    text = plain(response)
    return next((reason for reason, sign in _SIGNS if sign.search(text)), None)


EMPTY = "empty answer"
_LONGEST_REASON = 300
_ONCE_MORE = "\nYour last reply could not be read. Reply with the single word yes, or with the single word no.\n"
_SCORE_AGAIN = "\nYour last reply could not be read. Reply with a single number: 0, 0.5 or 1.\n"
_CHOOSE_AGAIN = "\nYour last reply could not be read. Reply with a single word: A, B or neither.\n"
_NEITHER = Choice("neither", "neither")
_SERVER = re.compile(r"@https?://.*", re.DOTALL)
_VERSION = re.compile(r"(?:[-@]\d{4}-?\d\d-?\d\d|:latest|-latest)$")


class Verdict(Record):
    correct: bool
    reason: str = ""
    """The shortened reply of the judge, or the reason why no judge was asked."""
    flags: tuple[str, ...] = ()
    """Reasons why a person should check the verdict, such as a response that addresses the judge."""
    prompt: str = ""
    """The name of the judge prompt; empty if no judge was asked."""
    reply: str = ""
    """The whole reply of the judge; empty if `reason` is the whole reply."""
    choice: str = ""
    """The label of the option that the response chooses, or `neither`; empty for a question without options."""
    item: str = ""
    """The rubric item that was judged; empty if the whole response was judged."""
    score: float | None = None
    """The score of the rubric item: 0, 0.5 or 1; None if no item was judged."""


class Judge(Struct, frozen=True):
    model: Model
    prompts: JudgePrompts = field(default_factory=JudgePrompts)

    async def verdict(self, steps: Steps, question: Question, response: str, context: str = "") -> Verdict:
        """Return the verdict on a response. An empty response is decided without asking the judge.

        Raise Unreadable if two replies in a row cannot be read or the judge cannot be reached; the trial is then
        unscored. `context` is the text of the memories that the answering model saw. Only prompts with the variable
        `retrievedContext` show it to the judge.
        """
        if not response.strip():
            return Verdict(correct=question.abstain, reason=EMPTY)
        return await self.ask(steps, "judge", self.prompts.of(question), question, response, context)

    async def rubric(self, steps: Steps, question: Question, response: str, context: str = "") -> list[Verdict]:
        """Return the verdict on each item of the question's rubric.

        An empty response meets no item, or all if the question has no answer (`abstain`). Raise Unreadable at the
        first item whose score cannot be read, because the mean of the other items would be a different measure.
        """
        prompt = self.prompts.of(question)
        if not response.strip():
            score = float(question.abstain)
            return [
                Verdict(correct=question.abstain, reason=EMPTY, item=item.text, score=score) for item in question.rubric
            ]
        verdicts = []
        for place, item in enumerate(question.rubric, 1):
            judged = question.model_copy(update={"answers": (item.text,), "rubric": ()})
            try:
                verdicts.append(await self.ask(steps, "judge", prompt, judged, response, context))
            except Unreadable as error:
                raise Unreadable(f"item {place} of {len(question.rubric)} of the rubric: {error}") from error
        return verdicts

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
        """Ask for a verdict with one prompt, as the step `name`; ask a second time if the reply cannot be read.

        Other runs can reuse a `shared` verdict. Set it for verdicts that do not depend on the run, such as those on
        canaries.
        """
        flag = talks_to_judge(response)
        blank = Verdict(correct=False, flags=(flag,) if flag else (), prompt=prompt.name)
        text = prompt.render(question, response, context)
        return await _ask(steps, name, self.model, text, prompt.kind, question, blank, shared=shared)


async def ask_other_judge(steps: Steps, name: str, model: Model, prompt: str, recorded: Verdict) -> Verdict:
    """Ask another model with the prompt of a recorded verdict (yes or no, or a rubric item); return its verdict.

    The reply is parsed by the same rules. Other runs reuse the verdict, so a larger sample pays only for new ones.
    """
    if recorded.choice:
        raise ValueError("verdicts on options are not supported: the prompt does not say which option is right")
    for again in (_ONCE_MORE, _SCORE_AGAIN):
        prompt = prompt.removesuffix(again)  # the recorded verdict may be a second reply
    kind = DEFAULT if recorded.score is None else RUBRIC_ITEM
    question = Question(id="", haystack="", question="", answers=(recorded.item,))
    blank = Verdict(correct=False, prompt=recorded.prompt)
    return await _ask(steps, name, model, prompt, kind, question, blank, shared=True)


async def _ask(
    steps: Steps, name: str, model: Model, text: str, kind: str, question: Question, blank: Verdict, *, shared: bool
) -> Verdict:
    read_fields = _READERS.get(kind, _read_yes_or_no)

    def read(completion: Completion) -> Verdict:
        fields, reason = read_fields(question, completion), _short(completion.text)
        whole = completion.text if reason != completion.text else ""  # `reread_verdict` needs it
        return blank.model_copy(update={**fields, "reason": reason, "reply": whole})

    again = {ORDER: _CHOOSE_AGAIN, RUBRIC_ITEM: _SCORE_AGAIN}.get(kind, _ONCE_MORE)
    return await ask_judge(steps, name, model, text, again, read, Verdict, shared=shared)


def _read_yes_or_no(question: Question, reply: Completion) -> dict[str, Any]:
    return {"correct": read_verdict(reply.text, reply.finish)}


def _read_option(question: Question, reply: Completion) -> dict[str, Any]:
    """Parse the option that the response chose, as the judge says. The response is right if it is the gold answer."""
    check_finished(reply.text, reply.finish, "A, B or neither")
    label = read_choice(without_reasoning(reply.text), (*question.choices, _NEITHER))
    if label is None:
        raise Unreadable(
            f"invalid verdict of the judge: {preview(reply.text)}; expected the option that was chosen: A, B or neither"
        )
    right = any(choice.label == label and str(choice) in question.answers for choice in question.choices)
    return {"correct": right, "choice": label}


def _read_item(question: Question, reply: Completion) -> dict[str, Any]:
    """Parse the score of a rubric item. `question` is a copy whose only answer is the text of the item."""
    score = read_item_score(reply.text, reply.finish)
    return {"correct": score == 1.0, "score": score, "item": question.answers[0]}


_READERS: Mapping[str, Callable[[Question, Completion], dict[str, Any]]] = {
    ORDER: _read_option,
    RUBRIC_ITEM: _read_item,
}
"""By kind of prompt: the function that parses the reply. All other prompts ask for yes or no."""


def reread_verdict(verdict: Verdict) -> bool:
    """Return whether the recorded reply, parsed again, gives the recorded verdict.

    Raise Unreadable if the reply cannot be parsed. Earlier versions joined its lines, which may have this effect.
    """
    reply = verdict.reply or verdict.reason
    if verdict.reply and _short(verdict.reply) != verdict.reason:
        return False
    if verdict.score is not None:
        score = read_item_score(reply)
        return score == verdict.score and verdict.correct == (score == 1.0)
    if verdict.choice:
        options = (Choice("A", "A"), Choice("B", "B"), _NEITHER)
        return read_choice(without_reasoning(reply), options) == verdict.choice
    return read_verdict(reply) == verdict.correct


def self_judged(judge: Subject, reader: Subject) -> bool:
    """Return whether judge and answering model are the same model. Server, version and temperature are ignored."""
    names = (_SERVER.sub("", subject.name.lower()).rpartition("/")[2] for subject in (judge, reader))
    return len({_VERSION.sub("", name) for name in names}) == 1


def _short(reply: str) -> str:
    return shorten(" ".join(sanitize(reply).split()), _LONGEST_REASON)
