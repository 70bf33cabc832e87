"""Models that follow a rule, for rehearsals and tests from the command line: no network, no key, no cost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput

from .scripted import ScriptedModel

PREFIX = "scripted/"
_WORD = re.compile(r"\w+")
_ASKED = re.compile(r"^\s*Question:\s*(.+)$", re.MULTILINE)
_BLOCK = re.compile(r"<([A-Za-z-]+) ([0-9a-f]+)>\s*(.*?)\s*</\1 \2>", re.DOTALL)
_ABSTAINS = re.compile(
    r"don't know|do not know|not (?:mention|say|tell|know)|no information|unanswerable", re.IGNORECASE
)
_STORED = re.compile(r"<(?:conversation|excerpt)>\s*(.*?)\s*</(?:conversation|excerpt)>", re.DOTALL)
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


def judge(turns: Sequence[Turn]) -> str:
    """Says yes where the response holds most of the gold's telling words, or abstains where that is asked for."""
    blocks = {name.lower(): text for name, _, text in _BLOCK.findall(turns[-1].content)}
    response = blocks.pop("response", "")
    blocks.pop("question", None)
    if "explanation" in blocks:  # why the question can not be answered
        return "yes" if _ABSTAINS.search(response) else "no"
    gold = " ".join(blocks.values())
    wanted, said = _words(gold), _words(response)
    if not wanted:  # all its words are short: "Tom", "42 km"
        wanted, said = set(_WORD.findall(gold.lower())), set(_WORD.findall(response.lower()))
    return "yes" if wanted and len(wanted & said) >= len(wanted) / 2 else "no"


def notes(turns: Sequence[Turn]) -> str:
    """Plays the model that works on what is stored: its first words, as questions where JSON is asked for."""
    prompt = turns[-1].content
    stored = _STORED.findall(prompt)
    sentences = [sentence.strip() for sentence in re.split(r"[.!?\n]+", stored[-1] if stored else prompt)]
    telling = [" ".join(sentence.split()[:12]) for sentence in sentences if len(_words(sentence)) >= 3]
    if '"questions"' in prompt:
        return json.dumps({"questions": [f"What was said about {sentence}?" for sentence in telling[:5]] or ["What?"]})
    return f"About {'; '.join(telling[:3])}."


RULES: Mapping[str, Callable[[Sequence[Turn]], str]] = {
    "quote": quote,
    "silence": silence,
    "judge": judge,
    "notes": notes,
}


def rehearse(name: str) -> ScriptedModel:
    """`scripted/quote` and its like."""
    rule = RULES.get(name.removeprefix(PREFIX))
    if rule is None:
        known = ", ".join(f"{PREFIX}{rule}" for rule in RULES)
        raise BadInput(f'model "{name}"', "there is no such script", expected=f"one of {known}")
    return ScriptedModel(rule, name=name)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text) if len(word) > 3}
