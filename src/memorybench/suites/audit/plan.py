"""Probes × subjects as jobs: what was said is replayed or remembered, the question asked, the answer judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial

from memorybench.core.contracts import Model
from memorybench.core.conversation import Haystack, Memory, Session, Turn
from memorybench.core.errors import Blocked, Lacking, ServiceError, Unreadable
from memorybench.core.plans import Job, Limits, Performed, Plan, Steps
from memorybench.core.trials import Exhibit, Failure, Score, Subject, Trial
from memorybench.datasets.audit import AuditConversation, AuditDataset
from memorybench.judging.canaries import check_judge
from memorybench.judging.judge import Judge, self_judged
from memorybench.suites.answering import Answering, ask, context_of, estimated_tokens
from memorybench.suites.ingest import Ingest
from memorybench.suites.mixing import SIDE_BY_SIDE, mixed

from .generation import admit
from .judgement import Judged, answered, judge_prompts, judged, question_of
from .measures import DATED, REVERSED, measures
from .probes import Probe
from .writing import write_question

SHOWN = 10
REWRITTEN = "rewritten"
"""A score: whether the question that a model wrote was asked, or the gates held it back."""
_FOR_THE_REPLY = 1024
"""Tokens of a model's window that are left for its answer."""


class Transcripts:
    """The conversations of an audit, as a memory is told them: a session for each day."""

    def __init__(self, dataset: AuditDataset) -> None:
        self.name = dataset.id
        self._conversations = {conversation.id: conversation for conversation in dataset.conversations}
        # asked for by probe after probe: the last few conversations are kept
        self.transcript = lru_cache(maxsize=SIDE_BY_SIDE)(self._transcript)
        self.ended = lru_cache(maxsize=SIDE_BY_SIDE)(self._ended)

    def haystack(self, id: str) -> Haystack:
        return Haystack(id=id, sessions=_sessions(self._conversations[id]))

    def _transcript(self, id: str) -> str:
        """All of it, in lines of `[date] speaker: text`."""
        return context_of(lines_of(self._conversations[id].turns))

    def conversation(self, id: str) -> AuditConversation:
        return self._conversations[id]

    def _ended(self, id: str) -> datetime | None:
        return max((turn.at for turn in self._conversations[id].turns if turn.at), default=None)


def lines_of(turns: Sequence[Turn]) -> list[Memory]:
    return [Memory(id=turn.id or "", content=_line(turn)) for turn in turns]


def _line(turn: Turn) -> str:
    said = f"{turn.speaker or turn.role}: {turn.content}"
    return f"[{turn.at:%Y-%m-%d}] {said}" if turn.at else said


def _sessions(conversation: AuditConversation) -> tuple[Session, ...]:
    days: dict[str, list[Turn]] = {}
    day = ""
    for turn in conversation.turns:
        day = f"{turn.at:%Y-%m-%d}" if turn.at else day  # one without a date goes with the one before it
        days.setdefault(day, []).append(turn)
    return tuple(
        Session(id=f"{conversation.id}:{day or 'undated'}", turns=tuple(turns), at=turns[0].at)
        for day, turns in days.items()
    )


@dataclass(frozen=True, slots=True)
class Audited:
    """Who is audited: a model that is told everything, or a memory system that was told and is searched."""

    subject: Subject
    ingest: Ingest | None = None
    """None: the whole conversation is replayed."""


@dataclass(frozen=True, slots=True)
class AuditPlan:
    transcripts: Transcripts
    probes: Sequence[Probe]
    audited: Sequence[Audited]
    answering: Answering
    """Who reads, by which prompt. The same for a replayed conversation and for a memory."""
    judge: Judge | None = None
    """None: code compares answers with the expected words."""
    shown: int = SHOWN
    """Memories that are asked for and read."""
    writer: Model | None = None
    """Who writes the questions anew; None: they stay as they are."""
    verified: bool = False
    """Whether recall questions are also asked without any context: what is known anyway tests no memory."""
    window: int | None = None
    """Tokens that the answering model can take; None: unknown."""
    limits: Mapping[str, Limits] = field(default_factory=dict)

    def plan(self) -> Plan:
        return Plan(
            jobs=self._jobs(),
            size=len(self.probes) * len(self.audited),
            metrics=measures(),
            limits=self.limits,
            opening=self._check_judge,
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
                yield Job(
                    trial=trial_of(probe, self.transcripts.name, audited.subject),
                    perform=partial(probing.perform, probe),
                    ordinal=turn * len(self.probes) + place,
                    case=probe,
                    shown=Exhibit(asked=probe.question, expected=probe.expected_answer),
                    spends=True,
                )

    async def _check_judge(self, steps: Steps) -> None:
        if self.judge is None:
            return
        if self_judged(self.judge.model.subject, self.answering.model.subject):
            await steps.note("self-judged", f"{self.judge.model.subject.name} judges its own answers")
        used = judge_prompts().used(question_of(probe) for probe in self.probes)
        report = await check_judge(steps, self.judge, used)
        await steps.note("judge", report.sentence())

    async def _clear_all(self, steps: Steps) -> None:
        for audited in self.audited:
            if audited.ingest is not None:
                for conversation in dict.fromkeys(probe.conversation for probe in self.probes):
                    await audited.ingest.clear(steps, conversation)


def trial_of(probe: Probe, dataset: str, subject: Subject) -> Trial:
    return Trial(
        suite="audit",
        benchmark=dataset,
        case_id=probe.id,
        subject=subject,
        labels=probe.labels,
        variant=_variant(probe),
        cluster=probe.conversation,
    )


def _variant(probe: Probe) -> str:
    if probe.type == "temporal" and not probe.options:
        return DATED
    return REVERSED if probe.reversed else ""


class _Probing:
    """All probes put to one subject. A twin's steps are the same steps: to look at both costs nothing more."""

    def __init__(self, plan: AuditPlan, audited: Audited) -> None:
        self._plan = plan
        self._audited = audited
        self._by_id = {probe.id: probe for probe in plan.probes}

    async def perform(self, probe: Probe, steps: Steps) -> Performed:
        try:
            performed = await self._probe(steps, probe)
        except Blocked:
            raise  # a larger budget will go on from here: the memory stays filled
        except Exception:
            await self._leave(steps, probe)
            raise
        await self._leave(steps, probe)
        return performed

    async def _leave(self, steps: Steps, probe: Probe) -> None:
        if self._audited.ingest is not None:
            await self._audited.ingest.leave(steps, probe.conversation)

    async def _probe(self, steps: Steps, made: Probe) -> Performed:
        probe = await self._written(steps, made)
        await self._check_needs_context(steps, probe)
        said, context = await self._answer(steps, probe)
        try:
            found = await judged(steps, self._plan.judge, probe, said)
        except Unreadable as error:
            failure = Failure(kind="Unreadable", message=str(error))
            return Performed(shown=_exhibit(probe, said, context), unscored=failure)
        scores = [Score(name="correct", value=float(found.correct), reason=found.reason)]
        if probe.abstain:
            scores.append(Score(name="hallucinated", value=float(not found.correct)))
        elif probe.type == "recall":
            told = answered(probe, said, found)
            scores += [] if told is None else [Score(name="answered", value=float(told))]
        if self._plan.writer is not None and not probe.options:
            scores.append(Score(name=REWRITTEN, value=float(probe.origin == "model")))
        scores += await self._beside_twin(steps, probe, found)
        return Performed(scores=tuple(scores), shown=_exhibit(probe, said, context, found.reason))

    async def _beside_twin(self, steps: Steps, probe: Probe, found: Judged) -> list[Score]:
        """What only both together tell: an order asked both ways, what is absent beside what is there."""
        twin = self._by_id.get(probe.twin or "")
        if twin is None or probe.reversed or probe.type not in ("temporal", "hallucination"):
            return []
        try:
            twin = await self._written(steps, twin)
            await self._check_needs_context(steps, twin)
            said, _ = await self._answer(steps, twin)
            other = await judged(steps, self._plan.judge, twin, said)
        except (Unreadable, ServiceError, Lacking):
            return []  # the twin has its own trial, which tells why
        both = float(found.correct and other.correct)
        if probe.type == "hallucination":
            return [Score(name="paired", value=both)]
        scores = [Score(name="ordered", value=both)]
        if found.choice is not None and other.choice is not None:
            same = probe.options[found.choice] == twin.options[other.choice]
            scores.append(Score(name="consistent", value=float(same)))
        return scores

    async def _written(self, steps: Steps, probe: Probe) -> Probe:
        """With the question as a model puts it, where it passes the gates that our own has passed."""
        writer = self._plan.writer
        if writer is None or probe.options:
            return probe
        question = await write_question(steps, writer, probe)
        written = probe.model_copy(update={"question": question, "origin": "model"})
        others = [other for other in self._plan.probes if other.conversation == probe.conversation]
        held_back = admit(written, self._plan.transcripts.conversation(probe.conversation), others=others)
        return probe if held_back else written

    async def _check_needs_context(self, steps: Steps, probe: Probe) -> None:
        """What is answered rightly without any context tests what the model knows anyway, not what it was told."""
        if not self._plan.verified or probe.abstain or probe.options:
            return
        said = await self._ask(steps, probe, "")
        try:
            known = (await judged(steps, self._plan.judge, probe, said)).correct
        except Unreadable:
            return  # nobody can say that it is known anyway
        if known:
            raise Lacking(f"answered without any context: {probe.question!r} tests no memory")

    async def _answer(self, steps: Steps, probe: Probe) -> tuple[str, str]:
        """What was said, and what it was read from."""
        plan, ingest = self._plan, self._audited.ingest
        if ingest is None:
            context = plan.transcripts.transcript(probe.conversation)
            self._check_fits(probe, context)
        else:
            memories = await ingest.search(steps, probe.conversation, probe.question, plan.shown)
            context = context_of(memories)
        return await self._ask(steps, probe, context), context

    async def _ask(self, steps: Steps, probe: Probe, context: str) -> str:
        ended = self._plan.transcripts.ended(probe.conversation)
        return (await ask(steps, self._plan.answering, probe.question, context, at=ended)).text

    def _check_fits(self, probe: Probe, context: str) -> None:
        """Nothing is cut off in silence."""
        if self._plan.window is None:
            return
        tokens = estimated_tokens(context) + _FOR_THE_REPLY
        if tokens > self._plan.window:
            raise ServiceError(too_long(probe.conversation, tokens, self._plan.window))


def too_long(conversation: str, tokens: int, window: int) -> str:
    return (
        f"conversation {conversation} takes about {tokens:,} tokens and the model reads {window:,};"
        " put a memory before it with --provider"
    )


def oversized(transcripts: Transcripts, probes: Sequence[Probe], window: int) -> list[str]:
    """What does not fit, one line each."""
    lines = []
    for conversation in dict.fromkeys(probe.conversation for probe in probes):
        tokens = estimated_tokens(transcripts.transcript(conversation)) + _FOR_THE_REPLY
        if tokens > window:
            lines.append(too_long(conversation, tokens, window))
    return lines


def _exhibit(probe: Probe, said: str, context: str, reason: str = "") -> Exhibit:
    return Exhibit(
        asked=probe.question,
        expected=probe.expected_answer,
        got=said,
        context=_beginning(context),
        reason=reason,
    )


def _beginning(text: str, most: int = 600) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
