"""Checks whether the remarks beside a verdict support it.

Only wording is checked: judges that hedge, correct themselves, refuse, or say yes to what "is wrong". A remark that
contradicts its verdict by facts alone ("Yes. It says Porto, not Lisbon") is not detected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
