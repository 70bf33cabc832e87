"""The extraction suite: tests whether an extractor writes down what the user said, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memorybench.suites.suite import Command, RunPlace, Suite

from .spec import ExtractionSpec, OnlineSpec


def _describe_file(path: Path, first: Mapping[str, Any]) -> str | None:
    if "cases" not in first and "expected_facts" not in first:
        return None
    from .cases import load_cases
    from .mutants import mutation_summary, run_mutants

    cases = load_cases(path)
    return f"{len(cases)} extraction cases; {mutation_summary({case.id: run_mutants(case) for case in cases})}"


def _write_files(place: RunPlace) -> None:
    from .prepare_online import write_labels

    write_labels(place)


SUITE = Suite(
    name="extraction",
    commands=(
        Command(
            "extraction run",
            "test an extractor on labelled cases",
            ExtractionSpec,
            "memorybench.suites.extraction.prepare:prepare",
            "MEMORY EXTRACTION",
            marks={"mode": "offline"},
        ),
        Command(
            "extraction online",
            "judge recorded traces of an extractor",
            OnlineSpec,
            "memorybench.suites.extraction.prepare_online:prepare_online",
            "MEMORY EXTRACTION, ONLINE",
            marks={"mode": "online"},
        ),
    ),
    report_module="memorybench.suites.extraction.report",
    rescoring_module="memorybench.suites.extraction.rescoring",
    describe_file=_describe_file,
    write_files=_write_files,
)
