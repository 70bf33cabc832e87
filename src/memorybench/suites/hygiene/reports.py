"""Chooses the report of a hygiene run by the command that made it, which is the `mode` in the spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from memorybench.core.measures import Metric
from memorybench.core.report_sections import Report, Section
from memorybench.journal.rows import Run
from memorybench.suites.case_view import CaseTrial
from memorybench.suites.stored_run import StoredRun

from .corrections_plan import MEANINGS as CORRECTION_MEASURES
from .forget_plan import FORGOTTEN
from .report import MAIN_MEASURES as SCENARIO_MEASURES
from .report import RESULT_NAMES as SCENARIO_RESULTS
from .spec import CORRECTIONS, FORGET

MAIN_MEASURES = (*SCENARIO_MEASURES, FORGOTTEN, *CORRECTION_MEASURES)
RESULT_NAMES = SCENARIO_RESULTS
_MODULES = {FORGET: "certificate", CORRECTIONS: "corrections_report"}
"""The module that makes the report, by mode. Runs of earlier versions have no mode; they are runs of `hygiene run`."""


def _module(spec: Mapping[str, Any]) -> Any:
    return import_module(f".{_MODULES.get(spec.get('mode', ''), 'report')}", __package__)


def metrics(run: StoredRun) -> tuple[Metric, ...]:
    found: tuple[Metric, ...] = _module(run.run.spec).metrics(run)
    return found


def facts(runs: Sequence[Run]) -> dict[str, str]:
    found: dict[str, str] = _module(runs[0].spec).facts(runs)
    return found


def report(run: StoredRun) -> Report:
    made: Report = _module(run.run.spec).report(run)
    return made


def passes(run: StoredRun) -> bool:
    return bool(_module(run.run.spec).passes(run))


def case_sections(trial: CaseTrial) -> list[Section]:
    sections: list[Section] = _module({"mode": trial.outcome.trial.benchmark}).case_sections(trial)
    return sections
