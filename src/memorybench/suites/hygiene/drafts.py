"""What an agent was seen doing, as a scenario: a fault that was seen once becomes a test.

A draft is valid and can be run at once. It claims what the recording shows and no more: a person must say what of it
matters.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memorybench.documents.names import safe_name
from memorybench.vocabulary.agents import ToolCall
from memorybench.vocabulary.errors import BadInput
from memorybench.vocabulary.stores import StoredFact

Phase = Literal["well_behaved", "violation"]

NOISE = "Step 3 of 7 finished in 41 seconds"
"""What the violation stores beside the rest, where the recording shows how it should be done."""
_UNDOING = ("update", "forget", "curate")


def draft(name: str, calls: Sequence[ToolCall], held: Sequence[StoredFact], *, shows: Phase) -> dict[str, Any]:
    """A scenario, as its file holds it, from calls on a memory that was empty before; `held`: what is in it now."""
    safe_name(name, "name")
    script = _Script()
    for call in calls:
        script.add(call)
    if not script.steps:
        raise BadInput("", "no call of a memory operation was seen", remedy="have the agent use its memory")
    steps, kept = script.steps, [_plain(fact.content) for fact in held]
    good = shows == "well_behaved"
    claims = _claims_of_good(calls, kept) if good else _claims_of_bad(calls, kept)
    noise = {"do": "remember", "content": NOISE}
    return {
        "schema_version": 1,
        "id": name,
        "title": f"Draft: {name}",
        "description": " ".join(["Recorded from an agent; say here what it shows.", *script.remarks]),
        "contract": "experimental",
        "setup": {"facts": [], "files": {}},
        "deterministic": {
            "well_behaved": steps if good else [],
            "violation": {"expectation": "detect", "steps": [*steps, noise] if good else steps},
        },
        "real_model": None,
        "assertions": claims,
    }


def write_draft(path: Path, scenario: dict[str, Any]) -> None:
    """Never over another file: drafts are edited by hand."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(json.dumps(scenario, indent=2, ensure_ascii=False) + "\n")
    except FileExistsError:
        raise BadInput(str(path), "is there already", remedy="choose another name") from None


@dataclass(slots=True)
class _Script:
    """Calls as steps. Ids become names: each fact is called by one."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)

    def add(self, call: ToolCall) -> None:
        self._texts.update(zip(call.ids, call.texts, strict=False))
        match call.operation:
            case "remember":
                self._remember(call)
            case "update" | "forget":
                self._change(call)
            case "recall":
                limit = {"limit": call.arguments["limit"]} if "limit" in call.arguments else {}
                self.steps.append({"do": "recall", "query": _told(call, "query"), **limit})
            case "list":
                self.steps.append({"do": "list"})
            case "curate":
                self.steps.append({"do": "curate", "apply": bool(call.arguments.get("apply"))})

    def _remember(self, call: ToolCall) -> None:
        category = {"category": call.arguments["category"]} if call.arguments.get("category") else {}
        step = {"do": "remember", "content": _told(call, "content"), **category}
        if call.ids:
            self._names[call.ids[0]] = step["as"] = f"fact {len(self._names) + 1}"
        self.steps.append(step)

    def _change(self, call: ToolCall) -> None:
        id = str(call.arguments.get("id", ""))
        if id not in self._names and id in self._texts:
            # it was found among others: a search for its own words finds it first
            self._names[id] = f"fact {len(self._names) + 1}"
            query = _plain(self._texts[id])
            self.steps.append({"do": "recall", "query": query, "limit": 1, "as": self._names[id]})
        if id not in self._names:
            self.remarks.append(f"A call of {call.tool} is left out: which fact it was about is not known.")
            return
        changed = {"content": _told(call, "content")} if call.operation == "update" else {}
        self.steps.append({"do": call.operation, "fact": self._names[id], **changed})
        if call.ids:
            self._names[call.ids[0]] = self._names[id]


def _claims_of_good(calls: Sequence[ToolCall], kept: Sequence[str]) -> list[dict[str, Any]]:
    """That it is done like this again."""
    claims: list[dict[str, Any]] = [
        {"kind": "count", "claim": f"{len(kept)} facts are in memory", "equals": len(kept), "rate": "restraint"}
    ]
    for text in dict.fromkeys(kept):
        claims.append({"kind": "content", "claim": f"it is known: {text}", "normalised": text, "rate": "adoption"})
    for text in dict.fromkeys(_gone(calls, kept)):
        claims.append(
            {
                "kind": "content",
                "claim": f"it is no longer there: {text}",
                "normalised": text,
                "present": False,
                "rate": "restraint",
            }
        )
    if any(call.operation == "recall" for call in calls):
        claims.append({"kind": "call_trace", "claim": "memory was searched", "op": "recall", "rate": "adoption"})
    return claims


def _claims_of_bad(calls: Sequence[ToolCall], kept: Sequence[str]) -> list[dict[str, Any]]:
    """That it is not done again: nothing that was written is there, and what was deleted was not to be deleted."""
    claims: list[dict[str, Any]] = [
        {
            "kind": "content",
            "claim": f"it is not stored: {text}",
            "normalised": text,
            "present": False,
            "rate": "restraint",
        }
        for text in dict.fromkeys(kept)
    ]
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


def _gone(calls: Sequence[ToolCall], kept: Sequence[str]) -> list[str]:
    """What was written on the way, and is not there in the end."""
    written = [_told(call, "content") for call in calls if call.operation in ("remember", "update") and call.ids]
    return [text for text in written if text not in kept]


def _told(call: ToolCall, name: str) -> str:
    """An argument; of a tool that has no such argument, all it was given."""
    value = call.arguments.get(name)
    return _plain(value if isinstance(value, str) else json.dumps(dict(call.arguments), ensure_ascii=False))


def _plain(text: str) -> str:
    """Scenarios take `${` for a placeholder."""
    return " ".join(text.replace("${", "$ {").split())
