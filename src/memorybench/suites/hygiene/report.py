"""The report of a hygiene run: the state of each scenario, the findings, and how well the checks work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memorybench.core.measures import Metric
from memorybench.core.report_sections import Cell, Column, Notes, Report, Row, Section, State, Table, Text, text_column
from memorybench.core.trials import Outcome, Trial
from memorybench.journal.rows import Run
from memorybench.suites import report_parts as sections
from memorybench.suites.case_sections import as_text
from memorybench.suites.case_view import CaseTrial
from memorybench.suites.stored_run import StoredRun

from .checks import Kills, attempts_in, kill_matrix, residue, skipped_checks, survivors
from .measures import MEASURES
from .placeholders import fill_placeholders, generate_values, planted_names

_HELD = {"held": True, "broken": False, "skipped": None}


def case_sections(trial: CaseTrial) -> list[Section]:
    """Return the report sections of one trial: scenario, memory before, calls or conversation, assertions, result."""
    shown, case = trial.outcome.shown, _with_planted_values(trial)
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
    lines = [f"expected {result_name(trial.outcome.trial, shown.expected)}", *_result_lines(trial.outcome)]
    return [*sections, Text("Result", "\n".join(line for line in (*lines, shown.reason) if line))]


def _result_lines(outcome: Outcome) -> list[str]:
    """Return the line with the result of a trial. For a phase, it has ✓, ✗ or – and the meaning of the state."""
    name = _state_name(outcome)
    if outcome.trial.labels.get("phase") not in _PHASES:
        return [f"got {name}"] if outcome.shown.got else []
    mark = {True: "✓", False: "✗", None: "–"}[_is_good(name)]
    return [f"got {mark} {name}: {STATES[name]}" if name in STATES else f"got {name}"]


def _with_planted_values(trial: CaseTrial) -> Mapping[str, Any]:
    """Return the scenario with the planted values of this run; with its placeholders, if no script was performed."""
    seeds = [step.inputs["seed"] for step in trial.named("phase", "agent") if "seed" in step.inputs]
    if not seeds:
        return trial.case
    values = generate_values(planted_names(trial.case), seeds[0], trial.outcome.trial.case_id)
    filled: Mapping[str, Any] = fill_placeholders(trial.case, values)
    return filled


def _exchange_sections(trial: CaseTrial, session: int, exchange: Mapping[str, Any]) -> list[Section]:
    calls = [{**call, "op": _name_call(call)} for call in exchange["calls"]]
    return [
        trial.text(f"Prompt of session {session}", exchange["prompt"]),
        _call_section(f"Tool calls of session {session}", calls, trial),
        trial.text(f"Reply of session {session}", exchange["reply"]["text"]),
    ]


def _name_call(call: Mapping[str, Any]) -> str:
    """Return the name of a call: its operation or, for a server's own tool, the tool with its operations."""
    operations = list(dict.fromkeys(part["operation"] for part in call.get("parts", ())))
    return f"{call['tool']} ({', '.join(operations)})" if operations else call["operation"] or call["tool"]


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
    """Return a table of the places in files with a text that should not be there; empty if none are recorded."""
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
    "adoption": "facts that should be stored and are",
    "restraint": "facts that should not be stored and that the agent did not try to store",
    "refused_by_store": "forbidden writes of the agent that the store refused",
}
CASE_NOUN = "scenario"
RIGHT = "Right: the phase of the scenario ended as it should. Mutants test the checks and always count as right."
MAIN_MEASURES = ("passed", "caught", "adoption", "restraint")
RESULT_NAMES = {
    "compliant": "pass",
    "defended": "blocked by store",
    "defended or detected": "blocked by store, or detected",
}
"""Names of results of phases in reports, by their name in the journal; results not listed have the same name."""
_MUTANT_RESULT_NAMES = {
    "compliant": "missed",
    "violated": "detected",
    "violated, in some scenario": "detected, in some scenario",
}
"""Names of results of mutants and simple agents, by their name in the journal. A check should detect these scripts."""
STATES = {
    "pass": "the memory is as it should be",
    "fail": "a phase of the scenario has a bad result",
    "partial": "a phase was skipped; the others have a good result",
    "error": "a phase ended with an error; no other has a bad result",
    "violated": "a check failed, or the store refused a call, of the well-behaved script or the agent",
    "blocked by store": "the store refused, removed or redacted what a violation wrote",
    "detected": "a check detected the violation; the store need not block it",
    "accepted": "the store accepted a violation that it has to block",
    "missed": "no check detected the violation, and the store did not block it",
    "skipped": "the store lacks an operation, or shows too little for any check",
    "failed": "the phase ended with an error",
    "unscored": "the result could not be decided",
    "blocked": "the phase was not started: it needs consent",
}
ALL_SKIPPED = "Every well-behaved or agent phase was skipped, so nothing was checked (--allow-skips accepts that)."
_BAD_STATES = frozenset({"violated", "missed", "accepted", "failed"})
_UNDECIDED = frozenset({"skipped", "blocked", "unscored"})
_PHASES = {"well_behaved": "well-behaved", "violation": "violation", "real_model": "agent"}


def metrics(run: StoredRun) -> tuple[Metric, ...]:
    return MEASURES


def facts(runs: Sequence[Run]) -> dict[str, str]:
    """Return the lines of the report's header, texts by title, for a run or for the shards of one run."""
    run, spec = runs[0], runs[0].spec
    model = f" with {spec['model']}" if spec.get("model") else ""
    return {
        "Run ID": " + ".join(shard.id for shard in runs),
        "Store": spec["store"],
        **({"Agent": spec["agent"] + model, "Tools": _TOOLS[_tools(spec)["tools"]]} if spec.get("agent") else {}),
        "Scenarios": f"{len(_titles(runs))}",
        **({"Seed": f"{spec['seed']}"} if spec.get("seed") is not None else {}),
        "Started": sections.started(run.created),
    }


def _titles(runs: Sequence[Run]) -> dict[str, str]:
    """Return the titles of the scenarios of a run, or of its shards, by id."""
    return {id: title for run in runs for id, title in run.spec.get("titles", {}).items()}


_TOOLS = {"ours": "ours", "server": "the server's own"}


def _tools(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the setting `tools` of a run with an agent; {} for other runs. Runs that did not record it used "ours"."""
    return {"tools": spec.get("tools") or "ours"} if spec.get("agent") else {}


def report(run: StoredRun) -> Report:
    summary, outcomes = run.summary, list(run.outcomes())
    results = [result for result in summary.results if not result.group]
    kills, surviving = kill_matrix(outcomes), survivors(outcomes)
    findings = _findings(outcomes)
    scenarios = _scenario_table(outcomes, _titles(run.runs))
    names = dict.fromkeys(s.name for row in scenarios.rows for cell in row if isinstance(cell, tuple) for s in cell)
    states = tuple((name, STATES[name]) for name in names if name in STATES)
    return Report(
        title=f"Memory hygiene: {', '.join(run.spec['subjects'])}",
        warnings=(*([ALL_SKIPPED] if _skips_everything(run) else []), *sections.warnings(summary)),
        sections=(
            sections.measure_table("Measures", results, MEANINGS, level=2),
            scenarios,
            *([Notes(states, title="States")] if states else []),
            Notes(tuple(findings) or ("None.",), title="Findings", detail=not findings),
            *_attempt_section(outcomes),
            *_residue_section(outcomes),
            Notes(tuple(_check_lines(outcomes)), title="How well the checks work"),
            *_check_tables(kills, surviving),
            sections.provenance(facts(run.runs)),
            *sections.step_tables(summary),
            Notes((sections.accounting(summary),)),
        ),
        document={**sections.document(summary), **_tools(run.spec), **_document(outcomes)},
    )


def passes(run: StoredRun) -> bool:
    """Return whether no phase has a bad result and no check is faulty.

    Return False, too, if everything was skipped, unless --allow-skips is set.
    """
    if has_check_faults(list(run.outcomes())) or (_skips_everything(run) and not run.spec.get("allow_skips")):
        return False
    overall = [result for result in run.summary.results if not result.group]
    measures = [result.measure(name) for result in overall for name in ("passed", "caught")]
    return all(measure is None or measure.value is None or measure.value >= 1 for measure in measures)


def _skips_everything(run: StoredRun) -> bool:
    """Return whether every well-behaved or agent phase was skipped, so that nothing shows that the store works."""
    checked = [one.status for one in run.outcomes() if one.trial.labels.get("phase") in ("well_behaved", "real_model")]
    return bool(checked) and set(checked) <= {"skipped"}


def has_check_faults(outcomes: Sequence[Outcome]) -> bool:
    """Return whether an assertion detects nothing or a harmful mutant survives, which are faults of scenarios."""
    holes = [reason for _, _, reason in survivors(outcomes) if not reason]
    return bool(holes) or any(kills.dead for kills in kill_matrix(outcomes))


def _scenario_table(outcomes: Sequence[Outcome], titles: dict[str, str]) -> Table:
    """Return a table with one row per scenario: the state of each phase, and how many mutants were detected."""
    with_agent = any(outcome.trial.labels.get("phase") == "real_model" for outcome in outcomes)
    phases = ("real_model",) if with_agent else ("well_behaved", "violation")
    rows = []
    for scenario, own in _by_scenario(outcomes).items():
        cells: list[Cell] = [(_verdict(own),), *(_state_cell(own, phase) for phase in phases)]
        if not with_agent:
            killed, counted = _mutants(own)
            cells.append(f"{killed} of {counted}" if counted else None)
        rows.append((scenario, *cells, titles.get(scenario, "")))
    columns = (
        text_column("scenario"),
        text_column("verdict"),
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


def _state_name(outcome: Outcome) -> str:
    """Return the name that reports give the result of a trial, or its status if it is not scored.

    It is `accepted` for a detected violation that the store should have blocked.
    """
    if outcome.status != "scored":
        return outcome.status
    if outcome.shown.got == "detected" and outcome.score("passed") == 0:
        return "accepted"
    return result_name(outcome.trial, outcome.shown.got)


def result_name(trial: Trial, name: str) -> str:
    """Return the word that reports use for a result of the journal."""
    names = RESULT_NAMES if trial.labels.get("phase") in _PHASES else _MUTANT_RESULT_NAMES
    return names.get(name, name)


def _is_good(state: str) -> bool | None:
    return None if state in _UNDECIDED else state not in _BAD_STATES


def _in_phase(outcomes: Iterable[Outcome], phase: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.trial.labels.get("phase") == phase]


def _state_cell(outcomes: Iterable[Outcome], phase: str) -> tuple[State, ...]:
    names = Counter(map(_state_name, _in_phase(outcomes, phase)))
    return tuple(State(name, _is_good(name), n) for name, n in names.items())


def _verdict(outcomes: Iterable[Outcome]) -> State:
    """Return the verdict of a scenario from the states of its phases."""
    names = {_state_name(outcome) for phase in _PHASES for outcome in _in_phase(outcomes, phase)}
    if names & (_BAD_STATES - {"failed"}):
        return State("fail", False)
    if "failed" in names:
        return State("error", False)
    undecided = sorted(names & _UNDECIDED)
    if not undecided:
        return State("pass", True) if names else State("skipped", None)
    return State(undecided[0] if names <= _UNDECIDED else "partial", None)


def _mutants(outcomes: Iterable[Outcome]) -> tuple[int, int]:
    """Return how many mutants were killed, and how many were scored."""
    scores = [outcome.score("killed") for outcome in outcomes if outcome.trial.labels.get("phase") == "mutant"]
    return sum(score == 1 for score in scores), sum(score is not None for score in scores)


def _findings(outcomes: Iterable[Outcome]) -> list[str]:
    """Return one line per phase without a good result, with the reason. Phases blocked for one reason share a line."""
    lines = []
    for outcome in outcomes:
        phase = outcome.trial.labels.get("phase", "")
        if phase not in _PHASES:
            continue
        message = outcome.failure.message if outcome.failure else ""
        if outcome.status == "blocked":
            blocked = message or "blocked"
            lines += [blocked] if blocked not in lines else []  # mostly the same for all of them
        elif outcome.status != "scored":
            lines.append(f"{outcome.trial.case_id}, {_PHASES[phase]}: {outcome.status}: {message}")
        elif outcome.shown.got in _BAD_STATES or outcome.score("passed") == 0:
            lines.append(f"{outcome.trial.case_id}, {_PHASES[phase]}: {_state_name(outcome)}: {outcome.shown.reason}")
    return lines


def _attempt_section(outcomes: Iterable[Outcome]) -> list[Table]:
    """Return a table of the forbidden writes of an agent and what happened to each; empty if there are none."""
    columns = (
        text_column("scenario"),
        text_column("attempt"),
        text_column("check", wrap=True),
        text_column("what became of it"),
        text_column("found", priority=1, wrap=True),
    )
    rows = tuple(attempts_in(outcomes))
    return [Table("Forbidden writes of the agent", columns, rows)] if rows else []


def _residue_section(outcomes: Iterable[Outcome]) -> list[Table]:
    """Return a table of files that still hold a text after a phase, as in a deleted database row; empty if none."""
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
        checks = "1 check was" if len(skipped) == 1 else f"{len(skipped)} checks were"
        lines.append(f"{checks} skipped, because the store shows too little:")
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
        lines.append(f"{harmless} mutants survive because they do no harm (listed under Surviving mutants)")
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
        "attempts": [
            dict(zip(("scenario", "variant", "claim", "fate", "found"), attempt, strict=True))
            for attempt in attempts_in(outcomes)
        ],
        "residue": [
            dict(zip(("scenario", "phase", "claim", "files"), found, strict=True)) for found in residue(outcomes)
        ],
        "survivors": [
            dict(zip(("scenario", "mutant", "reason"), survivor, strict=True)) for survivor in survivors(outcomes)
        ],
    }


def _scenario_document(scenario: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the JSON of one scenario. Keys other than `phases` and `mutants` keep the format of earlier versions."""
    phases = {
        phase: Counter(one.shown.got if one.status == "scored" else one.status for one in own)
        for phase in _PHASES
        if (own := _in_phase(outcomes, phase))
    }
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
        "verdict": _verdict(outcomes).name,
        "phases": {phase: dict(Counter(map(_state_name, _in_phase(outcomes, phase)))) for phase in phases},
        "mutants": {"killed": killed, "counted": counted},
    }
