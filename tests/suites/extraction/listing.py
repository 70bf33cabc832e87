"""A scripted judge that lists the facts of its material line by line, so that every score is known."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from memorybench.core.conversation import Turn
from tests.doubles.scripted_model import Line

_MATERIAL = re.compile(r"<(?P<name>[a-z-]+) (?P<mark>[0-9a-f]+)>\n(?P<text>.*?)\n</(?P=name) (?P=mark)>", re.DOTALL)
_BULLET = re.compile(r"^- (\w+: .+)$", re.MULTILINE)
_WITHDRAWN = re.compile(r"^Forget: (\w+: .+)$", re.MULTILINE)


def user_says(*facts: str, forget: Sequence[str] = ()) -> str:
    """Returns a conversation in which the user states these facts and withdraws others."""
    lines = [*(f"- {fact}" for fact in facts), *(f"Forget: {fact}" for fact in forget)]
    return "User: Hello.\n" + "\n".join(lines)


def lister(turns: Sequence[Turn]) -> Line:
    """Replies with the facts stated or withdrawn in the conversation, or with what the new memory has more."""
    material = {match["name"]: match["text"] for match in _MATERIAL.finditer(turns[-1].content)}
    if "You audit which entries" in turns[-1].content:
        return json.dumps({"facts": _WITHDRAWN.findall(material["conversation"])})
    if "conversation" in material:
        return json.dumps({"facts": _BULLET.findall(material["conversation"])})
    old, new = (_lines(material[name]) for name in ("existing-memory", "new-memory"))
    return json.dumps({"facts": [line for line in new if line not in old]})


def _lines(memory: str) -> list[str]:
    blocks: dict[str, Any] = json.loads(memory) if memory != "(nothing)" else {}
    return [f"{category}: {fact}" for category, facts in blocks.items() for fact in facts]
