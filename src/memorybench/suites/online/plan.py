"""One job per recorded search: what is known by code, and what a judge says about the use of its memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from memorybench.core.errors import Unreadable
from memorybench.core.operations import MemorySearch
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.trials import Exhibit, Failure, Score, Subject, Trial
from memorybench.judging.asking import all_of
from memorybench.judging.use import PROMPT, UseJudge
from memorybench.suites.judge_check import record_judge_check
from memorybench.text.sanitize import shorten

SUITE, SEARCHES = "online", "searches"
DAY, STORE = "day", "store"
"""Labels of a search."""
SUCCEEDED, FOUND_ANY, FOUND = "succeeded", "found_any", "found"
USED, USED_COUNT, JUDGED_COUNT = "used", "used_count", "judged_count"
"""Scores: whether a memory was used, how many were, and how many were judged."""
_MAX_SHOWN = 2000


@dataclass(frozen=True, slots=True)
class OnlinePlan:
    source: Subject
    searches: Iterable[MemorySearch]
    size: int
    judge: UseJudge | None = None
    top_k: int = 3
    canaries: int = 0

    def plan(self) -> Plan:
        judge = self.judge
        opening = None if judge is None else partial(_check, judge, self.canaries)
        return Plan(jobs=self._jobs(), size=self.size, opening=opening)

    def _jobs(self) -> Iterator[Job]:
        for index, search in enumerate(self.searches):
            shown = Exhibit(
                asked=shorten(search.query, _MAX_SHOWN),
                got=shorten(search.reply or "", _MAX_SHOWN),
                context=shorten("\n".join(search.records or ()), _MAX_SHOWN),
            )
            labels = {DAY: search.at.date().isoformat() if search.at else "", STORE: search.store}
            yield Job(
                trial=Trial(
                    suite=SUITE,
                    benchmark=SEARCHES,
                    case_id=search.id,
                    subject=self.source,
                    labels={label: value for label, value in labels.items() if value},
                    cluster=search.trace,
                ),
                perform=partial(self._perform, search, shown),
                ordinal=index,
                shown=shown,
                spends=self.judge is not None,
            )

    async def _perform(self, search: MemorySearch, shown: Exhibit, steps: Steps) -> Performed:
        scores = [Score(name=SUCCEEDED, value=float(not search.is_error))]
        if search.count is not None and not search.is_error:
            scores.append(Score(name=FOUND_ANY, value=float(search.count > 0)))
            scores.append(Score(name=FOUND, value=float(search.count)))
        judge, reply = self.judge, search.reply
        if judge is None or reply is None or not search.records or search.is_error:
            return Performed(scores=tuple(scores), shown=shown)
        judged = search.records[: self.top_k]
        try:
            verdicts = await all_of(*(judge.uses(steps, search.query, memory, reply) for memory in judged))
        except Unreadable as error:
            failure = Failure(kind="Unreadable", message=str(error))
            return Performed(scores=tuple(scores), shown=shown, unscored=failure)
        scores += [
            Score(name=USED, value=float(any(verdicts))),
            Score(name=USED_COUNT, value=float(sum(verdicts))),
            Score(name=JUDGED_COUNT, value=float(len(verdicts))),
        ]
        places = [str(place) for place, is_used in enumerate(verdicts, 1) if is_used]
        reason = f"used: {', '.join(places)} of {len(verdicts)}" if places else f"none of {len(verdicts)} used"
        return Performed(scores=tuple(scores), shown=shown.model_copy(update={"reason": reason}))


async def _check(judge: UseJudge, canaries: int, steps: Steps) -> None:
    subject = judge.judge.model.subject
    await record_judge_check(steps, subject, (PROMPT,), canaries, partial(judge.check, steps, canaries))
