"""Renders a report as JSON: the output of `--json` and the file report.json (docs/report.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memorybench.core.report_sections import Report


def to_json(report: Report) -> str:
    return as_json(report.document)


def as_json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
