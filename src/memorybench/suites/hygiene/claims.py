"""What all assertions have in common.

`claim` is a sentence that is true of a clean memory; it names the assertion in reports. `phases`: where it applies;
scripts made from the well-behaved one count as such. `rate`: whether it tells of `adoption` (what should be stored is)
or of `restraint` (what should not is not). `user`: whose memory; without it, that of everybody in the scenario.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from memorybench.core.records import Record
from memorybench.core.stores import Capability, StoredFact

from .evidence import Evidence
from .matching import Matcher, Some

Phase = Literal["well_behaved", "violation", "real_model"]
PHASES: tuple[Phase, ...] = ("well_behaved", "violation", "real_model")

LOOKS, REHEARSES, SEARCHES = range(3)
"""How much an assertion may disturb: a list is no trace, a dry run might be, a search counts as a retrieval."""


class Finding(Record):
    """What one assertion saw."""

    claim: str
    kind: str
    status: Literal["held", "broken", "skipped"]
    found: str = ""
    """What is wrong, or why nobody could look; of one that held, where it could not look."""
    rate: Literal["adoption", "restraint"] | None = None


class Claim(Record):
    needs: ClassVar[tuple[Capability, ...]] = ("list",)
    disturbs: ClassVar[int] = LOOKS

    claim: str = Field(min_length=1)
    phases: Some[Phase] = PHASES
    rate: Literal["adoption", "restraint"] | None = None
    user: str | None = None

    async def fault(self, evidence: Evidence) -> str:
        """What is wrong; "": nothing."""
        raise NotImplementedError

    def blind(self, evidence: Evidence) -> str:
        """Where it would look, were the store to let it."""
        return ""

    def refers_to(self) -> Iterable[str]:
        """Names of facts that must be known where it applies."""
        return ()


class Bounded(Claim):
    """About a number, none of which can be below zero."""

    equals: float | None = Field(default=None, ge=0)
    at_least: float | None = Field(default=None, ge=0)
    at_most: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _possible(self) -> Bounded:
        bounds = [bound for bound in (self.equals, self.at_least, self.at_most) if bound is not None]
        if bounds and not any(self.admits(bound) for bound in bounds):
            raise ValueError(f"no number is {self.wanted}; change one of the bounds")
        return self

    @property
    def bounded(self) -> bool:
        return (self.equals, self.at_least, self.at_most) != (None, None, None)

    def admits(self, value: float) -> bool:
        return (
            (self.equals is None or abs(value - self.equals) < 1e-6)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
        )

    @property
    def wanted(self) -> str:
        words = (("", self.equals), ("at least ", self.at_least), ("at most ", self.at_most))
        return " and ".join(f"{word}{bound:g}" for word, bound in words if bound is not None)


class Selecting(Claim, Matcher):
    @model_validator(mode="after")
    def _selects(self) -> Selecting:
        if not self.selective:
            raise ValueError("says of no text what it means; give contains, regex or normalised")
        return self


def quoted(facts: Sequence[StoredFact]) -> str:
    return ": " + ", ".join(f'"{fact.content}"' for fact in facts[:3]) if facts else ""
