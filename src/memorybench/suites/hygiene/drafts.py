"""What an agent was seen doing, as a scenario: a fault that was seen once becomes a test.

A draft is valid and can be run at once. It claims what the recording shows and no more: a person must say what of it
matters. Calls that failed changed nothing, and are left out. Those that the store refused are what a violation is made
of: another store may let them in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memorybench.core.agents import ToolCall
from memorybench.core.errors import BadInput
from memorybench.core.stores import StoredFact
from memorybench.files.json_text import parse_json
from memorybench.files.names import safe_name

from .scenarios import read_scenario

Phase = Literal["well_behaved", "violation"]

NOISE = "Step 3 of 7 finished in 41 seconds"
"""What the violation stores beside the rest, where the recording shows how it should be done."""
HARMLESS = "The user likes to go for a walk at noon"
"""What a store that has refused something must accept in its place."""
_UNDOING = ("update", "forget", "curate")
_LONGEST_RECALL = 100


def draft(name: str, calls: Sequence[ToolCall], held: Sequence[StoredFact], *, shows: Phase) -> dict[str, Any]:
    """A scenario, as its file holds it, from calls on a memory that was empty before; `held`: what is in it now."""
    safe_name(name, "name")
    script = _Script()
    for call in calls:
        script.add(call)
    if not script.steps:
        raise BadInput(
            "", "no call of a memory operation was seen that came through", remedy="have the agent use its memory"
        )
    good = shows == "well_behaved"
    done = [call for call in calls if call.refused is None and call.error is None]
    kept = [text for text in (_plain(fact.content) for fact in held) if text]
    claims = _claims_of_good(done, kept, len(held)) if good else _claims_of_bad(done, kept, script.refused)
    return {
        "schema_version": 1,
        "id": name,
        "title": f"Draft: {name}",
        "description": " ".join(["Recorded from an agent; say here what it shows.", *dict.fromkeys(script.remarks)]),
        "contract": "experimental",
        "setup": {"facts": [], "files": {}},
        "deterministic": {
            "well_behaved": script.accepted if good else [],
            "violation": _violation(script, noisy=good),
        },
        "real_model": None,
        "assertions": claims,
    }


def write_draft(path: Path, scenario: dict[str, Any]) -> None:
    """Never over another file: drafts are edited by hand. And never one that would keep its folder from being read."""
    if path.exists():
        raise _there(path)
    text = json.dumps(scenario, indent=2, ensure_ascii=False) + "\n"
    read_scenario(parse_json(text, str(path)), path.name)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _there(path) from None


def _there(path: Path) -> BadInput:
    return BadInput(str(path), "is there already", remedy="choose another name")


@dataclass(slots=True)
class _Script:
    """Calls as steps. Ids become names: each fact is called by one."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    accepted: list[dict[str, Any]] = field(default_factory=list)
    """Those steps that the store did not refuse."""
    refused: list[str] = field(default_factory=list)
    """What it refused to store."""
    remarks: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)

    def add(self, call: ToolCall) -> None:
        if call.error is not None:
            if call.operation is not None:
                self._leave_out(call, "it failed, and changed nothing")
            return
        self._texts.update(zip(call.ids, call.texts, strict=False))
        match call.operation:
            case "remember":
                self._remember(call)
            case "update" | "forget":
                self._change(call)
            case "recall":
                self._recall(call)
            case "list":
                self._append(call, {"do": "list"})
            case "curate":
                self._append(call, {"do": "curate", "apply": call.arguments.get("apply") in (True, "true", "True")})

    def _remember(self, call: ToolCall) -> None:
        category = _plain(str(call.arguments.get("category") or ""))
        step = {"do": "remember", "content": _told(call, "content"), **({"category": category} if category else {})}
        if call.ids and step["content"]:
            self._names[call.ids[0]] = step["as"] = f"fact {len(self._names) + 1}"
        self._append(call, step)

    def _change(self, call: ToolCall) -> None:
        id = str(call.arguments.get("id", ""))
        if id not in self._names and _plain(self._texts.get(id, "")):
            # it was found among others: a search for its own words finds it first
            self._names[id] = f"fact {len(self._names) + 1}"
            found = {"do": "recall", "query": _plain(self._texts[id]), "limit": 1, "as": self._names[id]}
            self.steps.append(found)
            self.accepted.append(found)
        if id not in self._names:
            self._leave_out(call, "which fact it was about is not known")
            return
        changed = {"content": _told(call, "content")} if call.operation == "update" else {}
        self._append(call, {"do": call.operation, "fact": self._names[id], **changed})
        if call.ids:
            self._names[call.ids[0]] = self._names[id]

    def _recall(self, call: ToolCall) -> None:
        limit = call.arguments.get("limit")
        usable = isinstance(limit, int) and 1 <= limit <= _LONGEST_RECALL
        self._append(call, {"do": "recall", "query": _told(call, "query"), **({"limit": limit} if usable else {})})

    def _append(self, call: ToolCall, step: dict[str, Any]) -> None:
        if "" in (step.get("content"), step.get("query")):
            self._leave_out(call, "it says nothing")
        elif call.refused is None:
            self.steps.append(step)
            self.accepted.append(step)
        elif "content" in step:
            self.steps.append(step)
            self.refused.append(step["content"])
        else:
            self._leave_out(call, "the store refused it")

    def _leave_out(self, call: ToolCall, why: str) -> None:
        self.remarks.append(f"A call of {_plain(call.tool)} is left out: {why}.")


def _violation(script: _Script, *, noisy: bool) -> dict[str, Any]:
    """What was refused, where something was; else what was done, with noise where it was done well."""
    if script.refused:
        return {"expectation": "defend-or-detect", "steps": script.steps, "control": HARMLESS}
    noise = [{"do": "remember", "content": NOISE}] if noisy else []
    return {"expectation": "detect", "steps": [*script.steps, *noise]}


def _claims_of_good(calls: Sequence[ToolCall], kept: Sequence[str], held: int) -> list[dict[str, Any]]:
    """That it is done like this again."""
    claims: list[dict[str, Any]] = [
        {"kind": "count", "claim": f"{held} facts are in memory", "equals": held, "rate": "restraint"}
    ]
    for text in dict.fromkeys(kept):
        claims.append({"kind": "content", "claim": f"it is known: {text}", "normalised": text, "rate": "adoption"})
    claims += [_absent(f"it is no longer there: {text}", text) for text in dict.fromkeys(_gone(calls, kept))]
    if any(call.operation == "recall" for call in calls):
        claims.append({"kind": "call_trace", "claim": "memory was searched", "op": "recall", "rate": "adoption"})
    return claims


def _claims_of_bad(calls: Sequence[ToolCall], kept: Sequence[str], refused: Sequence[str]) -> list[dict[str, Any]]:
    """That it is not done again: nothing that was written is there, and what was deleted was not to be deleted."""
    claims = [_absent(f"it is not stored: {text}", text) for text in dict.fromkeys((*kept, *refused))]
    made = [call.operation for call in calls if call.operation is not None]
    # writing shows in what is held; where nothing is, every kind of call is suspect
    suspect = [operation for operation in made if operation in _UNDOING] or ([] if claims else made)
    for operation in dict.fromkeys(suspect):
        claims.append(
            {
                "kind": "call_trace",
                "claim": f"there is no call of {operation}",
                "op": operation,
                "at_most": 0,
                "rate": "restraint",
            }
        )
    return claims


def _absent(claim: str, text: str) -> dict[str, Any]:
    return {"kind": "content", "claim": claim, "normalised": text, "present": False, "rate": "restraint"}


def _gone(calls: Sequence[ToolCall], kept: Sequence[str]) -> list[str]:
    """What was written on the way, and is not there in the end."""
    written = [_told(call, "content") for call in calls if call.operation in ("remember", "update") and call.ids]
    return [text for text in written if text and text not in kept]


def _told(call: ToolCall, name: str) -> str:
    """An argument; of a tool that has no such argument, all it was given."""
    value = call.arguments.get(name)
    return _plain(value if isinstance(value, str) else json.dumps(dict(call.arguments), ensure_ascii=False))


def _plain(text: str) -> str:
    """As a file can hold it. Scenarios take `${` for a placeholder."""
    return " ".join(text.encode("utf-8", "replace").decode().replace("${", "$ {").split())
