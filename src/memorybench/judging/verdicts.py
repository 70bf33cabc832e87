"""Parses the reply of a judge: a single verdict word, or JSON of a fixed shape.

An uncertain reply is `Unreadable`, which costs a second call; a misread verdict would cost the score. A verdict word
counts only alone, at the beginning before its reasons, or at the end after them. Remarks that hedge or contradict it
make the reply unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memorybench.core.errors import BadInput, Unreadable
from memorybench.files.json_text import decode
from memorybench.text.normalisation import plain, tidy
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
    """Returns whether a remark leaves its verdict certain. Doubt costs a second call, not a wrong score."""
    return not _UNDECIDED.search(remark) and all(claim == verdict for claim in _claims(remark))


def _claims(remark: str) -> Iterator[bool]:
    """Yields for each clause that states it plainly whether the response is right."""
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

_THOUGHT_ENDS = re.compile(r"</(?:think|thinking|reasoning)>")
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
    """Returns whether the judge calls the response right; raises Unreadable if that is uncertain."""
    if finish in _UNFINISHED:
        raise Unreadable(f"the judge's reply {_UNFINISHED[finish]}: {preview(reply)}; expected yes or no")
    text = _THOUGHT_ENDS.split(plain(reply))[-1].strip()  # some servers omit the opening tag
    fenced = _FENCED.fullmatch(text)
    inner = (fenced[1] if fenced else text).strip()
    verdict = _json_verdict(inner) if inner.startswith("{") else _text_verdict(inner)
    if verdict is None:
        raise Unreadable(f"invalid verdict {preview(reply)}; expected yes or no")
    return verdict


def _json_verdict(text: str) -> bool | None:
    try:
        fields = decode(text, "the reply")
    except BadInput:
        return None
    decisive = fields.keys() & _JSON_VERDICTS
    if len(decisive) != 1 or not fields.keys() <= decisive | _JSON_REMARKS:
        return None
    value = fields[decisive.pop()]
    verdict = VERDICTS.get(value.strip().lower()) if isinstance(value, str) else value
    remarks = [fields[key] for key in fields.keys() & _JSON_REMARKS]
    if not isinstance(verdict, bool) or not all(isinstance(remark, str) for remark in remarks):
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


def _undecorated(text: str) -> str:
    text = tidy(_MARKUP.sub("", _TAGS.sub("\n", text.translate(_STRAIGHT))))
    # a ">" before a single line is decoration; before the first of several lines it is a quotation
    return text.strip(" #$|=<>:-–—") if "\n" not in text else text.strip(" #$|")
