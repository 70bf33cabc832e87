"""Writes and verifies the probes of a dataset with a model, as a run in the journal. Repeating it costs nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from memorybench.core.contracts import Model
from memorybench.core.errors import Lacking
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.reasons import Reasons
from memorybench.core.trials import Exhibit, Score
from memorybench.datasets.audit import AuditDataset
from memorybench.journal.rows import Fingerprint
from memorybench.journal.run_reader import RunReader
from memorybench.suites.model_runs import model_run, perform_with_model
from memorybench.suites.run_costs import RunCosts
from memorybench.suites.wiring import ResolvedModel, Wiring

from .plan import Transcripts, trial_of
from .probes import Probe
from .verification import CHECKS, ProbeModel
from .writing import write

SUITE = "audit-probes"


class Verified(Struct, frozen=True):
    """The probes that passed all checks, and how many did not."""

    probes: Sequence[Probe]
    rejected: Mapping[str, int]
    """The number of rejected probes, by reason."""
    failed: int
    """The number of probes that could not be checked, because a call of the model failed or the budget was used up."""
    problem: str
    """The most frequent reason why probes could not be checked; "" if all were checked."""
    run_id: str
    costs: RunCosts


def verify_all(
    dataset: AuditDataset,
    candidates: Sequence[Probe],
    model: ResolvedModel,
    results: Path,
    wiring: Wiring,
    concurrency: int = 10,
    budget: float | None = None,
) -> Verified:
    """Let the model write and verify the candidates, and return those that pass.

    Stop when `budget` dollars are spent. What earlier commands spent on the run counts, too. The run id is derived
    from dataset, candidates, model and the version of the checks, so repeating the command resumes the run. Raise
    KeyboardInterrupt after Ctrl-C; replies until then are recorded.
    """
    marks = {
        "dataset": Fingerprint.of_parts(dataset.canonical_parts()),
        "probes": Fingerprint.of_list(candidates),
        "probe model": Fingerprint.of(model.described()),
        "probe checks": Fingerprint.of(CHECKS),
    }
    run = model_run(SUITE, "probes", dataset.id, model, marks, len(candidates))

    def plan(opened: Model) -> Plan:
        return Plan(jobs=_jobs(dataset, candidates, ProbeModel(opened)), size=len(candidates))

    ending = perform_with_model(plan, run, model, results, wiring, concurrency=concurrency, budget=budget)
    if ending.interrupted:
        raise KeyboardInterrupt
    passed: dict[str, Probe] = {}
    rejected: Counter[str] = Counter()
    reasons = Reasons()
    with RunReader.open(results) as run_reader:
        for outcome in run_reader.outcomes(run.id):
            trial = outcome.trial
            if outcome.status == "scored":
                case = run_reader.case(run.id, trial.benchmark, trial.case_id)
                passed[trial.case_id] = Probe.model_validate(case)
            elif outcome.status == "skipped" and outcome.failure is not None:
                rejected[outcome.failure.message.partition(":")[0]] += 1
            elif outcome.failure is not None:
                reasons.add(outcome.failure.message)
        costs = RunCosts.of(run_reader, run_reader.run(run.id))
    probes = [passed[probe.id] for probe in candidates if probe.id in passed]
    failed = len(candidates) - len(passed) - rejected.total()
    problem = (ending.paused or reasons.most_frequent[0]) if failed else ""
    return Verified(probes, dict(rejected.most_common()), failed, problem, run.id, costs)


def _jobs(dataset: AuditDataset, candidates: Sequence[Probe], model: ProbeModel) -> Iterator[Job]:
    transcripts = Transcripts(dataset)
    checked: dict[str, Probe] = {}

    async def check(probe: Probe, steps: Steps) -> Performed:
        conversation = transcripts.conversation(probe.conversation)
        try:
            written = await write(steps, model, probe, conversation)
            checked[probe.id] = await model.verify(steps, written, conversation.turns)
        except Lacking:
            checked[probe.id] = probe
            raise
        shown = Exhibit(asked=written.question, expected=written.expected_answer)
        return Performed(scores=(Score(name="admitted", value=1.0),), shown=shown)

    for place, probe in enumerate(candidates):
        yield Job(
            trial=trial_of(probe, dataset.id, model.model.subject),
            perform=partial(check, probe),
            ordinal=place,
            case=partial(checked.get, probe.id),
            spends=True,
        )
