"""Writes the rows of a run into files, and imports such files into a journal.

A bundle's report is made from the rows of the bundle, not from the original journal, so that everyone who opens the
bundle can make the same report.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from msgspec import Struct, field
from pydantic import ValidationError

from memorybench.core.errors import BadInput
from memorybench.core.records import Record, canonical, digest
from memorybench.core.trials import Outcome, Score
from memorybench.files.names import safe_run_id
from memorybench.journal.merging import ImportedRow, write_imported
from memorybench.journal.rows import Run
from memorybench.journal.run_reader import RunReader
from memorybench.processes.programs import temporary_folder
from memorybench.suites.gate import report_of
from memorybench.suites.judge_check import STEP as JUDGE_CHECK
from memorybench.suites.stored_run import read_run
from memorybench.suites.suite import PATHS, SAVED_BASELINE

from .archive import ATTEMPTS, CASES, NOTES, OUTCOMES, RUN, STEPS, Archive
from .rows import AttemptRow, CaseRow, NoteRow, OutcomeRow, RunRow, StepRow

T = TypeVar("T", bound=Record)

_SHARED_TEXTS = (
    "provider ",
    "config of ",
    "answer prompts of ",
    "judge prompts",
    "probe prompts",
    "answering model",
    "judge model",
)
"""Beginnings of names of fingerprints whose texts a public bundle keeps: settings and prompts, not data."""
_SHARED_RESULTS = (JUDGE_CHECK,)
"""Names of steps whose results a public bundle keeps, because the report needs their counts."""


def write_rows(run_reader: RunReader, run: Run, folder: Path, *, public: bool) -> dict[str, Path]:
    """Write the rows of a run to files in `folder`; return the paths of the files by name.

    With `public`, leave out the texts of questions, memories, prompts and replies.
    """
    files = {name: folder / name for name in (RUN, *_MAKERS)}
    files[RUN].write_text(canonical(_run_row(run, public).plain()) + "\n", encoding="utf-8")
    with ExitStack() as stack:
        open_files = {
            name: stack.enter_context(files[name].open("w", encoding="utf-8", newline="\n")) for name in _MAKERS
        }
        for table, row in run_reader.bundle_rows(run.id):
            name = f"{table}.jsonl"
            open_files[name].write(canonical(_MAKERS[name](row, public).plain()) + "\n")
    return files


def _run_row(run: Run, public: bool) -> RunRow:
    spec = without_paths({key: value for key, value in run.spec.items() if key != SAVED_BASELINE})
    fingerprints = {
        name: mark if not public or name.startswith(_SHARED_TEXTS) else mark.model_copy(update={"text": None})
        for name, mark in run.fingerprints.items()
    }
    values = {name: getattr(run, name) for name in RunRow.model_fields if name not in ("spec", "fingerprints")}
    return RunRow(**values, spec=spec, fingerprints=fingerprints)


def without_paths(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec with each path cut to its last part, because folders reveal details of the author's machine."""
    return {key: _last_part(value) if key in PATHS else value for key, value in spec.items()}


def _last_part(value: Any) -> Any:
    if isinstance(value, str):
        return Path(value).name
    if isinstance(value, Mapping):
        return {key: _last_part(one) for key, one in value.items()}
    return [_last_part(one) for one in value] if isinstance(value, list | tuple) else value


def _case_row(row: Mapping[str, Any], public: bool) -> CaseRow:
    body = json.loads(row["body"])
    if not public:
        return CaseRow(benchmark=row["benchmark"], id=row["id"], body=body)
    kept = {name: body[name] for name in ("id", "labels") if name in body}
    return CaseRow(benchmark=row["benchmark"], id=row["id"], body=kept, digest=digest(body))


def _step_row(row: Mapping[str, Any], public: bool) -> StepRow:
    inputs, result = json.loads(row["inputs"]), json.loads(row["result"])
    digests = None
    if public:
        digests = digest(inputs), digest(result)
        inputs, result = None, result if row["name"] in _SHARED_RESULTS else None
    values = {name: row[name] for name in StepRow.model_fields if name not in ("inputs", "result", "digests")}
    return StepRow(**{**values, "shared": bool(row["shared"])}, inputs=inputs, result=result, digests=digests)


def _attempt_row(row: Mapping[str, Any], public: bool) -> AttemptRow:
    values = {name: row[name] for name in AttemptRow.model_fields}
    if public and values["error"] not in (None, "interrupted"):
        values["error"] = "left out"  # a message may quote a reply
    return AttemptRow(**values)


def _outcome_row(row: Mapping[str, Any], public: bool) -> OutcomeRow:
    body = Outcome.model_validate_json(row["body"])
    values = {name: row[name] for name in ("trial", "ordinal", "finished")}
    if not public:
        return OutcomeRow(**values, body=body)
    plain = body.plain()
    shown = {"memories_shown": body.shown.memories_shown}
    scores = [{**score, "reason": ""} for score in plain["scores"]]
    failure = {"kind": body.failure.kind, "message": "left out"} if body.failure else None
    kept = Outcome.model_validate({**plain, "shown": shown, "scores": scores, "failure": failure})
    return OutcomeRow(**values, body=kept, digest=digest(plain))


def _note_row(row: Mapping[str, Any], public: bool) -> NoteRow:
    return NoteRow(kind=row["kind"], text=row["text"])


_MAKERS: Mapping[str, Callable[[Mapping[str, Any], bool], Record]] = {
    CASES: _case_row,
    STEPS: _step_row,
    ATTEMPTS: _attempt_row,
    OUTCOMES: _outcome_row,
    NOTES: _note_row,
}


class Rows(Struct, frozen=True):
    """The rows of a bundle, read from the bundle or from the files that it is made of."""

    where: str
    """The name of the bundle in errors."""
    text: Callable[[str], str]
    lines: Callable[[str], Iterator[str]]

    @classmethod
    def in_archive(cls, archive: Archive) -> Self:
        return cls(str(archive.path), archive.text, archive.lines)

    @classmethod
    def in_files(cls, files: Mapping[str, Path]) -> Self:
        def lines(name: str) -> Iterator[str]:
            with files[name].open(encoding="utf-8", newline="\n") as file:
                yield from file

        return cls("bundle", lambda name: files[name].read_text(encoding="utf-8"), lines)

    def run(self) -> RunRow:
        row = self._parse(RunRow, self.text(RUN), RUN)
        safe_run_id(row.id, f"{self.where}: {RUN}")
        return row

    def of(self, name: str, record: type[T]) -> Iterator[T]:
        for number, line in enumerate(self.lines(name), 1):
            yield self._parse(record, line, f"{name}, line {number}")

    def _parse(self, record: type[T], text: str, part: str) -> T:
        try:
            return record.model_validate_json(text)
        except (ValidationError, RecursionError) as error:
            raise BadInput(
                self.where,
                f"{part} does not have the format of a bundle",
                remedy="ask the author of the bundle for a new one",
            ) from error


class KeptRows(Rows, frozen=True):
    """The rows of a bundle. Each file is read and validated when it is first needed, and then kept in memory."""

    _kept: dict[str, list[Any]] = field(default_factory=dict)

    def of(self, name: str, record: type[T]) -> Iterator[T]:
        if name not in self._kept:
            scores: dict[Score, Score] = {}
            self._kept[name] = [_with_shared_scores(row, scores) for row in Rows.of(self, name, record)]
        yield from self._kept[name]


def _with_shared_scores(row: T, known: dict[Score, Score]) -> T:
    """Replace the scores of an outcome by equal Score objects in `known`, to save memory: most scores are 0 or 1."""
    if not isinstance(row, OutcomeRow):
        return row
    scores = tuple(known.setdefault(score, score) for score in row.body.scores)
    return row.model_copy(update={"body": row.body.model_copy(update={"scores": scores})})


@contextmanager
def opened_run(rows: Rows) -> Iterator[tuple[str, Path]]:
    """Write the rows into a journal in a temporary folder; yield the id of the run and the results folder."""
    with temporary_folder("memorybench-bundle-") as place:
        results = place / "results"  # in a folder of our own, because the viewer may read files of the parent folder
        yield import_rows(rows, results), results


def import_rows(rows: Rows, results: Path, run_id: str | None = None) -> str:
    """Write the run of a bundle into a results folder; return its id there: `run_id` if given, or the recorded id."""
    row = rows.run()
    run_id = run_id or row.id
    spec = {**without_paths(row.spec), "config_dirs": []}
    spec.pop(SAVED_BASELINE, None)
    run = Run(**{**{name: getattr(row, name) for name in RunRow.model_fields}, "spec": spec, "id": run_id})
    try:
        write_imported(results, run, _imported_rows(rows, run_id))
    except (ValueError, OverflowError, RecursionError) as error:  # a lone surrogate, NaN, or deep nesting
        raise BadInput(
            rows.where, "contains a value that cannot be stored", remedy="ask the author of the bundle for a new one"
        ) from error
    return run_id


def _imported_rows(rows: Rows, run: str) -> Iterator[ImportedRow]:
    for case in rows.of(CASES, CaseRow):
        yield "cases", {"run": run, "benchmark": case.benchmark, "id": case.id, "body": canonical(case.body)}
    for step in rows.of(STEPS, StepRow):
        values = step.model_dump(exclude={"inputs", "result", "digests", "reused_cost"})
        texts = {"inputs": canonical(step.inputs), "result": canonical(step.result), "shared": int(step.shared)}
        yield "steps", {**values, **texts, "run": run}
        if step.reused_cost is not None and step.reused_from not in (None, run):
            # the report takes the cost of a reused step from the run that performed the step
            source = {"run": step.reused_from, "reused_from": None, "attempt": None, "cost": step.reused_cost[0]}
            yield "steps", {**values, **texts, **source, "inputs": "null", "result": "null", "shared": 0}
    for attempt in rows.of(ATTEMPTS, AttemptRow):
        yield "attempts", {**attempt.model_dump(), "run": run}
    for outcome in rows.of(OUTCOMES, OutcomeRow):
        trial, body = outcome.body.trial, outcome.body
        yield (
            "outcomes",
            {
                "run": run,
                "trial": outcome.trial,
                "ordinal": outcome.ordinal,
                "benchmark": trial.benchmark,
                "case_id": trial.case_id,
                "subject": trial.subject.name,
                "status": body.status,
                "body": canonical(body.plain()),
                "finished": outcome.finished,
            },
        )
    for note in rows.of(NOTES, NoteRow):
        yield "notes", {"run": run, "kind": note.kind, "text": note.text}


def report_document(run: str, results: Path) -> Mapping[str, Any]:
    """Return the report of an imported run as JSON data."""
    with read_run([f"{results}/{run}"], [results]) as stored:
        document: Mapping[str, Any] = json.loads(json.dumps(report_of(stored).document))
        return document


def pretty(document: Any) -> str:
    """Return indented JSON with sorted keys, which is the same on each machine."""
    return json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n"
