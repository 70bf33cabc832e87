"""Writes a scan as text, JSON or SARIF 2.1.0, and reads and writes baselines."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path, PurePath
from typing import Any, Literal
from urllib.parse import quote

from memorybench.core.records import Record
from memorybench.files.json_text import load_json
from memorybench.files.validation import validated
from memorybench.text.quantities import quantity
from memorybench.text.sanitize import printable

from .scan import ScanFinding, ScanReport

_LEVELS = {"high": "error", "medium": "warning", "low": "note"}
_SECURITY = {"high": "8.0", "medium": "5.0", "low": "2.0"}


def as_text(report: ScanReport) -> str:
    lines = [
        f"{one.severity:<6}  {one.category:<13}  {printable(one.place)}: {_message(one)}" for one in report.findings
    ]
    counts = Counter(one.severity for one in report.findings)
    by_severity = ", ".join(f"{counts[severity]} {severity}" for severity in ("high", "medium", "low"))
    findings = quantity(len(report.findings), "finding")
    searched = f"{quantity(report.files, 'file')}, {quantity(report.texts, 'text')}"
    lines.append(f"{findings} ({by_severity}) in {searched}")
    if report.accepted:
        accepted = quantity(report.accepted, "finding")
        lines.append(f"{accepted} of the baseline {'is' if report.accepted == 1 else 'are'} not shown")
    if report.skipped:
        lines.append("skipped: " + ", ".join(f"{count} {reason}" for reason, count in report.skipped.items()))
    if report.costs is not None:
        lines.append(f"cost: {report.costs.text()}")
    return "\n".join(lines) + "\n"


def as_json(report: ScanReport) -> str:
    return _json(report.plain())


def as_sarif(report: ScanReport, version: str) -> str:
    rules = {_rule_id(one): one for one in report.findings}
    driver = {
        "name": "memorybench hygiene scan",
        "version": version,
        "rules": [_rule(id, one) for id, one in sorted(rules.items())],
    }
    order = {id: at for at, id in enumerate(sorted(rules))}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, order) for one in report.findings],
        **({} if report.costs is None else {"properties": {"costs": report.costs.plain()}}),
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return _json({"$schema": schema, "version": "2.1.0", "runs": [run]})


def _json(document: Any) -> str:
    """Return JSON that can be written as UTF-8: bytes of file names that are not UTF-8 are escaped."""
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace").decode()


def _message(finding: ScanFinding) -> str:
    return finding.message + (f" at {printable(finding.other)}" if finding.other else "")


def _rule_id(finding: ScanFinding) -> str:
    return f"{finding.category}/{finding.kind}".replace(" ", "-")


def _rule(id: str, finding: ScanFinding) -> dict[str, Any]:
    return {
        "id": id,
        "shortDescription": {"text": f"{finding.category}: {finding.kind}"},
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
        "properties": {"security-severity": _SECURITY[finding.severity], "tags": [finding.category]},
    }


def _result(finding: ScanFinding, order: dict[str, int]) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(finding.file)},
            "region": {"startLine": finding.line, "startColumn": finding.column},
        }
    }
    if finding.pointer:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.pointer}]
    return {
        "ruleId": _rule_id(finding),
        "ruleIndex": order[_rule_id(finding)],
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "locations": [location],
        "partialFingerprints": {"memorybench/v1": finding.fingerprint},
    }


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(os.fsencode(path.as_posix()))


class _Baseline(Record):
    version: Literal[1] = 1
    fingerprints: tuple[str, ...]


def read_baseline(path: Path) -> list[str]:
    """Return the fingerprints of a baseline file. Raise BadInput if it is missing or invalid."""
    return list(validated(load_json(path), _Baseline).fingerprints)


def baseline_text(report: ScanReport, accepted: list[str]) -> str:
    """Return the JSON of a baseline with the findings of a report and the fingerprints in `accepted`."""
    fingerprints = sorted({*accepted, *(one.fingerprint for one in report.findings)})
    return json.dumps({"version": 1, "fingerprints": fingerprints}, indent=2) + "\n"
