"""Scenarios: JSON files that define a clean memory, for scripts and for agents.

    schema_version  1
    id              the file's name without .json
    title, description
    contract        "stable": a store that accepts the violation fails; "experimental": it is only reported
    setup           {"facts": [{"content", "category", "source", "trust", "retrieval_count", "user", "as"}],
                     "files": {"path in the workspace": "text"}}
    deterministic   {"well_behaved": [steps], "violation": {"expectation", "steps", "control", "defended_by"},
                     "equivalent": {"name of a mutant": "why it does no harm"}}
    real_model      {"prompts": ["text that a user types; each starts a session"], "max_turns": 8}, or null
    assertions      [{"kind", "claim", "phases", "rate", …}]

script.py describes the steps, assertions_*.py the assertions, placeholders.py the placeholders for secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from memorybench.core.records import Record
from memorybench.core.stores import NewFact
from memorybench.core.trials import Case

from .assertions import Assertion
from .assertions_base import NonEmpty, Phase
from .placeholders import fill_placeholders, generate_values, planted_names
from .script import USER, Step


class SetupFact(NewFact):
    """A fact that is in the store before the first step."""

    model_config = ConfigDict(populate_by_name=True)

    content: str = Field(min_length=1)
    trust: float | None = Field(default=None, ge=0, le=1)
    retrieval_count: int | None = Field(default=None, ge=0)
    user: str = Field(default=USER, min_length=1)
    name: str | None = Field(default=None, alias="as", min_length=1)


class Setup(Record):
    facts: tuple[SetupFact, ...] = ()
    files: Mapping[str, str] = {}

    @property
    def fact_names(self) -> set[str]:
        return {fact.name for fact in self.facts if fact.name is not None}


class Violation(Record):
    expectation: Literal["detect", "defend-or-detect"]
    steps: NonEmpty[Step]
    control: str | None = Field(default=None, min_length=1)
    """Harmless content for the same writes. If the store refuses this, too, its refusal does not count as a defence."""
    defended_by: Literal["refusal", "curation"] = "refusal"
    """What counts as a defence. `refusal`: the store blocks the writes. `curation`: or its curator removes them."""


class Deterministic(Record):
    well_behaved: tuple[Step, ...] = ()
    violation: Violation
    equivalent: Mapping[str, str] = {}
    """By name of a mutant: the reason why it does no harm."""


class RealModel(Record):
    prompts: NonEmpty[str]
    max_turns: int = Field(default=8, ge=1, le=100)


class Scenario(Case):
    schema_version: Literal[1]
    title: str = Field(min_length=1)
    description: str = Field(min_length=1)
    contract: Literal["stable", "experimental"]
    setup: Setup = Setup()
    deterministic: Deterministic
    real_model: RealModel | None
    assertions: NonEmpty[Assertion]

    @property
    def users(self) -> tuple[str, ...]:
        """All users of the scenario; assertions without `user` check the memory of each."""
        steps = (*self.deterministic.well_behaved, *self.deterministic.violation.steps)
        return tuple(dict.fromkeys((USER, *(fact.user for fact in self.setup.facts), *(step.user for step in steps))))

    @property
    def prompts(self) -> tuple[str, ...]:
        return self.real_model.prompts if self.real_model else ()

    def assertions_for(self, phase: Phase) -> tuple[Assertion, ...]:
        return tuple(assertion for assertion in self.assertions if phase in assertion.phases)

    def with_planted_values(self, seed: int) -> tuple[Scenario, Mapping[str, str]]:
        """Return the scenario with values in place of placeholders, and these values by name (`secret:api_key`)."""
        plain = self.plain()
        values = generate_values(planted_names(plain), seed, self.id)
        return Scenario.model_validate(fill_placeholders(plain, values)), values
