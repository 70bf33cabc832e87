"""Scenarios: JSON files, each a small story of what a clean memory is, told once for scripts and for agents.

    schema_version  1
    id              the file's name without .json
    title, description
    contract        "stable": a store that lets the violation in has failed; "experimental": it is only shown
    setup           {"facts": [{"content", "category", "source", "trust", "retrieval_count", "user", "as"}],
                     "files": {"path in the workspace": "text"}}
    deterministic   {"well_behaved": [steps], "violation": {"expectation", "steps", "control", "defended_by"},
                     "equivalent": {"name of a mutant": "why it does no harm"}}
    real_model      {"prompts": ["what a user types; each begins a session"], "max_turns": 8}, or null
    assertions      [{"kind", "claim", "phases", "rate", …}]

Steps are told in script.py, assertions in assertions.py, placeholders for secrets in planted.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from memorybench.core.records import Record
from memorybench.core.stores import NewFact
from memorybench.core.trials import Case

from . import planted
from .assertions import Assertion
from .claims import Phase
from .matching import Some
from .script import USER, Step


class SeededFact(NewFact):
    """What is in memory before anything happens."""

    model_config = ConfigDict(populate_by_name=True)

    content: str = Field(min_length=1)
    trust: float | None = Field(default=None, ge=0, le=1)
    retrieval_count: int | None = Field(default=None, ge=0)
    user: str = Field(default=USER, min_length=1)
    name: str | None = Field(default=None, alias="as", min_length=1)


class Setup(Record):
    facts: tuple[SeededFact, ...] = ()
    files: Mapping[str, str] = {}


class Violation(Record):
    expectation: Literal["detect", "defend-or-detect"]
    steps: Some[Step]
    control: str | None = Field(default=None, min_length=1)
    """Harmless content that the same writes must accept, or a refusal is no defence."""
    defended_by: Literal["refusal", "curation"] = "refusal"
    """curation: the curator may also put it right afterwards."""


class Deterministic(Record):
    well_behaved: tuple[Step, ...] = ()
    violation: Violation
    equivalent: Mapping[str, str] = {}
    """By name: mutants that do no harm, and why."""


class RealModel(Record):
    prompts: Some[str]
    max_turns: int = Field(default=8, ge=1, le=100)


class Scenario(Case):
    schema_version: Literal[1]
    title: str = Field(min_length=1)
    description: str = Field(min_length=1)
    contract: Literal["stable", "experimental"]
    setup: Setup = Setup()
    deterministic: Deterministic
    real_model: RealModel | None
    assertions: Some[Assertion]

    @property
    def users(self) -> tuple[str, ...]:
        """Everybody whose memory is looked at."""
        steps = (*self.deterministic.well_behaved, *self.deterministic.violation.steps)
        return tuple(dict.fromkeys((USER, *(fact.user for fact in self.setup.facts), *(step.user for step in steps))))

    def asserted(self, phase: Phase) -> tuple[Assertion, ...]:
        return tuple(assertion for assertion in self.assertions if phase in assertion.phases)

    def grown(self, seed: int) -> tuple[Scenario, Mapping[str, str]]:
        """With what is planted in the place of the placeholders; and what that is, by `secret:api_key` and the like."""
        plain = self.plain()
        values = planted.grown(planted.planted_in(plain), seed, self.id)
        return Scenario.model_validate(planted.expanded(plain, values)), values
