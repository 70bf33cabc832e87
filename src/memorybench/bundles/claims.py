"""The results of checking a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from memorybench.core.records import Record
from memorybench.core.trials import Outcome
from memorybench.text.sanitize import printable, shorten

Level = Literal["proved", "declared", "unchecked", "contradicted"]
LEVELS: dict[Level, str] = {
    "proved": "recomputed here from other parts of the bundle, or from the data",
    "declared": "stated by the author; nothing here contradicts it",
    "unchecked": "could be checked, and was not: something is missing here",
    "contradicted": "what the bundle says is wrong",
}
"""What each level means, best first."""
_MOST_EXAMPLES = 5


class Claim(Record):
    """One kind of statement that a bundle makes, and the result of checking it."""

    name: str
    level: Level
    n: int | None = None
    """How many statements of this kind have this result; None: not counted."""
    text: str
    """What was checked and found, or why it was not checked."""
    examples: tuple[str, ...] = ()
    """Some of the statements that are contradicted, or that could not be checked."""
    names: tuple[str, ...] = ()
    """For claims about scores or configs: the names of these scores or configs."""


class Verification(Record):
    """The result of `memorybench verify`."""

    file: str
    run_id: str
    suite: str
    root: str
    public: bool
    claims: tuple[Claim, ...]
    same_inputs: frozenset[str] = Field(frozenset(), exclude=True)
    """The keys of steps whose recorded inputs equal those recomputed from the case and earlier steps."""

    @property
    def contradicted(self) -> list[Claim]:
        return [claim for claim in self.claims if claim.level == "contradicted"]

    @property
    def is_consistent(self) -> bool:
        return not self.contradicted

    @property
    def level(self) -> Literal["contradicted", "consistent", "recomputed", "recomputed with data"]:
        """The level of the whole bundle.

        `consistent`: no scores were recomputed. `recomputed`: at least some were. `recomputed with data`: all were, and
        questions, their selection, trials and configs were checked, too.
        """
        if not self.is_consistent:
            return "contradicted"
        if all(one.level != "proved" for one in self.claims if one.name == "scores"):
            return "consistent"
        levels = {one.level for one in self.claims if one.name in ("scores", "cases", "selection", "trials", "configs")}
        return "recomputed with data" if levels == {"proved"} else "recomputed"

    def document(self) -> dict[str, Any]:
        return {"level": self.level, "consistent": self.is_consistent, **self.plain()}


def claim(
    name: str,
    level: Level,
    text: str,
    examples: Sequence[str] = (),
    n: int | None = None,
    names: Sequence[str] = (),
) -> Claim:
    """Return a claim with at most five of the examples. If `n` is None, the claim's `n` is the number of examples."""
    count = len(examples) or None if n is None else n
    return Claim(
        name=name, level=level, text=text, n=count, examples=tuple(examples[:_MOST_EXAMPLES]), names=tuple(names)
    )


def claims(
    name: str,
    level: Level,
    text: str,
    examples: Sequence[str] = (),
    n: int | None = None,
    names: Sequence[str] = (),
) -> Iterator[Claim]:
    """Yield the claim that `claim` returns, but only if there are examples or `n` is above 0."""
    if examples or n:
        yield claim(name, level, text, examples, n, names)


def outcome_name(outcome: Outcome) -> str:
    """Return a short name of the trial of an outcome, for messages."""
    trial = outcome.trial
    parts = (trial.benchmark, trial.case_id, trial.subject.name, trial.variant, trial.repeat_name)
    return bundle_text(" × ".join(part for part in parts if part))


def name_list(names: Iterable[str]) -> str:
    return shorten(bundle_text(", ".join(sorted(names))), 300)


def bundle_text(text: str) -> str:
    """Return a text from the bundle, shortened and without control characters, for use in messages."""
    return shorten(printable(text), 400)
