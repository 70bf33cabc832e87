"""From a spec to a run over recorded searches."""

from __future__ import annotations

from memorybench.core.plans import Plan
from memorybench.journal.rows import Fingerprint
from memorybench.judging.judge import Judge
from memorybench.judging.use import CANARIES, UseJudge
from memorybench.suites.estimates import canary_calls, unpriced_calls
from memorybench.suites.judge_check import canary_limit
from memorybench.suites.suite import Opening, PreparedRun, RunPlace
from memorybench.suites.wiring import Wiring

from .plan import SEARCHES, OnlinePlan
from .report import METRICS
from .spec import OnlineSpec


def prepare(spec: OnlineSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    """Raises before anything is spent. The file is read here to count its searches, and again when the run begins."""
    spec.check_canaries(has_judge=spec.judge_model is not None)
    source = wiring.searches(spec.file, since=spec.since, limit=spec.limit)
    judge = wiring.model(spec.judge_model) if spec.judge_model else None
    size = source.count()
    # an upper limit: a search may have found fewer memories
    judge_calls = size * spec.top_k if judge is not None else 0
    canaries = min(len(CANARIES), canary_limit(spec.canaries, judge_calls))
    name = source.subject.name

    async def open_plan(opening: Opening) -> Plan:
        model = await judge.open(opening.stack) if judge is not None else None
        use_judge = UseJudge(Judge(model)) if model is not None else None
        return OnlinePlan(source.subject, source, size, use_judge, spec.top_k, canaries).plan()

    return PreparedRun(
        spec=spec.model_copy(update={"since": source.since}),  # `24h` must mean the same when the run is resumed
        totals={(SEARCHES, name): size},
        subjects=(name,),
        fingerprints={
            "spans": Fingerprint(digest=source.digest()),
            **({"judge model": Fingerprint.of(judge.described())} if judge is not None else {}),
        },
        metrics=METRICS,
        open_plan=open_plan,
        details={"judge": judge.name if judge is not None else None},
        models=(judge,),
        estimate=lambda: (
            ()
            if judge is None
            else (
                unpriced_calls(SEARCHES, name, "judge", judge_calls, spends=judge.price(1000, 100) != 0),
                canary_calls(SEARCHES, judge, CANARIES[:canaries]),
            )
        ),
        hints={"memorybench extraction online --source otlp FILE": "judge what the agent wrote"},
    )
