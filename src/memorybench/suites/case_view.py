"""One case of a run: what was asked, found, answered and judged, read from the journal alone.

`find_case` returns it and `case_document` is its JSON; case_sections.py shows it as report sections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.core.report_sections import Text
from memorybench.core.trials import Outcome
from memorybench.files.expressions import canonical_name
from memorybench.journal.run_reader import StepRecord
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, suggestion, unknown_name

from .failures import failure_reason
from .report_parts import gold_turns, shorten_line
from .stored_run import StoredRun

_LONGEST_TEXT = 4000
_LONGEST_CELL = 300
_MOST_NAMED = 5


class CaseTrial(Struct, frozen=True):
    """One trial: the outcome of one case for one subject, with its recorded steps."""

    outcome: Outcome
    case: Mapping[str, Any]
    """The case as the journal stores it; empty if the run did not record its cases."""
    steps: tuple[StepRecord, ...]
    full: bool = False
    """Whether long texts are shown in full."""

    def text(self, title: str, text: str) -> Text:
        """Return a text as a report section. The middle of a long text is left out, unless `full` is set."""
        left_out = len(text) - _LONGEST_TEXT
        if self.full or left_out <= 0:
            return Text(title, text)
        half = _LONGEST_TEXT // 2
        cut = f"… {left_out:,} characters left out; --full shows them …"
        return Text(title, f"{text[:half]}\n{cut}\n{text[-half:]}")

    def excerpt(self, text: str) -> str:
        """Return a text for a table cell: shortened to one line, unless `full` is set."""
        return text if self.full else shorten_line(text, _LONGEST_CELL)

    def is_own_search(self, step: StepRecord) -> bool:
        """Return whether a search was made for the question of the trial; an audit may also ask a paired question."""
        return step.inputs.get("query") in (self.outcome.shown.asked, self.case.get("without_choices"))

    def named(self, *names: str) -> list[StepRecord]:
        """Return the steps of the trial that have one of these names and did not fail."""
        return [step for step in self.steps if step.name in names and not step.error]


class CaseView(Struct, frozen=True):
    run_id: str
    suite: str
    benchmark: str
    id: str
    case: Mapping[str, Any]
    trials: tuple[CaseTrial, ...]
    counts_turns: bool
    """Whether the benchmark's gold evidence is turns; False if it is whole sessions."""
    has_repeats: bool


def find_case(
    stored: StoredRun,
    id: str,
    *,
    provider: str | None = None,
    benchmark: str | None = None,
    variant: str | None = None,
    repeat: int | None = None,
    full: bool = False,
) -> CaseView:
    """Find a case by its id, or a prefix that only this id has, and return it with its trials.

    `provider`, `variant` and `repeat` select trials, None: all. `benchmark` is needed if several have the id. With
    `full`, long texts are not shortened. Raise BadInput if there is no such case or trial.
    """
    name, case_id = _find_id(stored, id, benchmark)
    trials = []
    for run_reader, run in stored.parts:
        case = run_reader.case(run.id, name, case_id) or {}
        for outcome in run_reader.case_outcomes(run.id, name, case_id):
            trials.append(CaseTrial(outcome, case, tuple(run_reader.steps_of(run.id, outcome)), full))
    has_repeats = any(trial.outcome.trial.repeat > 1 for trial in trials)
    subject = canonical_name(provider) if provider else None
    trials = _matching(trials, "--provider", subject, lambda trial: trial.outcome.trial.subject.name)
    trials = _matching(trials, "--variant", variant, lambda trial: trial.outcome.trial.variant)
    wanted = None if repeat is None else str(repeat)
    trials = _matching(trials, "--repeat", wanted, lambda trial: str(trial.outcome.trial.repeat))
    run_id = " + ".join(run.id for run in stored.runs)
    counts_turns = stored.spec.get("evidence", {}).get(name) != "session"
    return CaseView(run_id, stored.run.suite, name, case_id, trials[0].case, tuple(trials), counts_turns, has_repeats)


def _find_id(stored: StoredRun, id: str, benchmark: str | None) -> tuple[str, str]:
    known = dict.fromkeys(key for run_reader, run in stored.parts for key in run_reader.case_ids(run.id))
    benchmarks = dict.fromkeys(name for name, _ in known)
    if benchmark is not None and benchmark not in benchmarks:
        raise BadInput(
            "--benchmark", f"{preview(benchmark)} not found in {stored.run.id}", expected=join_names(benchmarks)
        )
    ids = [key for key in known if benchmark in (None, key[0])]
    matches = [key for key in ids if key[1] == id] or [key for key in ids if key[1].startswith(id)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        names = [case for _, case in ids]
        remedy = suggestion(id, names) or (f"the first is {preview(names[0])}" if names else "no trial has ended yet")
        raise BadInput("CASE", f"{preview(id)} not found in {stored.run.id}", expected="a case id", remedy=remedy)
    if len({case for _, case in matches}) == 1:
        raise BadInput(
            "--benchmark",
            f"missing, and several benchmarks have a case {preview(id)}",
            expected=f"one of {join_names([name for name, _ in matches])}",
        )
    some = ", ".join(case for _, case in matches[:_MOST_NAMED])
    raise BadInput(
        "CASE", f"{len(matches)} case ids begin with {preview(id)}", expected=f"the whole id, such as {some}"
    )


def _matching(
    trials: list[CaseTrial], flag: str, wanted: str | None, name_of: Callable[[CaseTrial], str]
) -> list[CaseTrial]:
    names = dict.fromkeys(map(name_of, trials))
    matches = [trial for trial in trials if wanted in (None, name_of(trial))]
    if not matches:
        if set(names) == {""}:  # only scenarios and paired probes have variants
            raise BadInput(flag, f"{preview(wanted)} not found; the case has no variants", remedy=f"leave out {flag}")
        raise unknown_name(flag, f"{preview(wanted)} not found", str(wanted), names)
    return matches


def memories_of(trial: CaseTrial, step: StepRecord) -> list[dict[str, Any]]:
    """Return the memories that a search returned, best first, each with the gold evidence that it comes from."""
    shown, is_own = trial.outcome.shown, trial.is_own_search(step)
    gold = {*trial.case.get("gold_turns", ()), *trial.case.get("gold_sessions", ())} if is_own else set()
    if is_own:
        gold |= {turn["id"] for turn in trial.case.get("gold_context", ()) if turn.get("id")}
    return [
        {
            "rank": rank,
            **memory,
            "hits": [source for source in memory.get("sources") or () if source in gold],
            "shown": None if shown.memories_shown is None else rank <= shown.memories_shown,
        }
        for rank, memory in enumerate(step.result["memories"], 1)
    ]


def rubric_of(case: Mapping[str, Any], steps: Iterable[StepRecord]) -> list[dict[str, Any]]:
    """Return the rubric items of a question with weight, score and the judge's reply.

    Score and reply are None for an item that was not judged. The list is empty if the question has no rubric.
    """
    if not case.get("rubric"):
        return []
    verdicts = {
        step.result["item"]: step.result
        for step in steps
        if step.name == "judge" and not step.error and step.result.get("item")
    }
    return [
        {
            "item": text,
            "weight": weight,
            "score": verdicts[text]["score"] if text in verdicts else None,
            "reply": (verdicts[text].get("reply") or verdicts[text]["reason"]) if text in verdicts else None,
        }
        for text, weight in case.get("rubric", ())
    ]


def hit_level(hits: Sequence[str], case: Mapping[str, Any]) -> str:
    """Return `turn` if a memory comes from a gold turn, `session` if from a gold session only, "" if from neither."""
    if not hits:
        return ""
    return "turn" if set(hits) - set(case.get("gold_sessions", ())) else "session"


def case_document(view: CaseView) -> dict[str, Any]:
    """Return everything about a case as JSON-compatible data: the output of `show --json`."""
    return {
        "run_id": view.run_id,
        "suite": view.suite,
        "benchmark": view.benchmark,
        "case_id": view.id,
        "case": dict(view.case) or None,
        "gold": gold_turns(view.case),
        "trials": [_trial_document(trial) for trial in view.trials],
    }


def _trial_document(trial: CaseTrial) -> dict[str, Any]:
    outcome = trial.outcome
    body = outcome.model_dump(mode="json", exclude={"trial", "steps"})
    searches = trial.named("search")
    return {
        "subject": outcome.trial.subject.name,
        "role": outcome.trial.subject.role,
        "settings": outcome.trial.subject.plain()["settings"],
        "variant": outcome.trial.variant,
        "repeat": outcome.trial.repeat,
        "labels": dict(outcome.trial.labels),
        **body,
        "failure_reason": failure_reason(outcome),
        "rubric": rubric_of(trial.case, trial.steps) or None,
        "memories": memories_of(trial, searches[0]) if searches else None,
        "steps": [step.model_dump(mode="json") for step in trial.steps],
    }
