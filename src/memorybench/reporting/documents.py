"""The one JSON document of all suites: what `--json` prints and report.json holds (docs/report.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memorybench.core.measures import Measure

from .figures import percentile
from .summary import Summary


def as_json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def document(summary: Summary) -> dict[str, Any]:
    return {
        "run_id": summary.run_id,
        "suite": summary.suite,
        "status": summary.status,
        "counts": dict(summary.counts),
        "results": [
            {
                "benchmark": result.benchmark,
                "subject": result.subject,
                "group": dict(result.group),
                "measures": [_measure(measure) for measure in result.measures if measure.n or not result.group],
            }
            for result in summary.results
        ],
        "lifts": [
            {
                "benchmark": pair.benchmark,
                "subject": pair.first,
                "baseline": pair.second,
                "measure": pair.measure,
                **pair.found.model_dump(include={"difference", "low", "high", "n", "p", "adjusted_p", "tells_apart"}),
            }
            for pair in summary.lifts
        ],
        "notes": [{"kind": kind, "text": text} for kind, text in summary.notes],
        "possibly_charged_twice": summary.possibly_charged_twice,
        # what differs between two runs of the same spec stands apart, so that the rest can be compared byte by byte
        "circumstances": {
            "program": summary.program,
            "created": summary.created,
            "finished": summary.finished,
            "spent": summary.spent.model_dump(),
            "stages": [
                {
                    "name": stage.name,
                    "subject": stage.subject,
                    "steps": stage.steps,
                    "reused": stage.reused,
                    "seconds_p50": percentile(stage.seconds, 50),
                    "seconds_p95": percentile(stage.seconds, 95),
                    "spent": stage.spent.model_dump(),
                }
                for stage in summary.stages
            ],
        },
    }


def _measure(measure: Measure) -> dict[str, Any]:
    written = measure.model_dump(include={"name", "value", "low", "high", "n", "planned", "higher_is_better"})
    return {**written, "unit": measure.unit} if measure.unit else written
