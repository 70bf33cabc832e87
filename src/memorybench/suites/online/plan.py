"""The jobs of an online run: one per recorded search, and one per conversation that memories were written from.

Code counts errors and memories. A judge decides which memories of a search the agent's reply uses, and compares the
memories written with the facts that the user stated, as `extraction online` does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime
from functools import partial

from msgspec import Struct, field

from memorybench.core.errors import Unreadable
from memorybench.core.extraction import FeedbackSink
from memorybench.core.operations import MemorySearch, MemoryWrite
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.trials import Case, Exhibit, Failure, Score, Subject, Trial
from memorybench.judging.asking import all_of
from memorybench.judging.judge import Judge
from memorybench.judging.use import CANARIES, is_used
from memorybench.suites.extraction.online import TraceJudge, post_feedback
from memorybench.suites.extraction.plan import check_entailments
from memorybench.suites.extraction.transcripts import transcript
from memorybench.suites.judge_check import record_judge_check
from memorybench.suites.wiring import SizedRecords
from memorybench.text.sanitize import shorten

from .spec import SEARCHES, WRITES

SUITE = "online"
DAY, STORE = "day", "store"
"""Names of the labels of a trial: the day of the search or write, and the memory store."""
SUCCEEDED, FOUND_ANY, FOUND, WRITTEN = "succeeded", "found_any", "found", "written"
USED, USED_COUNT, JUDGED_COUNT = "used", "used_count", "judged_count"
"""Names of scores of a search: 1 if the reply uses any judged memory, how many it uses, and how many were judged."""
_MAX_SHOWN = 2000


class RecordedOperation(Case):
    """A search or write as the journal stores it, without its texts: these are in the outcome."""

    kind: str
    is_error: bool
    count: int | None = None
    at: datetime | None = None


class Judges(Struct, frozen=True):
    use: Judge
    facts: TraceJudge
    canaries: Mapping[str, int] = field(default_factory=dict)
    """By kind of operation: the number of canaries, cases with a known answer, that the judge is checked with."""

    async def check(self, steps: Steps) -> None:
        if SEARCHES in self.canaries:
            await record_judge_check(steps, self.use, CANARIES, self.canaries[SEARCHES], SEARCHES)
        if WRITES in self.canaries:
            await check_entailments(self.facts.entailment, self.canaries[WRITES], steps, WRITES)


class OnlinePlan(Struct, frozen=True):
    source: Subject
    searches: SizedRecords[MemorySearch]
    writes: SizedRecords[MemoryWrite]
    judges: Judges | None = None
    top_k: int = 3
    feedback: FeedbackSink | None = None
    """The service to which the judge's scores of each operation are sent once; None: they are not sent."""

    def plan(self) -> Plan:
        opening = None if self.judges is None else self.judges.check
        return Plan(jobs=self._jobs(), size=len(self.searches) + len(self.writes), opening=opening)

    def _jobs(self) -> Iterator[Job]:
        for index, search in enumerate(self.searches):
            shown = Exhibit(
                asked=shorten(search.query, _MAX_SHOWN),
                got=shorten(search.reply or "", _MAX_SHOWN),
                context=shorten("\n".join(search.records or ()), _MAX_SHOWN),
            )
            yield self._job(SEARCHES, index, search, shown, partial(self._measure_search, search, shown))
        for index, write in enumerate(self.writes, len(self.searches)):
            said = transcript(write.extraction.conversation) if write.extraction is not None else ""
            shown = Exhibit(asked=shorten(said, _MAX_SHOWN))
            yield self._job(WRITES, index, write, shown, partial(self._measure_write, write, shown))

    def _job(
        self,
        kind: str,
        index: int,
        operation: MemorySearch | MemoryWrite,
        shown: Exhibit,
        perform: Callable[[Steps], Awaitable[Performed]],
    ) -> Job:
        id, at = operation.id, operation.at
        labels = {DAY: at.date().isoformat() if at else "", STORE: operation.store}
        return Job(
            trial=Trial(
                suite=SUITE,
                benchmark=kind,
                case_id=id,
                subject=self.source,
                labels={label: value for label, value in labels.items() if value},
                cluster=operation.trace,
            ),
            perform=perform,
            ordinal=index,
            shown=shown,
            spends=self.judges is not None,
            case=RecordedOperation(id=id, kind=kind, is_error=operation.is_error, count=operation.count, at=at),
        )

    async def _measure_search(self, search: MemorySearch, shown: Exhibit, steps: Steps) -> Performed:
        scores = [Score(name=SUCCEEDED, value=float(not search.is_error))]
        if search.count is not None and not search.is_error:
            scores.append(Score(name=FOUND_ANY, value=float(search.count > 0)))
            scores.append(Score(name=FOUND, value=float(search.count)))
        reply = search.reply
        if self.judges is None or reply is None or not search.records or search.is_error:
            return Performed(scores=tuple(scores), shown=shown)
        judge, judged = self.judges.use, search.records[: self.top_k]
        try:
            verdicts = await all_of(*(is_used(steps, judge, search.query, memory, reply) for memory in judged))
        except Unreadable as error:
            failure = Failure(kind="Unreadable", message=str(error))
            return Performed(scores=tuple(scores), shown=shown, unscored=failure)
        scores += [
            Score(name=USED, value=float(any(verdicts))),
            Score(name=USED_COUNT, value=float(sum(verdicts))),
            Score(name=JUDGED_COUNT, value=float(len(verdicts))),
        ]
        places = [str(place) for place, verdict in enumerate(verdicts, 1) if verdict]
        reason = f"used: {', '.join(places)} of {len(verdicts)}" if places else f"none of {len(verdicts)} used"
        if self.feedback is not None:
            counts = (USED_COUNT, JUDGED_COUNT)
            await post_feedback(
                steps, self.feedback, self.source, search.id, scores, reason, shares=(USED,), counts=counts
            )
        return Performed(scores=tuple(scores), shown=shown.model_copy(update={"reason": reason}))

    async def _measure_write(self, write: MemoryWrite, shown: Exhibit, steps: Steps) -> Performed:
        scores = [Score(name=SUCCEEDED, value=float(not write.is_error))]
        if write.count is not None:
            scores.append(Score(name=WRITTEN, value=float(write.count)))
        if write.extraction is None:
            shown = shown.model_copy(update={"reason": f"not judged: {write.problem}"})
            return Performed(scores=tuple(scores), shown=shown)
        if self.judges is None:
            return Performed(scores=tuple(scores), shown=shown)
        try:
            judged = await self.judges.facts.judge(steps, write.extraction)
        except Unreadable as error:
            failure = Failure(kind="Unreadable", message=str(error))
            return Performed(scores=tuple(scores), shown=shown, unscored=failure)
        unread = judged.findings.unread
        if self.feedback is not None and unread is None:
            await post_feedback(steps, self.feedback, self.source, write.id, judged.scores, judged.comment)
        found = {
            "expected": shorten("\n".join(map(str, judged.stated)), _MAX_SHOWN),
            "got": shorten("\n".join(map(str, judged.written)), _MAX_SHOWN),
            "reason": judged.comment,
        }
        return Performed((*scores, *judged.scores), shown.model_copy(update=found), unread)
