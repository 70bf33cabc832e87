"""Prepares an online run from its spec: traces are fetched once and judged, and scores are sent back if asked for."""

from __future__ import annotations

from memorybench.core.errors import BadInput
from memorybench.core.plans import Plan
from memorybench.files.writing import write_file
from memorybench.journal.lock import remove_unused
from memorybench.journal.rows import Fingerprint
from memorybench.journal.run_reader import RunReader
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import CANARIES, EntailmentJudge
from memorybench.judging.prompts import prompts_text
from memorybench.suites.estimates import canary_calls, unpriced_calls
from memorybench.suites.fetching import fetched
from memorybench.suites.judge_check import canary_limit
from memorybench.suites.spec import with_folders
from memorybench.suites.suite import Opening, PreparedRun, RunPlace
from memorybench.suites.wiring import Wiring

from .measures import measures
from .online import DISAGREEMENTS, TRACE_PROMPTS, OnlinePlan, PairsToReview, TraceJudge
from .plan import SUITE
from .prepare import JUDGE_VARIABLE, NO_JUDGE
from .spec import FEEDBACK_SOURCES, OnlineSpec

DEFAULT_JUDGE = "gpt-4o"
TRACES, LABELS = "traces.jsonl", "labels.jsonl"


def prepare_online(spec: OnlineSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    """Check the settings, then fetch the traces, which costs nothing.

    Raise BadInput if a setting is invalid, before any paid call.
    """
    if spec.feedback and spec.source not in FEEDBACK_SOURCES:
        raise BadInput(
            "--feedback",
            f"--source {spec.source} cannot receive scores",
            expected=f"--source {' or '.join(FEEDBACK_SOURCES)}",
            remedy="leave the flag out",
        )
    source = wiring.traces(spec)
    judge_name = spec.judge_model or wiring.variable(JUDGE_VARIABLE) or DEFAULT_JUDGE
    if judge_name == NO_JUDGE:
        where = "--judge-model" if spec.judge_model else JUDGE_VARIABLE
        raise BadInput(where, "traces can only be judged by a model", remedy="add --judge-model MODEL")
    judge = wiring.model(judge_name)
    if spec.baseline is not None:
        with RunReader.open(place.results) as run_reader:
            if run_reader.run(spec.baseline, "--baseline").suite != SUITE:
                raise BadInput(
                    "--baseline",
                    f"run {spec.baseline} was made by another command",
                    expected="a run of `memorybench extraction`",
                    remedy="name another run",
                )
    subject, traces = fetched(source.fetch(place.folder / TRACES), place.folder)

    # it lists facts stated, written and withdrawn; how often it decides what code cannot is unknown, and not counted
    judge_calls = 3 * len(traces)
    canaries = canary_limit(spec.canaries, judge_calls)

    async def open_plan(opening: Opening) -> Plan:
        model = await judge.open(opening.stack)
        return OnlinePlan(
            subject,
            traces,
            TraceJudge(model, EntailmentJudge(Judge(model))),
            feedback=await source.open_feedback(opening.stack) if spec.feedback else None,
            canaries=canaries,
        ).plan()

    def discard() -> None:
        traces.path.unlink()
        remove_unused(place.folder)

    return PreparedRun(
        spec=spec,
        totals={(spec.source, subject.name): len(traces)},
        subjects=(subject.name,),
        fingerprints={
            "judge model": Fingerprint.of(judge.described()),
            "judge prompts": Fingerprint.of(prompts_text(TRACE_PROMPTS)),
        },
        metrics=measures(),
        open_plan=open_plan,
        details={"judge": judge.name},
        models=(judge,),
        estimate=lambda: (
            unpriced_calls(spec.source, subject.name, "judge", judge_calls, spends=judge.price(1000, 100) != 0),
            canary_calls(spec.source, judge, CANARIES[:canaries]),
        ),
        hints={with_folders(("memorybench", "list", "--extractors"), spec): "what else can be tested"},
        discard=discard,
    )


def write_labels(place: RunPlace) -> None:
    """Write a labels file with the pairs that code could not decide, for a person to label.

    `memorybench judge calibrate` reads that file.
    """
    with RunReader.open(place.results, thorough=False) as run_reader:
        records = run_reader.step_records(place.run_id, DISAGREEMENTS)
        disagreements = [PairsToReview.model_validate_json(result) for _, result in records]
    if disagreements:
        write_file(place.folder / LABELS, "".join(one.jsonl() for one in disagreements))
