"""The report of `hygiene forget`: one page that says what was deleted, how it was checked, and what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from memorybench.core.measures import Metric
from memorybench.core.report_sections import Column, Notes, Report, Row, Section, State, Table, Text, text_column
from memorybench.journal.rows import Run
from memorybench.suites import report_parts as sections
from memorybench.suites.case_view import CaseTrial
from memorybench.suites.stored_run import StoredRun

from .forget_plan import MEANINGS, MEASURES, PLAY
from .forgetting import CORE, STEPS, Certificate, Check

_GOOD = {"pass": True, "fail": False, "cannot tell": None}
_STATES = (
    ("pass", "no deleted fact was found, and the twins, which were not deleted, were found"),
    ("fail", "a deleted fact was found, or a fact that was not deleted is lost"),
    ("cannot tell", "the store shows too little for this step; it is neither passed nor failed"),
)

_NOT_WAITED = (
    "No time was waited for background jobs, which may bring a fact back later; --wait SECONDS gives them time."
)

CASE_NOUN = "step"
RIGHT = "Right: the store passed the step."


def metrics(run: StoredRun) -> tuple[Metric, ...]:
    return MEASURES


def facts(runs: Sequence[Run]) -> dict[str, str]:
    run, spec = runs[0], runs[0].spec
    return {
        "Run ID": run.id,
        "Store": spec["store"],
        "Seed": f"{spec['seed']}",
        **({"Also searched": ", ".join(spec["look_in"])} if spec.get("look_in") else {}),
        "Program": run.program,
        "Started": sections.started(run.created),
    }


def report(run: StoredRun) -> Report:
    summary, certificate = run.summary, load_certificate(run)
    results = [result for result in summary.results if not result.group]
    verdict, sentence = _verdict(certificate)
    return Report(
        title=f"Forgetting certificate: {run.spec['store']}",
        verdict=(sentence, *([_NOT_WAITED] if verdict == "forgets" and not run.spec.get("wait") else [])),
        warnings=sections.warnings(summary),
        sections=(
            _step_table(certificate),
            *_place_table(certificate),
            Notes(_STATES, title="States"),
            *_fact_table(certificate),
            sections.provenance(facts(run.runs)),
            sections.measure_table("Measures", results, MEANINGS, level=2),
            *sections.step_tables(summary),
            Notes((sections.accounting(summary),)),
        ),
        document={**sections.document(summary), "certificate": _document(certificate, verdict)},
    )


def passes(run: StoredRun) -> bool:
    """Return whether no step failed and the steps in `CORE` prove the deletion; with --strict, every step must pass."""
    certificate = load_certificate(run)
    is_complete = all(check.state == "pass" for check in certificate.checks)
    return _verdict(certificate)[0] == "forgets" and (is_complete or not run.spec.get("strict"))


def case_sections(trial: CaseTrial) -> list[Section]:
    """Return the report sections of one step: what it checks, its result, and the places of copies that it found."""
    shown = trial.outcome.shown
    certificates = [Certificate.model_validate(step.result) for step in trial.named(PLAY)]
    checks = [check for one in certificates for check in one.checks if check.step == trial.outcome.trial.case_id]
    return [
        Text("Step", shown.asked),
        *(Text("Result", f"{check.state}: {check.evidence}") for check in checks),
        *(table for one in checks for table in _place_table(Certificate(checks=(one,)))),
        *(table for one in certificates for table in _fact_table(one)),
    ]


def load_certificate(run: StoredRun) -> Certificate:
    """Return the recorded certificate. If the procedure did not finish, every step has the state `cannot tell`."""
    for reader, part in run.parts:
        for _, result in reader.step_records(part.id, PLAY):
            return Certificate.model_validate_json(result)
    failures = {outcome.trial.case_id: outcome.failure for outcome in run.outcomes() if outcome.failure}
    reasons = {step: failures[step].message if step in failures else "not performed" for step in STEPS}
    checks = (Check(step=step, state="cannot tell", evidence=reason) for step, reason in reasons.items())
    return Certificate(checks=tuple(checks))


def _verdict(certificate: Certificate) -> tuple[str, str]:
    """Return the verdict and a sentence that explains it.

    `does not forget`: a step failed. `forgets`: no step failed, and the steps that prove the deletion passed. `not
    shown`: everything else.
    """
    states = {check.step: check.state for check in certificate.checks}
    counts = Counter(states.values())
    numbers = f"{counts['pass']} passed, {counts['fail']} failed, {counts['cannot tell']} could not tell"
    if counts["fail"]:
        failed = ", ".join(step for step, state in states.items() if state == "fail")
        return "does not forget", f"The store does not forget: {failed} failed. Of {len(states)} steps {numbers}."
    if states["delete"] != "pass" or "pass" not in (states[step] for step in CORE[1:]):
        return "not shown", f"It is not shown that the store forgets. Of {len(states)} steps {numbers}."
    limits = "" if not counts["cannot tell"] else " in all steps that could tell"
    return "forgets", f"The store forgets{limits}. Of {len(states)} steps {numbers}."


def _step_table(certificate: Certificate) -> Table:
    rows = tuple(
        ((State(check.state, _GOOD[check.state]),), check.step, STEPS[check.step], check.evidence)
        for check in certificate.checks
    )
    columns = (
        text_column("state"),
        text_column("step"),
        text_column("requirement", priority=1, wrap=True),
        text_column("evidence", wrap=True),
    )
    return Table("Steps", columns, rows)


def _place_table(certificate: Certificate) -> list[Table]:
    rows: tuple[Row, ...] = tuple(
        (check.step, one.text, one.file, one.offset, one.where or None, one.encoding)
        for check in certificate.checks
        for one in check.leftovers
    )
    columns = (
        text_column("step"),
        text_column("word", priority=1),
        text_column("file", wrap=True),
        Column("byte offset"),
        text_column("place", wrap=True),
        text_column("encoding", wrap=True),
    )
    return [Table("Copies of deleted facts", columns, rows)] if rows else []


def _fact_table(certificate: Certificate) -> list[Table]:
    rows: tuple[Row, ...] = tuple((pair.name, pair.deleted.text, pair.twin.text) for pair in certificate.pairs)
    columns = (text_column("facts"), text_column("deleted", wrap=True), text_column("twin, not deleted", wrap=True))
    return [Table("Planted facts", columns, rows, detail=True)] if rows else []


def _document(certificate: Certificate, verdict: str) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "steps": [
            {"step": check.step, "requirement": STEPS[check.step], "state": check.state, "evidence": check.evidence,
             "places": [one.plain() for one in check.leftovers]}
            for check in certificate.checks
        ],
        "facts": [
            {"name": pair.name, "deleted": pair.deleted.text, "twin": pair.twin.text} for pair in certificate.pairs
        ],
    }  # fmt: skip
