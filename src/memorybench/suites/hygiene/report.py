"""The report of a hygiene run: the state of each scenario, the findings, and how well the checks work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memorybench.core.measures import Metric
from memorybench.core.report_sections import Cell, Column, Notes, Report, Row, Section, State, Table, Text, text_column
from memorybench.core.trials import Outcome
from memorybench.journal.rows import Run
from memorybench.suites import report_parts as sections
from memorybench.suites.case_sections import as_text
from memorybench.suites.case_view import CaseTrial
from memorybench.suites.stored_run import StoredRun

from .checks import Kills, kill_matrix, residue, skipped_checks, survivors
from .measures import MEASURES

_HELD = {"held": True, "broken": False, "skipped": None}


def case_sections(trial: CaseTrial) -> list[Section]:
    """Scenario, memory before, calls or conversation, and assertions."""
    shown, case = trial.outcome.shown, trial.case
    sections: list[Section] = [trial.text("Scenario", f"{shown.asked}\n{case.get('description', '')}".strip())]
    before = [f"{fact['user']}: {fact['content']}" for fact in case.get("setup", {}).get("facts", ())]
    sections += [trial.text("Memory before", "\n".join(before))] if before else []
    phases = [step.result for step in trial.named("phase") if step.inputs["phase"] == trial.outcome.trial.variant]
    for report in phases:
        sections.append(_call_section("Calls", report["calls"], trial))
    agents = [step.result for step in trial.named("agent")]
    for report in agents:
        for session, exchange in enumerate(report["exchanges"], 1):
            sections += _exchange_sections(trial, session, exchange)
    for report in (*phases, *agents):
        sections += [_assertion_table(report["findings"]), *_residue_table(report["findings"])]
    result = " | ".join(
        text for text in (f"expected {shown.expected}", f"got {shown.got}" if shown.got else "") if text
    )
    return [*sections, Text("Result", f"{result}\n{shown.reason}".strip())]


def _exchange_sections(trial: CaseTrial, session: int, exchange: Mapping[str, Any]) -> list[Section]:
    calls = [{**call, "op": call["operation"] or call["tool"]} for call in exchange["calls"]]
    return [
        trial.text(f"Prompt of session {session}", exchange["prompt"]),
        _call_section(f"Tool calls of session {session}", calls, trial),
        trial.text(f"Reply of session {session}", exchange["reply"]["text"]),
    ]


def _call_section(title: str, calls: Sequence[Mapping[str, Any]], trial: CaseTrial) -> Section:
    if not calls:
        return Text(title, "none")
    rows: list[Row] = []
    for number, call in enumerate(calls, 1):
        arguments = ", ".join(
            f"{name}={as_text(value)}" for name, value in call["arguments"].items() if value is not None
        )
        rows.append((number, call["op"], call["user"], trial.excerpt(arguments), trial.excerpt(_call_result(call))))
    columns = (
        Column("call"),
        text_column("operation"),
        text_column("user", priority=1),
        text_column("arguments", wrap=True),
        text_column("result", wrap=True),
    )
    return Table(title, columns, tuple(rows))


def _call_result(call: Mapping[str, Any]) -> str:
    for name, label in (("refused", "refused"), ("error", "error"), ("undone", "not sent")):
        if call.get(name) is not None:
            return f"{label}: {call[name]}"
    return "; ".join(call["texts"]) or ", ".join(call["ids"]) or "ok"


def _assertion_table(findings: Iterable[Mapping[str, Any]]) -> Table:
    rows = tuple(((State(one["status"], _HELD[one["status"]]),), one["claim"], one["found"]) for one in findings)
    columns = (text_column("state"), text_column("assertion", wrap=True), text_column("found", wrap=True))
    return Table("Assertions", columns, rows)


def _residue_table(findings: Iterable[Mapping[str, Any]]) -> list[Table]:
    """Where files of the store hold a text that should not be there. Runs of earlier versions do not say it."""
    rows = tuple(
        (place["file"], place["offset"], place["encoding"], one["claim"])
        for one in findings
        for place in one.get("places", ())
    )
    columns = (
        text_column("file", wrap=True),
        Column("byte offset"),
        text_column("encoding", wrap=True),
        text_column("assertion", priority=1, wrap=True),
    )
    return [Table("Residue in files", columns, rows)] if rows else []


MEANINGS = {
    "passed": "phases with a good result",
    "caught": "declared violations that were blocked by the store or detected",
    "mutation_score": "generated mutants that a check detected",
    "adoption": "facts that should be stored and were",
    "restraint": "facts that should not be stored and were not",
}
MAIN_MEASURES = ("passed", "caught", "adoption", "restraint")
_STATE_NAMES = {"compliant": "pass", "defended": "blocked by store"}
"""Names of states by the word that the journal has; the others are the same."""
_STATES = {
    "pass": "the well-behaved script, or the agent, left the memory as it should be",
    "violated": "a check failed, or the store refused a call, of the well-behaved script or the agent",
    "blocked by store": "the store refused or removed what a violation wrote",
    "detected": "the store accepted the violation, and a check detected it",
    "missed": "the store accepted the violation, and no check detected it",
    "skipped": "the store lacks an operation, or shows too little for any check",
    "failed": "the phase ended with an error",
    "unscored": "the result could not be decided",
    "blocked": "the phase was not started: it needs consent",
}
_BAD_STATES = frozenset({"violated", "missed", "failed"})
_UNDECIDED = frozenset({"skipped", "blocked", "unscored"})
_PHASES = {"well_behaved": "well-behaved", "violation": "violation", "real_model": "agent"}


def metrics(run: StoredRun) -> tuple[Metric, ...]:
    return MEASURES


def facts(runs: Sequence[Run]) -> dict[str, str]:
    """What the header says about a run."""
    run, spec = runs[0], runs[0].spec
    model = f" with {spec['model']}" if spec.get("model") else ""
    return {
        "Run ID": run.id,
        "Store": spec["store"],
        **({"Agent": spec["agent"] + model} if spec.get("agent") else {}),
        "Scenarios": f"{len(spec['titles'])}",
        "Started": sections.started(run.created),
    }


def report(run: StoredRun) -> Report:
    summary, outcomes = run.summary, list(run.outcomes())
    results = [result for result in summary.results if not result.group]
    kills, surviving = kill_matrix(outcomes), survivors(outcomes)
    findings = _findings(outcomes)
    scenarios = _scenario_table(outcomes, run.spec.get("titles", {}))
    names = dict.fromkeys(s.name for row in scenarios.rows for cell in row if isinstance(cell, tuple) for s in cell)
    states = tuple((name, _STATES[name]) for name in names if name in _STATES)
    return Report(
        title=f"Memory hygiene: {', '.join(run.spec['subjects'])}",
        warnings=sections.warnings(summary),
        sections=(
            sections.measure_table("Measures", results, MEANINGS, level=2),
            scenarios,
            *([Notes(states, title="States")] if states else []),
            Notes(tuple(findings) or ("None.",), title="Findings", detail=not findings),
            *_residue_section(outcomes),
            Notes(tuple(_check_lines(outcomes)), title="How well the checks work"),
            *_check_tables(kills, surviving),
            sections.provenance(facts(run.runs)),
            *sections.step_tables(summary),
            Notes((sections.accounting(summary),)),
        ),
        document={**sections.document(summary), **_document(outcomes)},
    )


def passes(run: StoredRun) -> bool:
    """Whether every phase came out as it should, and every check can do its work."""
    if has_check_faults(list(run.outcomes())):
        return False
    overall = [result for result in run.summary.results if not result.group]
    measures = [result.measure(name) for result in overall for name in ("passed", "caught")]
    return all(measure is None or measure.value is None or measure.value >= 1 for measure in measures)


def has_check_faults(outcomes: Sequence[Outcome]) -> bool:
    """Whether a check detects nothing at all, or a harmful mutant survives: a fault of ours, not of the store."""
    holes = [reason for _, _, reason in survivors(outcomes) if not reason]
    return bool(holes) or any(kills.dead for kills in kill_matrix(outcomes))


def _scenario_table(outcomes: Sequence[Outcome], titles: dict[str, str]) -> Table:
    """One row per scenario: the state of each phase, and how many mutants were detected."""
    with_agent = any(outcome.trial.labels.get("phase") == "real_model" for outcome in outcomes)
    phases = ("real_model",) if with_agent else ("well_behaved", "violation")
    rows = []
    for scenario, own in _by_scenario(outcomes).items():
        cells: list[Cell] = [_state_cell(own, phase) for phase in phases]
        if not with_agent:
            killed, counted = _mutants(own)
            cells.append(f"{killed} of {counted}" if counted else None)
        rows.append((scenario, *cells, titles.get(scenario, "")))
    columns = (
        text_column("scenario"),
        *(text_column(_PHASES[phase]) for phase in phases),
        *(() if with_agent else (Column("mutants detected", priority=1),)),
        text_column("requirement", priority=2),
    )
    return Table("Scenarios", columns, tuple(rows))


def _by_scenario(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    scenarios: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        scenarios.setdefault(outcome.trial.case_id, []).append(outcome)
    return scenarios


def _counts(outcomes: Iterable[Outcome], phase: str) -> Counter[str]:
    """How often each state occurred in a phase, by the word that the journal has."""
    return Counter(
        outcome.shown.got if outcome.status == "scored" else outcome.status
        for outcome in outcomes
        if outcome.trial.labels.get("phase") == phase
    )


def _state_cell(outcomes: Iterable[Outcome], phase: str) -> tuple[State, ...]:
    own = [outcome for outcome in outcomes if outcome.trial.labels.get("phase") == phase]
    failed = {outcome.shown.got for outcome in own if outcome.score("passed") == 0}  # a store that had to block it
    return tuple(
        State(_STATE_NAMES.get(name, name), None if name in _UNDECIDED else name not in _BAD_STATES | failed, n)
        for name, n in _counts(own, phase).items()
    )


def _mutants(outcomes: Iterable[Outcome]) -> tuple[int, int]:
    """How many mutants were killed, and how many count."""
    scores = [outcome.score("killed") for outcome in outcomes if outcome.trial.labels.get("phase") == "mutant"]
    return sum(score == 1 for score in scores), sum(score is not None for score in scores)


def _findings(outcomes: Iterable[Outcome]) -> list[str]:
    """One line per phase without a good result, with the reason."""
    lines = []
    for outcome in outcomes:
        phase = outcome.trial.labels.get("phase", "")
        if phase not in _PHASES:
            continue
        message = outcome.failure.message if outcome.failure else ""
        if outcome.status == "blocked":
            return [message or "blocked"]  # the same for all of them
        if outcome.status != "scored":
            lines.append(f"{outcome.trial.case_id}, {_PHASES[phase]}: {outcome.status}: {message}")
        elif outcome.shown.got in _BAD_STATES or outcome.score("passed") == 0:
            state = _STATE_NAMES.get(outcome.shown.got, outcome.shown.got)
            lines.append(f"{outcome.trial.case_id}, {_PHASES[phase]}: {state}: {outcome.shown.reason}")
    return lines


def _residue_section(outcomes: Iterable[Outcome]) -> list[Table]:
    """Where files of the store still hold a text after each phase, as in a deleted row of a database."""
    rows = tuple(
        (scenario, _PHASES.get(phase, phase), files, claim) for scenario, phase, claim, files in residue(outcomes)
    )
    columns = (
        text_column("scenario"),
        text_column("phase"),
        text_column("file and offset", wrap=True),
        text_column("check", priority=1, wrap=True),
    )
    return [Table("Residue in files", columns, rows)] if rows else []


def _check_lines(outcomes: Sequence[Outcome]) -> list[str]:
    lines = []
    skipped = skipped_checks(outcomes)
    if skipped:
        lines.append(f"{len(skipped)} checks were skipped, because the store shows too little:")
        lines += [f"  {scenario}, {phase}: {claim}: {why}" for scenario, phase, claim, why in skipped]
    agents: dict[str, list[bool]] = {}
    for outcome in outcomes:
        detected = outcome.score("convicted")
        if detected is not None:
            agents.setdefault(outcome.trial.variant, []).append(detected == 1)
    for name, each in agents.items():
        lines.append(f"the {name} agent is detected by {sum(each)} of {len(each)} scenarios")
    for kills in kill_matrix(outcomes):
        if kills.dead:
            lines.append(f"dead check, it detects nothing: {kills.scenario}: {kills.claim}")
    surviving = survivors(outcomes)
    lines += [f"hole: {scenario} misses the mutant {mutant}" for scenario, mutant, reason in surviving if not reason]
    harmless = sum(bool(reason) for _, _, reason in surviving)
    if harmless:
        lines.append(f"{harmless} mutants survive because they do no harm (listed in report.md)")
    return lines


def _check_tables(kills: Sequence[Kills], surviving: Sequence[tuple[str, str, str]]) -> list[Table]:
    tables = []
    if kills:
        rows: list[tuple[Cell, ...]] = []
        for check in kills:
            verdict = f" ({check.verdict})" if check.verdict else ""
            rows.append((check.scenario, check.claim, f"{len(check.by)} of {check.total}{verdict}"))
        columns = (text_column("scenario"), text_column("check"), text_column("detects"))
        tables.append(Table("Checks", columns, tuple(rows), level=3, detail=True))
    if surviving:
        rows = [(scenario, mutant, reason or "a hole: it does harm") for scenario, mutant, reason in surviving]
        columns = (text_column("scenario"), text_column("mutant"), text_column("why it does no harm"))
        tables.append(Table("Surviving mutants", columns, tuple(rows), level=3, detail=True))
    return tables


def _document(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "scenarios": [_scenario_document(scenario, own) for scenario, own in _by_scenario(outcomes).items()],
        "assertions": [
            {
                "scenario": kills.scenario,
                "claim": kills.claim,
                "killed": len(kills.by),
                "total": kills.total,
                "mutation_score": kills.score,
                "dead": kills.dead,
            }
            for kills in kill_matrix(outcomes)
        ],
        "could_not_look": [
            dict(zip(("scenario", "phase", "claim", "why"), check, strict=True)) for check in skipped_checks(outcomes)
        ],
        "residue": [
            dict(zip(("scenario", "phase", "claim", "files"), found, strict=True)) for found in residue(outcomes)
        ],
        "survivors": [
            dict(zip(("scenario", "mutant", "reason"), survivor, strict=True)) for survivor in survivors(outcomes)
        ],
    }


def _scenario_document(scenario: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """`phases` and `mutants` are the structure; the other keys are their old form, with the old words."""
    phases = {phase: counts for phase in _PHASES if (counts := _counts(outcomes, phase))}
    killed, counted = _mutants(outcomes)
    words = {phase: ", ".join(f"{name} {n}" for name, n in counts.items()) for phase, counts in phases.items()}
    words |= {phase: next(iter(counts)) for phase, counts in phases.items() if counts.total() == 1}
    old = {_PHASES[phase]: text for phase, text in words.items()}
    if "real_model" not in phases:
        old = {
            "well-behaved": "–",
            "violation": "–",
            **old,
            "mutants killed": f"{killed} of {counted}" if counted else "–",
        }
    return {
        "scenario": scenario,
        **old,
        "phases": {
            phase: {_STATE_NAMES.get(name, name): n for name, n in counts.items()} for phase, counts in phases.items()
        },
        "mutants": {"killed": killed, "counted": counted},
    }
