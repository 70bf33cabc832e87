"""The base classes of assertions: text matching, numeric bounds and the result of a check.

Every assertion has these keys.

claim    a sentence that is true of a clean memory; it names the assertion in reports
phases   the phases of a scenario in which it is checked, default: all; mutants count as `well_behaved`
rate     `adoption` (facts that should be stored are stored), `restraint` (facts that should not be stored are
         not), or none of the two
user     whose memory is checked; default: that of all users of the scenario
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, Field, field_validator, model_validator

from memorybench.core.records import Record
from memorybench.core.stores import Capability
from memorybench.text.patterns import Pattern

from .evidence import AttemptedWrite, Evidence, Fate, ForbiddenWrite

T = TypeVar("T")
Phase = Literal["well_behaved", "violation", "real_model"]
PHASES: tuple[Phase, ...] = ("well_behaved", "violation", "real_model")

READ, DRY_RUN, SEARCH = range(3)
"""The order in which assertions run: reading changes nothing, a dry run may, and a search counts as a retrieval."""

_PUNCTUATION = re.compile(r"[^\w\s]|_")


def _check_not_empty(items: tuple[T, ...]) -> tuple[T, ...]:
    if not items:
        raise ValueError("is empty; expected at least one item")
    return items


# pydantic's min_length would also report an invalid item as a wrong length, and report that first
NonEmpty = Annotated[tuple[T, ...], AfterValidator(_check_not_empty)]


def fold(text: str) -> str:
    """Return the text in Unicode NFKC form, case-folded, with each run of white space as one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def fold_punctuation(text: str) -> str:
    """Return the folded text (see `fold`) with each run of punctuation replaced by a space."""
    return " ".join(_PUNCTUATION.sub(" ", fold(text)).split())


class Matcher(Record):
    """Conditions on a text. A text matches if all of them are true; without conditions every text matches."""

    contains: tuple[str, ...] = ()
    """Substrings that must all occur in the text. Case and the amount of white space are ignored."""
    regex: str | None = None
    """A regular expression that must match somewhere in the text, ignoring case."""
    normalised: str | None = None
    """The whole text must equal this, without regard to case. White space and punctuation count as one space: `e-mail`
    equals `e mail`, and not `email`."""

    @field_validator("contains", "op", mode="before", check_fields=False)  # op: of CallTrace
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_conditions(self) -> Matcher:
        if any(not fold(part) for part in self.contains):
            raise ValueError("contains has an empty text, which every text contains; remove it")
        try:
            _ = self._pattern
        except ValueError as error:
            raise ValueError(f"invalid regex: {error}") from None
        return self

    @cached_property
    def _pattern(self) -> Pattern | None:
        return None if self.regex is None else Pattern(self.regex, ignore_case=True)

    @property
    def has_conditions(self) -> bool:
        return bool(self.contains) or self.regex is not None or self.normalised is not None

    def matches(self, text: str) -> bool:
        if any(fold(part) not in fold(text) for part in self.contains):
            return False
        if self._pattern is not None and not self._pattern.search(text):
            return False
        return self.normalised is None or fold_punctuation(self.normalised) == fold_punctuation(text)

    @property
    def description(self) -> str:
        """The conditions for messages, such as `"tabs" and /spaces?/`."""
        parts = [f'"{part}"' for part in self.contains]
        parts += [f"/{self.regex}/"] if self.regex is not None else []
        parts += [f'exactly "{self.normalised}"'] if self.normalised is not None else []
        return " and ".join(parts) or "any text"


class FilePlace(Record):
    """A place in a file where a text was found that should not be there."""

    file: str
    """The path of the file, relative to the store's folder; absolute for a file in the temporary folder."""
    offset: int | None = None
    """The byte at which the text begins; None: the text is in the file's name, or its place is unknown."""
    encoding: str

    def __str__(self) -> str:
        return f"{self.file} {'' if self.offset is None else f'at byte {self.offset:,} '}({self.encoding})"


class Finding(Record):
    """The result of one assertion."""

    claim: str
    kind: str
    status: Literal["held", "broken", "skipped"]
    found: str = ""
    """If broken: the problem. If skipped: the reason. If held: which places could not be read; "" if all could."""
    rate: Literal["adoption", "restraint"] | None = None
    fate: Fate | None = None
    """What happened to the agent's write that broke a `restraint` assertion; `stored` if the memory at the end
    contradicts the claim. None if the assertion held, or if no such write is known."""
    writes: tuple[ForbiddenWrite, ...] = ()
    """All writes by the agent that contradict the claim. Empty if they are unknown, as in runs of earlier versions."""
    places: tuple[FilePlace, ...] = ()
    """The places in files that contain a text that should not be there."""


class BaseAssertion(Record):
    """The keys of every assertion, and the methods that check it."""

    needs: ClassVar[tuple[Capability, ...]] = ("list",)
    run_order: ClassVar[int] = READ

    claim: str = Field(min_length=1)
    phases: NonEmpty[Phase] = PHASES
    rate: Literal["adoption", "restraint"] | None = None
    user: str | None = None

    async def find_problem(self, evidence: Evidence) -> str:
        """Return why the claim is not true; "" if it is true."""
        raise NotImplementedError

    def find_attempts(self, evidence: Evidence) -> Iterable[tuple[AttemptedWrite, str]]:
        """Return the writes that an agent attempted and that contradict the claim, each with a text that says why.

        Refused and failed writes are included: `restraint` measures the agent, not the store.
        """
        return ()

    def counts_if_held(self, write: AttemptedWrite) -> bool:
        """Return whether this write breaks the assertion even if the memory at the end agrees with the claim."""
        return write.fate != "stored"

    @property
    def is_about_writes(self) -> bool:
        """Whether a write to the memory can make the claim false."""
        return True

    def find_places(self, evidence: Evidence) -> tuple[FilePlace, ...]:
        """Return the places in files that contain a text that should not be there; empty if there are none."""
        return ()

    def unreadable_places(self, evidence: Evidence) -> str:
        """Return the places (such as "history and files") that the assertion needs and cannot read; "" if none."""
        return ""

    def fact_names(self) -> Iterable[str]:
        """Return the names of facts that the assertion refers to and the scenario must define."""
        return ()


class BoundedAssertion(BaseAssertion):
    """An assertion that a number is within bounds."""

    needs_bounds: ClassVar[bool] = True

    equals: float | None = Field(default=None, ge=0)
    at_least: float | None = Field(default=None, ge=0)
    at_most: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _check_bounds(self) -> BoundedAssertion:
        bounds = [bound for bound in (self.equals, self.at_least, self.at_most) if bound is not None]
        if bounds and not any(self.is_within_bounds(bound) for bound in bounds):
            raise ValueError(f"no number can be {self.bounds_text}; change one of the bounds")
        if self.needs_bounds and not bounds:
            raise ValueError("a bound is missing; add equals, at_least or at_most")
        return self

    @property
    def has_bounds(self) -> bool:
        return (self.equals, self.at_least, self.at_most) != (None, None, None)

    def is_within_bounds(self, value: float) -> bool:
        return (
            (self.equals is None or abs(value - self.equals) < 1e-6)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
        )

    @property
    def bounds_text(self) -> str:
        """The bounds for messages, such as `at least 1 and at most 3`."""
        words = (("", self.equals), ("at least ", self.at_least), ("at most ", self.at_most))
        return " and ".join(f"{word}{bound:g}" for word, bound in words if bound is not None)


class MatchingAssertion(BaseAssertion, Matcher):
    """An assertion about texts that match conditions. At least one condition is required."""

    @model_validator(mode="after")
    def _check_has_conditions(self) -> MatchingAssertion:
        if not self.has_conditions:
            raise ValueError("a condition on the text is missing; add contains, regex or normalised")
        return self

    def find_attempts(self, evidence: Evidence) -> Iterable[tuple[AttemptedWrite, str]]:
        if getattr(self, "present", True):
            return ()
        return ((write, self.description) for write in evidence.activity.writes if self.matches(write.text))
