"""Reads which choice an answer to a multiple-choice question names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memorybench.core.errors import Unreadable
from memorybench.core.questions import Choice
from memorybench.text.normalisation import tidy
from memorybench.text.sanitize import preview

_MARKUP = re.compile(r"[*_`\"“”]+")
_LEAD = re.compile(
    r"^(?:(?:the|my)\s+)?(?:(?:correct|right|best|final)\s+)?(?:answer|choice|option)(?:\s+is)?\s*:?\s+", re.I
)
_NEGATION = re.compile(
    r"\b(?:not|never|neither|nor|except|wrong|incorrect|false|rul(?:e|es|ed|ing) out|exclud\w+|eliminat\w+)\b|n['’]t\b",
    re.I,
)
_NO_ANSWER = re.compile(r"\b(?:do not|don['’]?t|cannot|can['’]?t)\s+(?:know|tell|say|determine|answer)\b", re.I)


def read_choice(response: str, choices: Sequence[Choice]) -> str | None:
    """Return the label that a response names: `B`, `(b)`, `The answer is B.`, or the text of a choice.

    Return None if the response is empty, or names no choice and says that the answer is not known. Raise Unreadable if
    it names several choices, none, or one in a text with a negation. The article in "a train" is not the label A.
    """
    text = tidy(_MARKUP.sub(" ", response))
    if not text:
        return None
    rest = _LEAD.sub("", text)
    labels = {choice.label.casefold() for choice in choices}
    whole = {choice.label for choice in choices if _bare(rest) == _bare(choice.text)}
    if len(whole) == 1 and _bare(rest) not in labels:  # B. Jones is a name if a choice says so
        return whole.pop()
    named = {choice.label for choice in choices if _names(rest, choice.label) or _is_text(rest, choice)}
    cited = {choice.label for choice in choices if _cites(text, choice.label)} - named
    is_negated = bool(cited) and _NEGATION.search(text) is not None
    named |= cited
    if len(named) == 1 and not is_negated:
        return named.pop()
    if not named and _NO_ANSWER.search(text):
        return None
    problem = "a choice in a sentence with a negation" if is_negated else "several choices" if named else "no choice"
    raise Unreadable(
        f"the answer to a multiple-choice question names {problem}: {preview(response)}; expected one label"
    )


def _names(text: str, label: str) -> bool:
    """Whether a text is a label, or begins with a label and punctuation: `B`, `B.`, `b) by train`."""
    return re.match(rf"[(\[]?{re.escape(label)}(?:[)\].:,;]+(?:\s|$)|\n|$)", text, re.I) is not None


def _cites(text: str, label: str) -> bool:
    """Whether a text contains the label in brackets, or as in "the answer is B." or "option B,"."""
    name = re.escape(label)
    after = rf"\b(?:answer|choice|option)(?:\s+is)?\s*:?\s+{name}(?=[.,;:!)]|$)"
    return re.search(rf"[(\[]{name}[)\]]|{after}", text, re.I) is not None


def _is_text(text: str, choice: Choice) -> bool:
    """Whether a text is the text of the choice, with or without a label before it."""
    without_label = re.sub(r"^[(\[]?\w{1,2}[)\].:]+\s+", "", text)
    wanted = _bare(choice.text)
    return bool(wanted) and wanted in (_bare(text), _bare(without_label))


def _bare(text: str) -> str:
    """Return the text for comparison: in lower case and without full stops and exclamation marks at its end."""
    return text.casefold().rstrip(".!")
