"""What `memorybench show` shows of one trial of a scenario: the calls of the script or agent, and the assertions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memorybench.core.report_sections import Column, Row, Section, State, Table, Text, text_column
from memorybench.suites.case_sections import as_text
from memorybench.suites.case_view import CaseTrial

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
        sections.append(_assertion_table(report["findings"]))
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
