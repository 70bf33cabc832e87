"""Answers questions from retrieved memories and scores the answers. All providers share prompt, model and judge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn
from memorybench.core.errors import Unreadable
from memorybench.core.questions import Question
from memorybench.core.records import digest
from memorybench.core.trials import Failure, Score

if TYPE_CHECKING:
    from memorybench.core.contracts import Embedder, Model
    from memorybench.core.conversation import Memory
    from memorybench.core.plans import Steps
    from memorybench.files.templates import Template
    from memorybench.judging.judge import Judge

Custom = Callable[[Question, str], Awaitable[float]]
"""A scorer that the user supplies. It takes a question and an answer, and returns 0 (wrong) to 1 (right)."""

RUBRIC_SCORE, RUBRIC_MET = "rubric_score", "rubric_met"
"""Names of two scores: the weighted mean of the items of a rubric, and 1 if every item is fully met, else 0."""
EXCLUDED = "excluded_in_answer"
BY_CODE = "decided_by_code"
"""The name of a score: 1 if code decided whether an answer is right, although the run has a judge."""
CHOICE = "(multiple choice)"
"""The key in `Answering.prompts` of the prompt for multiple-choice questions, which asks for the label of a choice."""
SIMILAR = 0.8
"""An answer counts as right if the cosine of its embedding and that of a gold answer is at least this."""
_BYTES_PER_TOKEN = 4


class Scoring(Struct, frozen=True):
    """How answers are compared with the gold answers."""

    method: str
    """How an answer is scored: exact-match, f1, contains, semantic-similarity, llm-judge or custom."""
    partial_credit: bool = True
    """If True, an item of a rubric that is half met counts 0.5, otherwise 0."""
    official_f1: bool = False
    """If True, F1 is computed as LoCoMo's own code does, by question category; otherwise it is plain token F1."""
    judge: Judge | None = None
    embedder: Embedder | None = None
    custom: Custom | None = None


class Answering(Struct, frozen=True):
    """How questions are answered: one model and one prompt per question type, for every provider."""

    model: Model
    prompts: Mapping[str, Template]
    """The prompt for each question type. Question types without one use the key CHOICE if the question has choices,
    else ""."""
    scoring: Scoring
    all_recorded: bool = False
    """Whether another run recorded all answers, as for `score`. The model is not asked then."""

    def prompt(self, kind: str, *, has_choices: bool = False) -> Template:
        own = self.prompts.get(kind) if kind else None
        return own or (has_choices and self.prompts.get(CHOICE)) or self.prompts[""]


class Scored(Struct, frozen=True):
    """The scores of an answer. `unscored` is the reason why the judge or code could not decide; None if it could."""

    scores: tuple[Score, ...]
    reason: str = ""
    unscored: Failure | None = None


def context_of(memories: Sequence[Memory], *, chunks: bool = False) -> str:
    """Join memories into the text that the answering model reads; `chunks` adds the passages of each memory."""
    if not chunks:
        return "\n\n".join([memory.content for memory in memories])
    return "\n\n".join("\n".join((memory.content, *memory.chunks)) for memory in memories)


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text as its UTF-8 bytes divided by four, for every provider alike."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


async def answer(steps: Steps, answering: Answering, question: Question, context: str) -> Completion:
    return await ask(
        steps,
        answering,
        question.question,
        context,
        kind=question.kind,
        at=question.asked_at,
        has_choices=bool(question.choices),
    )


async def ask(
    steps: Steps,
    answering: Answering,
    question: str,
    context: str,
    *,
    kind: str = "",
    at: datetime | None = None,
    has_choices: bool = False,
    before: Sequence[Turn] = (),
) -> Completion:
    """Ask the answering model a question and return its reply.

    `context` is the text of the memories, `kind` the question type, `at` the time of the question. Question types may
    have different prompts. The turns `before` are sent before the prompt.
    """
    date = at.strftime("%Y-%m-%d %H:%M") if at else ""
    fields = {"question": question, "questionDate": date, "questionType": kind, "retrievedContext": context}
    text = answering.prompt(kind, has_choices=has_choices).render(fields)
    model = answering.model
    replayed = {"replayed": digest([turn.plain() for turn in before])} if before else {}
    if answering.all_recorded and has_choices and not kind:
        # earlier versions used the prompt for free text
        earlier = answering.prompts[""].render(fields)
        if steps.is_inherited("answer", {"model": model.subject, "prompt": earlier, **replayed}):
            text = earlier
    turns = [*before, Turn(role="user", content=text)]
    return await steps.once(
        "answer",
        {"model": model.subject, "prompt": text, **replayed},
        lambda: model.complete(turns),
        Completion,
        on=model.subject,
        paid=True,
        highest_cost=lambda: model.highest_cost(turns),
    )


async def score(steps: Steps, scoring: Scoring, question: Question, response: str, context: str) -> Scored:
    """Score an answer by code. If code does not decide whether it is right and there is a judge, the judge decides."""
    try:
        scores = _by_code(scoring, question, response)
    except Unreadable as error:
        if scoring.judge is None:
            return Scored((), unscored=Failure(kind="Unreadable", message=str(error)))
        scores = []
    is_decided = _value(scores, "correct") is not None  # choices and required or excluded texts need no other scorer
    if scoring.embedder is not None and question.answers and not question.abstain:
        alike = await _similarity(scoring.embedder, question, response)
        scores.append(Score(name="similarity", value=alike))
        if scoring.method == "semantic-similarity" and not is_decided:
            scores.append(Score(name="correct", value=float(alike >= SIMILAR)))
    if scoring.custom is not None and not is_decided:
        scores.append(Score(name="correct", value=await scoring.custom(question, response)))
    if scoring.judge is None:
        return Scored(tuple(scores))
    if question.rubric:
        return await _score_rubric(steps, scoring.judge, scoring, question, response, context, scores)
    if _is_decided_by_code(question, scores) and any(one.name == "correct" for one in scores):
        return Scored((*scores, Score(name=BY_CODE, value=1.0)))
    try:
        verdict = await scoring.judge.verdict(steps, question, response, context)
    except Unreadable as error:
        return Scored(tuple(scores), unscored=Failure(kind="Unreadable", message=str(error)))
    kept = [one for one in scores if one.name != "correct"]
    by_code = [] if verdict.prompt else [Score(name=BY_CODE, value=1.0)]
    reason = verdict.reason + "".join(f" [{flag}]" for flag in verdict.flags)
    return Scored((Score(name="correct", value=float(verdict.correct)), *kept, *by_code), reason=reason)


def _is_decided_by_code(question: Question, scores: Sequence[Score]) -> bool:
    """Whether no judge is needed: the question has choices, or its required or excluded texts decide."""
    if question.choices or question.must_contain:
        return True
    # texts that are excluded decide alone if they occur, or if there is no gold answer
    has_excluded = any(score.name == EXCLUDED and score.value for score in scores)
    return bool(question.must_not_contain) and (has_excluded or not question.answers)


async def _score_rubric(
    steps: Steps,
    judge: Judge,
    scoring: Scoring,
    question: Question,
    response: str,
    context: str,
    scores: Sequence[Score],
) -> Scored:
    """Score each item of the question's rubric. The score of the answer is their weighted mean."""
    from memorybench.metrics.answers import rubric_score

    try:
        verdicts = await judge.rubric(steps, question, response, context)
    except Unreadable as error:
        return Scored(tuple(scores), unscored=Failure(kind="Unreadable", message=str(error)))
    items = [verdict.score or 0.0 for verdict in verdicts]
    weights = [item.weight for item in question.rubric]
    value = rubric_score(items, weights, partial_credit=scoring.partial_credit)
    met = float(all(item == 1.0 for item in items))
    by_code = [] if any(verdict.prompt for verdict in verdicts) else [Score(name=BY_CODE, value=1.0)]
    flags = dict.fromkeys(flag for verdict in verdicts for flag in verdict.flags)
    reason = f"rubric: {', '.join(f'{item:g}' for item in items)}{''.join(f' [{flag}]' for flag in flags)}"
    return Scored(
        (Score(name=RUBRIC_SCORE, value=value), Score(name=RUBRIC_MET, value=met), *scores, *by_code), reason=reason
    )


def _by_code(scoring: Scoring, question: Question, response: str) -> list[Score]:
    from memorybench.judging.choices import read_choice
    from memorybench.metrics import locomo_f1
    from memorybench.metrics.answers import contains, exact_list, exact_match, token_f1

    if scoring.official_f1 and question.kind in locomo_f1.CATEGORIES:
        gold = question.answers[0] if question.answers else ""
        return [Score(name="answer_f1", value=locomo_f1.answer_score(question.kind, response, gold))]
    texts = _by_texts(question, response) if question.must_contain or question.must_not_contain else []
    if question.rubric:
        texts = [score for score in texts if score.name != "correct"]  # a rubric has a score, and no right or wrong
    if question.choices and question.answers:
        label = read_choice(response, question.choices)
        right = {choice.label for choice in question.choices if str(choice) in question.answers}
        chosen = [Score(name=name, value=float(label in right)) for name in ("correct", "exact_match")]
        return _both(chosen, texts)
    if question.must_contain or (texts and not question.answers) or _value(texts, "correct") == 0:
        return texts  # required texts make an answer right or wrong, excluded texts only wrong
    if question.abstain or not question.answers:
        return []  # only a judge can tell whether a free text abstains
    if question.answer_mode == "all":
        exact = exact_list(response, question.answers)
        overlap = token_f1(response, " ".join(question.answers))
        contained = min(contains(response, gold) for gold in question.answers)
    else:
        exact = max(exact_match(response, gold) for gold in question.answers)
        overlap = max(token_f1(response, gold) for gold in question.answers)
        contained = max(exact, *(contains(response, gold) for gold in question.answers))
    scores = [Score(name="exact_match", value=exact), Score(name="answer_f1", value=overlap)]
    # F1 is a degree, not a verdict: only a method that decides makes an answer right or wrong
    decided = None if question.rubric else {"exact-match": exact, "contains": contained}.get(scoring.method)
    if decided is None:
        return [*scores, *(one for one in texts if one.name != "correct")]
    return _both([Score(name="correct", value=decided), *scores], texts)


def _value(scores: Sequence[Score], name: str) -> float | None:
    return next((score.value for score in scores if score.name == name), None)


def _both(scores: Sequence[Score], texts: Sequence[Score]) -> list[Score]:
    """Combine the scores of an answer with those of its required and excluded texts: right only if both say so."""
    if _value(texts, "correct") == 0:
        scores = [Score(name="correct", value=0.0) if score.name == "correct" else score for score in scores]
    return [*scores, *(score for score in texts if score.name != "correct")]


def _by_texts(question: Question, response: str) -> list[Score]:
    """Score an answer by the texts that the question says it must contain and must not contain."""
    from memorybench.metrics.answers import contains

    required = [contains(response, text) for text in question.must_contain]
    excluded = [contains(response, text) for text in question.must_not_contain]
    # an empty answer contains nothing that is excluded, but it is not an answer
    is_right = bool(response.strip()) and all(required) and not any(excluded)
    scores = [Score(name="correct", value=float(is_right))]
    if required:
        scores.append(Score(name="required_share", value=sum(required) / len(required)))
    if excluded:
        scores.append(Score(name=EXCLUDED, value=float(any(excluded))))
    return scores


async def _similarity(embedder: Embedder, question: Question, response: str) -> float:
    """Return the highest cosine between the embeddings of the answer and of a gold answer; 0 for an empty answer."""
    if not response.strip():
        return 0.0
    mine, *golds = await embedder.embed([response, *question.answers])
    return max(0.0, min(1.0, max(_cosine(mine, gold) for gold in golds)))


def _cosine(first: Sequence[float], second: Sequence[float]) -> float:
    import numpy as np

    a, b = np.asarray(first), np.asarray(second)
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size else 0.0
