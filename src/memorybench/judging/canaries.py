"""Tests a judge with canaries, responses of known correctness, once per judge and prompt, before its verdicts count.

Canaries are taken in a fixed order: a larger check begins with the canaries of a smaller one, whose recorded verdicts
cost nothing. Right and wrong responses alternate, and all prompts and kinds take turns. The canaries are in
catalog/data/judge_canaries.json; no benchmark contains them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec import Struct

from memorybench.core.errors import Unreadable
from memorybench.core.questions import Choice, Question
from memorybench.core.records import Record

from .asking import all_of
from .prompts import ABSTENTION

if TYPE_CHECKING:
    from memorybench.core.plans import Steps

    from .judge import Judge
    from .prompts import JudgePrompt

STEP = "canary"
T = TypeVar("T")


class CanaryCase(Struct, frozen=True):
    """A question with its gold answer and a response of each kind. Only `verbatim` and `paraphrased` are right.

    If the response of a kind is empty, the judge is not asked about that kind.
    """

    question: str
    gold: str
    verbatim: str
    """The gold answer itself; for a rubric, a response that meets all of it."""
    paraphrased: str
    vague: str = ""
    """A long response on the topic that does not answer the question."""
    negated: str = ""
    stale: str = ""
    """A response with an outdated value, or with the value of something similar."""
    refusal: str = ""
    echo: str = ""
    """A response that repeats the question."""
    hedge: str = ""
    """A response that gives the correct answer as one of several possibilities."""
    both: str = ""
    """A response that names both options or values, and chooses neither."""
    partial: str = ""
    """A response that meets a part of a rubric item, so "fully met" is a wrong verdict."""
    options: tuple[str, ...] = ()
    """The options of a question about the order of events. The gold answer is one of them with its label."""


RIGHT = ("verbatim", "paraphrased")
PARTIAL = "partial"
KINDS = tuple(name for name in CanaryCase.__struct_fields__ if name not in ("question", "gold", "options"))

_DATA = json.loads((Path(__file__).parent.parent / "catalog/data/judge_canaries.json").read_text(encoding="utf-8"))
CASES: Mapping[str, tuple[CanaryCase, ...]] = {
    prompt: tuple(CanaryCase(**{**row, "options": tuple(row.get("options", ()))}) for row in rows)
    for prompt, rows in _DATA["responses"].items()
}
"""The canaries, by name of the judge prompt."""
PAIRS: Mapping[str, tuple[tuple[str, str], ...]] = {
    kind: tuple((first, second) for first, second in pairs) for kind, pairs in _DATA["notes"].items()
}
"""Pairs of notes, by kind. Only in `verbatim` and `paraphrased` pairs does the first note say all of the second."""


class Canary(NamedTuple):
    """A response whose correctness is known: `kind` is one of RIGHT if it is right."""

    prompt: JudgePrompt
    kind: str
    question: Question
    response: str


class CanaryCount(Record):
    """The verdicts on one kind of canary under one prompt."""

    prompt: str
    kind: str
    right: bool
    """The expected verdict: True if the response is right."""
    agreed: int
    n: int
    unreadable: int = 0
    """The number of replies that could not be read. They are not included in `n`."""


class CanaryReport(Record):
    judge: str
    counts: tuple[CanaryCount, ...]

    @property
    def sensitivity(self) -> tuple[int, int]:
        """How many right responses the judge called right, and how many right responses there were."""
        return self._agreed(True)

    @property
    def specificity(self) -> tuple[int, int]:
        """How many wrong responses the judge called wrong, and how many wrong responses there were."""
        return self._agreed(False)

    @property
    def unreadable(self) -> int:
        return sum(count.unreadable for count in self.counts)

    def sentence(self) -> str:
        """Return a line such as `judge gpt-4o on canaries: sensitivity 8 of 8, specificity 15 of 16`."""
        faults = []
        for kind in dict.fromkeys((*KINDS, *(count.kind for count in self.counts))):
            own = [count for count in self.counts if count.kind == kind]
            if missed := sum(count.n - count.agreed for count in own):
                faults.append(f"{kind}: {missed} of {sum(count.n for count in own)} wrong")
        faults += [f"{self.unreadable} unreadable"] if self.unreadable else []
        remark = f" ({', '.join(faults)})" if faults else ""
        checked = {"sensitivity": self.sensitivity, "specificity": self.specificity}
        rates = ", ".join(
            f"{name} {n} of {total}" if total else f"{name} not checked" for name, (n, total) in checked.items()
        )
        return f"judge {self.judge} on canaries: {rates}{remark}"

    def _agreed(self, right: bool) -> tuple[int, int]:
        counts = [count for count in self.counts if count.right == right]
        return sum(count.agreed for count in counts), sum(count.n for count in counts)


async def check_judge(steps: Steps, judge: Judge, canaries: Sequence[Canary]) -> CanaryReport:
    """Ask the judge about these canaries, record each verdict, and count them. Unreadable ones are counted separately.

    Raise Blocked if the budget is spent, as every paid call does.
    """
    given = await all_of(*(_is_called_right(steps, judge, one) for one in canaries))
    verdicts: dict[tuple[str, str], list[bool | None]] = {}
    for canary, verdict in zip(canaries, given, strict=True):
        verdicts.setdefault((canary.prompt.name, canary.kind), []).append(verdict)
    counts = (
        CanaryCount(
            prompt=prompt,
            kind=kind,
            right=kind in RIGHT,
            agreed=own.count(kind in RIGHT),
            n=len(own) - own.count(None),
            unreadable=own.count(None),
        )
        for (prompt, kind), own in verdicts.items()
    )
    return CanaryReport(judge=judge.model.subject.name, counts=tuple(counts))


def take_turns(*lists: Iterable[T]) -> list[T]:
    """Return the first item of each list, then the second of each, and so on. Lists may end early; None is skipped."""
    return [one for row in zip_longest(*lists) for one in row if one is not None]


def choose_canaries(prompts: Sequence[JudgePrompt], limit: int | None = None) -> list[Canary]:
    """Return the first `limit` canaries of these prompts (None: all)."""
    orders = [_in_order(prompt) for prompt in prompts]
    # each prompt begins at another place, so that few canaries of many prompts are right and wrong ones, too
    turned = [order[place % len(order) :] + order[: place % len(order)] for place, order in enumerate(orders)]
    return take_turns(*turned)[:limit]


def _in_order(prompt: JudgePrompt) -> list[Canary]:
    """Return all canaries of a prompt. Right and wrong responses alternate; those left over come last."""
    cases = CASES[prompt.kind]

    def each_case(kinds: Sequence[str]) -> list[Canary]:
        places = [((n + m) % len(cases), kind) for n in range(len(cases)) for m, kind in enumerate(kinds)]
        return [
            Canary(prompt, kind, _question(prompt, cases[place]), getattr(cases[place], kind)) for place, kind in places
        ]

    right = each_case(tuple(reversed(RIGHT)))  # a paraphrase tells more than the gold answer itself
    wrong = each_case([kind for kind in KINDS if kind not in RIGHT and getattr(cases[0], kind)])
    return take_turns(right, wrong)


def _question(prompt: JudgePrompt, case: CanaryCase) -> Question:
    return Question(
        id="",
        haystack="",
        question=case.question,
        answers=(case.gold,),
        abstain=prompt.kind == ABSTENTION,
        choices=tuple(Choice(label, text) for label, text in zip("AB", case.options, strict=False)),
    )


async def _is_called_right(steps: Steps, judge: Judge, canary: Canary) -> bool | None:
    """Return whether the judge calls the response right; None if its reply cannot be read."""
    try:
        verdict = await judge.ask(steps, STEP, canary.prompt, canary.question, canary.response, shared=True)
    except Unreadable:
        return None
    if verdict.score is not None and canary.kind not in (*RIGHT, PARTIAL):
        return verdict.score > 0  # half a point for a response that meets nothing is an error
    return verdict.correct
