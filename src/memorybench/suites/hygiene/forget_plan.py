"""The run of `hygiene forget`: one trial per step of the deletion procedure, which is performed once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput, Lacking
from memorybench.core.measures import Metric
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.trials import Case, Exhibit, Score, Trial
from memorybench.journal.rows import Fingerprint
from memorybench.metrics.rates import Rate
from memorybench.suites.estimates import unpriced_calls
from memorybench.suites.spec import with_folders
from memorybench.suites.suite import Opening, PreparedRun, RunPlace
from memorybench.suites.wiring import ResolvedStore, Wiring

from .forgetting import OTHER, STEPS, Certificate, Procedure, check_forgetting
from .plays import Store, open_subject
from .script import USER
from .spec import FORGET, ForgetSpec

SET = FORGET
FORGOTTEN, PASSED = "forgotten", "passed"
"""The name of the measure, and the name of a step's score: 1 if it passed, 0 if it failed, none if it cannot tell."""
PLAY = "forget"
"""The name of the recorded step whose result is the certificate."""
MEASURES: tuple[Metric, ...] = (Rate(FORGOTTEN, PASSED),)
MEANINGS = {FORGOTTEN: "steps of the deletion procedure that passed, of those that could tell"}


class ForgetStep(Case):
    """One step of the deletion procedure."""

    title: str


def prepare(spec: ForgetSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    store = wiring.store(spec.store)
    for name in spec.look_in:
        if not Path(name).exists():
            raise BadInput("--look-in", f"{name}: not found", expected="a file or a folder")
    fingerprints = {"store": store.described(), "procedure": "\n".join(STEPS)}
    return PreparedRun(
        spec=spec,
        totals={(SET, store.name): len(STEPS)},
        subjects=(store.name,),
        fingerprints={name: Fingerprint.of(text) for name, text in fingerprints.items()},
        metrics=MEASURES,
        open_plan=partial(_open_plan, spec, store),
        cases={SET: frozenset(STEPS)},
        estimate=lambda: (unpriced_calls(SET, store.name, "step", len(STEPS), spends=False),),
        hints={
            with_folders(
                ("memorybench", "hygiene", "run", "--store", store.name), spec, consent=True
            ): "check it for noise, secrets, duplicates and lost facts"
        },
    )


async def _open_plan(spec: ForgetSpec, store: ResolvedStore, opening: Opening) -> Plan:
    subject = await open_subject(store)
    jobs = _Jobs(spec, subject, opening.run_id)
    return Plan(jobs=jobs.jobs(), size=len(STEPS), metrics=MEASURES, limits=subject.limits)


class _Jobs(Struct, frozen=True):
    spec: ForgetSpec
    store: Store
    run: str

    def jobs(self) -> list[Job]:
        return [
            Job(
                trial=Trial(suite="hygiene", benchmark=SET, case_id=step, subject=self.store.subject, cluster=step),
                perform=partial(self._perform, step),
                ordinal=ordinal,
                case=ForgetStep(id=step, title=title),
                shown=Exhibit(asked=title, expected="pass"),
            )
            for ordinal, (step, title) in enumerate(STEPS.items())
        ]

    async def _perform(self, step: str, steps: Steps) -> Performed:
        certificate = await self._certificate(steps)
        check = next(check for check in certificate.checks if check.step == step)
        if check.state == "cannot tell":
            raise Lacking(check.evidence)
        evidence = "; ".join((check.evidence, *map(str, check.leftovers)))
        return Performed(
            scores=(Score(name=PASSED, value=float(check.state == "pass"), reason=check.evidence),),
            shown=Exhibit(asked=STEPS[step], expected="pass", got=check.state, reason=evidence),
        )

    async def _certificate(self, steps: Steps) -> Certificate:
        """Perform the procedure as one recorded step and return its certificate, which all trials share."""
        spec = self.spec
        procedure = Procedure(
            seed=spec.seed,
            isolation=self.store.isolation,
            look_in=tuple(Path(name) for name in spec.look_in),
            wait=spec.wait,
            check=steps.check_stopping,
        )
        inputs: Mapping[str, Any] = {
            "store": self.store.subject,
            "seed": spec.seed,
            "look_in": list(spec.look_in),
            "wait": spec.wait,
        }
        check = partial(check_forgetting, procedure=procedure)
        return await self.store.play(steps, PLAY, inputs, check, Certificate, run=self.run, users={USER, OTHER})
