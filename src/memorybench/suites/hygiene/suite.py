"""The hygiene suite: does a store or an agent keep noise, secrets and duplicates out of a memory, and lose no facts?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memorybench.suites.suite import Command, RunPlace, Suite

from .spec import CORRECTIONS, FORGET, CorrectionsSpec, ForgetSpec, HygieneSpec


def _describe_file(path: Path, first: Mapping[str, Any]) -> str | None:
    if not {"schema_version", "assertions"} & first.keys():
        return None
    from .scenarios import load_scenario

    scenario = load_scenario(path)
    return f'hygiene scenario "{scenario.id}", {len(scenario.assertions)} assertions'


def _write_files(place: RunPlace) -> None:
    from .prepare import write_transcripts

    write_transcripts(place)


SUITE = Suite(
    name="hygiene",
    commands=(
        Command(
            "hygiene run",
            "run scenarios on a store, or with an agent",
            HygieneSpec,
            "memorybench.suites.hygiene.prepare:prepare",
            "MEMORY HYGIENE",
            marks={"mode": "scenarios"},
        ),
        Command(
            "hygiene forget",
            "certify that a store forgets deleted facts",
            ForgetSpec,
            "memorybench.suites.hygiene.forget_plan:prepare",
            "FORGETTING CERTIFICATE",
            marks={"mode": FORGET},
            report_module="memorybench.suites.hygiene.certificate",
        ),
        Command(
            "hygiene corrections",
            "show what a store returns after contradictory statements",
            CorrectionsSpec,
            "memorybench.suites.hygiene.corrections_plan:prepare",
            "CORRECTION MATRIX",
            marks={"mode": CORRECTIONS},
            report_module="memorybench.suites.hygiene.corrections_report",
        ),
    ),
    report_module="memorybench.suites.hygiene.report",
    rescoring_module="memorybench.suites.hygiene.rescoring",
    describe_file=_describe_file,
    write_files=_write_files,
)
