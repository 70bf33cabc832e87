"""Exports runs as Inspect logs, for `inspect view`, `inspect log` and `inspect_ai.log.read_eval_log`.

Inspect's JSON log, version 2, has one task and one model, so there is one log per benchmark and subject; the subject is
Inspect's solver. We write the JSON ourselves because inspect_ai is too heavy a dependency for a file format. A log
depends on the journal only: writing it twice gives the same bytes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from msgspec import Struct, field

from memorybench.core.measures import Measure
from memorybench.core.records import digest
from memorybench.core.spending import NOTHING, Spending
from memorybench.core.trials import Failure, Outcome, Score, Subject
from memorybench.journal.rows import Run, RunStatus
from memorybench.journal.run_reader import RunReader

from .summary import Result, Summary, headline

VERSION = 2
_STATUS: Mapping[RunStatus, str] = {
    "running": "started",
    "complete": "success",
    "partial": "cancelled",
    "blocked": "cancelled",
}
_COMPLETED = ("scored", "unscored")
"""The states of outcomes that Inspect counts as completed: an unscored answer is not an error of its sample."""
_SCORE_OF = {"accuracy": "correct", "corrected_accuracy": "corrected_correct"}
"""By measure: the name of its score, if that differs from the name of the measure."""
_LONGEST_NAME = 60

Key = tuple[str, str]
"""The benchmark and the subject of one log."""


class _Tally(Struct):
    """Counts of a log's samples for its header, which is written before the samples."""

    ids: dict[str, None] = field(default_factory=dict)
    samples: int = 0
    completed: int = 0
    subject: Subject | None = None
    failure: Failure | None = None
    """The first failure among the samples; None if there is none."""

    def add(self, outcome: Outcome) -> None:
        self.ids[outcome.trial.case_id] = None
        self.samples += 1
        self.completed += outcome.status in _COMPLETED
        self.subject = self.subject or outcome.trial.subject
        self.failure = self.failure or outcome.failure


def write_logs(parts: Sequence[tuple[RunReader, Run]], summary: Summary, folder: Path) -> list[Path]:
    """Write a log for each benchmark and subject of a run, or of its shards, and return the paths."""
    tallies: dict[Key, _Tally] = {}
    for run_reader, run in parts:
        for outcome in run_reader.outcomes(run.id):
            tallies.setdefault(_key(outcome), _Tally()).add(outcome)
    results = {(result.benchmark, result.subject): result for result in summary.results if not result.group}
    spec = parts[0][1].spec
    folder.mkdir(parents=True, exist_ok=True)
    paths = {key: folder / _file_name(summary, key) for key in results}
    drafts = {key: path.with_name(f".{path.name}.part") for key, path in paths.items()}
    try:
        with ExitStack() as stack:
            logs = {}
            for key, draft in drafts.items():
                file = stack.enter_context(draft.open("w", encoding="utf-8", newline=""))
                header = _header(summary, spec, results[key], tallies.get(key, _Tally()), alone=len(results) == 1)
                logs[key] = _Log(file, header)
            for run_reader, run in parts:
                for at, outcome in run_reader.dated_outcomes(run.id):
                    case = run_reader.case(run.id, outcome.trial.benchmark, outcome.trial.case_id) or {}
                    logs[_key(outcome)].add(outcome, at, case, _model(run.spec))
            for log in logs.values():
                log.end()
        for key, draft in drafts.items():
            draft.replace(paths[key])
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
    return list(paths.values())


class _Log:
    """Writes one log. Samples come last, because Inspect stops reading at them if it needs only the header."""

    def __init__(self, file: IO[str], header: Mapping[str, Any]) -> None:
        self._file = file
        self._seen: Counter[str] = Counter()
        file.write(_text(header).removesuffix("}") + ',"samples":[')

    def add(self, outcome: Outcome, at: str, case: Mapping[str, Any], model: str | None) -> None:
        id = outcome.trial.case_id
        self._file.write(",\n" if self._seen else "\n")
        self._seen[id] += 1  # a repeated case is the next epoch
        self._file.write(_text(_sample(outcome, self._seen[id], at, case, model)))

    def end(self) -> None:
        self._file.write("\n]}\n")


def _header(summary: Summary, spec: Mapping[str, Any], result: Result, tally: _Tally, *, alone: bool) -> dict[str, Any]:
    usage = _usage(summary)
    about = {
        "run": summary.run_id,
        "program": summary.program,
        "notes": [f"{kind}: {text}" for kind, text in summary.notes],
        # subjects may share a step: the cost of a subject is known only if the run has no other subject
        **({} if alone else {"usage_of_the_whole_run": usage}),
    }
    failure = tally.failure if summary.status == "complete" and not tally.completed else None
    error = None if failure is None else _error(failure)
    return {
        "version": VERSION,
        "status": "error" if error else _STATUS[summary.status],
        "eval": _eval(summary, spec, result, tally, about),
        "plan": {"name": "plan", "steps": [_step(result, tally)], "config": {}},
        "results": _results(result, tally, _epochs(spec)),
        "stats": {
            "started_at": summary.created,
            "completed_at": summary.finished or "",
            "model_usage": usage if alone else {},
            "role_usage": {},
            "connection_limit_history": [],
        },
        **({"error": error} if error else {}),
        "invalidated": False,
        "tags": [],
        "metadata": about,
    }


def _eval(
    summary: Summary, spec: Mapping[str, Any], result: Result, tally: _Tally, about: Mapping[str, Any]
) -> dict[str, Any]:
    id = _id(summary, (result.benchmark, result.subject))
    judge = spec.get("judge")
    step = _step(result, tally)
    return {
        "eval_id": id,
        "run_id": summary.run_id,
        "created": summary.created,
        "task": result.benchmark,
        "task_id": id,
        "task_version": 0,
        "task_attribs": {},
        "task_args": {"subject": result.subject},
        "task_args_passed": {"subject": result.subject},
        "solver": step["solver"],
        "solver_args": step["params"],
        "solver_args_passed": step["params"],
        "dataset": {"name": result.benchmark, "samples": len(tally.ids), "sample_ids": list(tally.ids)},
        "model": _model(spec) or "none",
        "model_generate_config": {},
        "model_args": {},
        **({"model_roles": {"grader": {"model": judge, "config": {}, "args": {}}}} if judge else {}),
        "config": {"epochs": _epochs(spec)},
        "packages": {},
        "metadata": about,
    }


def _step(result: Result, tally: _Tally) -> dict[str, Any]:
    settings = tally.subject.plain()["settings"] if tally.subject else {}
    return {"solver": result.subject, "params": settings, "params_passed": settings}


def _epochs(spec: Mapping[str, Any]) -> int:
    return int(spec.get("repeats") or 1)


def _results(result: Result, tally: _Tally, epochs: int) -> dict[str, Any]:
    main = headline([result])
    measured = sorted((one for one in result.measures if one.value is not None), key=lambda one: one.name != main)
    return {
        "total_samples": max((one.planned * epochs for one in result.measures), default=tally.samples),
        "completed_samples": tally.completed,
        "logged_samples": tally.samples,
        "scores": [_measured(one) for one in measured],
    }


def _measured(measure: Measure) -> dict[str, Any]:
    score = _SCORE_OF.get(measure.name, measure.name)
    details = measure.model_dump(include={"n", "planned", "low", "high", "higher_is_better", "unit"})
    metric = {"name": measure.name, "value": measure.value, "params": {}, "metadata": details}
    return {
        "name": score,
        "scorer": score,
        "scored_samples": measure.n,
        "unscored_samples": measure.planned - measure.n,
        "params": {},
        "metrics": {measure.name: metric},
    }


def _usage(summary: Summary) -> dict[str, Any]:
    """Return token usage by the subject that was called: models, and providers that call models."""
    spent: dict[str, Spending] = {}
    for stage in summary.stages:
        if stage.spent.calls:
            spent[stage.subject] = spent.get(stage.subject, NOTHING) + stage.spent
    return {
        subject: {
            "input_tokens": one.input_tokens,
            "output_tokens": one.output_tokens,
            "total_tokens": one.input_tokens + one.output_tokens,
            "total_cost": one.cost,
        }
        for subject, one in spent.items()
    }


def _sample(outcome: Outcome, epoch: int, at: str, case: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    trial, shown = outcome.trial, outcome.shown
    answered = model is not None and outcome.status in _COMPLETED
    reply = {"role": "assistant", "content": shown.got}
    answers = case.get("answers") or [shown.expected]
    failure = outcome.failure or Failure(kind=outcome.status, message="no reason was recorded")
    return {
        "id": trial.case_id,
        "epoch": epoch,
        "input": shown.asked,
        "target": answers[0] if len(answers) == 1 else answers,
        # question and answer only; the whole prompt, with the memories, is in the journal
        "messages": [{"role": "user", "content": shown.asked}, *([reply] if answered else [])],
        "output": {
            "model": model or "none",
            "choices": [{"message": reply, "stop_reason": "unknown"}] if answered else [],
            "completion": shown.got,
        },
        "scores": {score.name: _scored(score, outcome) for score in outcome.scores},
        "metadata": _labels(outcome),
        "store": {},
        "events": [],
        "model_usage": {},
        "role_usage": {},
        "completed_at": at,
        "uuid": trial.key,
        **({} if outcome.status in _COMPLETED else {"error": _error(failure)}),
        "attachments": {},
    }


def _labels(outcome: Outcome) -> dict[str, Any]:
    """Return a trial's labels as metadata of its sample, and status, cluster and context under "memorybench"."""
    own = {"status": outcome.status, "cluster": outcome.trial.cluster, "context": outcome.shown.context}
    if outcome.failure is not None:
        own["failure"] = f"{outcome.failure.kind}: {outcome.failure.message}"
    return {**outcome.trial.labels, "memorybench": {name: value for name, value in own.items() if value}}


def _scored(score: Score, outcome: Outcome) -> dict[str, Any]:
    decisive = score.name == "correct"
    value = {1.0: "C", 0.0: "I"}.get(score.value, score.value) if decisive else score.value
    why = score.reason or (outcome.shown.reason if decisive else "")
    return {
        "value": value,
        **({"answer": outcome.shown.got} if decisive else {}),
        **({"explanation": why} if why else {}),
        "history": [],
    }


def _error(failure: Failure) -> dict[str, str]:
    traceback = failure.traceback or ""
    return {"message": f"{failure.kind}: {failure.message}", "traceback": traceback, "traceback_ansi": traceback}


def _key(outcome: Outcome) -> Key:
    return outcome.trial.benchmark, outcome.trial.subject.name


def _model(spec: Mapping[str, Any]) -> str | None:
    """Return the name of the answering model; None if the run measures retrieval only."""
    return spec.get("answerer", spec.get("reader")) if spec.get("answered") else None


def _id(summary: Summary, key: Key) -> str:
    return digest([summary.run_id, summary.created, *key])


def _file_name(summary: Summary, key: Key) -> str:
    """Return the file name of a log. Inspect expects a time first and splits the rest at `_`."""
    parts = (summary.created[:19], *key, _id(summary, key))
    return "_".join(re.sub(r"[^A-Za-z0-9.-]+", "-", part)[:_LONGEST_NAME] for part in parts) + ".json"


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
