"""A fact as it can be asked about."""

from __future__ import annotations

from typing import Literal

from memorybench.core.records import Record

Origin = Literal["structured", "grammar", "cloze", "model", "given"]


class Askable(Record):
    fact: str
    subject: str
    attribute: str
    """What is asked of the subject; facts that change one another share it."""
    value: str
    question: str
    origin: Origin
    shape: str
    """The pattern or template that made it."""
