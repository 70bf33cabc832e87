"""Cases × one extractor as jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from memorybench.core.errors import Malformed, Unreadable
from memorybench.core.extraction import Extractor
from memorybench.core.plans import Job, Limits, Performed, Plan, Steps
from memorybench.core.records import Record
from memorybench.core.trials import Exhibit, Failure, Subject, Trial
from memorybench.judging.matching_canaries import check_entailment
from memorybench.judging.matching_judge import EntailmentJudge

from .cases import ExtractionCase
from .findings import Findings, examine
from .measures import EXPECTS, measures
from .scores import scores_of
from .transcripts import transcript

SUITE = "extraction"
_SHOWN = 600


class Extracted(Record):
    memory: Any
    """As the extractor gave it back."""


@dataclass(frozen=True, slots=True)
class ExtractionPlan:
    name: str
    """Of the case set."""
    cases: Sequence[ExtractionCase]
    extractor: Extractor
    spends: bool = False
    """The extractor's calls may cost money."""
    judge: EntailmentJudge | None = None
    """Decides what code can not; without one, such pairs stay undecided."""
    limits: Mapping[str, Limits] = field(default_factory=dict)

    def plan(self) -> Plan:
        jobs = [self._job(place, case) for place, case in enumerate(self.cases)]
        opening = None if self.judge is None else partial(_check, self.judge)
        return Plan(jobs=jobs, size=len(jobs), metrics=measures(), limits=self.limits, opening=opening)

    def _job(self, place: int, case: ExtractionCase) -> Job:
        return Job(
            trial=trial_of(case, self.name, self.extractor.subject),
            perform=partial(self._perform, case),
            ordinal=place,
            case=case,
            shown=_asked(case),
            spends=self.spends or self.judge is not None,
        )

    async def _perform(self, case: ExtractionCase, steps: Steps) -> Performed:
        output = await self._extract(steps, case)
        try:
            findings = await examine(steps, case, output, self.judge)
        except Unreadable as error:
            return Performed(shown=_asked(case), unscored=Failure(kind="Unreadable", message=str(error)))
        return Performed(scores=scores_of(findings), shown=_shown(case, findings))

    async def _extract(self, steps: Steps, case: ExtractionCase) -> Any:
        async def extract() -> Extracted:
            memory = await self.extractor.extract(case.existing_memory, case.conversation)
            if memory is None and case.existing_memory:
                raise Malformed("the extractor gave no memory back; expected the whole memory as it is afterwards")
            return Extracted(memory=memory)

        extracted = await steps.once(
            "extract",
            {
                "extractor": self.extractor.subject,
                "existing": case.existing_memory,
                "conversation": [turn.plain() for turn in case.conversation],
            },
            extract,
            Extracted,
            on=self.extractor.subject,
            paid=self.spends,
        )
        return extracted.memory


def trial_of(case: ExtractionCase, name: str, subject: Subject) -> Trial:
    gold = case.gold
    expects = "update" if gold.removed else "facts" if gold.added else "nothing"
    return Trial(
        suite=SUITE, benchmark=name, case_id=case.id, subject=subject, labels={**case.labels, EXPECTS: expects}
    )


async def _check(judge: EntailmentJudge, steps: Steps) -> None:
    """Recorded: what the judge says of pairs whose relation is known."""
    report = await check_entailment(steps, judge)
    await steps.note("judge", report.sentence())


def _asked(case: ExtractionCase) -> Exhibit:
    return Exhibit(asked=_end(transcript(case.conversation)), expected=_expected(case))


def _shown(case: ExtractionCase, findings: Findings) -> Exhibit:
    remarks = [*map(str, findings.remarks), *(f"must not be stored: {text}" for text in findings.violations)]
    return Exhibit(
        asked=_end(transcript(case.conversation)),
        expected=_expected(case),
        got="; ".join(map(str, findings.added)) or "no new facts",
        reason="; ".join(remarks),
    )


def _expected(case: ExtractionCase) -> str:
    removed = [f"gone: {line}" for line in case.superseded]
    return "; ".join((*case.expected_facts, *removed)) or "no change"


def _end(text: str) -> str:
    return text if len(text) <= _SHOWN else "…" + text[1 - _SHOWN :]
