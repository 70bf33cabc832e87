"""Makes the jobs of a bench run: one per question, candidate and repeat."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memorybench.core.conversation import Haystack, Memory, Session, Turn
from memorybench.core.errors import Blocked
from memorybench.core.measures import Metric, RetrievalMetric
from memorybench.core.plans import Job, Limits, Performed, Plan, Steps
from memorybench.core.questions import Dataset, Question
from memorybench.core.records import Record
from memorybench.core.trials import Exhibit, Score, Trial
from memorybench.journal.rows import storable
from memorybench.metrics.retrieval import PROVENANCE_UNKNOWN, retrieval_metrics
from memorybench.suites.answering import Answering, Scored, answer, context_of, score
from memorybench.suites.ingest import DEFAULT_INGEST_OPTIONS, Ingest, IngestOptions, history_stages, still_pending
from memorybench.suites.repeats import steps_of_repeat
from memorybench.suites.sampling import SIDE_BY_SIDE, mixed
from memorybench.suites.search_limits import DEFAULT_SEARCH_LIMITS, SearchLimits
from memorybench.suites.shards import Unit
from memorybench.text.sanitize import shorten

from .baselines import PLACEBO, Candidate, all_turns, partners, placebo_memories, remembered
from .measures import CORRECTED
from .scores import MISSES, Places, attribution, forbidden_scores, retrieval_scores, size_scores

if TYPE_CHECKING:
    from memorybench.judging.prompts import JudgePrompt

_LONGEST_TURN = 4000
_MOST_TURNS = 40
"""The most turns that are recorded with a question if the benchmark names only gold sessions."""
_NO_SOURCES = (
    "{}: recall is not computed for questions whose memories name no session that was sent"
    " (HTTP providers: endpoints.search.response.sourcesField)"
)


class GoldTurn(Record):
    session: str
    id: str
    at: datetime | None
    speaker: str
    content: str


class RecordedQuestion(Question):
    """A question as the journal stores it."""

    evidence: tuple[GoldTurn, ...] = ()
    """The gold turns; if the benchmark names only gold sessions, the first turns of these sessions."""
    history: str
    """A digest of the sessions of its haystack, by which `compare` detects that they changed."""


def with_evidence(question: Question, haystack: Haystack, history: str) -> RecordedQuestion:
    turns = [gold for gold in _turns(haystack) if gold[1] in question.gold_turns]
    if not question.gold_turns:
        turns = [gold for gold in _turns(haystack) if gold[0].id in question.gold_sessions][:_MOST_TURNS]
    evidence = (_gold_turn(*gold) for gold in turns)
    return RecordedQuestion(**{**dict(question), "evidence": tuple(evidence), "history": history})


def history_digest(haystack: Haystack) -> str:
    """Return a digest of the turns of a haystack. Faster than `digest`, which writes JSON first."""
    parts = []
    for session in haystack.sessions:
        start = f"{session.id}\0{session.at}\0"
        for turn in session.turns:
            part = f"{start}{turn.role}\0{turn.speaker}\0{turn.at}\0{turn.content}\0"
            parts.append(part.encode("utf-8", "backslashreplace"))
    return sha256(b"".join(parts)).hexdigest()[:32]


def _turns(haystack: Haystack) -> Iterator[tuple[Session, str, Turn]]:
    for session in haystack.sessions:
        for id, turn in session.named_turns():
            yield session, id, turn


def _gold_turn(session: Session, id: str, turn: Turn) -> GoldTurn:
    speaker, text = storable(turn.speaker or turn.role), storable(shorten(turn.content, _LONGEST_TURN))
    return GoldTurn(session=session.id, id=id, at=turn.at or session.at, speaker=speaker, content=text)


_SHOWN = 600


class Bench(Struct, frozen=True):
    """One benchmark of a run: the selected questions, and how they are searched, answered and scored."""

    dataset: Dataset
    questions: Sequence[Question]
    limits: SearchLimits = DEFAULT_SEARCH_LIMITS
    chunks: bool = False
    """Whether the answering model also sees the passages that a provider returned with its memories."""
    ingest_options: IngestOptions = DEFAULT_INGEST_OPTIONS
    corrected: Mapping[str, Question] = field(default_factory=dict)
    """By question id: the question with the corrected answer key. Scores by both keys are reported."""
    answering: Answering | None = None
    repeated: Sequence[Answering] = ()
    """How the second and each later repeat is answered, one entry each. Empty if each question is asked once."""
    answered_once: bool = False
    """If True, the repeats share one answer, and only its verdict is repeated."""

    @property
    def repeats(self) -> int:
        return 1 + len(self.repeated)


class BenchPlan(Struct):
    """Makes the jobs of a bench run."""

    run: str
    benches: Sequence[Bench]
    candidates: Sequence[Candidate]
    scored: Collection[str] = ()
    """The keys of trials that an earlier process has scored."""
    limits: Mapping[str, Limits] = field(default_factory=dict)
    plugins: Sequence[Metric | RetrievalMetric] = ()
    """Metrics of installed packages."""
    canaries: int = 0
    """The number of canaries, answers with a known verdict, that the judge is checked with."""
    scope_suffix: str = ""
    """Makes the scopes of live memories unique; see `Ingest`."""
    part: Collection[Unit] | None = None
    """The histories of a shard: only their memories are checked and cleared. None: all histories."""
    _ingests: list[tuple[Ingest, list[str]]] = field(default_factory=list)

    def plan(self) -> Plan:
        return Plan(
            jobs=self._jobs(),
            size=sum(len(bench.questions) * bench.repeats for bench in self.benches) * len(self.candidates),
            limits=self.limits,
            opening=self._check_first,
            closing=self._clear_all,
        )

    def _jobs(self) -> Iterator[Job]:
        ordinal = 0
        for bench in self.benches:
            haystacks = _Haystacks(bench.dataset)
            for candidate in self.candidates:
                yield from self._candidate_jobs(bench, haystacks, candidate, ordinal)
                ordinal += len(bench.questions) * bench.repeats

    def _candidate_jobs(self, bench: Bench, haystacks: "_Haystacks", candidate: Candidate, first: int) -> Iterator[Job]:
        repeats = range(1, bench.repeats + 1)
        trials = [
            _trial(bench.dataset.name, question, candidate, repeat)
            for question in bench.questions
            for repeat in repeats
        ]
        ingest = self._ingest(bench, candidate, trials)
        if ingest is not None:
            self._ingests.append((ingest, self._histories(bench)))
        questioner = _Questioner(bench, haystacks, candidate, ingest, retrieval_metrics(self.plugins))
        by_memory: dict[str, list[int]] = {}
        # the memory of a shared history grows from question to question
        for place, question in sorted(enumerate(bench.questions), key=lambda pair: pair[1].asked_after):
            by_memory.setdefault(question.memory, []).append(place)
        for place in mixed(list(by_memory.values()), SIDE_BY_SIDE):
            question = bench.questions[place]
            for repeat in repeats:
                # the repeats of a question are adjacent: `measure` averages them
                position = place * bench.repeats + repeat - 1
                yield Job(
                    trial=trials[position],
                    perform=partial(questioner.perform, question, repeat=repeat),
                    ordinal=first + position,
                    case=partial(questioner.recorded_question, question),
                    shown=_question_shown(question),
                    spends=candidate.spends or bench.answering is not None,
                )

    def _ingest(self, bench: Bench, candidate: Candidate, trials: Sequence[Trial]) -> Ingest | None:
        if candidate.provider is None:
            return None
        ingest_options = replace(
            bench.ingest_options,
            unordered=candidate.unordered and candidate.remote,  # concurrency gains nothing in this process
            delay=bench.ingest_options.delay if candidate.remote else 0.0,
        )
        asked = {question.id: question for question in bench.questions}
        own = [
            (one.key, asked[one.case_id].haystack)
            for one in trials
            if self.part is None or (one.benchmark, one.cluster) in self.part
        ]
        pending = still_pending(own, self.scored)
        return Ingest(
            self.run,
            bench.dataset,
            candidate.provider,
            candidate.spends,
            ingest_options,
            pending,
            self.scope_suffix,
            history_stages(bench.questions),
        )

    async def _check_first(self, steps: Steps) -> None:
        """Check that live memories are empty and that the judge works, before anything is added."""
        for bench in self.benches:
            for candidate in self.candidates:
                ingest = self._ingest(bench, candidate, ())
                if ingest is not None:
                    for haystack in self._histories(bench)[:1]:
                        await ingest.check_first(steps, haystack)
        await self._check_judges(steps)

    def _histories(self, bench: Bench) -> list[str]:
        histories = {question.haystack: question.group for question in bench.questions}
        return [
            one for one, group in histories.items() if self.part is None or (bench.dataset.name, group) in self.part
        ]

    async def _check_judges(self, steps: Steps) -> None:
        """Check the judge, with the prompts of all benchmarks, on answers whose verdict is known."""
        answering = [(bench, bench.answering) for bench in self.benches if bench.answering is not None]
        judged = [(bench, own.model, own.scoring.judge) for bench, own in answering if own.scoring.judge is not None]
        if not judged:
            return
        from memorybench.judging.canaries import choose_canaries
        from memorybench.judging.judge import self_judged
        from memorybench.suites.judge_check import record_judge_check

        prompts: dict[JudgePrompt, None] = {}
        for bench, answerer, judge in judged:
            prompts |= dict.fromkeys(judge.prompts.used(bench.questions))
            if self_judged(judge.model.subject, answerer.subject):
                await steps.note("self-judged", f"{judge.model.subject.name} judges its own answers")
        await record_judge_check(steps, judged[-1][2], choose_canaries(tuple(prompts)), self.canaries)

    async def _clear_all(self, steps: Steps) -> None:
        """Clear memories that were not cleared after their last question, such as those of an interrupted run."""
        for ingest, haystacks in self._ingests:
            for haystack in haystacks:
                await ingest.clear(steps, haystack)


class _Haystacks:
    """Computes data of a haystack that all candidates use, by haystack id. Caches that of the last few haystacks."""

    def __init__(self, dataset: Dataset) -> None:
        keep = lru_cache(maxsize=SIDE_BY_SIDE)
        self.places = keep(lambda id: Places(dataset.haystack(id)))
        self.all_turns = keep(lambda id: all_turns(dataset.haystack(id)))
        self.digest = keep(lambda id: history_digest(dataset.haystack(id)))


class _Questioner:
    """Asks one candidate the questions of one benchmark."""

    def __init__(
        self,
        bench: Bench,
        haystacks: _Haystacks,
        candidate: Candidate,
        ingest: Ingest | None,
        metrics: Sequence[RetrievalMetric],
    ) -> None:
        self._bench = bench
        self._haystacks = haystacks
        self._metrics = metrics
        self._candidate = candidate
        self._ingest = ingest
        self._partners = partners(bench.dataset.questions) if candidate.name == PLACEBO else {}
        self._noted = False

    async def perform(self, question: Question, steps: Steps, *, repeat: int = 1) -> Performed:
        try:
            performed = await self._ask(steps, question, repeat)
        except Blocked:
            raise  # a run with a larger budget continues here: keep the data
        except Exception:
            await self._leave(steps, question)  # a failed question no longer needs the data
            raise
        await self._leave(steps, question)
        return performed

    def recorded_question(self, question: Question) -> Question:
        """Return the question as the journal stores it, with its gold turns if the history can be read."""
        try:
            history = self._haystacks.digest(question.haystack)
            return with_evidence(question, self._bench.dataset.haystack(question.haystack), history)
        except Exception:  # the trial reports it
            return question

    async def _ask(self, steps: Steps, question: Question, repeat: int) -> Performed:
        memories = await self._retrieve(steps, question)
        places = self._haystacks.places(question.haystack)
        scores = []
        if self._candidate.ranked:
            scores += retrieval_scores(memories, question, places, self._bench.dataset.evidence, self._metrics)
            if not memories and self._candidate.provider is not None:
                scores.append(Score(name=PROVENANCE_UNKNOWN, value=1.0))
            if memories and question.gold(self._bench.dataset.evidence) and not scores and not self._noted:
                self._noted = True
                await steps.note("no sources", _NO_SOURCES.format(self._candidate.name))
        limits, chunks = self._bench.limits, self._bench.chunks
        seen = limits.cut(memories, chunks=chunks) if self._candidate.cut else memories
        if self._candidate.cut:
            scores += limits.scores(memories, seen)
        context = context_of(seen, chunks=chunks)
        scores += size_scores(seen, context)
        if self._candidate.own_history:
            scores += forbidden_scores(question, seen, places, self._bench.dataset.evidence)
        got, judged = "", Scored(())
        answering = self._bench.answering if repeat == 1 else self._bench.repeated[repeat - 2]
        again = steps_of_repeat(steps, repeat)
        if answering is not None:
            answered = steps if self._bench.answered_once else again
            got = (await answer(answered, answering, question, context)).text
            judged = await score(again, answering.scoring, question, got, context)
        if self._bench.corrected:
            scores += await self._corrected(again, question, memories, got, context, (*judged.scores, *scores))
        blame = attribution(question, seen, places, judged.scores)
        if blame is not None:
            scores += [Score(name=name, value=float(name == blame)) for name in MISSES]
        miss = MISSES.get(blame or "", "").replace("memories shown", f"memories shown ({len(seen)})")
        reason = "; ".join(part for part in (judged.reason, miss) if part)
        shown = _question_shown(question).model_copy(
            update={"got": got, "context": shorten(context, _SHOWN), "reason": reason, "memories_shown": len(seen)}
        )
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
        """Return scores of the same answer and ranking by the corrected answer key, named `corrected_…`.

        If the question has no correction, they have the values of `as_is`, the scores by the original key.
        """
        corrected = self._bench.corrected.get(question.id)
        found: Sequence[Score] = as_is
        if corrected is not None:
            places = self._haystacks.places(question.haystack)
            found = []
            if self._candidate.ranked:
                found = retrieval_scores(memories, corrected, places, self._bench.dataset.evidence, self._metrics)
            if self._bench.answering is not None:
                found = [*found, *(await score(steps, self._bench.answering.scoring, corrected, got, context)).scores]
        wanted = CORRECTED.values()
        return [Score(name=f"corrected_{one.name}", value=one.value) for one in found if one.name in wanted]

    async def _retrieve(self, steps: Steps, question: Question) -> Sequence[Memory]:
        ingest = self._ingest
        if self._candidate.name == PLACEBO and ingest is None:
            other = self._partners[question.id]
            return placebo_memories(other, self._haystacks.all_turns(other.haystack))
        if ingest is None:
            return remembered(self._candidate.name, question, self._haystacks.all_turns(question.haystack))
        return await ingest.search(steps, question.haystack, question.query, self._bench.limits.depth)

    async def _leave(self, steps: Steps, question: Question) -> None:
        if self._ingest is not None:
            await self._ingest.leave(steps, question.haystack)


def _question_shown(question: Question) -> Exhibit:
    return Exhibit(asked=question.question, expected=_expected(question))


def _expected(question: Question) -> str:
    """Return the expected answer to a question on one line."""
    texts = {
        " | ": question.answers if question.answer_mode == "any" else (),
        " + ": question.answers if question.answer_mode == "all" else (),
        "; ": () if question.answers else tuple(item.text for item in question.rubric),
    }
    parts = [mark.join(own) for mark, own in texts.items() if own]
    if question.must_contain:
        parts.append(f"contains {' + '.join(question.must_contain)}")
    if question.must_not_contain:
        parts.append(f"does not contain {' | '.join(question.must_not_contain)}")
    return "; ".join(parts)


def _trial(benchmark: str, question: Question, candidate: Candidate, repeat: int) -> Trial:
    return Trial(
        suite="bench",
        benchmark=benchmark,
        case_id=question.id,
        subject=candidate.subject,
        labels=question.labels,
        cluster=question.group,
        repeat=repeat,
    )
