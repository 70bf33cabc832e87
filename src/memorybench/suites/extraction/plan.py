"""The plan of `memorybench extraction run`: one job per case."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from memorybench.core.errors import Malformed
from memorybench.core.extraction import Extractor, MemoryInText
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.records import Record
from memorybench.core.trials import Exhibit, Score, Subject, Trial
from memorybench.judging.matching_judge import CANARIES, EntailmentJudge
from memorybench.suites.judge_check import record_judge_check
from memorybench.suites.repeats import steps_of_repeat

from .cases import ExtractionCase
from .findings import examine
from .measures import EXPECTS, FORBIDS, measures
from .scores import IN_TEXT, scores_of
from .transcripts import transcript

SUITE = "extraction"
MAX_SHOWN = 600
"""The number of characters of a text that a report shows."""


class ExtractedMemory(Record):
    memory: Any
    """The whole memory, as the extractor returned it."""
    in_text: bool = False
    """Whether the memory was JSON inside a longer text, such as a reply with an explanation."""


class ExtractionPlan(Struct, frozen=True):
    name: str
    """The name of the case set."""
    cases: Sequence[ExtractionCase]
    extractor: Extractor
    spends: bool = False
    """Whether the extractor's calls may cost money."""
    judge: EntailmentJudge | None = None
    """Decides pairs of facts that code cannot decide; None: they stay undecided."""
    repeats: int = 1
    """The number of times that each case is extracted and judged."""
    canaries: int = 0
    """The number of canaries, pairs of facts with a known answer, that the judge is checked with."""

    def plan(self) -> Plan:
        spends = self.spends or self.judge is not None
        jobs = [
            Job(
                trial=trial_of(case, self.name, self.extractor.subject, repeat),
                perform=partial(self._perform, case, repeat),
                ordinal=index * self.repeats + repeat - 1,
                case=case,
                shown=_exhibit(case),
                spends=spends,
            )
            for index, case in enumerate(self.cases)
            for repeat in range(1, self.repeats + 1)
        ]
        opening = None if self.judge is None else partial(check_entailments, self.judge, self.canaries)
        return Plan(jobs=jobs, size=len(jobs), metrics=measures(), opening=opening)

    async def _perform(self, case: ExtractionCase, repeat: int, steps: Steps) -> Performed:
        shown = _exhibit(case)
        steps = steps_of_repeat(steps, repeat)
        extracted = await self._extract(steps, case)
        findings = await examine(steps, case, extracted.memory, self.judge)
        remarks = [*map(str, findings.remarks), *(f"must not be stored: {text}" for text in findings.violations)]
        got = "; ".join(map(str, findings.added)) or "no new facts"
        return Performed(
            scores=(*scores_of(findings), Score(name=IN_TEXT, value=float(extracted.in_text))),
            shown=shown.model_copy(update={"got": got, "reason": "; ".join(remarks)}),
            unscored=findings.unread,
        )

    async def _extract(self, steps: Steps, case: ExtractionCase) -> ExtractedMemory:
        async def extract() -> ExtractedMemory:
            memory = await self.extractor.extract(case.existing_memory, case.conversation)
            if memory is None and case.existing_memory:
                raise Malformed("the extractor returned no memory; expected the whole memory after the conversation")
            if isinstance(memory, MemoryInText):
                return ExtractedMemory(memory=memory.memory, in_text=True)
            return ExtractedMemory(memory=memory)

        return await steps.once(
            "extract",
            {
                "extractor": self.extractor.subject,
                "existing": case.existing_memory,
                "conversation": [turn.plain() for turn in case.conversation],
            },
            extract,
            ExtractedMemory,
            on=self.extractor.subject,
            paid=self.spends,
        )


def trial_of(case: ExtractionCase, name: str, subject: Subject, repeat: int = 1) -> Trial:
    gold = case.gold
    expects = "update" if gold.removed else "facts" if gold.added else "nothing"
    labels = {**case.labels, EXPECTS: expects, FORBIDS: "yes" if case.must_not_store else "no"}
    return Trial(suite=SUITE, benchmark=name, case_id=case.id, subject=subject, labels=labels, repeat=repeat)


async def check_entailments(judge: EntailmentJudge, canaries: int, steps: Steps, judged: str = "") -> None:
    """Check the judge with pairs of facts whose answer is known, and record the result."""
    await record_judge_check(steps, judge.judge, CANARIES, canaries, judged)


def _exhibit(case: ExtractionCase) -> Exhibit:
    text = transcript(case.conversation)
    expected = "; ".join((*case.expected_facts, *(f"gone: {line}" for line in case.superseded)))
    return Exhibit(
        asked=text if len(text) <= MAX_SHOWN else "…" + text[1 - MAX_SHOWN :], expected=expected or "no change"
    )
