"""Foreign text in a prompt: between marks that nothing inside can close."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from memorybench.core.records import digest

_LENGTH = 16


def mark_for(prompt: str, texts: Mapping[str, str]) -> str:
    """A mark that stands in none of the texts.

    It is as good as random to whoever wrote them, for it depends on all of them, and the same for the same call: a
    resumed run must find its recorded verdict under the same prompt.
    """
    marks = (digest([prompt, dict(texts), attempt])[:_LENGTH] for attempt in count())
    everything = "\n".join((prompt, *texts.values()))
    return next(mark for mark in marks if mark not in everything)


def fenced(name: str, text: str, mark: str) -> str:
    return f"<{name} {mark}>\n{text}\n</{name} {mark}>"
