"""Extractions that happened elsewhere: a judge lists what was said and what was written down, code matches and counts.

The two lists are put to the same examination as an offline case: what the user said is the gold, and there is nothing
before it, for both lists leave out what the memory held already. What became of that is counted by code alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from json.encoder import encode_basestring
from typing import Any

from memorybench.core.conversation import Turn
from memorybench.core.errors import Malformed
from memorybench.core.extraction import FeedbackSink, Trace
from memorybench.core.plans import Job, Limits, Performed, Plan, Steps
from memorybench.core.records import Record
from memorybench.core.trials import Exhibit, Score, Subject, Trial
from memorybench.judging.enumeration import Enumerator
from memorybench.judging.facts import MemoryFact, categories_of, facts_of
from memorybench.judging.matching import read
from memorybench.judging.matching_canaries import check_entailment
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.judging.matching_pairs import Matching, grid_of, matched, open_pairs
from memorybench.text.sanitize import preview

from .findings import Findings, findings_of
from .gold import Gold
from .losses import losses_of
from .measures import measures
from .plan import SUITE
from .scores import OPERATIONS, scores_of
from .transcripts import turns_of

FEEDBACK, DISAGREEMENTS = "feedback", "disagreements"
"""Steps beside those of the judge, as the journal names them."""
SHARES = ("precision", "recall", "f1")
_TOLD = ("tp", "fp", "fn", "undecided", "hallucinated")
"""Counts that go back with the shares."""
_GIVEN = frozenset((*SHARES, *_TOLD))
_UNKNOWN = frozenset(name for operation, *counts in OPERATIONS for name in counts if operation != "keep")
_SHOWN = 600
_QUESTION = "Does the response, a note from a memory, say everything that the correct answer says?"
_LONG_WORDS = re.compile(r"[^\W\d_]{5,}")
_GLANCE = 4
"""Letters of a word that its other forms have, too."""
_LONGEST_NAME, _MOST_NAMES = 40, 50
_SPOKEN = {True: "yes", False: "no"}


class Doubt(Record):
    """A pair of facts for a person to decide, as a row of the file that `judge calibrate` reads."""

    id: str
    question: str = _QUESTION
    answer: str
    response: str
    label: str = ""
    """What code holds; "": nothing, a person has to say."""
    verdict: str | None = None
    """What the judge holds; None: it was not asked."""
    note: str = ""


class Doubts(Record):
    rows: tuple[Doubt, ...]

    def lines(self) -> str:
        """As JSONL."""
        return "".join(f"{row.model_dump_json(exclude_none=True)}\n" for row in self.rows)


@dataclass(frozen=True, slots=True)
class _Stated:
    """What the user said, as the gold of a memory that was empty: with nothing to keep and nothing to remove."""

    gold: Gold
    written: Sequence[MemoryFact]
    """What is held against it."""
    turns: Sequence[Turn]
    must_not_store: tuple[str, ...] = ()

    @classmethod
    def of(cls, facts: tuple[MemoryFact, ...], written: Sequence[MemoryFact], turns: Sequence[Turn]) -> _Stated:
        return cls(Gold(kept=(), added=facts, removed=(), replaces={}, categories=frozenset()), written, turns)

    @property
    def conversation(self) -> tuple[Turn, ...]:
        return _bearing_on(self.written, self.turns)


@dataclass(frozen=True, slots=True)
class Judged:
    """What one trace is worth."""

    stated: tuple[MemoryFact, ...]
    written: tuple[MemoryFact, ...]
    findings: Findings
    doubts: tuple[Doubt, ...]

    @property
    def scores(self) -> tuple[Score, ...]:
        """As those of a case, but for the operations: of these it is known from outside what was kept, no more."""
        return scores_of(self.findings, _UNKNOWN)

    @property
    def comment(self) -> str:
        """For whoever reads the trace: the counts, then what was missed and what was made up."""
        found = self.findings
        gone = sum(remark.label == "lost" for remark in found.remarks)
        counts = f"{found.tp} of {found.tp + found.fn} facts written down, {found.fp - gone} written that should not be"
        lost = f", {gone} lost" if gone else ""
        undecided = f", {found.undecided} undecided" if found.undecided else ""
        return "; ".join((counts + lost + undecided, *map(str, found.remarks)))


@dataclass(frozen=True, slots=True)
class TraceJudge:
    enumerator: Enumerator
    entailment: EntailmentJudge | None = None
    """Asked about pairs that code can not decide; None: they stay undecided, and are counted as such."""

    async def judge(self, steps: Steps, trace: Trace) -> Judged:
        """Raises Unreadable where a list can not be read, Malformed where the output is no memory."""
        _check_memories(trace)
        before, after = facts_of(trace.existing), facts_of(trace.output)
        categories = _names(categories_of(trace.existing, before) | categories_of(trace.output, after))
        existing = _as_text(trace.existing)
        stated = await self.enumerator.stated(steps, _transcript(trace.conversation), existing, categories)
        written: tuple[MemoryFact, ...] = ()
        if _holds_something(trace.output) and trace.output != trace.existing:  # else there is nothing to ask about
            listed = await self.enumerator.written(steps, existing, _as_text(trace.output), categories)
            written = _new(listed, before, stated)
        case = _Stated.of(stated, written, trace.conversation)
        by_code = matched(grid_of(stated, written))
        matching = by_code if self.entailment is None else await self.entailment.decide(steps, by_code)
        doubts = undecided(trace.id, matching) if self.entailment is None else contradicted(trace.id, by_code, matching)
        findings = findings_of(case, matching)
        losses = await losses_of(steps, before, after, stated, trace.conversation, self.entailment)
        return Judged(stated, written, losses.counted_in(findings), tuple(doubts))


@dataclass(frozen=True, slots=True)
class OnlinePlan:
    source: Subject
    """Where the traces come from: what is under test is whatever wrote them."""
    traces: Iterable[Trace]
    size: int
    judge: TraceJudge
    problems: Mapping[str, str] = field(default_factory=dict)
    """By trace id: why it can not be judged. Such a trace is failed, and nobody is asked about it."""
    feedback: FeedbackSink | None = None
    """Gets the scores of each trace, each once; None: nothing is sent anywhere."""
    limits: Mapping[str, Limits] = field(default_factory=dict)

    def plan(self) -> Plan:
        return Plan(
            jobs=self._jobs(), size=self.size, metrics=measures(), limits=self.limits, opening=self._check_entailment
        )

    async def _check_entailment(self, steps: Steps) -> None:
        """Recorded: what the judge says of pairs whose relation is known."""
        if self.judge.entailment is not None:
            report = await check_entailment(steps, self.judge.entailment)
            await steps.note("judge", report.sentence())

    def _jobs(self) -> Iterator[Job]:
        for place, trace in enumerate(self.traces):
            trial = Trial(
                suite=SUITE,
                benchmark=str(self.source.settings.get("source", "")),
                case_id=trace.id,
                subject=self.source,
            )
            asked = _beginning(_transcript(trace.conversation))
            yield Job(
                trial=trial,
                perform=partial(self._perform, trace, asked),
                ordinal=place,
                shown=Exhibit(asked=asked),
                spends=True,
            )

    async def _perform(self, trace: Trace, asked: str, steps: Steps) -> Performed:
        if trace.id in self.problems:
            raise Malformed(self.problems[trace.id])
        judged = await self.judge.judge(steps, trace)
        scores = judged.scores
        if judged.doubts:
            await _record(steps, trace.id, Doubts(rows=judged.doubts))
        if self.feedback is not None:
            told = {score.name: score.value for score in scores if score.name in _GIVEN}
            await self._give(steps, self.feedback, trace.id, told, judged.comment)
        shown = Exhibit(
            asked=asked,
            expected=_beginning("\n".join(map(str, judged.stated))),
            got=_beginning("\n".join(map(str, judged.written))),
            reason=judged.comment,
        )
        return Performed(scores=scores, shown=shown)

    async def _give(
        self, steps: Steps, sink: FeedbackSink, trace: str, told: Mapping[str, float], comment: str
    ) -> None:
        """After the scores, and each as a step: a resumed run tells nothing twice, but for the one under way."""
        counts = {name: value for name, value in told.items() if name not in SHARES}
        for name in SHARES:
            if name in told:
                scores = {name: told[name], **counts}
                await steps.once(
                    FEEDBACK,
                    {"source": self.source, "trace": trace, "scores": scores, "comment": comment},
                    partial(sink.post, trace, scores, comment),
                    type(None),
                    on=self.source,
                    shared=True,
                )


def _new(
    written: Sequence[MemoryFact], before: Sequence[MemoryFact], stated: Sequence[MemoryFact]
) -> tuple[MemoryFact, ...]:
    """Without what stood there before in the same words, which a judge may list all the same: it was kept, not made
    up. What the user has said again stays."""
    old = {read(fact).text for fact in before} - {read(fact).text for fact in stated}
    return tuple([fact for fact in written if read(fact).text not in old])


def undecided(trace: str, matching: Matching) -> Iterator[Doubt]:
    """Pairs that code could not decide, where no judge was asked."""
    grid = matching.grid
    for number, (gold, found) in enumerate(sorted(matching.undecided.items()), 1):
        yield Doubt(
            id=f"{trace}/{number}",
            answer=str(grid.gold[gold]),
            response=str(grid.found[found]),
            note="code can not decide; label it yes or no",
        )


def contradicted(trace: str, by_code: Matching, decided: Matching) -> Iterator[Doubt]:
    """Where the judge says otherwise than code, which holds an opinion also where it is not sure."""
    number = 0
    for pair in open_pairs(by_code):
        code, judge = by_code.grid.cells[pair], decided.grid.cells[pair]
        gold, found = str(by_code.grid.gold[pair[0]]), str(by_code.grid.found[pair[1]])
        for held, told, answer, response in (
            (code.says, judge.says, gold, found),
            (code.said, judge.said, found, gold),
        ):
            if held is None or told is None or held == told:
                continue
            number += 1
            yield Doubt(
                id=f"{trace}/{number}",
                answer=answer,
                response=response,
                label=_SPOKEN[held],
                verdict=_SPOKEN[told],
                note="the label is what code holds: correct it before you measure a judge by it",
            )


async def _record(steps: Steps, trace: str, doubts: Doubts) -> None:
    async def told() -> Doubts:
        return doubts

    await steps.once(DISAGREEMENTS, {"trace": trace, "rows": doubts}, told, Doubts)


def _check_memories(trace: Trace) -> None:
    """As in a case: a bare number or a yes is no memory."""
    for name, memory in (("existing memory", trace.existing), ("output", trace.output)):
        if isinstance(memory, int | float):
            raise Malformed(f"the {name} is {preview(memory)}; expected a memory: blocks, a list of texts, or a text")


def _bearing_on(facts: Sequence[MemoryFact], turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """The user's turns that could hold one of the facts word for word. To read a whole conversation closely, as is
    done to tell what the user said from what nobody said, takes longer than all else: this glance spares nearly all
    of it."""
    beginnings = [[word[:_GLANCE].casefold() for word in _LONG_WORDS.findall(fact.text)] for fact in facts]
    told = (one for turn in turns for one in ((turn,) if turn.role else turns_of(turn.content)))
    held = ((turn, turn.content.casefold()) for turn in told if turn.role == "user")
    return tuple(turn for turn, text in held if any(all(word in text for word in words) for words in beginnings))


def _names(categories: Collection[str]) -> list[str]:
    """Those that a judge is told: a memory whose keys are sentences, or ids, has no categories worth telling."""
    return sorted(name for name in categories if len(name) <= _LONGEST_NAME)[:_MOST_NAMES]


def _transcript(turns: Sequence[Turn]) -> str:
    """A turn without a role is a text that tells by itself who speaks."""
    return "\n".join(
        f"{turn.role.capitalize() if turn.speaker is None else f'{turn.speaker} ({turn.role})'}: {turn.content}"
        if turn.role
        else turn.content
        for turn in turns
    )


def _holds_something(memory: Any) -> bool:
    match memory:
        case dict():
            return any(map(_holds_something, memory.values()))
        case list():
            return any(map(_holds_something, memory))
        case str():
            return bool(memory.strip())
        case _:
            return memory is not None


def _as_text(memory: Any) -> str:
    if memory is None or isinstance(memory, str):
        return memory or ""
    return _laid_out(memory, "\n")


def _laid_out(value: Any, margin: str) -> str:
    """As `json.dumps(value, ensure_ascii=False, indent=1)`, which is slow: its quick encoder knows no indent."""
    if isinstance(value, str):
        return encode_basestring(value)
    deeper = f"{margin} "
    if isinstance(value, dict):
        members = [f"{encode_basestring(str(name))}: {_laid_out(member, deeper)}" for name, member in value.items()]
        return f"{{{deeper}{f',{deeper}'.join(members)}{margin}}}" if members else "{}"
    if isinstance(value, list):
        items = [_laid_out(item, deeper) for item in value]
        return f"[{deeper}{f',{deeper}'.join(items)}{margin}]" if items else "[]"
    return json.dumps(value)


def _beginning(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
