"""The statement itself with a gap, for facts that no shape fits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memorybench.core.conversation import Fact

from .askable import Askable
from .clauses import read_clause
from .subjects import split_subject, tidy
from .wellformed import GAP
from .words import NUMBERS, content

_LEADING = re.compile(r"^(?:an?|the|their|his|her|its|some|about|around|over|all) ", re.IGNORECASE)
_LONGEST = 22
_SPANS = (
    re.compile(r"(?<![\w-])\d[\d.,:]*\d\b(?!-\d)|(?<![\w-])\d+\b(?!-\d)"),
    re.compile(r"(?<=[a-z,] )[A-Z][\w'-]*(?: (?:of |the )?[A-Z][\w'-]*)*"),
    re.compile(rf"\b(?:{'|'.join(NUMBERS)})\b(?<!rd)(?<!th)(?! of\b)"),
)
"""What informs most: numbers, then names."""


def gapped(fact: Fact) -> Iterator[Askable]:
    """The fact with one gap each, the most informative first."""
    split = split_subject(tidy(fact.content))
    if split is None:
        return
    subject, said = split
    shown = f"{subject} {said}"
    if len(shown.split()) > _LONGEST:
        return
    start = len(subject)  # the subject says whom it is about, so it stays
    for value in dict.fromkeys(_values(subject, said)):
        place = shown.find(value, start)
        text = f"{shown[:place]}{GAP}{shown[place + len(value) :]}"
        if place > start + 1 and len(content(text) - content(subject)) > 0 and content(value):
            yield Askable(
                fact=fact.id, subject=subject, attribute=" ".join(sorted(content(text))), value=value,
                question=f"Fill the gap: {text[0].upper()}{text[1:]}.", origin="cloze", shape="cloze",
            )  # fmt: skip


def _values(subject: str, said: str) -> Iterator[str]:
    for span in _SPANS:
        yield from (match[0].strip(" ,").removesuffix("'s") for match in span.finditer(said))
    clause = read_clause(subject, said)
    for phrase in reversed(clause.phrases if clause is not None else ()):
        value = _LEADING.sub("", phrase.text).strip(" ,")
        if phrase.kind != "clause" and 0 < len(value.split()) <= 4:
            yield value
            # in `a pottery class` the class may stay: it says what is asked
            yield from (word for word in value.split()[:-1] if content(word))
