"""Removes the reasoning that some models write before their reply, as `<think>…</think>`."""

from __future__ import annotations

import re

_OPENED = re.compile(r"\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_OPENING = re.compile(r"<(?:think|thinking|reasoning)>")
_CLOSING = re.compile(r"</(?:think|thinking|reasoning)>")
_NO_REASONING = ("{", "[", "<", "`")
"""How replies begin that are JSON, markup or code, and so may quote a tag."""


def without_reasoning(text: str) -> str:
    """Return a reply without the reasoning before it; unchanged if nothing would be left.

    Some servers omit the opening tag. Tags later in the reply belong to it.
    """
    rest = text
    while found := _OPENED.match(rest):
        rest = rest[found.end() :]
    if rest == text and not text.lstrip().startswith(_NO_REASONING):
        before, *after = _CLOSING.split(text, maxsplit=1)
        rest = after[0] if after and not _OPENING.search(before) else text
    return rest if rest.strip() else text
