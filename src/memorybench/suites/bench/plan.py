"""Questions × arms as jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from memorybench.core.conversation import Memory
from memorybench.core.errors import Blocked
from memorybench.core.measures import Metric, RetrievalMetric
from memorybench.core.plans import Job, Limits, Performed, Plan, Steps
from memorybench.core.questions import Dataset, Question
from memorybench.core.trials import Exhibit, Score, Trial
from memorybench.judging.canaries import check_judge
from memorybench.judging.judge import self_judged
from memorybench.metrics.retrieval import PROVENANCE_UNKNOWN, retrieval_metrics
from memorybench.suites.answering import Reading, Scored, answer, context_of, estimated_tokens, score
from memorybench.suites.ingest import DEFAULT_INGEST_OPTIONS, Ingest, IngestOptions, still_pending
from memorybench.suites.mixing import SIDE_BY_SIDE, mixed

from .baselines import Arm, remembered
from .measures import CORRECTED, measures
from .scores import MISSES, Places, attribution, retrieval_scores

_SHOWN = 600


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark of a run: its questions (as chosen), and how deep arms are searched."""

    dataset: Dataset
    questions: Sequence[Question]
    depth: int = 50
    """Memories that a provider is asked for."""
    shown: int = 10
    """Memories that the answering model gets to see: the same number for every provider."""
    chunks: bool = False
    """Whether it sees the passages that a provider gave beside its memories, too."""
    ingest_options: IngestOptions = DEFAULT_INGEST_OPTIONS
    corrected: Mapping[str, Question] = field(default_factory=dict)
    """By question id: what a corrected answer key says. Both scores are reported."""
    reading: Reading | None = None


@dataclass(slots=True)
class BenchPlan:
    run: str
    benches: Sequence[Bench]
    arms: Sequence[Arm]
    scored: Collection[str] = ()
    """Keys of trials that an earlier process has settled."""
    limits: Mapping[str, Limits] = field(default_factory=dict)
    plugins: Sequence[Metric | RetrievalMetric] = ()
    """Metrics of installed packages."""
    _ingests: list[tuple[Ingest, list[str]]] = field(default_factory=list)

    def plan(self) -> Plan:
        return Plan(
            jobs=self._jobs(),
            size=sum(len(bench.questions) for bench in self.benches) * len(self.arms),
            metrics=measures(
                answered=any(bench.reading for bench in self.benches),
                corrected=any(bench.corrected for bench in self.benches),
                levels=tuple(dict.fromkeys(bench.dataset.evidence for bench in self.benches)),
                plugins=self.plugins,
            ),
            limits=self.limits,
            opening=self._check_judges,
            closing=self._clear_all,
        )

    def _jobs(self) -> Iterator[Job]:
        ordinal = 0
        for bench in self.benches:
            for arm in self.arms:
                yield from self._arm_jobs(bench, arm, ordinal)
                ordinal += len(bench.questions)

    def _arm_jobs(self, bench: Bench, arm: Arm, first: int) -> Iterator[Job]:
        trials = [_trial(bench.dataset.name, question, arm) for question in bench.questions]
        ingest = None
        if arm.provider is not None:
            pending = still_pending(
                [(trial.key, trial.cluster) for trial in trials],
                self.scored,
            )
            ingest_options = replace(
                bench.ingest_options,
                unordered=arm.unordered and arm.remote,  # in this process nothing is gained by a crowd
                delay=bench.ingest_options.delay if arm.remote else 0.0,
            )
            ingest = Ingest(self.run, bench.dataset, arm.provider, arm.spends, ingest_options, pending)
            self._ingests.append((ingest, list(dict.fromkeys(trial.cluster for trial in trials))))
        asking = _Asking(bench, arm, ingest, retrieval_metrics(self.plugins))
        by_haystack: dict[str, list[int]] = {}
        for place, question in enumerate(bench.questions):
            by_haystack.setdefault(question.haystack, []).append(place)
        for place in mixed(list(by_haystack.values()), SIDE_BY_SIDE):
            yield Job(
                trial=trials[place],
                perform=partial(asking.perform, bench.questions[place]),
                ordinal=first + place,
                case=bench.questions[place],
                shown=_asked(bench.questions[place]),
                spends=arm.spends or bench.reading is not None,
            )

    async def _check_judges(self, steps: Steps) -> None:
        """Once per judge and prompt, and recorded: what it says of answers whose worth is known."""
        for bench in self.benches:
            judge = bench.reading.scoring.judge if bench.reading else None
            if bench.reading is None or judge is None:
                continue
            if self_judged(judge.model.subject, bench.reading.model.subject):
                await steps.note("self-judged", f"{judge.model.subject.name} judges its own answers")
            report = await check_judge(steps, judge, judge.prompts.used(bench.questions))
            await steps.note("judge", report.sentence())

    async def _clear_all(self, steps: Steps) -> None:
        """What an interrupted run left behind: haystacks whose questions were all settled before."""
        for ingest, haystacks in self._ingests:
            for haystack in haystacks:
                await ingest.clear(steps, haystack)


class _Asking:
    """One benchmark put to one arm."""

    def __init__(self, bench: Bench, arm: Arm, ingest: Ingest | None, metrics: Sequence[RetrievalMetric]) -> None:
        self._bench = bench
        self._metrics = metrics
        self._arm = arm
        self._ingest = ingest
        # a haystack is looked at by question after question: the last few are kept
        self._looked_up = lru_cache(maxsize=SIDE_BY_SIDE)(self._look_up)

    async def perform(self, question: Question, steps: Steps) -> Performed:
        try:
            performed = await self._ask(steps, question)
        except Blocked:
            raise  # a larger budget will go on from here: the memory stays filled
        except Exception:
            await self._leave(steps, question)  # a failed question is settled, too
            raise
        await self._leave(steps, question)
        return performed

    async def _ask(self, steps: Steps, question: Question) -> Performed:
        memories = await self._retrieve(steps, question)
        places = self._looked_up(question.haystack)
        scores = []
        if self._arm.ranked:
            scores += retrieval_scores(memories, question, places, self._bench.dataset.evidence, self._metrics)
            if not memories and self._arm.provider is not None:
                scores.append(Score(name=PROVENANCE_UNKNOWN, value=1.0))
        seen = memories[: self._bench.shown] if self._arm.cut else memories
        context = context_of(seen, chunks=self._bench.chunks)
        scores.append(Score(name="context_tokens", value=estimated_tokens(context)))
        got, judged = "", Scored(())
        reading = self._bench.reading
        if reading is not None:
            got = (await answer(steps, reading, question, context)).text
            judged = await score(steps, reading.scoring, question, got, context)
        if self._bench.corrected:
            scores += await self._corrected(steps, question, memories, got, context, (*judged.scores, *scores))
        blame = attribution(question, seen, places, judged.scores)
        if blame is not None:
            scores += [Score(name=name, value=float(name == blame)) for name in MISSES]
        reason = "; ".join(part for part in (judged.reason, MISSES.get(blame or "")) if part)
        shown = _asked(question).model_copy(update={"got": got, "context": _beginning(context), "reason": reason})
        return Performed(scores=(*judged.scores, *scores), shown=shown, unscored=judged.unscored)

    async def _corrected(
        self,
        steps: Steps,
        question: Question,
        memories: Sequence[Memory],
        got: str,
        context: str,
        as_is: Sequence[Score],
    ) -> list[Score]:
        """The same answer and ranking, held against the corrected key; as it was where nothing is to correct."""
        corrected = self._bench.corrected.get(question.id)
        found: Sequence[Score] = as_is
        if corrected is not None:
            places = self._looked_up(question.haystack)
            found = []
            if self._arm.ranked:
                found = retrieval_scores(memories, corrected, places, self._bench.dataset.evidence, self._metrics)
            if self._bench.reading is not None:
                found = [*found, *(await score(steps, self._bench.reading.scoring, corrected, got, context)).scores]
        wanted = CORRECTED.values()
        return [Score(name=f"corrected_{one.name}", value=one.value) for one in found if one.name in wanted]

    async def _retrieve(self, steps: Steps, question: Question) -> Sequence[Memory]:
        ingest = self._ingest
        if ingest is None:
            return remembered(self._arm.name, question, self._bench.dataset.haystack(question.haystack))
        return await ingest.search(steps, question.haystack, question.question, self._bench.depth)

    async def _leave(self, steps: Steps, question: Question) -> None:
        if self._ingest is not None:
            await self._ingest.leave(steps, question.haystack)

    def _look_up(self, haystack: str) -> Places:
        return Places(self._bench.dataset.haystack(haystack))


def _asked(question: Question) -> Exhibit:
    return Exhibit(asked=question.question, expected=" | ".join(question.answers))


def _trial(benchmark: str, question: Question, arm: Arm) -> Trial:
    return Trial(
        suite="bench",
        benchmark=benchmark,
        case_id=question.id,
        subject=arm.subject,
        labels=question.labels,
        cluster=question.haystack,
    )


def _beginning(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
