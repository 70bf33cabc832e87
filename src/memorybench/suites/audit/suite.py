"""The audit suite: checks what a model or memory system recalls of conversations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memorybench.suites.suite import AUDIT_RESULTS, Command, Suite
from memorybench.text.quantities import quantity

from .spec import AuditSpec


def _describe_file(path: Path, first: Mapping[str, Any]) -> str | None:
    if "conversations" not in first and not {"turns", "facts"} <= first.keys():
        return None
    from memorybench.datasets.audit import load_audit

    dataset = load_audit(path)
    conversations = quantity(len(dataset.conversations), "conversation")
    return f"audit dataset, {conversations}, {quantity(dataset.fact_count, 'fact')}"


SUITE = Suite(
    name="audit",
    commands=(
        Command(
            "audit",
            "check what a model or memory recalls of conversations",
            AuditSpec,
            "memorybench.suites.audit.prepare:prepare",
            "MEMORY AUDIT",
            output=AUDIT_RESULTS,
        ),
    ),
    report_module="memorybench.suites.audit.report",
    rescoring_module="memorybench.suites.audit.rescoring",
    describe_file=_describe_file,
)
