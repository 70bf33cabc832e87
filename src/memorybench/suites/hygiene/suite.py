"""The hygiene suite: does a store, or an agent, keep memory free of noise, secrets, duplicates and lost facts?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memorybench.suites.suite import Command, RunPlace, Suite

from .spec import HygieneSpec


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
            "play scenarios on a store, or with an agent",
            HygieneSpec,
            "memorybench.suites.hygiene.prepare:prepare",
            "MEMORY HYGIENE",
        ),
    ),
    report_module="memorybench.suites.hygiene.report",
    describe_file=_describe_file,
    write_files=_write_files,
)
