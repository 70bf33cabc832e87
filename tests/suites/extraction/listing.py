"""A judge that can read: lists what its material says, line by line, so that every score is known beforehand."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from memorybench.core.conversation import Turn
from memorybench.models.scripted import Line

_MATERIAL = re.compile(r"<(?P<name>[a-z-]+) (?P<mark>[0-9a-f]+)>\n(?P<text>.*?)\n</(?P=name) (?P=mark)>", re.DOTALL)
_BULLET = re.compile(r"^- (\w+: .+)$", re.MULTILINE)


def said(*facts: str) -> str:
    """A conversation in which the user says these."""
    return "User: Hello.\n" + "\n".join(f"- {fact}" for fact in facts)


def lister(turns: Sequence[Turn]) -> Line:
    """The bullets of a conversation, or what the new memory holds and the existing one does not."""
    material = {found["name"]: found["text"] for found in _MATERIAL.finditer(turns[-1].content)}
    if "conversation" in material:
        return json.dumps({"facts": _BULLET.findall(material["conversation"])})
    old, new = (_lines(material[name]) for name in ("existing-memory", "new-memory"))
    return json.dumps({"facts": [line for line in new if line not in old]})


def _lines(memory: str) -> list[str]:
    held: dict[str, Any] = json.loads(memory) if memory != "(nothing)" else {}
    return [f"{category}: {fact}" for category, facts in held.items() for fact in facts]
