"""Opens and rewrites bundles as an attacker without the key would: the manifest fits the changed files."""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memorybench.bundles.archive import CONTENT, Entry, entry_of, merkle_root, open_archive
from memorybench.bundles.bundled_run import BundledRun
from memorybench.bundles.contents import KeptRows, Rows, import_rows, report_document
from memorybench.bundles.making import derived_texts
from memorybench.bundles.rows import RunRow
from memorybench.core.questions import Dataset
from memorybench.suites.blocking import blocking
from memorybench.suites.registry import suite_of
from memorybench.suites.replayed_steps import ReplayedSteps

ROWS = ("cases.jsonl", "steps.jsonl", "attempts.jsonl", "outcomes.jsonl", "notes.jsonl")

RUNS = {
    "plain": ("eval", "--end", "2"),
    "judged": (
        *("eval", "--providers", "bm25", "oracle", "none", "--end", "4"),
        *("--answering-model", "scripted/quote", "--judge-model", "scripted/judge"),
    ),
    "audit": (
        *("audit", "DATASET", "--model", "scripted/quote", "--judge-model", "scripted/judge"),
        *("--providers", "bm25", "full-context", "--limit", "12"),
    ),
    "orders": (
        *("audit", "DATASET", "--probes", "PROBES", "--kinds", "temporal", "--limit", "12"),
        *("--model", "scripted/quote", "--judge-model", "scripted/judge", "--providers", "bm25", "full-context"),
    ),
    "extraction": (
        *("extraction", "run", "--extractor", "hoarder", "--limit", "6"),
        *("--judge-model", "scripted/judge", "--canaries", "4", "--no-targets"),
    ),
    "hygiene": ("hygiene", "run", "memory-skip-local", "--seed", "7"),
}
"""A run of each suite, without a key."""


def read_files(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_files(path: Path, files: Mapping[str, bytes], *, repair: bool = True) -> Path:
    """Write a bundle; with `repair`, its manifest has the digests of the files."""
    own = dict(files)
    if repair:
        public = json.loads(own["manifest.json"])["public"]
        entries = {name: Entry(sha256=hashlib.sha256(own[name]).hexdigest(), size=len(own[name])) for name in CONTENT}
        manifest = {
            "format": "memorybench-bundle/1",
            "public": public,
            "files": {name: entry.plain() for name, entry in entries.items()},
            "root": merkle_root(entries, public),
        }
        own["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in own.items():
            archive.writestr(name, content)
    return path


def derive_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with a report and descriptions that follow from the rows, as a careful attacker writes them."""
    with tempfile.TemporaryDirectory() as place:
        written = {name: Path(place) / name for name in ("run.json", *ROWS)}
        for name, file in written.items():
            file.write_bytes(files[name])
        run = import_rows(Rows.in_files(written), Path(place) / "results")
        report = report_document(run, Path(place) / "results")
        entries = {name: entry_of(file) for name, file in written.items()}
        texts = derived_texts(RunRow.model_validate_json(files["run.json"]), report, entries)
    return {**files, **{name: text.encode() for name, text in texts.items()}}


def rows_of(files: Mapping[str, bytes], name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files[name].splitlines()]


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def rescore_files(path: Path, files: Mapping[str, bytes], datasets: Mapping[str, Dataset]) -> dict[str, bytes]:
    """Return the files with the scores and texts that our own code computes from the recorded steps."""
    rows = rows_of(files, "outcomes.jsonl")
    with open_archive(write_files(path, files)) as archive:
        archived = KeptRows.in_archive(archive)
        bundle = BundledRun(archive, archived, archived.run(), datasets)
        assert not list(bundle.read())
        recorded = bundle.recorded()
        rescorer = suite_of(recorded.run).rescorer(recorded)
        for row, read in zip(rows, bundle.outcomes, strict=True):
            trial = read.body.trial
            steps = ReplayedSteps(read.body.steps, bundle.steps)
            case = bundle.cases[trial.benchmark, trial.case_id].body
            performed = blocking(rescorer.rescore(read.body, case, steps)).performed
            row["body"] |= {
                "scores": [score.plain() for score in performed.scores],
                "shown": performed.shown.plain(),
                # a verdict that the scores do not need any more is left out
                "steps": [
                    key for key in read.body.steps if key in steps.same_inputs or bundle.steps[key].name != "judge"
                ],
            }
    return {**files, "outcomes.jsonl": as_lines(rows)}
