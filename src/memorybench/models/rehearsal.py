"""Models that follow a rule, for rehearsals and tests from the command line: no network, no key, no cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from memorybench.vocabulary.conversation import Turn
from memorybench.vocabulary.errors import BadInput

from .scripted import ScriptedModel

PREFIX = "scripted/"
_WORD = re.compile(r"\w+")
_ASKED = re.compile(r"^\s*Question:\s*(.+)$", re.MULTILINE)
_REMEMBERED = re.compile(r"^\[\d{4}-\d\d-\d\d\] [^:\n]+: (.+)$", re.MULTILINE)


def quote(turns: Sequence[Turn]) -> str:
    """Says the remembered line that shares most words with the question; "I don't know" where none shares any."""
    prompt = turns[-1].content
    asked = _ASKED.search(prompt)
    wanted = _words(asked[1] if asked else prompt)
    lines = [line for line in _REMEMBERED.findall(prompt) if _words(line) & wanted]
    return max(lines, key=lambda line: len(_words(line) & wanted), default="I don't know")


def silence(turns: Sequence[Turn]) -> str:
    """Never knows."""
    return "I don't know"


RULES: Mapping[str, Callable[[Sequence[Turn]], str]] = {"quote": quote, "silence": silence}


def rehearse(name: str) -> ScriptedModel:
    """`scripted/quote` and its like."""
    rule = RULES.get(name.removeprefix(PREFIX))
    if rule is None:
        known = ", ".join(f"{PREFIX}{rule}" for rule in RULES)
        raise BadInput(f'model "{name}"', "there is no such script", expected=f"one of {known}")
    return ScriptedModel(rule, name=name)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text) if len(word) > 3}
