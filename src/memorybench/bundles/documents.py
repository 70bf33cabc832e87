"""Describes a bundle for other tools as RO-Crate, Croissant and Every Eval Ever, from the other files of the bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from memorybench.suites.suite import STARTED_WITH

from .archive import CONTENT, CROISSANT, EVERY_EVAL_EVER, MANIFEST, RO_CRATE, Entry
from .rows import RunRow

_ABOUT = {
    "run.json": "Settings, command line, package versions, and fingerprints of data, configs and prompts",
    "cases.jsonl": "The questions or test cases, with the expected answers",
    "steps.jsonl": "Each recorded step: its inputs and its result, such as a search, an answer or a verdict",
    "attempts.jsonl": "Paid calls, and calls that failed",
    "outcomes.jsonl": "The scores of each trial",
    "notes.jsonl": "Remarks of the run",
    "report.json": "The report: measures, intervals and comparisons",
    RO_CRATE: "This description",
    EVERY_EVAL_EVER: "The results in the format of Every Eval Ever, one record per subject",
    CROISSANT: "The rows described as a dataset",
    MANIFEST: "Digests of all files",
}
_EVERY_EVAL_EVER_VERSION = "0.2.1"
_CROISSANT_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "sc": "https://schema.org/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "jsonPath": "cr:jsonPath",
    "recordSet": "cr:recordSet",
    "source": "cr:source",
}
_FIELDS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "outcomes.jsonl": (
        ("trial", "$.trial", "sc:Text"),
        ("benchmark", "$.body.trial.benchmark", "sc:Text"),
        ("case", "$.body.trial.case_id", "sc:Text"),
        ("subject", "$.body.trial.subject.name", "sc:Text"),
        ("status", "$.body.status", "sc:Text"),
    ),
    "cases.jsonl": (("benchmark", "$.benchmark", "sc:Text"), ("id", "$.id", "sc:Text")),
    "steps.jsonl": (
        ("key", "$.key", "sc:Text"),
        ("name", "$.name", "sc:Text"),
        ("subject", "$.subject", "sc:Text"),
        ("seconds", "$.seconds", "sc:Float"),
    ),
}


def ro_crate(run: RunRow) -> dict[str, Any]:
    """Return RO-Crate 1.1 metadata, without digests, which are in the manifest."""
    others = [name for name in (*CONTENT, MANIFEST) if name != RO_CRATE]
    started = run.spec.get(STARTED_WITH)
    command_line = started.get("command_line", ()) if isinstance(started, Mapping) else ()
    graph: list[dict[str, Any]] = [
        {
            "@id": RO_CRATE,
            "@type": "CreativeWork",
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
            "about": {"@id": "./"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": _title(run),
            "description": f"A run of the {run.suite} suite, with everything that its report is computed from.",
            "datePublished": run.finished or run.created,
            "hasPart": [{"@id": name} for name in others],
            "mentions": {"@id": "#run"},
        },
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": " ".join(map(str, command_line)) or _title(run),
            "startTime": run.created,
            "endTime": run.finished or run.created,
            "instrument": {"@id": "#program"},
            "result": {"@id": "report.json"},
        },
        {"@id": "#program", "@type": "SoftwareApplication", "name": run.program},
    ]
    graph += [
        {"@id": name, "@type": "File", "description": _ABOUT[name], "encodingFormat": _media_type(name)}
        for name in others
    ]
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}


def croissant(run: RunRow, entries: Mapping[str, Entry]) -> dict[str, Any]:
    """Return Croissant 1.0 metadata that describes the rows as a dataset."""
    return {
        "@context": _CROISSANT_CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": _title(run),
        "description": f"Rows of a run of the {run.suite} suite of memorybench.",
        "datePublished": run.finished or run.created,
        "version": "1.0.0",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "description": _ABOUT[name],
                "contentUrl": name,
                "contentSize": f"{entry.size} B",
                "encodingFormat": _media_type(name),
                "sha256": entry.sha256,
            }
            for name, entry in sorted(entries.items())
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": name.removesuffix(".jsonl"),
                "name": name.removesuffix(".jsonl"),
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"{name.removesuffix('.jsonl')}/{field}",
                        "name": field,
                        "dataType": kind,
                        "source": {"fileObject": {"@id": name}, "extract": {"jsonPath": path}},
                    }
                    for field, path, kind in fields
                ],
            }
            for name, fields in _FIELDS.items()
        ],
    }


def every_eval_ever(run: RunRow, report: Mapping[str, Any], outcomes: Entry) -> list[dict[str, Any]]:
    """Return one record per subject in the format of Every Eval Ever.

    A record has only measures that are shares, because the format requires the range of each value.
    """
    end = run.finished or run.created
    subjects = dict.fromkeys(result["subject"] for result in report["results"])
    name, _, version = run.program.partition(" ")
    records = []
    for subject in subjects:
        records.append(
            {
                "schema_version": _EVERY_EVAL_EVER_VERSION,
                "evaluation_id": f"{run.suite}/{subject}/{run.id}",
                "evaluation_timestamp": run.created,
                "retrieved_timestamp": _epoch(end),
                "source_metadata": {
                    "source_name": _title(run),
                    "source_type": "evaluation_run",
                    "source_organization_name": "unknown",
                    "evaluator_relationship": "other",
                },
                "eval_library": {"name": name or "memorybench", "version": version or "unknown"},
                "model_info": {"name": subject, "id": subject, "additional_details": _models(run)},
                "evaluation_results": list(_results(run, subject, report)),
                "detailed_evaluation_results": {
                    "format": "jsonl",
                    "file_path": "outcomes.jsonl",
                    "hash_algorithm": "sha256",
                    "checksum": outcomes.sha256,
                },
            }
        )
    return records


def _results(run: RunRow, subject: str, report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for result in report["results"]:
        if result["subject"] != subject or result["group"]:
            continue
        for measure in result["measures"]:
            value = measure["value"]
            if value is None or measure.get("unit") or not 0 <= value <= 1:
                continue
            details: dict[str, Any] = {"score": value, "uncertainty": {"num_samples": measure["n"]}}
            if measure["low"] is not None and measure["high"] is not None:
                details["uncertainty"]["confidence_interval"] = {
                    "lower": measure["low"],
                    "upper": measure["high"],
                    "confidence_level": 0.95,
                }
            yield {
                "evaluation_name": f"{result['benchmark']}: {measure['name']}",
                "evaluation_timestamp": run.created,
                "source_data": {"dataset_name": result["benchmark"], "source_type": "other"},
                "metric_config": {
                    "evaluation_description": measure["name"],
                    "lower_is_better": not measure["higher_is_better"],
                    "score_type": "continuous",
                    "min_score": 0,
                    "max_score": 1,
                },
                "score_details": details,
            }


def _models(run: RunRow) -> dict[str, str]:
    """Return the names of the answering model and the judge, for which the schema has no fields of its own."""
    names = {"answering_model": run.spec.get("answerer"), "judge": run.spec.get("judge")}
    return {key: str(name) for key, name in names.items() if name}


def _title(run: RunRow) -> str:
    return f"memorybench run {run.id}"


def _epoch(time: str) -> str:
    try:
        return str(int(datetime.fromisoformat(time).timestamp()))
    except ValueError:
        return "0"


def _media_type(name: str) -> str:
    return "application/jsonlines" if name.endswith(".jsonl") else "application/json"
