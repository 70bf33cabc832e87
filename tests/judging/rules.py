"""The corpus of labelled judge replies, our reading of it, and the rules that others read replies by."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memorybench.core.errors import Unreadable
from memorybench.judging.verdicts import read_verdict

CORPUS = Path(__file__).with_name("replies.jsonl")
SPOKEN = {True: "yes", False: "no"}


@dataclass(frozen=True)
class Labelled:
    reply: str
    finish: str
    label: str
    """What a careful person takes the judge to have decided: yes, no, or unreadable where that is not certain."""
    kind: str


def corpus() -> list[Labelled]:
    return [Labelled(**json.loads(line)) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def ours(reply: Labelled) -> str:
    try:
        return SPOKEN[read_verdict(reply.reply, reply.finish)]
    except Unreadable:
        return "unreadable"


def _first_word(reply: str) -> str:
    word = (re.findall(r"[a-z]+", reply.lower()) or [""])[0]
    return word if word in ("yes", "no") else "unreadable"


def _json_label(reply: str) -> str:
    """A label from the first {…} that parses; otherwise wrong."""
    found = re.search(r"\{.*\}", reply, re.DOTALL)
    try:
        label = json.loads(found[0]).get("label", "") if found else ""
    except (ValueError, AttributeError):
        label = ""
    return SPOKEN[label == "CORRECT"]


OTHERS: Mapping[str, Callable[[str], str]] = {
    "`'yes' in reply.lower()` (LongMemEval)": lambda reply: SPOKEN["yes" in reply.lower()],
    '`"CORRECT" in reply`': lambda reply: SPOKEN["CORRECT" in reply],
    '`"correct" in reply.lower()`': lambda reply: SPOKEN["correct" in reply.lower()],
    '`reply.lower().startswith("yes")`': lambda reply: SPOKEN[reply.lower().startswith("yes")],
    '`reply.strip().lower() == "yes"`': lambda reply: SPOKEN[reply.strip().lower() == "yes"],
    "the first word, if it is yes or no": _first_word,
    '`json.loads(…)["label"] == "CORRECT"`, else wrong': _json_label,
}


def table() -> str:
    """Wrong verdicts by rule, as it stands in docs/judging.md."""
    replies = corpus()
    lines = [
        "| how the reply is read | no read as yes | yes read as no | undecided read as yes | undecided read as no"
        " | decided, not read |",
        "|---|---|---|---|---|---|",
    ]
    rules: dict[str, Callable[[Labelled], str]] = {"memorybench": ours}
    rules |= {name: lambda reply, rule=rule: rule(reply.reply) for name, rule in OTHERS.items()}  # type: ignore[misc]
    for name, rule in rules.items():
        seen = Counter((reply.label, rule(reply)) for reply in replies)
        cells = (
            seen["no", "yes"],
            seen["yes", "no"],
            seen["unreadable", "yes"],
            seen["unreadable", "no"],
            seen["yes", "unreadable"] + seen["no", "unreadable"],
        )
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
