"""Scores that a run can have are not contradicted, wherever they come from."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from memorybench.bundles.score_claims import impossible_scores
from memorybench.core.measures import RetrievalMetric
from memorybench.core.questions import Choice, Question
from memorybench.core.trials import Outcome, Score, Subject, Trial
from memorybench.suites.answering import Scoring, score
from memorybench.suites.bench.measures import run_metrics
from memorybench.suites.unrecorded_steps import UnrecordedSteps


class SameVector:
    """Finds all texts alike."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]


async def accept(question: Question, response: str) -> float:
    return 1.0


CUSTOM = Scoring("custom", custom=accept)
SIMILAR = Scoring("semantic-similarity", embedder=SameVector())  # type: ignore[arg-type]
QUESTION = Question(id="q", haystack="h", question="?", answers=("Porto",))
REQUIRED = QUESTION.model_copy(update={"must_contain": ("Porto",)})
EXCLUDED = QUESTION.model_copy(update={"must_not_contain": ("Lisbon",)})
CHOICES = QUESTION.model_copy(
    update={"answers": ("(a) Porto",), "choices": (Choice(label="a", text="Porto"), Choice(label="b", text="Lisbon"))}
)


def contradictions(*scores: Score, plugins: Sequence[object] = ()) -> list[str]:
    trial = Trial(suite="bench", case_id="q", subject=Subject(role="provider", name="p"))
    outcome = Outcome(trial=trial, status="scored", scores=scores)
    claims = impossible_scores([outcome], run_metrics({"answered": True, "evidence": {"a": "session"}}, plugins))
    return [example for claim in claims for example in claim.examples]


@pytest.mark.parametrize("scoring", [CUSTOM, SIMILAR], ids=["custom", "similar"])
@pytest.mark.parametrize(
    ("question", "response", "correct"),
    [
        (REQUIRED, "Porto", 1),
        (REQUIRED, "Lisbon", 0),
        (EXCLUDED, "Braga", 1),
        (EXCLUDED, "Lisbon", 0),
        (CHOICES, "(a)", 1),
        (CHOICES, "(b)", 0),
    ],
)
def test_an_answer_is_right_or_wrong_once(scoring: Scoring, question: Question, response: str, correct: float) -> None:
    """Texts and choices decide alone, also where another method would decide differently."""
    scores = asyncio.run(score(UnrecordedSteps(), scoring, question, response, "")).scores
    assert [one.value for one in scores if one.name == "correct"] == [correct]
    assert not contradictions(*scores)


def test_a_score_that_an_older_version_recorded_twice_is_accepted() -> None:
    right = Score(name="correct", value=1.0)
    assert not contradictions(right, Score(name="required_share", value=1.0), right)
    assert contradictions(right, Score(name="correct", value=0.0)) != []


def test_a_metric_of_a_plugin_may_exceed_one() -> None:
    gain = RetrievalMetric("dcg", lambda ranked, gold, k: 2.0, (1, 3), both_levels=True)
    scores = [Score(name=name, value=2.0) for name in ("dcg@1", "turn_dcg@3")]
    assert not contradictions(*scores, plugins=[gain])
    assert contradictions(Score(name="recall@5", value=2.0), plugins=[gain]) != []
    assert contradictions(Score(name="turn_recall@5", value=2.0), plugins=[gain]) != []
