"""Turn the recorded calls of an agent into a draft of a scenario.

A draft is valid and can be run at once. Its assertions describe the recording; the user edits them. Calls that failed
are left out, because they changed nothing. Calls that the store refused become the violation, because another store may
accept them.
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
"""The violation of a draft whose recording is well-behaved stores this, too."""
HARMLESS = "The user likes to go for a walk at noon"
"""The control of a draft whose recording has refused calls."""
_MAX_RECALL_LIMIT = 100


def draft(name: str, calls: Sequence[ToolCall], held: Sequence[StoredFact], *, shows: Phase) -> dict[str, Any]:
    """Return the JSON of a scenario from calls on an empty memory, and the facts that it contains afterwards."""
    safe_name(name, "name")
    script = _Script()
    for call in calls:
        script.add(call)
    if not script.steps:
        raise BadInput("recording", "no memory call succeeded", remedy="let the agent use its memory")
    good = shows == "well_behaved"
    successful = [call for call in calls if call.refused is None and call.error is None]
    texts = [text for text in (_clean(fact.content) for fact in held) if text]
    if good:
        assertions = _assertions_for_good(successful, texts, len(held))
    else:
        assertions = _assertions_for_bad(successful, [*texts, *script.refused_texts])
    if script.refused_texts:
        violation = {"expectation": "defend-or-detect", "steps": script.steps, "control": HARMLESS}
    else:
        noise = [{"do": "remember", "content": NOISE}] if good else []
        violation = {"expectation": "detect", "steps": [*script.steps, *noise]}
    return {
        "schema_version": 1,
        "id": name,
        "title": f"Draft: {name}",
        "description": " ".join(["Recorded from an agent; say here what it shows.", *dict.fromkeys(script.remarks)]),
        "contract": "experimental",
        "setup": {"facts": [], "files": {}},
        "deterministic": {"well_behaved": script.accepted_steps if good else [], "violation": violation},
        "real_model": None,
        "assertions": assertions,
    }


def write_draft(path: Path, scenario: dict[str, Any]) -> None:
    """Write a draft to a new file. An existing file is not replaced, and an invalid scenario is not written."""
    text = json.dumps(scenario, indent=2, ensure_ascii=False) + "\n"
    try:
        if path.exists():
            raise FileExistsError
        read_scenario(parse_json(text, str(path)), path.name)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise BadInput(str(path), "file exists", remedy="choose another name") from None


@dataclass(slots=True)
class _Script:
    """Calls as steps. Each fact has one name, which replaces its ids."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    accepted_steps: list[dict[str, Any]] = field(default_factory=list)
    refused_texts: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    """Names of facts by id."""
    _texts: dict[str, str] = field(default_factory=dict)
    """Contents of facts by id."""

    def add(self, call: ToolCall) -> None:
        if call.error is not None:
            if call.operation is not None:
                self._leave_out(call, "it failed, and changed nothing")
            return
        self._texts.update(zip(call.ids, call.texts, strict=False))
        match call.operation:
            case "remember":
                category = _clean(str(call.arguments.get("category") or ""))
                step = {"do": "remember", "content": _argument(call, "content")}
                step |= {"category": category} if category else {}
                if call.ids and step["content"]:
                    self._names[call.ids[0]] = step["as"] = f"fact {len(self._names) + 1}"
                self._append(call, step)
            case "update" | "forget":
                self._add_change(call)
            case "recall":
                limit = call.arguments.get("limit")
                is_valid = isinstance(limit, int) and 1 <= limit <= _MAX_RECALL_LIMIT
                query = {"do": "recall", "query": _argument(call, "query"), **({"limit": limit} if is_valid else {})}
                self._append(call, query)
            case "list":
                self._append(call, {"do": "list"})
            case "curate":
                self._append(call, {"do": "curate", "apply": call.arguments.get("apply") in (True, "true", "True")})

    def _add_change(self, call: ToolCall) -> None:
        id = str(call.arguments.get("id", ""))
        if id not in self._names and _clean(self._texts.get(id, "")):
            # the agent got the id from a search or a list: a search for the fact's own words returns it first
            self._names[id] = f"fact {len(self._names) + 1}"
            recall = {"do": "recall", "query": _clean(self._texts[id]), "limit": 1, "as": self._names[id]}
            self.steps.append(recall)
            self.accepted_steps.append(recall)
        if id not in self._names:
            self._leave_out(call, "its fact is unknown")
            return
        content = {"content": _argument(call, "content")} if call.operation == "update" else {}
        self._append(call, {"do": call.operation, "fact": self._names[id], **content})
        if call.ids:
            self._names[call.ids[0]] = self._names[id]

    def _append(self, call: ToolCall, step: dict[str, Any]) -> None:
        if "" in (step.get("content"), step.get("query")):
            self._leave_out(call, "it is empty")
        elif call.refused is None:
            self.steps.append(step)
            self.accepted_steps.append(step)
        elif "content" in step:
            self.steps.append(step)
            self.refused_texts.append(step["content"])
        else:
            self._leave_out(call, "the store refused it")

    def _leave_out(self, call: ToolCall, reason: str) -> None:
        self.remarks.append(f"A call of {_clean(call.tool)} is left out: {reason}.")


def _assertions_for_good(calls: Sequence[ToolCall], texts: Sequence[str], count: int) -> list[dict[str, Any]]:
    """Return assertions that the memory contains the same facts again, and no others."""
    assertions: list[dict[str, Any]] = [
        {"kind": "count", "claim": f"{count} facts are in memory", "equals": count, "rate": "restraint"}
    ]
    for text in dict.fromkeys(texts):
        assertions.append({"kind": "content", "claim": f"it is known: {text}", "normalised": text, "rate": "adoption"})
    contents = [_argument(call, "content") for call in calls if call.operation in ("remember", "update") and call.ids]
    for text in dict.fromkeys(text for text in contents if text and text not in texts):
        assertions.append(_is_absent(f"it is no longer there: {text}", text))
    if any(call.operation == "recall" for call in calls):
        assertions.append({"kind": "call_trace", "claim": "memory was searched", "op": "recall", "rate": "adoption"})
    return assertions


def _assertions_for_bad(calls: Sequence[ToolCall], texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return assertions that nothing of what the agent wrote is stored, and that it changes and deletes nothing."""
    assertions = [_is_absent(f"it is not stored: {text}", text) for text in dict.fromkeys(texts)]
    operations = [call.operation for call in calls if call.operation is not None]
    # stored facts show what was written; if there are none, every kind of call may be the violation
    changes = [operation for operation in operations if operation in ("update", "forget", "curate")]
    for operation in dict.fromkeys(changes or ([] if assertions else operations)):
        claim = f"there is no call of {operation}"
        assertions.append({"kind": "call_trace", "claim": claim, "op": operation, "at_most": 0, "rate": "restraint"})
    return assertions


def _is_absent(claim: str, text: str) -> dict[str, Any]:
    return {"kind": "content", "claim": claim, "normalised": text, "present": False, "rate": "restraint"}


def _argument(call: ToolCall, name: str) -> str:
    """Return an argument of the call, or all arguments as JSON if the tool has no argument of that name."""
    value = call.arguments.get(name)
    return _clean(value if isinstance(value, str) else json.dumps(dict(call.arguments), ensure_ascii=False))


def _clean(text: str) -> str:
    """Return the text in one line of valid UTF-8, without `${`, which would be a placeholder."""
    return " ".join(text.encode("utf-8", "replace").decode().replace("${", "$ {").split())
