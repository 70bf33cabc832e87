"""The jobs of an audit, one per probe and subject: replay or search a conversation, ask, judge the answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial

from msgspec import Struct, field

from memorybench.core.conversation import Haystack, Memory, Session, Turn
from memorybench.core.errors import Blocked, Lacking, ServiceError, Unreadable
from memorybench.core.plans import Job, Limits, Performed, Plan, Steps
from memorybench.core.trials import Exhibit, Failure, Score, Subject, Trial
from memorybench.datasets.audit import AuditConversation, AuditDataset
from memorybench.judging.canaries import choose_canaries
from memorybench.judging.judge import Judge, self_judged
from memorybench.suites.answering import Answering, ask, context_of, estimated_tokens
from memorybench.suites.ingest import Ingest
from memorybench.suites.judge_check import record_judge_check
from memorybench.suites.repeats import steps_of_repeat
from memorybench.suites.sampling import SIDE_BY_SIDE, mixed
from memorybench.suites.search_limits import SearchLimits
from memorybench.suites.shards import Unit
from memorybench.text.sanitize import shorten

from .judgement import Judgement, has_pair_scores, judge_answer, judge_prompts, pair_scores, question_of, scores_of
from .measures import DATED, PAIR_UNDECIDED, REVERSED, measures
from .probes import Probe
from .verification import ProbeModel
from .writing import write

SHOWN = 10
SEARCH_LIMITS = SearchLimits(SHOWN, SHOWN)
_SHOWN_CONTEXT = 600
REPLAYED = "(see the conversation above)"
"""The text that replaces the memories in the prompt if the conversation is replayed."""
FULL_CONTEXT = "full-context"
_REPLY_RESERVE = 1024
"""Tokens of the context window that are reserved for the reply."""


class Transcripts:
    """The conversations of an audit, split into one session per day."""

    def __init__(self, dataset: AuditDataset) -> None:
        self.name = dataset.id
        self.dataset = dataset
        self._places = {conversation.id: place for place, conversation in enumerate(dataset.conversations)}
        # consecutive probes are about the same few conversations
        self.transcript = lru_cache(maxsize=SIDE_BY_SIDE)(self._transcript)
        self.end_time = lru_cache(maxsize=SIDE_BY_SIDE)(self._end_time)

    @property
    def ids(self) -> Collection[str]:
        return self._places.keys()

    def conversation(self, id: str) -> AuditConversation:
        return self.dataset.conversations[self._places[id]]

    def haystack(self, id: str) -> Haystack:
        days: dict[str, list[Turn]] = {}
        day = ""
        for turn in self.conversation(id).turns:
            day = f"{turn.at:%Y-%m-%d}" if turn.at else day  # an undated turn belongs to the day of the previous one
            days.setdefault(day, []).append(turn)
        sessions = (
            Session(id=f"{id}:{day or 'undated'}", turns=tuple(turns), at=turns[0].at) for day, turns in days.items()
        )
        return Haystack(id=id, sessions=tuple(sessions))

    def _transcript(self, id: str) -> str:
        """Return the whole conversation as lines such as `[date] speaker: text`."""
        return context_of([_as_memory(turn) for turn in self.conversation(id).turns])

    def evidence(self, probe: Probe) -> list[Memory]:
        """Return the turns with the answer or an outdated value, as memories, in the order of the conversation."""
        ids = {turn.id for turn in (*probe.gold_context, *probe.stale_context)}
        return [_as_memory(turn) for turn in self.conversation(probe.conversation).turns if turn.id in ids]

    def replayed(self, id: str) -> list[Turn]:
        """Return the turns as chat messages, with the date on the first of each day and the names of speakers."""
        turns, day = [], ""
        for turn in self.conversation(id).turns:
            date = f"{turn.at:%Y-%m-%d}" if turn.at else day
            opening = f"[{date}] " if date != day else ""
            speaker = f"{turn.speaker}: " if turn.speaker else ""
            turns.append(Turn(role=turn.role, content=f"{opening}{speaker}{turn.content}"))
            day = date
        return turns

    def _end_time(self, id: str) -> datetime | None:
        return max((turn.at for turn in self.conversation(id).turns if turn.at), default=None)


def _as_memory(turn: Turn) -> Memory:
    date = f"[{turn.at:%Y-%m-%d}] " if turn.at else ""
    id = turn.id or ""
    return Memory(id=id, content=f"{date}{turn.speaker or turn.role}: {turn.content}", sources=(id,))


class AuditedSubject(Struct, frozen=True):
    """A model, and how it gets the content of the conversations."""

    subject: Subject
    answering: Sequence[Answering]
    """How questions are answered, one entry per repeat. The prompt is the same for every subject."""
    ingest: Ingest | None = None
    """The memory that is searched; None for a baseline, or a model that gets the conversation itself."""
    baseline: str = FULL_CONTEXT
    """What the model sees if `ingest` is None: the conversation (`full-context`), only the evidence (`oracle`) or
    nothing (`none`)."""
    window: int | None = None
    """The context window of the model in tokens; None: unknown."""


class AuditPlan(Struct, frozen=True):
    transcripts: Transcripts
    probes: Sequence[Probe]
    audited: Sequence[AuditedSubject]
    judge: Judge | None = None
    """Judges the answers; None: only answers that are equal to a known answer are scored."""
    search_limits: SearchLimits = SEARCH_LIMITS
    probe_model: ProbeModel | None = None
    """Writes and verifies probes; None: all probes were generated and checked by code."""
    verify: bool = False
    """If True, a question is first asked without context, and skipped if the model knows the answer.

    Questions with options, and those about absent facts, are always asked.
    """
    limits: Mapping[str, Limits] = field(default_factory=dict)
    canaries: int = 0
    """The number of canaries, answers with a known verdict, that the judge is checked with."""
    part: Collection[Unit] | None = None
    """The conversations of a shard: only their memories are checked and cleared. None: all conversations."""

    @property
    def repeats(self) -> int:
        return len(self.audited[0].answering)

    def plan(self) -> Plan:
        return Plan(
            jobs=self._jobs(),
            size=len(self.probes) * len(self.audited) * self.repeats,
            metrics=measures(has_judge=self.judge is not None),
            limits=self.limits,
            opening=self._check_first,
            closing=self._clear_all,
        )

    def _jobs(self) -> Iterator[Job]:
        places: dict[str, list[int]] = {}
        for place, probe in enumerate(self.probes):
            places.setdefault(probe.conversation, []).append(place)
        for turn, audited in enumerate(self.audited):
            probing = _Probing(self, audited)
            for place in mixed(list(places.values()), SIDE_BY_SIDE):
                probe = self.probes[place]
                for repeat in range(1, self.repeats + 1):
                    yield Job(
                        trial=trial_of(probe, self.transcripts.name, audited.subject, repeat),
                        perform=partial(probing.perform, probe, repeat=repeat),
                        # the repeats of a probe are adjacent: `measure` averages them
                        ordinal=(turn * len(self.probes) + place) * self.repeats + repeat - 1,
                        case=partial(probing.asked_probe, probe),
                        shown=Exhibit(asked=probe.question, expected=probe.expected_answer),
                        spends=True,
                    )

    async def _check_first(self, steps: Steps) -> None:
        """Check that live memories are empty and that the judge works, before anything is added."""
        for ingest in self._ingests:
            await ingest.check_first(steps, self._conversations[0])
        if self.judge is None:
            return
        judge = self.judge.model.subject
        if any(self_judged(judge, one.answering[0].model.subject) for one in self.audited):
            await steps.note("self-judged", f"{judge.name} judges its own answers")
        used = judge_prompts().used(question_of(probe) for probe in self.probes)
        await record_judge_check(steps, self.judge, choose_canaries(used), self.canaries)

    @property
    def _conversations(self) -> list[str]:
        found = dict.fromkeys(probe.conversation for probe in self.probes)
        return [one for one in found if self.part is None or (self.transcripts.name, one) in self.part]

    @property
    def _ingests(self) -> list[Ingest]:
        """The memories, each listed once, because several models may read the same one."""
        return list(dict.fromkeys(one.ingest for one in self.audited if one.ingest is not None))

    async def _clear_all(self, steps: Steps) -> None:
        for ingest in self._ingests:
            for conversation in self._conversations:
                await ingest.clear(steps, conversation)


def trial_of(probe: Probe, dataset: str, subject: Subject, repeat: int = 1) -> Trial:
    return Trial(
        suite="audit",
        benchmark=dataset,
        case_id=probe.id,
        subject=subject,
        labels=probe.labels,
        variant=DATED if probe.type == "temporal" and not probe.options else REVERSED if probe.reversed else "",
        cluster=probe.conversation,
        repeat=repeat,
    )


def can_be_known(probe: Probe) -> bool:
    """Return whether `--verify-probes` asks this probe without context: it has no options, and its fact was stated."""
    return not probe.abstain and not probe.options


class _Reply(Struct, frozen=True):
    answer: str
    context: str
    memories: Sequence[Memory] | None = None
    """The memories that the answering model saw; None if it saw the whole conversation."""
    scores: tuple[Score, ...] = ()
    """The scores of the context that the model saw."""


class _Probing:
    """Performs all probes of one subject. Steps are recorded, so asking the twin of a probe again costs nothing."""

    def __init__(self, plan: AuditPlan, audited: AuditedSubject) -> None:
        self._plan = plan
        self._audited = audited
        twins = {probe.twin for probe in plan.probes if probe.twin is not None}
        self._twins = {probe.id: place for place, probe in enumerate(plan.probes) if probe.id in twins}
        self._verified: dict[str, Probe] = {}

    def asked_probe(self, probe: Probe) -> Probe:
        """Return the probe as it was asked, with the checks that it passed."""
        return self._verified.get(probe.id, probe)

    async def perform(self, probe: Probe, steps: Steps, *, repeat: int = 1) -> Performed:
        try:
            performed = await self._probe(steps, probe, repeat)
        except Blocked:
            raise  # a resumed run with a larger budget continues with the filled memory
        except Exception:
            await self._leave(steps, probe)
            raise
        await self._leave(steps, probe)
        return performed

    async def _leave(self, steps: Steps, probe: Probe) -> None:
        if self._audited.ingest is not None:
            await self._audited.ingest.leave(steps, probe.conversation)

    async def _probe(self, steps: Steps, original: Probe, repeat: int) -> Performed:
        """Ask a probe and score the answer. Every repeat asks the same question in the same context."""
        probe = await self._verify(steps, original)
        await self._check_needs_context(steps, probe)
        reply = await self._answer(steps, probe, repeat)
        again, answer = steps_of_repeat(steps, repeat), reply.answer
        shown = Exhibit(
            asked=probe.question,
            expected=probe.expected_answer,
            got=answer,
            context=shorten(reply.context, _SHOWN_CONTEXT),
            memories_shown=None if reply.memories is None else len(reply.memories),
        )
        try:
            judgement = await self._judge(again, probe, answer)
        except Unreadable as error:
            failure = Failure(kind="Unreadable", message=str(error))
            return Performed(tuple(self._undecided_pair(probe)), shown=shown, unscored=failure)
        evidence = [] if judgement.correct else self._evidence_scores(probe, reply.memories)
        scores = await scores_of(again, self._plan.judge, probe, answer, judgement, reply.scores, evidence)
        scores += await self._score_pair(steps, probe, judgement, repeat)
        return Performed(scores=tuple(scores), shown=shown.model_copy(update={"reason": judgement.reason}))

    async def _judge(self, steps: Steps, probe: Probe, answer: str) -> Judgement:
        return await judge_answer(steps, self._plan.judge, probe, answer)

    async def _score_pair(self, steps: Steps, probe: Probe, judgement: Judgement, repeat: int) -> list[Score]:
        if not self._has_pair(probe):
            return []
        try:
            twin = await self._verify(steps, self._plan.probes[self._twins[probe.twin or ""]])
            await self._check_needs_context(steps, twin)
            answer = (await self._answer(steps, twin, repeat)).answer
        except (Unreadable, ServiceError, Lacking):
            return []  # the trial of the twin reports the reason
        try:
            other = await self._judge(steps_of_repeat(steps, repeat), twin, answer)
        except (Unreadable, ServiceError):
            undecided = self._undecided_pair(probe)
            if undecided and not judgement.correct:  # the pair is wrong, whatever the other answer is
                undecided += pair_scores(probe, twin, judgement, Judgement(correct=False))
            return undecided
        return pair_scores(probe, twin, judgement, other)

    def _undecided_pair(self, probe: Probe) -> list[Score]:
        """Return the score of a pair of which code cannot decide an answer; none if there is a judge, or no pair."""
        is_undecided = self._plan.judge is None and self._has_pair(probe)
        return [Score(name=PAIR_UNDECIDED, value=1.0)] if is_undecided else []

    def _has_pair(self, probe: Probe) -> bool:
        return has_pair_scores(probe) and probe.twin in self._twins

    async def _verify(self, steps: Steps, probe: Probe) -> Probe:
        """Return the probe as the model wrote and verified it; raise Lacking if it fails a check."""
        model = self._plan.probe_model
        if model is None:
            return probe
        if probe.id not in self._verified:
            conversation = self._plan.transcripts.conversation(probe.conversation)
            written = await write(steps, model, probe, conversation)
            self._verified[probe.id] = await model.verify(steps, written, conversation.turns)
        return self._verified[probe.id]

    async def _check_needs_context(self, steps: Steps, probe: Probe) -> None:
        """Raise Lacking if the model answers correctly without context, because the question does not test memory."""
        if not self._plan.verify or not can_be_known(probe):
            return
        answer = await self._ask(steps, probe, "", self._audited.answering[0])
        try:
            is_known = (await self._judge(steps, probe, answer)).correct
        except Unreadable:
            return
        if is_known:
            raise Lacking(
                f"the model knows the answer without context, so this does not test memory: {probe.question!r}"
            )

    def _evidence_scores(self, probe: Probe, memories: Sequence[Memory] | None) -> list[Score]:
        """Return scores that say whether the model saw the gold turns, to explain a wrong answer; none if unknown."""
        if memories is None:  # the whole conversation was replayed
            return [Score(name="miss_not_used", value=1.0)] if probe.gold_context else []
        turns = {turn.id for turn in self._plan.transcripts.conversation(probe.conversation).turns}
        sources = {source for memory in memories for source in memory.sources or ()} & turns
        if not probe.gold_context or (memories and not sources):
            return []
        needed = all if probe.kind in ("order", "duration") else any  # these compare two events
        was_shown = needed(turn.id in sources for turn in probe.gold_context)
        return [
            Score(name="miss_not_retrieved", value=float(not was_shown)),
            Score(name="miss_not_used", value=float(was_shown)),
        ]

    async def _answer(self, steps: Steps, probe: Probe, repeat: int) -> _Reply:
        plan, audited = self._plan, self._audited
        again, answering = steps_of_repeat(steps, repeat), audited.answering[repeat - 1]
        if audited.ingest is not None:
            limits = plan.search_limits
            memories = await audited.ingest.search(steps, probe.conversation, probe.question, limits.depth)
            shown = limits.cut(memories)
            context = context_of(shown)
            answer = await self._ask(again, probe, context, answering)
            return _Reply(answer, context, shown, tuple(limits.scores(memories, shown)))
        if audited.baseline != FULL_CONTEXT:
            shown = [] if audited.baseline == "none" else plan.transcripts.evidence(probe)
            context = context_of(shown)
            return _Reply(await self._ask(again, probe, context, answering), context, shown)
        if audited.window is not None and (too_long := find_oversized(plan.transcripts, [probe], audited.window)):
            raise ServiceError(too_long[0])
        before = plan.transcripts.replayed(probe.conversation)
        answer = await self._ask(again, probe, REPLAYED, answering, before)
        return _Reply(answer, plan.transcripts.transcript(probe.conversation))

    async def _ask(
        self, steps: Steps, probe: Probe, context: str, answering: Answering, before: Sequence[Turn] = ()
    ) -> str:
        end_time = self._plan.transcripts.end_time(probe.conversation)
        return (await ask(steps, answering, probe.question, context, at=end_time, before=before)).text


def find_oversized(transcripts: Transcripts, probes: Sequence[Probe], window: int) -> list[str]:
    """Return an error message for each conversation that exceeds the context window, given in tokens."""
    problems = []
    for conversation in dict.fromkeys(probe.conversation for probe in probes):
        tokens = estimated_tokens(transcripts.transcript(conversation)) + _REPLY_RESERVE
        if tokens > window:
            problems.append(
                f"conversation {conversation} has about {tokens:,} tokens; the context window of the model has"
                f" {window:,}; use a memory with --providers"
            )
    return problems
