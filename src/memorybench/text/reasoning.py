"""Removes the reasoning that some models write before their reply, as `<think>…</think>`."""

from __future__ import annotations

import re

_END = re.compile(r"</(?:think|thinking|reasoning)>")


def without_reasoning(text: str) -> str:
    """Return the text after the last closing tag of reasoning; some servers omit the opening tag."""
    return _END.split(text)[-1]
