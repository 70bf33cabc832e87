"""Models that follow a rule, for rehearsals and tests: no network, no key, no cost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput
from memorybench.core.spending import Spending, charge
from memorybench.core.trials import Subject

PREFIX = "scripted/"
_WORD = re.compile(r"\w+")
_QUESTION = re.compile(r"^\s*Question:\s*(.+)$", re.MULTILINE)
_BLOCK = re.compile(r"<([A-Za-z-]+) ([0-9a-f]+)>\s*(.*?)\s*</\1 \2>", re.DOTALL)
_OPTIONS = re.compile(r"\(A\) (.*) \(B\) (.*)")
_ABSTAINS = re.compile(
    r"don't know|do not know|not (?:mention|say|tell|know)|no information|unanswerable", re.IGNORECASE
)
_SOURCE = re.compile(r"<(?:conversation|excerpt)>\s*(.*?)\s*</(?:conversation|excerpt)>", re.DOTALL)
_MEMORY_LINE = re.compile(r"^\[\d{4}-\d\d-\d\d\] [^:\n]+: (.+)$", re.MULTILINE)


def quote(turns: Sequence[Turn]) -> str:
    """Return the memory that shares the most words of four or more letters with the question; else "I don't know"."""
    prompt = turns[-1].content
    question = _QUESTION.search(prompt)
    words = _words(question[1] if question else prompt)
    told = [*_MEMORY_LINE.findall(prompt), *(turn.content for turn in turns[:-1])]
    lines = [line for line in told if _words(line) & words]
    return max(lines, key=lambda line: len(_words(line) & words), default="I don't know")


def silence(turns: Sequence[Turn]) -> str:
    """Return "I don't know"."""
    return "I don't know"


def judge(turns: Sequence[Turn]) -> str:
    """Return "yes" if the response has half or more of the gold answer's long words, or abstains rightly; else "no".

    If the prompt asks for 0, 0.5 or 1, or for A, B or neither, return one of these.
    """
    blocks = {name.lower(): text for name, _, text in _BLOCK.findall(turns[-1].content)}
    response = blocks.pop("response", "")
    question = blocks.pop("question", "")
    if "A, B or neither" in turns[-1].content:
        return _option(question, response)
    if "explanation" in blocks:  # the reason why the question cannot be answered
        return "yes" if _ABSTAINS.search(response) else "no"
    gold = " ".join(blocks.values()).partition("Values of other times:")[0]
    expected, actual = _words(gold), _words(response)
    if not expected:  # all its words are short: "Tom", "42 km"
        expected, actual = set(_WORD.findall(gold.lower())), set(_WORD.findall(response.lower()))
    share = len(expected & actual) / len(expected) if expected else 0.0
    if "0, 0.5 or 1" in turns[-1].content:
        return "1" if share >= 0.5 else "0.5" if share >= 0.25 else "0"
    return "yes" if share >= 0.5 else "no"


def _option(question: str, response: str) -> str:
    """Return the option that a response chooses: "A", "B" or "neither".

    If the response is not a letter, it is the option that shares more long words with it; "neither" if both share the
    same number.
    """
    letter = response.strip(" ().")
    if letter in ("A", "B"):
        return letter
    found = _OPTIONS.search(question)
    one, other = (len(_words(option) & _words(response)) for option in (found.groups() if found else ("", "")))
    return "neither" if one == other else "A" if one > other else "B"


def notes(turns: Sequence[Turn]) -> str:
    """Return the beginnings of up to three sentences of the text to be stored, or questions if the prompt wants them.

    The questions are one about each of up to five sentences.
    """
    prompt = turns[-1].content
    sources = _SOURCE.findall(prompt)
    sentences = [sentence.strip() for sentence in re.split(r"[.!?\n]+", sources[-1] if sources else prompt)]
    phrases = [" ".join(sentence.split()[:12]) for sentence in sentences if len(_words(sentence)) >= 3]
    if '"questions"' in prompt:
        return json.dumps({"questions": [f"What was said about {sentence}?" for sentence in phrases[:5]] or ["What?"]})
    return f"About {'; '.join(phrases[:3])}."


RULES: Mapping[str, Callable[[Sequence[Turn]], str]] = {
    "quote": quote,
    "silence": silence,
    "judge": judge,
    "notes": notes,
}


class RehearsalModel:
    def __init__(self, name: str, rule: Callable[[Sequence[Turn]], str]) -> None:
        self.subject = Subject(role="model", name=name)
        self._rule = rule

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        spent = Spending(calls=1)
        charge(spent)
        return Completion(text=self._rule(turns), finish="stop", model=self.subject.name, spent=spent)

    def highest_cost(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> float | None:
        return 0.0


def rehearse(name: str) -> RehearsalModel:
    """Return the model for a name such as `scripted/quote`."""
    rule = RULES.get(name.removeprefix(PREFIX))
    if rule is None:
        known = ", ".join(f"{PREFIX}{rule}" for rule in RULES)
        raise BadInput(f'model "{name}"', "unknown scripted model", expected=f"one of {known}")
    return RehearsalModel(name, rule)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text) if len(word) > 3}
