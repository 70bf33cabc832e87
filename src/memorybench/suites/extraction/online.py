"""Judges extractions that happened elsewhere, from their traces.

A judge lists the facts that the user stated and the facts that were written; code matches and counts them as in a case.
Both lists leave out what the memory contained before, so the gold is a list of facts to add. A third list names the old
facts that the user withdrew; losses.py counts which of the old facts were kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from msgspec import Struct

from memorybench.core.contracts import Model
from memorybench.core.errors import Malformed
from memorybench.core.extraction import FeedbackSink, Trace, UnusableTrace
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.records import Record
from memorybench.core.trials import Case, Exhibit, Score, Subject, Trial
from memorybench.files.prompts import load_prompt
from memorybench.judging.enumeration import STATED, WITHDRAWN, WRITTEN, list_facts
from memorybench.judging.facts import MemoryFact, categories_of, facts_of
from memorybench.judging.matching import Grid, Matching, match
from memorybench.judging.matching_judge import PROMPT, SUPPORT_PROMPT, EntailmentJudge
from memorybench.judging.normal_form import folded
from memorybench.judging.prompts import JudgePrompt
from memorybench.suites.wiring import SizedRecords
from memorybench.text.sanitize import preview, shorten

from .findings import Findings, find_support, findings_of
from .gold import Gold
from .losses import follow_old_facts
from .measures import measures
from .plan import MAX_SHOWN, SUITE, check_entailments
from .scores import IN_TEXT, scores_of
from .transcripts import transcript

FEEDBACK, DISAGREEMENTS = "feedback", "disagreements"
"""Names of steps in the journal."""
SHARES = ("precision", "recall", "f1")
"""The names of the scores that are sent as feedback."""
_FEEDBACK_COUNTS = ("tp", "fp", "fn", "undecided", "hallucinated")
"""The names of the counts that are sent together with each score in SHARES."""
TRACE_PROMPTS: tuple[JudgePrompt | str, ...] = (
    PROMPT,
    SUPPORT_PROMPT,
    *(load_prompt(f"extraction-{name}") for name in (STATED, WRITTEN, WITHDRAWN)),
)
"""The prompts of a TraceJudge."""
DAY = "day"
"""The label that holds the day of a trace, so that reports show how scores change over time."""
_QUESTION = "Does the response, a note from a memory, say everything that the correct answer says?"
_LONGEST_CATEGORY, _MOST_CATEGORIES = 40, 50
_PLAIN_KEY, _WORDS = re.compile(r"[\w &/-]+"), re.compile(r"\w+")


def _day(at: datetime | None) -> dict[str, str]:
    """Return the label for the day of a trace: in UTC, or as given if the time has no time zone; empty if undated."""
    if at is None:
        return {}
    return {DAY: (at.astimezone(UTC) if at.tzinfo else at).date().isoformat()}


class PairToReview(Record):
    """A pair of facts for a person to decide, as a row of a labels file for `judge calibrate`."""

    id: str
    question: str = _QUESTION
    answer: str
    response: str
    label: str = ""
    """The decision of a person, "yes" or "no"; empty if there is none yet."""
    verdict: str | None = None
    """The decision of the judge; None if a journal has none."""
    note: str = ""


class PairsToReview(Record):
    rows: tuple[PairToReview, ...]

    def jsonl(self) -> str:
        return "".join(f"{row.model_dump_json(exclude_none=True)}\n" for row in self.rows)


class JudgedTrace(Struct, frozen=True):
    stated: tuple[MemoryFact, ...]
    written: tuple[MemoryFact, ...]
    findings: Findings
    pairs_to_review: tuple[PairToReview, ...]
    in_text: int = 0
    """The number of lists of the judge that were JSON inside a longer reply."""

    @property
    def scores(self) -> tuple[Score, ...]:
        return (*scores_of(self.findings), Score(name=IN_TEXT, value=float(self.in_text)))

    @property
    def comment(self) -> str:
        """The text that is sent with the scores: the counts, then a remark on each wrong fact."""
        findings = self.findings
        lost = sum(remark.label == "lost" for remark in findings.remarks)
        due, wrong = findings.tp + findings.fn, findings.fp - lost
        counts = f"{findings.tp} of {due} facts written down, {wrong} written that should not be"
        counts += f", {lost} lost" if lost else ""
        counts += f", {findings.undecided} undecided" if findings.undecided else ""
        unread = len(findings.unreadable)
        counts += f", {unread} replies of the judge not readable" if unread else ""
        return "; ".join((counts, *map(str, findings.remarks)))


class TraceJudge(Struct, frozen=True):
    model: Model
    """Lists the facts that were stated, written and withdrawn."""
    entailment: EntailmentJudge
    """Decides pairs of facts that code cannot decide."""

    async def judge(self, steps: Steps, trace: Trace) -> JudgedTrace:
        """Score one trace.

        Facts whose verdict cannot be read stay undecided. Raise Unreadable if a list of facts cannot be read, and
        Malformed if the output is not a memory.
        """
        for name, memory in (("existing memory", trace.existing), ("output", trace.output)):
            if isinstance(memory, int | float):
                raise Malformed(
                    f"the {name} of the trace is invalid: {preview(memory)};"
                    " expected a text, a list of texts, or an object of memory blocks"
                )
        before, after = facts_of(trace.existing), facts_of(trace.output)
        names = categories_of(trace.existing, before) | categories_of(trace.output, after)
        # longer keys are sentences or ids, not categories; other signs would end a category or begin a line
        short = (name for name in names if len(name) <= _LONGEST_CATEGORY and any(map(str.isalnum, name)))
        written_plainly = {
            name if _PLAIN_KEY.fullmatch(name) else "_".join(_WORDS.findall(name.lower())) for name in short
        }
        categories = sorted(written_plainly)[:_MOST_CATEGORIES]
        existing = _as_text(trace.existing)
        said = {"conversation": transcript(trace.conversation), "existing-memory": existing}
        lists = [await list_facts(steps, self.model, STATED, said, categories)]
        stated = lists[0].facts
        written: tuple[MemoryFact, ...] = ()
        if trace.output != trace.existing and _has_content(trace.output):
            memories = {"existing-memory": existing, "new-memory": _as_text(trace.output)}
            lists.append(await list_facts(steps, self.model, WRITTEN, memories, categories))
            listed = lists[-1].facts
            # A judge may list a kept fact as new; it counts as new only if the user stated it again.
            old = {new for _, new in Grid(before, listed).same}
            if old:
                old -= {new for _, new in Grid(stated, listed).same}
            texts = {folded(fact.text) for fact in before} - {folded(fact.text) for fact in stated}
            written = tuple(
                [fact for place, fact in enumerate(listed) if place not in old and folded(fact.text) not in texts]
            )
        by_code = match(Grid(stated, written))
        gold = Gold(kept=(), added=stated, removed=(), replaces={}, categories=frozenset())
        judge = self.entailment.of_one_trial()
        matching = await judge.decide_coverage(steps, await judge.decide(steps, by_code))
        support = await find_support(steps, judge, gold, trace.conversation, matching)
        withdrawn: tuple[MemoryFact, ...] = ()
        if before:
            lists.append(await list_facts(steps, self.model, WITHDRAWN, said, categories))
            withdrawn = lists[-1].facts
        old_facts = await follow_old_facts(steps, before, after, withdrawn, judge)
        findings = old_facts.add_to(findings_of(gold, matching, support), matching)
        findings = findings._replace(unreadable=tuple(judge.unread))
        pairs = tuple(_pairs_to_review(trace.id, by_code, matching))
        return JudgedTrace(stated, written, findings, pairs, sum(one.in_text for one in lists))


class OnlinePlan(Struct, frozen=True):
    source: Subject
    """Where the traces come from. It is the subject of the run, because the extractor is not known."""
    traces: SizedRecords[Trace]
    judge: TraceJudge
    feedback: FeedbackSink | None = None
    """Receives the scores of each trace once; None: nothing is sent."""
    canaries: int = 0
    """The number of canaries, pairs of facts with a known answer, that the judge is checked with."""

    def plan(self) -> Plan:
        opening = partial(check_entailments, self.judge.entailment, self.canaries)
        return Plan(jobs=self._jobs(), size=len(self.traces), metrics=measures(), opening=opening)

    def _jobs(self) -> Iterator[Job]:
        benchmark = str(self.source.settings.get("source", ""))
        for index, trace in enumerate(self.traces):
            asked = shorten(transcript(trace.conversation), MAX_SHOWN)
            yield Job(
                trial=Trial(
                    suite=SUITE, benchmark=benchmark, case_id=trace.id, subject=self.source, labels=_day(trace.at)
                ),
                perform=partial(self._perform, trace, asked),
                ordinal=index,
                shown=Exhibit(asked=asked),
                spends=True,
                case=Case(id=trace.id),  # it has no gold; a bundle has the case of each trial
            )

    async def _perform(self, trace: Trace, asked: str, steps: Steps) -> Performed:
        if isinstance(trace, UnusableTrace):
            raise Malformed(trace.problem)
        judged = await self.judge.judge(steps, trace)
        scores, unread = judged.scores, judged.findings.unread
        if judged.pairs_to_review and unread is None:
            pairs = PairsToReview(rows=judged.pairs_to_review)

            async def get_pairs() -> PairsToReview:
                return pairs

            await steps.once(DISAGREEMENTS, {"trace": trace.id, "rows": pairs}, get_pairs, PairsToReview)
        if self.feedback is not None and unread is None:
            await post_feedback(steps, self.feedback, self.source, trace.id, scores, judged.comment)
        shown = Exhibit(
            asked=asked,
            expected=shorten("\n".join(map(str, judged.stated)), MAX_SHOWN),
            got=shorten("\n".join(map(str, judged.written)), MAX_SHOWN),
            reason=judged.comment,
        )
        return Performed(scores, shown, unread)  # a resumed run records pairs and sends feedback, once all is decided


async def post_feedback(
    steps: Steps,
    sink: FeedbackSink,
    source: Subject,
    trace: str,
    scores: Iterable[Score],
    comment: str,
    *,
    shares: Sequence[str] = SHARES,
    counts: Sequence[str] = _FEEDBACK_COUNTS,
) -> None:
    """Send each score in `shares` together with the `counts`.

    Each is a recorded step, so that a resumed run does not send it again.
    """
    values = {score.name: score.value for score in scores}
    explaining = {name: value for name, value in values.items() if name in counts}
    for name in shares:
        if name in values:
            feedback = {name: values[name], **explaining}
            await steps.once(
                FEEDBACK,
                {"source": source, "trace": trace, "scores": feedback, "comment": comment},
                partial(sink.post, trace, name, values[name], explaining, comment),
                type(None),
                on=source,
                shared=True,
            )


def _pairs_to_review(trace: str, by_code: Matching, by_judge: Matching) -> Iterator[PairToReview]:
    """Yield pairs that code could not decide, each fact in one pair only, with the judge's verdict."""
    gold_facts, found_facts = by_code.grid.gold, by_code.grid.found
    for number, (gold, found) in enumerate(sorted(by_code.undecided.items()), 1):
        yield PairToReview(
            id=f"{trace}/{number}",
            answer=gold_facts[gold].with_path,
            response=found_facts[found].with_path,
            verdict={True: "yes", False: "no", None: None}[by_judge.grid.compare((gold, found)).says],
            note="code cannot decide this pair; label it yes or no",
        )


def _has_content(memory: Any) -> bool:
    if isinstance(memory, dict | list):
        return any(map(_has_content, memory.values() if isinstance(memory, dict) else memory))
    return bool(memory.strip()) if isinstance(memory, str) else memory is not None


def _as_text(memory: Any) -> str:
    if memory is None or isinstance(memory, str):
        return memory or ""
    return json.dumps(memory, ensure_ascii=False, indent=1)
