"""The statement itself with a gap, for facts that no shape fits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memorybench.vocabulary.conversation import Fact

from .askable import Askable
from .lexicon import ADVERBS, listed
from .phrases import phrases
from .subjects import USER, split_subject, third_person, tidy
from .verbs import is_past, is_third_person
from .words import NUMBERS, content

GAP = "____"
_LEADING = re.compile(r"^(?:an?|the|their|his|her|its|some|about|around|over) ", re.IGNORECASE)
_LONGEST = 22
_PALE = frozenset(listed("new first second last next old big small good great little other bit few own early late"))
"""Adjectives that nobody remembers a thing by."""
_SPANS = (
    re.compile(r"\b\d[\d.,:]*\d\b|\b\d+\b"),
    re.compile(r"(?<=[a-z,] )[A-Z][\w'-]*(?: (?:of |the )?[A-Z][\w'-]*)*"),
    re.compile(rf"\b(?:{'|'.join(NUMBERS)})\b"),
)
"""What informs most: numbers, then names."""


def gapped(fact: Fact) -> Iterator[Askable]:
    """The fact with one gap each, the most informative first."""
    statement = tidy(fact.content)
    split = split_subject(statement)
    subject, said = split if split is not None else ("", third_person(statement))
    shown = f"{subject} {said}".strip()
    if len(shown.split()) > _LONGEST:
        return
    start = len(subject)  # the subject says whom it is about, so it stays
    for value in dict.fromkeys(_values(said)):
        place = shown.find(value, start)
        text = f"{shown[:place]}{GAP}{shown[place + len(value) :]}"
        if place > start + 1 and len(content(text) - content(subject)) > 0 and content(value):
            yield Askable(
                fact=fact.id, subject=subject or USER, attribute=" ".join(sorted(content(text))), value=value,
                question=f"Fill the gap: {text[0].upper()}{text[1:]}.", origin="cloze", shape="cloze",
            )  # fmt: skip


def _values(said: str) -> Iterator[str]:
    for span in _SPANS:
        yield from (match[0].strip(" ,") for match in span.finditer(said))
    for phrase in reversed(phrases(said, "")):
        value = _LEADING.sub("", phrase.text).strip(" ,")
        if phrase.kind != "clause" and 0 < len(value.split()) <= 4:
            yield value
            # in `a pottery class` the class may stay: it says what is asked
            yield from (word for word in value.split()[:-1] if _tells(word))


def _tells(word: str) -> bool:
    return bool(content(word)) and not (is_third_person(word) or is_past(word) or word in _PALE or word in ADVERBS)
