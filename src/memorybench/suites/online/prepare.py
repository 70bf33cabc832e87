"""Prepares a run over recorded searches and writes from its spec."""

from __future__ import annotations

from collections.abc import Mapping

from memorybench.core.errors import BadInput
from memorybench.core.plans import Plan
from memorybench.journal.lock import remove_unused
from memorybench.journal.rows import Fingerprint
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import CANARIES as PAIRS
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.judging.prompts import prompts_text
from memorybench.judging.use import CANARIES, PROMPT
from memorybench.suites.estimates import canary_calls, unpriced_calls
from memorybench.suites.extraction.online import TRACE_PROMPTS, TraceJudge
from memorybench.suites.extraction.spec import FEEDBACK_SOURCES
from memorybench.suites.fetching import fetched
from memorybench.suites.judge_check import canary_limit
from memorybench.suites.suite import Opening, PreparedRun, RunPlace
from memorybench.suites.wiring import ResolvedModel, Wiring

from .plan import Judges, OnlinePlan
from .report import METRICS
from .spec import SEARCHES, WRITES, OnlineSpec

_CALLS_PER_WRITE = 3
"""The assumed judge calls per write: one each to list the facts stated, written and withdrawn."""


def prepare(spec: OnlineSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    """Check the settings, write the recorded operations to files in the run's folder, and return the prepared run.

    Raise BadInput if a setting is invalid, before any paid call.
    """
    spec.check_canaries(has_judge=spec.judge_model is not None)
    _check_feedback(spec)
    source = wiring.operations(spec)
    judge = wiring.model(spec.judge_model) if spec.judge_model else None
    operations = fetched(source.fetch(place.folder), place.folder)
    searches, writes, name = operations.searches, operations.writes, operations.subject.name
    sizes = {SEARCHES: len(searches), WRITES: len(writes)}
    # upper limits: a search may have found fewer memories
    calls = {SEARCHES: len(searches) * spec.top_k, WRITES: len(writes) * _CALLS_PER_WRITE}
    known = {SEARCHES: CANARIES, WRITES: PAIRS}
    canaries = {
        kind: min(len(known[kind]), canary_limit(spec.canaries, calls[kind])) for kind, size in sizes.items() if size
    }

    async def open_plan(opening: Opening) -> Plan:
        judges = None
        if judge is not None:
            model = await judge.open(opening.stack)
            judges = Judges(Judge(model), TraceJudge(model, EntailmentJudge(Judge(model))), canaries)
        sink = await source.open_feedback(opening.stack) if spec.feedback else None
        return OnlinePlan(operations.subject, searches, writes, judges, spec.top_k, sink).plan()

    def discard() -> None:
        operations.remove()
        remove_unused(place.folder)

    return PreparedRun(
        spec=spec.model_copy(update={"since": source.since}),  # `24h` must mean the same when the run is resumed
        totals={(kind, name): size for kind, size in sizes.items() if size},
        subjects=(name,),
        fingerprints={
            "spans": Fingerprint(digest=operations.digest()),
            **(_judge_fingerprints(judge, sizes) if judge is not None else {}),
        },
        metrics=METRICS,
        open_plan=open_plan,
        details={"judge": judge.name if judge is not None else None},
        models=(judge,),
        estimate=lambda: (
            ()
            if judge is None
            else tuple(
                row
                for kind, size in sizes.items()
                if size
                for row in (
                    unpriced_calls(kind, name, "judge", calls[kind], spends=judge.price(1000, 100) != 0),
                    canary_calls(kind, judge, known[kind][: canaries[kind]]),
                )
            )
        ),
        discard=discard,
    )


def _judge_fingerprints(judge: ResolvedModel, sizes: Mapping[str, int]) -> dict[str, Fingerprint]:
    used = {SEARCHES: (PROMPT,), WRITES: TRACE_PROMPTS}
    prompts = [prompt for kind, size in sizes.items() if size for prompt in used[kind]]
    return {
        "judge model": Fingerprint.of(judge.described()),
        "judge prompts": Fingerprint.of(prompts_text(prompts)),
    }


def _check_feedback(spec: OnlineSpec) -> None:
    if spec.feedback and spec.judge_model is None:
        raise BadInput(
            "--feedback",
            "only the scores of a judge are sent to the source of the traces, and the run has no judge",
            remedy="add --judge-model MODEL",
        )
    if spec.feedback and (spec.source not in FEEDBACK_SOURCES or (spec.source == "langsmith" and spec.file)):
        raise BadInput(
            "--feedback",
            "the source cannot receive scores",
            expected="--source langfuse FILE, or --source langsmith --project NAME",
            remedy="leave the flag out",
        )
