"""Prepares a run on labelled cases from its spec: reads the cases, and looks up the extractor and the judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.core.plans import Plan
from memorybench.core.records import canonical
from memorybench.core.trials import Subject
from memorybench.journal.rows import Fingerprint
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import CANARIES, PROMPT, SUPPORT_PROMPT, EntailmentJudge
from memorybench.judging.prompts import prompts_text
from memorybench.metrics.rates import count_selected
from memorybench.suites.estimates import Estimate, canary_calls, unpriced_calls
from memorybench.suites.judge_check import canary_limit
from memorybench.suites.sampling import cases_by_id, sample
from memorybench.suites.shards import ShardPart, choose_units
from memorybench.suites.spec import with_folders
from memorybench.suites.suite import Opening, PreparedRun, RunPlace
from memorybench.suites.wiring import ResolvedModel, Wiring

from .cases import ExtractionCase, load_cases
from .measures import AT_WORST, DEFAULT_THRESHOLDS, SELECTIVE, measures
from .plan import ExtractionPlan, trial_of
from .spec import ExtractionSpec

JUDGE_VARIABLE, NO_JUDGE = "MEMORYBENCH_JUDGE", "none"
BUNDLED_CASES = "data/memory_test_cases.json"


def cases_file(spec: ExtractionSpec, wiring: Wiring) -> Path:
    return wiring.bundled_file(BUNDLED_CASES) if spec.cases is None else Path(spec.cases)


def select_cases(spec: ExtractionSpec, wiring: Wiring) -> tuple[ExtractionCase, ...]:
    cases = load_cases(cases_file(spec, wiring))
    if spec.scenarios:
        known = sorted({case.labels.get("scenario", "") for case in cases} - {""})
        unknown = [name for name in spec.scenarios if name not in known]
        if unknown:
            raise BadInput("--scenario", f'unknown scenario "{unknown[0]}"', expected=", ".join(known))
        cases = tuple(case for case in cases if case.labels.get("scenario") in spec.scenarios)
    if spec.case_ids:
        cases = tuple(cases_by_id(cases, spec.case_ids, "--case-id", cases_file(spec, wiring).name))
    if spec.sample_seed is None:
        return cases[: spec.limit]
    return tuple(
        sample(
            cases,
            spec.limit,
            spec.sample_seed,
            cluster=lambda case: case.id,
            kind=lambda case: case.labels.get("scenario", ""),
        )
    )


def prepare(spec: ExtractionSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    name = cases_file(spec, wiring).stem
    extractor = wiring.extractor(spec.extractor, spec.extractor_command, spec.extractor_model)
    cases = select_cases(spec, wiring)
    if spec.limit is not None:
        spec = spec.model_copy(update={"case_ids": tuple(case.id for case in cases)})
    judge_name = spec.judge_model or wiring.variable(JUDGE_VARIABLE)
    judge = wiring.model(judge_name) if judge_name and judge_name != NO_JUDGE else None
    spec.check_canaries(has_judge=judge is not None)
    fingerprints = {
        f"cases {cases_file(spec, wiring).name}": Fingerprint.of(canonical([case.plain() for case in cases])),
        "extractor": Fingerprint.of(extractor.described()),
    }
    part, performed = None, cases
    if spec.shard is not None:
        part = choose_units(spec.shard, ((name, case.id) for case in cases))
        performed = tuple(case for case in cases if (name, case.id) in part)
    if judge is not None:
        fingerprints["judge model"] = Fingerprint.of(judge.described())
        fingerprints["judge prompts"] = Fingerprint.of(prompts_text((PROMPT, SUPPORT_PROMPT)))

    # the judge decides only what code cannot: the number of its calls is unknown, and taken for that of the cases
    canaries = canary_limit(spec.canaries, len(cases) * spec.repeats)

    async def open_plan(opening: Opening) -> Plan:
        opened = await extractor.open(opening.stack, opening.stores, opening.run_id)
        opening.check_subject(opened.subject)
        model = await judge.open(opening.stack) if judge else None
        return ExtractionPlan(
            name,
            cases,
            opened,
            spends=extractor.spends,
            judge=EntailmentJudge(Judge(model)) if model else None,
            repeats=spec.repeats,
            canaries=canaries,
        ).plan()

    return PreparedRun(
        spec=spec,
        totals={(name, extractor.name): len(performed) * spec.repeats},
        repeats=spec.repeats,
        subjects=(extractor.name,),
        fingerprints=fingerprints,
        metrics=measures(),
        open_plan=open_plan,
        cases={name: frozenset(case.id for case in performed)},
        details={
            "selected": _count_selected(name, performed),
            "answerer": extractor.model.name if extractor.model else None,
            "judge": judge.name if judge else None,
        },
        models=(extractor.model, judge),
        estimate=lambda: (
            unpriced_calls(name, extractor.name, "extract", len(performed) * spec.repeats, spends=extractor.spends),
            *(_judge_estimates(name, extractor.name, judge, canaries) if judge else ()),
        ),
        targets={} if spec.no_targets else DEFAULT_THRESHOLDS,
        lower_bounds=AT_WORST,
        hints={with_folders(("memorybench", "list", "--extractors"), spec): "what else can be tested"},
        part=None
        if part is None
        else ShardPart(
            part,
            len(cases),
            {(name, extractor.name): len(cases) * spec.repeats},
            {"selected": _count_selected(name, cases)},
        ),
    )


def _count_selected(name: str, cases: Sequence[ExtractionCase]) -> dict[str, int]:
    return count_selected(SELECTIVE, (trial_of(case, name, Subject(role="", name="")) for case in cases))


def _judge_estimates(name: str, extractor: str, judge: ResolvedModel, canaries: int) -> Iterator[Estimate]:
    yield unpriced_calls(name, extractor, "judge", 0, spends=judge.price(1000, 100) != 0)
    yield canary_calls(name, judge, CANARIES[:canaries])
