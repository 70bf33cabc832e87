"""Encloses untrusted text in a prompt in delimiters that it cannot close."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from memorybench.core.records import digest

_LENGTH = 16


def mark_for(prompt: str, texts: Mapping[str, str]) -> str:
    """Returns a mark that occurs in none of the texts.

    Its author cannot predict it, because it depends on all texts. It is the same for the same call, so that a resumed
    run finds the recorded verdict of the same prompt.
    """
    marks = (digest([prompt, dict(texts), attempt])[:_LENGTH] for attempt in count())
    everything = "\n".join((prompt, *texts.values()))
    return next(mark for mark in marks if mark not in everything)


def fenced(name: str, text: str, mark: str) -> str:
    return f"<{name} {mark}>\n{text}\n</{name} {mark}>"
