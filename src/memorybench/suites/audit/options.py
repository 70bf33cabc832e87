"""Which of two options a reply takes for the first, where that is certain.

A reply is reduced to a line of signs, and the line must be one that is known: `The dog came up after the boat` is
`x>y`, and says y. What is not known, is denied or contradicts itself is left to the judge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .spoken import sentences, unadorned
from .words import content, key, words

_VETO = "!"
_SIGNS = {
    "later than": ">", "only after": ">", "followed by": "<", "followed": ">", "follows": ">", "following": ">",
    "preceded by": ">", "earlier than": "<", "sooner than": "<", "ahead of": "<", "preceded": "<", "precedes": "<",
    "predates": "<", "predated": "<",
    "prior to that": "p", "before that": "p", "beforehand": "p", "prior to": "<", "before": "<",
    "after that": "t", "after which": "t", "afterwards": "t", "afterward": "t", "thereafter": "t", "subsequently": "t",
    "and later": "t", "later on": "t", "and then": "t", "then": "t", "next": "t", "after": ">",
    "first": "f", "earlier": "f", "earliest": "f", "initially": "f",
    "second": "s", "later": "s", "last": "s",
    **dict.fromkeys((
        "not", "never", "no", "nor", "neither", "none", "or", "either", "both", "same", "if", "unless", "whether",
        "wrong", "incorrect", "false", "opposite", "other", "instead", "rather", "unlike", "except", "hardly", "might",
        "could", "maybe", "perhaps", "possibly", "unsure", "uncertain", "unclear", "unknown", "already", "when",
        "until", "former", "latter", "one",
    ), _VETO),
}  # fmt: skip
"""Words of order: f(irst), s(econd), < before, > after, t(hen), p(reviously). A veto may turn any meaning round."""
_SAYS_X = re.compile(r"f?xf?|f?xf?[<t]ys?|xyt|(?:fx|xf)(?:y[st>]|sy)|>xy")
_SAYS_Y = re.compile(r"xs?>yf?|xsyf|<xyf?|xpyf?")
"""Whole lines, where x is the option that is named first and y the other."""

_REFERENCES = "\ue000\ue001"
"""What stands in a reply for an option that it names by its letter or in full."""
_BEFORE_LETTER = (
    "option", "choice", "answer", "letter", "is", "was", "it's", "be", "say", "with", "choose", "pick", "think",
    "believe", "but", "then", "after", "before", "than", "by", "to", "first", "followed", "preceded", "precedes",
    "follows", "so", "and", "or", "not", "definitely", "certainly", "probably", "clearly", "guess", "select", "chose",
)  # fmt: skip
_AFTER_LETTER = (
    "was", "is", "came", "comes", "happened", "occurred", "preceded", "precedes", "followed", "follows", "before",
    "after", "because", "since", "then", "and", "or", "but", "first$",
)  # fmt: skip
_LETTER = re.compile(
    r"[(\[]([ab])[)\]]|(?:(?<![^.,:;!\n])|(?<=[.,:;!\n] )"
    + "".join(rf"|(?<=\b{word} )|(?<=\b{word}: )" for word in _BEFORE_LETTER)
    + rf")([ab])(?=\)?$|[.,:;!?)\n]| [—–{_REFERENCES}-]| (?:{'|'.join(_AFTER_LETTER)})"
    r"|(?<=b) (?:second|later|last|first))"
)
"""A letter that can be no article, and no part of a name: in brackets, or between words that go with an option."""
_LOOSE_LETTER = re.compile(r"\bb\b")
"""A letter in a place that is not known: it may say anything."""
_TOKEN = re.compile(
    rf"[{_REFERENCES}]|\?|\b(?:{'|'.join(sorted(_SIGNS, key=len, reverse=True))})\b|[^\W_]+(?:'[^\W\d_]+)*"
)
_STATES_ANSWER = re.compile(rf"\banswer(?: is|:) ?[{_REFERENCES}]$")
_TELLING = content("mention say tell talk bring come hear discuss visit happen")
"""`After mentioning the dog` is about the dog; `after weighing the dog` is about the speaker."""


def chosen_option(text: str, options: Sequence[str]) -> int | None:
    """None: neither, both, or it can not be told for certain."""
    said = _with_references(unadorned(text), options)
    line = _line(said, options)
    if _VETO in line or _LOOSE_LETTER.search(said):
        return None
    choice = _first_in(line)
    if choice is None:
        choice = _agreed(sentences(said), options)
    return choice if choice is not None and _well_named(choice, said, options) else None


def _with_references(said: str, options: Sequence[str]) -> str:
    for option, sign in zip(options, _REFERENCES, strict=True):
        said = said.replace(unadorned(option), sign)
    return _LETTER.sub(lambda match: _REFERENCES["ab".index(match[1] or match[2])], said)


def _own(number: int, options: Sequence[str]) -> frozenset[str]:
    """Words that only this option has. One that tells of order itself is named in full, or by its letter, or not."""
    if set(_line_of_signs(options[number])) - {"."}:
        return frozenset()
    return content(options[number]) - content(options[1 - number])


def _line_of_signs(text: str) -> str:
    return "".join(_SIGNS.get(token, ".") for token in _TOKEN.findall(unadorned(text)))


def _line(said: str, options: Sequence[str]) -> str:
    """Signs and options in the order they are said, an option that is named on and on once."""
    own = [_own(number, options) for number in range(len(options))]
    signs = [_sign(token, own) for token in _TOKEN.findall(said)]
    line = re.sub(r"\.+", ".", "".join(sign for sign in signs if sign))
    if re.match(r"[<>]\.", line):
        return "."  # what it is that comes before or after is not an option
    return re.sub(r"([01])\1+", r"\1", line.replace(".", ""))


def _sign(word: str, own: Sequence[frozenset[str]]) -> str:
    if word in _REFERENCES:
        return str(_REFERENCES.index(word))
    if word == "?":
        return _VETO
    if word in _SIGNS:
        return _SIGNS[word]
    keys = {key(part) for part in words(word)}
    named = [number for number, theirs in enumerate(own) if keys & theirs]
    if named:
        return str(named[0])
    return "." if content(word) - _TELLING else ""


def _first_in(line: str) -> int | None:
    """Which option comes first, by a whole line."""
    named = re.search(r"[01]", line)
    if named is None:
        return None
    x = int(named[0])
    line = line.replace(str(x), "x").replace(str(1 - x), "y")
    if _SAYS_X.fullmatch(line):
        return x
    return 1 - x if _SAYS_Y.fullmatch(line) else None


def _agreed(parts: Sequence[str], options: Sequence[str]) -> int | None:
    """What every sentence says that names an option; of sentences that only name them, what the last one concludes."""
    lines = [line for line in (_line(part, options) for part in parts) if re.search("[01]", line)]
    meanings = {_first_in(line) for line in lines}
    if len(meanings) == 1:
        return meanings.pop()
    if parts and _STATES_ANSWER.search(parts[-1]) and all(line in ("0", "1") for line in lines):
        return int(lines[-1])
    return None


def _well_named(number: int, said: str, options: Sequence[str]) -> bool:
    """By its letter, in full, or by half of the words that only it has."""
    own = _own(number, options)
    return _REFERENCES[number] in said or 2 * len(own & content(said)) >= len(own) > 0
