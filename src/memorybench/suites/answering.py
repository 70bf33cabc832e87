"""From retrieved memories to an answer and its scores. One prompt and one model serve every arm."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memorybench.documents.templates import Template
from memorybench.metrics.text import exact_match, token_f1
from memorybench.vocabulary.contracts import Completion, Model
from memorybench.vocabulary.conversation import Memory, Turn
from memorybench.vocabulary.plans import Steps
from memorybench.vocabulary.questions import Question
from memorybench.vocabulary.trials import Score

PROMPT_VARIABLES = ("question", "questionDate", "questionType", "retrievedContext")
_CHARACTERS_PER_TOKEN = 4


def context_of(memories: Sequence[Memory]) -> str:
    return "\n\n".join(memory.content for memory in memories)


def estimated_tokens(text: str) -> int:
    """About how many tokens a text is: four UTF-8 bytes each. The same rule for every arm, so arms compare."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _CHARACTERS_PER_TOKEN)


async def answer(steps: Steps, reader: Model, prompt: Template, question: Question, context: str) -> Completion:
    text = prompt.render(
        {
            "question": question.question,
            "questionDate": _date(question.asked_at),
            "questionType": question.kind,
            "retrievedContext": context,
        }
    )
    return await steps.once(
        "answer",
        {"model": reader.subject, "prompt": text},
        lambda: reader.complete([Turn(role="user", content=text)]),
        Completion,
        on=reader.subject,
        paid=True,
    )


def answer_scores(response: str, question: Question, method: str) -> list[Score]:
    """Scores that code alone can give. An empty answer is wrong, and right only where abstaining is the gold."""
    if question.abstain or not question.answers:
        return []  # whether a free text abstains is a judge's question
    exact = max(exact_match(response, gold) for gold in question.answers)
    overlap = max(token_f1(response, gold) for gold in question.answers)
    scores = [Score(name="exact_match", value=exact), Score(name="answer_f1", value=overlap)]
    # F1 is a degree, not a verdict: only a method that decides makes an answer right or wrong
    return [Score(name="correct", value=exact), *scores] if method == "exact-match" else scores


def _date(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%d %H:%M") if at else ""
