"""Every way to ask about a fact, best first: the dataset's own question, by its structure, by grammar, by a gap."""

from __future__ import annotations

from collections.abc import Iterator

from memorybench.core.conversation import Fact

from .askable import Askable
from .cloze import gapped
from .grammar import readings
from .templates import named_subject, structured_reading


def ways_to_ask(fact: Fact) -> Iterator[Askable]:
    structured = structured_reading(fact)
    if fact.question and fact.value:
        yield _given(fact, fact.question, fact.value)
    if structured is not None:
        yield structured
    if fact.value:
        return  # the dataset says what the fact tells; a reading of its text could say otherwise
    yield from readings(fact)
    yield from gapped(fact)


def _given(fact: Fact, question: str, value: str) -> Askable:
    return Askable(
        fact=fact.id, subject=named_subject(fact.subject), attribute=fact.attribute or "", question=question,
        value=value, origin="given", shape="given",
    )  # fmt: skip
