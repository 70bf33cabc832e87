"""Parses the reply of a judge: a single verdict word, or JSON of a fixed shape.

An uncertain reply is `Unreadable`, which costs a second call; a misread verdict would make the score wrong. A verdict
word counts only alone, at the beginning before its reasons, or at the end after them. Remarks that weaken or contradict
it make the reply unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memorybench.core.errors import BadInput, Unreadable
from memorybench.files.json_text import decode
from memorybench.text.normalisation import plain, tidy
from memorybench.text.reasoning import without_reasoning
from memorybench.text.sanitize import preview

_UNDECIDED = re.compile(
    r"\?|(?:^|[.!\n])\s*(?:is|are|was|were|does|do|did|has|have|can|any|whether)\b"  # questions, marked or not
    r"|^[\s.,;–—-]*(?:but|though|although|except|apart|if|unless|only)\b"
    r"|^\s*[.:(]\s*\d"  # "No. 5", "yes: 0.2"
    r"|\b(?:partial(?:ly)?|partly|in part|perhaps|maybe|possibly|probably|mostly|somewhat|nearly|almost|unsure|unclear"
    r"|incomplete(?:ly)?|(?:sort|kind) of|in a sense|reservations?|caveats?"
    r"|to some extent|arguably|technically|borderline"
    r"|not (?:sure|certain)|on (?:second thought|reflection)|actually|wait|or rather|however|otherwise"
    r"|i(?:'m| am)? (?:sorry|unable|not able|can(?:'t|not| not)?|could|will|understand)|please|as an ai)\b",
    re.IGNORECASE,
)
_CLAUSES = re.compile(r"[.,;:!\n]|\b(?:but|while|although|whereas)\b")
_FAULTED = re.compile(r"\b(?:in(?:correct|accurate)|wrong|false|mistaken)(?:ly)?\b|\buntrue\b", re.IGNORECASE)
_PRAISED = re.compile(
    r"\b(?:is|are|was|were)\s+(?:\w+\s+){0,2}?(?:correct|right|accurate|equivalent|true)\b(?!\s+(?:answer|response))"
    r"|\bcontains?\s+the\s+(?:correct|right|gold)\s+answer\b"
    r"|\b(?:match(?:es)?|agrees?|satisf(?:y|ies)|correctly|accurately)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:is|are|was|were|does|do|did|has|have|had|can|could)(?:\s+not|n't)\b|\b(?:cannot|never|neither)\b"
    r"|\b(?:fails?|lacks?|miss(?:es|ing))\b",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:not|no|nothing|never|neither|cannot)\b|n't\b", re.IGNORECASE)


def bears_out(remark: str, verdict: bool) -> bool:
    """Return whether a remark agrees with its verdict: it neither contradicts nor weakens it."""
    return not _UNDECIDED.search(remark) and all(claim == verdict for claim in _claims(remark))


def _claims(remark: str) -> Iterator[bool]:
    """Yield, for each clause that plainly calls the response right or wrong, True or False."""
    for clause in _CLAUSES.split(remark):
        if _FAULTED.search(clause):
            yield bool(_NOT.search(clause))
        elif praised := _PRAISED.search(clause):
            yield not _NOT.search(clause[: praised.end()])
        elif _DENIED.search(clause):
            yield False


VERDICTS = {
    "yes": True,
    "correct": True,
    "true": True,
    "no": False,
    "incorrect": False,
    "wrong": False,
    "false": False,
    "not correct": False,
    "not true": False,
}
_UNFINISHED = {"length": "was cut off", "filter": "was filtered", "tools": "called a tool"}
_JSON_VERDICTS = frozenset(("verdict", "correct", "is_correct", "label", "answer", "judgment", "judgement"))
_JSON_REMARKS = frozenset(("reason", "reasoning", "explanation", "rationale"))

_FENCED = re.compile(r"(?:[^\n{`]{0,80}:\s*)?```\w*\s(.*?)```", re.DOTALL)
_TAGS = re.compile(r"</?(?:answer|verdict|judge?ment|b|strong|em|i|p)>")
_MARKUP = re.compile(r"[*_`]|(?<!~)~(?!~)|\\boxed\{|\}(?=\$?$)")  # ~~struck out~~ text keeps its marks and is not read
_STRAIGHT = str.maketrans("“”«»‘’。", '""""\'\'.', "\ufe0f")
_APPROVALS, _REJECTIONS = "✅☑✔👍", "❌✖✗✘👎"
_SIGNS = re.compile(f"[{_APPROVALS}{_REJECTIONS}]")

_WORD = "|".join(sorted(VERDICTS, key=len, reverse=True))
_QUOTED = rf"(?P<open>[\"'(\[])?(?P<word>{_WORD})(?(open)[.,!]?[\"')\]])"
_LABEL = (
    r"(?:(?:so|thus|hence|therefore)[,:]?\s+)?(?:(?:the|my)\s+)?(?:final\s+)?"
    r"(?:answer|verdict|judge?ment|decision|conclusion|result|label)\s*(?:is|[:=])+\s*"
    r"|(?:so|thus|hence|therefore)[,:]\s*|correct\s*[:=]\s*|is the (?:response|answer) correct\?\s*"
)
_ENDS_THERE = r"(?=\s*$|\s*[.,;:!](?!\.)|\n|\s+(?:[-–—(]|because\b|since\b))"
_OPENING = re.compile(rf"(?:\d+\.\s+)?(?:{_LABEL})?{_QUOTED}{_ENDS_THERE}", re.IGNORECASE)
_CLOSING = re.compile(rf"(?:\n(?:{_LABEL})?|[.!]\s+(?:{_LABEL})){_QUOTED}[.!]*$", re.IGNORECASE)
_SENTENCE = re.compile(
    r"(?:the (?:response|answer)|it|this|that) is (?P<word>(?:not )?(?:correct|true)|incorrect|wrong|false)[.!]*",
    re.IGNORECASE,
)
# "no" before a noun ("no mention of it") is not a verdict unless it opens a clause
_ANOTHER = re.compile(
    r"\byes\b|(?:^|[.,;:!?(\n])\s*no\b|\bno\b(?!\s+\w|-\w)"
    r"|(?:^|[.!:=\n])\s*(?:correct|incorrect|true|false|wrong)\s*(?:[.,;!\n]|$)",
    re.IGNORECASE,
)


def read_verdict(reply: str, finish: str = "stop") -> bool:
    """Return whether the judge calls the response right; raise Unreadable if that is uncertain."""
    inner = _inner_text(reply, finish, "yes or no")
    verdict = _json_verdict(inner) if inner.startswith("{") else _text_verdict(inner)
    if verdict is None:
        raise Unreadable(f"invalid verdict of the judge: {preview(reply)}; expected yes or no")
    return verdict


def check_finished(reply: str, finish: str, expected: str) -> None:
    """Raise Unreadable if the model did not finish its reply. `expected` is named in the error, such as `yes or no`."""
    if finish in _UNFINISHED:
        raise Unreadable(f"the judge's reply {_UNFINISHED[finish]}: {preview(reply)}; expected {expected}")


def _inner_text(reply: str, finish: str, expected: str) -> str:
    """Return a reply without its reasoning and without a code fence around it."""
    check_finished(reply, finish, expected)
    text = without_reasoning(plain(reply)).strip()
    fenced = _FENCED.fullmatch(text)
    return (fenced[1] if fenced else text).strip()


ITEM_SCORES = (0.0, 0.5, 1.0)
"""The scores that a rubric item can have."""
_SCORE = r"(?P<score>0?\.50?|0(?:\.00?)?|1(?:\.00?)?)"
_SCORE_LINE = re.compile(
    rf"(?:(?:(?:the|my)\s+)?(?:final\s+)?(?:score|grade|rating|answer|verdict)\s*(?:is|[:=])+\s*)?[\"'(\[]?{_SCORE}[\"')\]]?\.?",
    re.IGNORECASE,
)
_SCORE_LABELLED = re.compile(rf"\b(?:score|grade|rating)\s*(?:is|of|[:=])+\s*{_SCORE}(?![\d.]*\d)", re.IGNORECASE)
_JSON_SCORES = frozenset(("score", "rating", "grade"))


def read_item_score(reply: str, finish: str = "stop") -> float:
    """Return the score of an item of a rubric: 0, 0.5 or 1. Raise Unreadable if it is uncertain.

    The score must be a line of its own, the first or the last, or the field `score` of a JSON object.
    """
    inner = _inner_text(reply, finish, "0, 0.5 or 1")
    score = _json_score(inner) if inner.startswith("{") else _text_score(inner)
    if score is None:
        raise Unreadable(f"invalid score of the judge: {preview(reply)}; expected 0, 0.5 or 1")
    return score


def _json_score(text: str) -> float | None:
    fields = _json_reply(text, _JSON_SCORES)
    value = None if fields is None else fields[0]
    if isinstance(value, str) and (found := re.fullmatch(_SCORE, value.strip())):
        value = float(found["score"])
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in ITEM_SCORES:
        return None
    return float(value)


def _text_score(text: str) -> float | None:
    if "<think" in text:
        return None  # unfinished reasoning
    # a leading dash stays, so that -1 is not read as 1
    lines = _without_markup(text).splitlines()
    lines = [line for line in lines if line.strip()]
    read = {place: _SCORE_LINE.fullmatch(line.strip()) for place, line in enumerate(lines)}
    scores = {place: float(found["score"]) for place, found in read.items() if found}
    if len(set(scores.values())) != 1 or not {0, len(lines) - 1} & scores.keys():
        return None
    score = next(iter(scores.values()))
    others = (float(found["score"]) for found in _SCORE_LABELLED.finditer(text))
    return score if all(other == score for other in others) else None


def _json_reply(text: str, verdicts: frozenset[str]) -> tuple[Any, list[str]] | None:
    """Return the value of the one JSON field whose name is in `verdicts`, and the judge's remarks.

    Return None if the reply has no such field, several of them, or a field that is neither a verdict nor a remark.
    """
    try:
        fields = decode(text, "the reply")
    except BadInput:
        return None
    decisive = fields.keys() & verdicts
    if len(decisive) != 1 or not fields.keys() <= decisive | _JSON_REMARKS:
        return None
    remarks = [fields[key] for key in fields.keys() & _JSON_REMARKS]
    return (fields[decisive.pop()], remarks) if all(isinstance(remark, str) for remark in remarks) else None


def _json_verdict(text: str) -> bool | None:
    fields = _json_reply(text, _JSON_VERDICTS)
    if fields is None:
        return None
    value, remarks = fields
    verdict = VERDICTS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(verdict, bool):
        return None
    return verdict if all(bears_out(remark, verdict) for remark in remarks) else None


def _text_verdict(text: str) -> bool | None:
    if "<think" in text:
        return None  # unfinished reasoning
    signs = _SIGNS.findall(text)
    text = _undecorated(_SIGNS.sub("", text))
    found = _SENTENCE.fullmatch(text) or _OPENING.match(text) or _CLOSING.search(text)
    if found is None:
        return None
    verdict = VERDICTS[found["word"].lower()]
    before, after = text[: found.start()], text[found.end() :]
    if before.endswith(":"):
        return None  # the reply quotes the response
    sure = all((sign in _APPROVALS) == verdict for sign in signs) and all(
        bears_out(remark, verdict) and not _ANOTHER.search(remark) for remark in (before, after)
    )
    return verdict if sure else None


def _without_markup(text: str) -> str:
    return tidy(_MARKUP.sub("", _TAGS.sub("\n", text.translate(_STRAIGHT))))


def _undecorated(text: str) -> str:
    text = _without_markup(text)
    # a ">" before a single line is decoration; before the first of several lines it is a quotation
    return text.strip(" #$|=<>:-–—") if "\n" not in text else text.strip(" #$|")
